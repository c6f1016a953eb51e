//! What is drawn between the axes, in units of the figure: no pixels, no colours.

use crate::figure::{Figure, Point, PointCertainty, Role, Scale, Series, Unit};
use crate::text::clean;

/// The part of a name's width on the axis that its bars take.
const BARS: f64 = 0.72;

/// A series and how it is told from others.
#[derive(Clone, Debug)]
pub(crate) struct SeriesEntry<'a> {
    pub(crate) series: &'a Series,
    /// Its points, those of the same name on an axis of names side by side.
    pub(crate) points: Vec<Point>,
    /// Its name, with that of its run where there are several.
    pub(crate) name: String,
    /// The number of its colour and symbol: for a line that of the series that it is fitted to.
    pub(crate) colour: usize,
    /// Whether it is a line of another series: such lines share an item of the legend.
    pub(crate) follows: bool,
}

/// One entry for each series, in their order. `runs` are the names of the runs that the figure is
/// of.
pub(crate) fn entries<'a>(all: &'a [Series], runs: &[String]) -> Vec<SeriesEntry<'a>> {
    let leaders: Vec<Option<usize>> = all.iter().map(|series| leader(all, series)).collect();
    // What follows comes last, so that it does not use up colours.
    let mut owners: Vec<usize> = (0..all.len()).filter(|at| leaders[*at].is_none()).collect();
    owners.sort_by_key(|at| all[*at].role.leader_role().is_some());
    let colour = |owner| owners.iter().position(|known| *known == owner).unwrap_or_default();
    let entry = |(place, series): (usize, &'a Series)| SeriesEntry {
        series,
        points: series.points.clone(),
        name: name(series, runs),
        colour: colour(leaders[place].unwrap_or(place)),
        follows: leaders[place].is_some(),
    };
    all.iter().enumerate().map(entry).collect()
}

/// The series that a law or percentiles are of: the one whose name they begin with, or the only one
/// of their run.
pub(crate) fn leader(all: &[Series], of: &Series) -> Option<usize> {
    let role = of.role.leader_role()?;
    let leaders = || {
        let places = 0..all.len();
        places.filter(|at| all[*at].role == role && all[*at].run == of.run)
    };
    let begins = |at: &usize| of.name.starts_with(&all[*at].name);
    let named = leaders().filter(begins).max_by_key(|at| all[*at].name.len());
    named.or_else(|| leaders().next().filter(|_| leaders().count() == 1))
}

fn name(series: &Series, runs: &[String]) -> String {
    let run = series.run.filter(|_| runs.len() > 1).and_then(|run| runs.get(run));
    let run = run.map_or(String::new(), |run| format!("{}: ", clean(run)));
    run + &clean(&series.name)
}

/// Puts points of the same name side by side, lines left as they are; `names` are the names on the
/// axis. Gives the largest number of points of a name.
pub(crate) fn side_by_side(entries: &mut [SeriesEntry], names: usize) -> usize {
    let mut taken = vec![0; names];
    let mut lanes = Vec::new();
    let is_apart = |entry: &&SeriesEntry| !entry.series.role.is_line();
    for point in entries.iter().filter(is_apart).flat_map(|entry| &entry.points) {
        // NaN and negative positions are taken for the first name.
        lanes.push(taken.get_mut(point.x as usize).map_or(0, |taken| {
            *taken += 1;
            *taken - 1
        }));
    }
    let most = taken.iter().copied().fold(1, usize::max);
    let apart = entries.iter_mut().filter(|entry| !entry.series.role.is_line());
    for (point, lane) in apart.flat_map(|entry| &mut entry.points).zip(lanes) {
        let own = taken.get(point.x as usize).copied().unwrap_or(1);
        point.x += BARS / most as f64 * (lane as f64 - (own as f64 - 1.0) / 2.0);
    }
    most
}

/// Which part of a drawing a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShapePart {
    /// A region, or the interval of a mark.
    Shade,
    /// The intervals of a curve.
    Band,
    Bar,
    Line,
    Whisker,
    /// The symbols of values.
    Points,
    /// The symbols of values that are only roughly known.
    Hollow,
    Mark,
}

impl ShapePart {
    /// Where the values of a path lie on an axis of that scale, as [`Scale::coordinate`] has them; none for
    /// what is left out. Of an area or an interval, an end that cannot be drawn is at the end of
    /// the axis if another one can.
    pub(crate) fn places(
        self,
        scale: Scale,
        values: impl Iterator<Item = f64>,
    ) -> Vec<Option<f64>> {
        let place = |value: f64| match self {
            Self::Mark | Self::Shade if value.is_infinite() => Some(value),
            // Lengths on a logarithmic axis would say nothing.
            Self::Bar if scale == Scale::Log => None,
            _ => scale.draws(value).then(|| scale.coordinate(value)),
        };
        let mut places: Vec<Option<f64>> = values.map(place).collect();
        let is_whole = matches!(self, Self::Band | Self::Bar | Self::Whisker);
        if is_whole && places.iter().any(Option::is_some) {
            places.iter_mut().for_each(|at| *at = at.or(Some(f64::NEG_INFINITY)));
        }
        places
    }
}

/// A shape in units of the figure.
#[derive(Clone, Debug)]
pub(crate) struct PlotShape {
    pub(crate) part: ShapePart,
    /// Index of its series.
    pub(crate) series: Option<usize>,
    /// Lines or areas; a symbol is a path of one point. An infinite coordinate is the end of its
    /// axis.
    pub(crate) paths: Vec<Vec<Point>>,
}

/// All shapes of a figure, from back to front. `lanes` is the largest number of points of a name.
pub(crate) fn shapes(figure: &Figure, entries: &[SeriesEntry], lanes: usize) -> Vec<PlotShape> {
    let loose = |part, path| PlotShape { part, series: None, paths: vec![path] };
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    // Every second region, so that neighbours are told apart.
    let regions = figure.regions.iter().skip(1).step_by(2).map(|region| (region.from, region.to));
    let shades = regions.chain(figure.marks.iter().filter_map(|mark| mark.between));
    let shade = |(from, to)| {
        loose(ShapePart::Shade, places([(from, low), (from, high), (to, high), (to, low)]))
    };
    let mut all: Vec<PlotShape> = shades.filter(|(from, to)| from < to).map(shade).collect();
    let of_entry = |(index, entry)| of_series(figure, lanes, index, entry);
    let mut drawn: Vec<PlotShape> = entries.iter().enumerate().flat_map(of_entry).collect();
    // Bands first, so that no line is under one.
    drawn.sort_by_key(|shape| shape.part != ShapePart::Band);
    all.extend(drawn);
    let marks = figure.marks.iter().filter(|mark| mark.x.is_finite());
    all.extend(marks.map(|mark| loose(ShapePart::Mark, places([(mark.x, low), (mark.x, high)]))));
    all
}

fn places(all: impl IntoIterator<Item = (f64, f64)>) -> Vec<Point> {
    all.into_iter().map(|(x, y)| Point::bare(x, y)).collect()
}

fn of_series(figure: &Figure, lanes: usize, index: usize, entry: &SeriesEntry) -> Vec<PlotShape> {
    let mut shapes = Vec::new();
    let mut add = |part, paths| shapes.push(PlotShape { part, series: Some(index), paths });
    let (role, points) = (entry.series.role, &entry.points);
    let stamps = |certainty: PointCertainty| -> Vec<Vec<Point>> {
        let points = points.iter().filter(|point| point.certainty == certainty);
        points.map(|point| vec![*point]).collect()
    };
    let by_name = figure.x.unit == Unit::Names;
    match role {
        Role::Bars => {
            let half = BARS / lanes as f64 * 0.46;
            let bar = |p: &Point| {
                let (left, right) = (p.x - half, p.x + half);
                places([(left, 0.0), (left, p.y), (right, p.y), (right, 0.0)])
            };
            add(ShapePart::Bar, points.iter().map(bar).collect());
        }
        Role::Raw | Role::Quantiles => {}
        _ if by_name && !role.is_line() => {}
        _ => {
            let valued = points.iter().filter(|point| point.certainty != PointCertainty::RangeOnly);
            let path = places(valued.map(|point| (point.x, point.y)));
            if !path.is_empty() {
                add(ShapePart::Line, vec![path]);
            }
        }
    }
    for stretch in points.split(|point| point.interval().is_none()) {
        let ends = || stretch.iter().filter_map(|point| Some((point.x, point.interval()?)));
        let is_area = role == Role::Measured
            || stretch.iter().all(|point| point.certainty == PointCertainty::RangeOnly);
        if !by_name && is_area && stretch.len() > 1 {
            let above = ends().map(|(x, (_, high))| (x, high));
            let below = ends().rev().map(|(x, (low, _))| (x, low));
            add(ShapePart::Band, vec![places(above.chain(below))]);
        } else if !stretch.is_empty() {
            let whisker = |(x, (low, high))| places([(x, low), (x, high)]);
            add(ShapePart::Whisker, ends().map(whisker).collect());
        }
    }
    if !role.is_line() {
        for (part, known) in
            [(ShapePart::Points, PointCertainty::Sure), (ShapePart::Hollow, PointCertainty::Rough)]
        {
            let stamps = stamps(known);
            if !stamps.is_empty() {
                add(part, stamps);
            }
        }
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, run: usize, role: Role) -> Series {
        Series { name: name.into(), run: Some(run), role, points: Vec::new() }
    }

    #[test]
    fn a_law_has_the_colour_of_what_it_is_fitted_to() {
        let all = [
            series("pipe", 0, Role::Measured),
            series("pipe, threads", 0, Role::Measured),
            series("pipe, threads, law", 0, Role::Law),
            series("pipe, law", 0, Role::Law),
            series("pipe", 1, Role::Measured),
            series("law", 1, Role::Law),
            series("elsewhere", 2, Role::Law),
        ];
        let found = entries(&all, &["a".into(), "b\x1b".into()]);
        let colours: Vec<usize> = found.iter().map(|entry| entry.colour).collect();
        assert_eq!(colours, [0, 1, 1, 0, 2, 2, 3]);
        let follows: Vec<bool> = found.iter().map(|entry| entry.follows).collect();
        assert_eq!(follows, [false, false, true, true, false, true, false]);
        assert_eq!(found[4].name, "b: pipe");
        assert_eq!(entries(&all, &["a".into()])[4].name, "pipe");
    }

    #[test]
    fn percentiles_have_the_colour_of_their_distribution_and_a_law_none_of_it() {
        let all = [
            series("idle", 0, Role::Distribution),
            series("idle, percentiles", 0, Role::Quantiles),
            series("busy", 0, Role::Distribution),
            series("busy, percentiles", 0, Role::Quantiles),
            series("law", 0, Role::Law),
        ];
        let found = entries(&all, &["a".into()]);
        let colours: Vec<usize> = found.iter().map(|entry| entry.colour).collect();
        assert_eq!(colours, [0, 0, 1, 1, 2]);
        assert!(found[1].follows && found[3].follows && !found[4].follows);
    }
}
