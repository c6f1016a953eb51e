//! Several runs in the same axes.

use std::collections::BTreeMap;

use crate::figure::{Axis, Body, Figure, Region, Role, Scale, Series, Unit};

/// Lays the figures of several runs over each other: those with the same id become one, with the series of
/// all. Maps and single samples cannot lie over each other; they stay apart, with the run's name in the
/// title, single samples at the end. `runs` are names with figures, in the order of the indices in their series.
pub fn together(runs: Vec<(String, Vec<Figure>)>) -> Vec<Figure> {
    let mut all: Vec<Shared> = Vec::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (name, figures) in runs {
        for figure in figures {
            *times.entry(figure.id.clone()).or_default() += 1;
            let fitting =
                |known: &&mut Shared| known.of.id == figure.id && can_share(&known.of, &figure);
            match all.iter_mut().find(fitting) {
                Some(known) => known.lay_over(figure, &name),
                None => all.push(Shared { of: figure, first: name.clone(), several: false }),
            }
        }
    }
    for shared in all.iter_mut().filter(|shared| !shared.several) {
        if times.get(&shared.of.id).is_some_and(|times| *times > 1) {
            shared.of.title = format!("{} ({})", shared.of.title, shared.first);
        }
    }
    let mut figures: Vec<Figure> = all.into_iter().map(|shared| shared.of).collect();
    // What was found comes before what it rests on.
    figures.sort_by_key(has_raw);
    number_ids(&mut figures);
    figures
}

/// A figure of one run or of several.
struct Shared {
    of: Figure,
    /// The run that it was of first.
    first: String,
    several: bool,
}

fn has_raw(figure: &Figure) -> bool {
    figure.series().iter().any(|series| series.role == Role::Raw)
}

fn can_share(one: &Figure, other: &Figure) -> bool {
    let same = |one: &Axis, other: &Axis| one.unit == other.unit && one.label == other.label;
    let series = |figure: &Figure| matches!(figure.body, Body::Series(_));
    let sound = series(one) && series(other) && !has_raw(one) && !has_raw(other);
    sound && same(&one.x, &other.x) && same(&one.y, &other.y)
}

impl Shared {
    fn lay_over(&mut self, mut over: Figure, name: &str) {
        let under = &mut self.of;
        if !self.several {
            self.several = true;
            under.in_words = format!("{}: {}", self.first, under.in_words);
        }
        under.in_words = format!("{}\n{name}: {}", under.in_words, over.in_words);
        share_names(&mut under.x, &mut over);
        for (under, over) in [(&mut under.x, &over.x), (&mut under.y, &over.y)] {
            if over.scale == Scale::Log {
                under.scale = Scale::Log;
            }
        }
        for mut mark in over.marks {
            if !under.marks.contains(&mark) {
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
