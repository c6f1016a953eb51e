//! Several runs in the same axes.

use std::collections::BTreeMap;

use super::{Axis, Body, Figure, Mark, Region, Scale, Series, Unit};

/// The figures of several runs laid over each other: those with the same id become one, with the series of
/// all. Maps cannot lie over each other; they stay apart, with the run's name in the title. `runs` are
/// names with figures, in the order of the indices in their series.
pub fn together(runs: Vec<(String, Vec<Figure>)>) -> Vec<Figure> {
    let several = runs.len() > 1;
    let mut all: Vec<Figure> = Vec::new();
    for (name, figures) in runs {
        for mut figure in figures {
            if several {
                figure.in_words = format!("{name}: {}", figure.in_words);
            }
            match all.iter_mut().find(|known| known.id == figure.id && can_share(known, &figure)) {
                Some(known) => lay_over(known, figure, &name),
                None => {
                    if several && matches!(figure.body, Body::Map(_)) {
                        figure.title = format!("{}: {name}", figure.title);
                    }
                    all.push(figure);
                }
            }
        }
    }
    number_ids(&mut all);
    all
}

fn can_share(one: &Figure, other: &Figure) -> bool {
    let same = |one: &Axis, other: &Axis| one.unit == other.unit && one.label == other.label;
    let series = |figure: &Figure| matches!(figure.body, Body::Series(_));
    series(one) && series(other) && same(&one.x, &other.x) && same(&one.y, &other.y)
}

fn lay_over(under: &mut Figure, mut over: Figure, name: &str) {
    share_names(&mut under.x, &mut over);
    for (under, over) in [(&mut under.x, &over.x), (&mut under.y, &over.y)] {
        if over.scale == Scale::Log {
            under.scale = Scale::Log;
        }
    }
    under.in_words = format!("{}\n{}", under.in_words, over.in_words);
    let has = |marks: &[Mark], mark: &Mark| marks.iter().any(|known| known == mark);
    for mut mark in over.marks {
        if !has(&under.marks, &mark) {
            mark.label = format!("{} ({name})", mark.label);
            under.marks.push(mark);
        }
    }
    // Shades of two runs would hide each other: the first that has any has them.
    if under.regions.is_empty() {
        let named =
            |region: Region| Region { label: format!("{} ({name})", region.label), ..region };
        under.regions = over.regions.into_iter().map(named).collect();
    }
    if let (Body::Series(under), Body::Series(over)) = (&mut under.body, over.body) {
        under.extend(over);
    }
}

/// Positions on an axis of names are indices into its list: that of `over` becomes part of the other.
fn share_names(under: &mut Axis, over: &mut Figure) {
    if under.unit != Unit::Names {
        return;
    }
    let mut places: Vec<f64> = Vec::new();
    for name in &over.x.names {
        let known = under.names.iter().position(|known| known == name);
        let place = known.unwrap_or_else(|| {
            under.names.push(name.clone());
            under.names.len() - 1
        });
        places.push(place as f64);
    }
    let moved = |x: f64| places.get(x as usize).copied().unwrap_or(x);
    if let Body::Series(series) = &mut over.body {
        for Series { points, .. } in series {
            points.iter_mut().for_each(|point| point.x = moved(point.x));
            points.sort_by(|one, other| one.x.total_cmp(&other.x));
        }
    }
}

/// The second of ids that are alike gets a 2.
fn number_ids(figures: &mut [Figure]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for figure in figures {
        let times = seen.entry(figure.id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            figure.id = format!("{}-{times}", figure.id);
        }
    }
}
