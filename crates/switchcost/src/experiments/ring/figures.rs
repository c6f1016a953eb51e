//! Rings without work: what a switch costs by the size of the ring, and by what carries the token.

use analysis::estimate::Estimate;
use analysis::record::{RingRecord, course};
use analysis::scaling::{Knee, ScalingVerdict};
use analysis::summary::CaseSummary;
use analysis::table::Table;
use charts::{Axis, Figure, Known, Mark, Point, Role, Scale, Series, Unit};
use rundata::placement::Placement;
use rundata::ring::{Case, Kind, Policy, Sample};
use rundata::run::Run;
use rundata::words;

use super::answer::members as counted_members;
use crate::base::values::each_once;
use crate::report::figures::{
    RING_COST, RING_CPU, bars, counts, interval_words, lines, members, nanoseconds, points,
    time_words,
};
use crate::report::tiles::Tile;

/// Cases that differ in nothing but their size, by size, each with its number.
struct Group<'a> {
    name: String,
    cases: Vec<(usize, &'a CaseSummary)>,
}

impl Group<'_> {
    fn line(&self, index: usize, of: impl Fn(usize, &CaseSummary) -> Option<Estimate>) -> Series {
        let at = |(number, case): &(usize, &CaseSummary)| (size(case), of(*number, case));
        Series::new(&*self.name, index, Role::Measured, points(self.cases.iter().map(at)))
    }

    fn switches(&self, index: usize) -> Series {
        let at = |(_, case): &(usize, &CaseSummary)| (size(case), case.switches_per_hop);
        Series::new(&*self.name, index, Role::Measured, counts(self.cases.iter().map(at)))
    }
}

fn size(summary: &CaseSummary) -> f64 {
    f64::from(summary.case.members)
}

/// The figures of a run of rings without work. `index` is its place among the runs that are drawn
/// together, and stands in every series. Each figure has another id.
pub(crate) fn figures(run: &Run, record: &RingRecord, index: usize) -> Vec<Figure> {
    let groups = groups(record);
    let several_sizes = groups.iter().any(|group| group.cases.len() > 1);
    let all = [
        (several_sizes || groups.len() == 1).then(|| by_size(record, &groups, index)),
        (groups.len() > 1).then(|| compared(&groups, index)),
        several_sizes.then(|| cpu(run, &groups, index)),
        several_sizes.then(|| switches(&groups, index)),
    ];
    all.into_iter().flatten().flatten().collect()
}

/// What stands for the run: a switch of the smallest and of the largest ring of each kind, what a
/// hop takes there and alone, the other sizes.
pub(crate) fn tiles(record: &RingRecord) -> Vec<Tile> {
    let groups = groups(record);
    let sizes = groups.iter().flat_map(|of| of.cases.iter().map(|(_, of)| of.case.members));
    let sizes = each_once(sizes);
    let name = |group: &Group, of: &CaseSummary| match groups.len() {
        1 => counted_members(&of.case),
        _ if sizes.len() == 1 => group.name.clone(),
        _ => format!("{}, {}", group.name, of.case.members),
    };
    let switch = |group: &Group, of: &CaseSummary| {
        Tile::cost(format!("switch, {}", name(group, of)), of.ns_per_switch_above_solo)
    };
    let ends = groups.iter().flat_map(|group| {
        let (first, last) = (group.cases.first(), group.cases.last());
        first.into_iter().chain(last).filter_map(|(_, of)| switch(group, of))
    });
    let hops = groups.iter().filter_map(|group| {
        let (_, of) = group.cases.first()?;
        Tile::cost(format!("hop, {}", name(group, of)), of.ns_per_hop)
    });
    let alone = record.cases.iter().find(|of| of.case.members == 1);
    let alone = alone.and_then(|of| Tile::cost("hop, ring of one", of.ns_per_hop));
    let others = groups
        .iter()
        .flat_map(|group| group.cases.iter().skip(1).filter_map(|(_, of)| switch(group, of)));
    Tile::each_once(ends.chain(hops).chain(alone).chain(others).collect())
}

fn groups(record: &RingRecord) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for of in record.cases.iter().enumerate().filter(|(_, of)| of.case.members > 1) {
        let name = name(&of.1.case);
        match groups.iter_mut().find(|known| known.name == name) {
            Some(group) => group.cases.push(of),
            None => groups.push(Group { name, cases: vec![of] }),
        }
    }
    for group in &mut groups {
        group.cases.sort_by_key(|(_, summary)| summary.case.members);
    }
    groups
}

/// What tells a ring from others but for its size. Defaults are left out.
fn name(case: &Case) -> String {
    let is_same = matches!(case.placement, Placement::Same { .. });
    let words = [
        Some(case.link.clone()),
        (case.kind == Kind::Thread).then(|| "threads".to_string()),
        case.work.map(|work| work.in_words()),
        (!is_same).then(|| format!("on {}", case.placement)),
        (case.policy != Policy::Other).then(|| case.policy.to_string()),
        case.state.map(|state| format!("registers {state}")),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn by_size(record: &RingRecord, groups: &[Group], index: usize) -> Option<Figure> {
    let measured = groups.iter().map(|of| of.line(index, |_, case| case.ns_per_switch_above_solo));
    let mut series: Vec<Series> = measured.filter(|series| !series.points.is_empty()).collect();
    let mut sentence = match &series[..] {
        [only] => format!("A switch costs {}", ends(only)),
        many => range(many),
    };
    let mut marks = Vec::new();
    for law in &record.found.scaling {
        let first = law.cases.first().and_then(|case| record.cases.get(*case));
        let name = first.map_or_else(String::new, |of| name(&of.case));
        let of = if groups.len() > 1 { format!("{name}, ") } else { String::new() };
        let curve = Series::new(format!("{of}law"), index, Role::Law, curve(&law.law));
        let measured = series.iter().find(|of| of.role == Role::Measured && of.name == name);
        if measured.is_some_and(|measured| is_near(&curve.points, &measured.points)) {
            series.push(curve);
        }
        marks.extend(law.law.knees.iter().map(|knee| mark(knee, &of)));
        if groups.len() == 1 && law.law.shape().is_some() {
            sentence.push_str(&format!("; law: {}", law.in_words));
        }
    }
    let title = "Cost of a switch by the size of the ring";
    let axes = (members(Scale::Log), nanoseconds("cost of a switch"));
    let figure = lines(RING_COST, title, format!("{sentence}."), axes, series)?;
    Some(Figure { base: Some(2.0), marks, ..figure })
}

/// A law that is farther than this share from a value, and not within its interval, would tell
/// another story than the values.
const NEAR: f64 = 0.25;

/// Whether a line passes all values closely that it may be fitted to.
pub(super) fn is_near(line: &[Point], values: &[Point]) -> bool {
    let at = |x: f64| {
        let pair = line.windows(2).find(|pair| pair[0].x <= x && x <= pair[1].x)?;
        let [one, other] = [pair[0], pair[1]];
        let part = if other.x > one.x { (x - one.x) / (other.x - one.x) } else { 0.0 };
        Some(one.y + part * (other.y - one.y))
    };
    values.iter().filter(|value| value.known == Known::Well).all(|value| {
        let holds = |y: f64| {
            let within = value.low.zip(value.high).is_some_and(|(low, high)| low <= y && y <= high);
            within || (y - value.y).abs() <= NEAR * value.y.abs()
        };
        at(value.x).is_some_and(holds)
    })
}

/// The least and the most of several rings.
fn range(all: &[Series]) -> String {
    let points = || all.iter().flat_map(|of| of.points.iter().map(move |point| (&of.name, point)));
    let by_cost =
        |one: &(&String, &Point), other: &(&String, &Point)| one.1.y.total_cmp(&other.1.y);
    let told = |(name, of): (&String, &Point)| {
        format!("{} at {:.0} members by {name}", time_words(of), of.x)
    };
    let ends = points().min_by(by_cost).zip(points().max_by(by_cost));
    ends.map_or(String::new(), |(least, most)| {
        format!("A switch costs from {} to {}", told(least), told(most))
    })
}

/// `1.2 us at 2 members (1.1 us to 1.3 us), 1.9 us at 64 members (1.8 us to 2 us)`.
fn ends(series: &Series) -> String {
    let (first, last) = (series.points.first(), series.points.last());
    let end =
        |of: &Point| format!("{} at {:.0} members{}", time_words(of), of.x, interval_words(of));
    let ends = each_once(first.into_iter().chain(last)).into_iter().map(end);
    ends.collect::<Vec<_>>().join(", ")
}

/// The fitted law from the smallest to the largest size.
fn curve(law: &ScalingVerdict) -> Vec<Point> {
    course(law).into_iter().map(|(x, y)| Point::bare(x, y)).collect()
}

/// Where it is most likely, between the sizes that bracket it.
fn mark(knee: &Knee, of: &str) -> Mark {
    let (low, high) = (f64::from(knee.low_members), f64::from(knee.high_members));
    let factor = knee.factor.map_or(String::new(), |factor| format!(" {}", words::times(factor)));
    Mark { x: (low * high).sqrt(), between: Some((low, high)), label: format!("{of}knee{factor}") }
}

/// Rings of the same size, side by side.
fn compared(groups: &[Group], index: usize) -> Option<Figure> {
    let cases = || groups.iter().filter_map(|group| Some(&group.cases.first()?.1.case));
    let differs = |of: fn(&Case) -> String| each_once(cases().map(of)).len() > 1;
    let (id, title) = match (differs(|of| of.link.clone()), differs(|of| of.placement.to_string()))
    {
        (true, _) => ("links", "Links compared"),
        (false, true) => ("placements", "Placements compared"),
        (false, false) if differs(|of| format!("{:?}", of.state)) => {
            ("states", "Registers in use compared")
        }
        (false, false) => ("policies", "Scheduling policies compared"),
    };
    // The smallest size that most of them have.
    let sizes = || groups.iter().flat_map(|of| of.cases.iter().map(|(_, of)| of.case.members));
    let having = |size: u32| sizes().filter(|other| *other == size).count();
    let size = sizes().max_by_key(|size| (having(*size), std::cmp::Reverse(*size)))?;
    let cost = |group: &Group| {
        let (_, of) = group.cases.iter().find(|(_, of)| of.case.members == size)?;
        of.ns_per_switch_above_solo.map(|cost| (group.name.clone(), cost))
    };
    let known: Vec<(String, Estimate)> = groups.iter().filter_map(cost).collect();
    let about = match groups.len() - known.len() {
        0 => format!("Rings of {size}."),
        left => format!("Rings of {size}; {left} without a cost of a switch are left out."),
    };
    bars((id, title, "cost of a switch"), &about, known, index)
}

/// CPU time of a lap, and the ring of two scaled to each size.
fn cpu(run: &Run, groups: &[Group], index: usize) -> Option<Figure> {
    let table = Table::new(&run.header.plan, &run.samples);
    let of_lap = |number: usize, of: &CaseSummary| {
        // A random stream of its own, apart from those of the record.
        let stream = (3 << 32) + table.rank(number);
        let by_round = table.as_found_by_round(number, Sample::cpu_ns_per_hop);
        table.over_rounds(&by_round, stream)?.scaled(size(of))
    };
    let projected =
        |(_, of): &(usize, &CaseSummary)| Some(Point::bare(size(of), of.projected_cpu_ns_per_lap?));
    let of_group = |group: &Group| {
        let line: Vec<Point> = group.cases.iter().filter_map(projected).collect();
        let apart = if groups.len() > 1 { format!("{}, ", group.name) } else { String::new() };
        let projected = Series::new(format!("{apart}projected"), index, Role::Projected, line);
        [group.line(index, of_lap), projected]
    };
    let axes = (members(Scale::Linear), nanoseconds("CPU time of a lap"));
    let series: Vec<Series> = groups.iter().flat_map(of_group).collect();
    let in_words =
        "CPU time of all members for one lap; the projected line is that of the ring of \
                    two, scaled."
            .to_string();
    let figure = Figure::new(RING_CPU, "CPU time of a lap", axes.0, axes.1).of(series)?;
    Some(Figure { base: Some(2.0), in_words, ..figure })
}

fn switches(groups: &[Group], index: usize) -> Option<Figure> {
    let title = "Switches per hop, as the kernel counted them";
    let y = Axis::new("switches per hop", Unit::Ratio, Scale::Linear);
    let series = groups.iter().map(|group| group.switches(index));
    let figure = Figure::new("ring-switches", title, members(Scale::Log), y).of(series)?;
    let values = || figure.series().iter().flat_map(|of| &of.points).map(|point| point.y);
    let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let in_words = format!(
        "From {least:.2} to {most:.2} switches per hop: costs are divided by these, not by hops."
    );
    Some(Figure { in_words, ..figure })
}
