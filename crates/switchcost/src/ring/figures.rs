//! Rings without work: what a switch costs by the size of the ring, and by what carries the token.

use charts::{Axis, Figure, Mark, Point, Role, Scale, Series, Unit};
use model::estimate::Estimate;
use model::pairing::Grouped;
use model::record::{CaseSummary, Record};
use model::ring::{Case, Kind, Placement, Policy, Sample};
use model::run::Run;
use model::scaling::{Knee, Verdict};
use model::{sample, words};

use crate::figures::{Bars, point};

/// Cost of a switch against the size of the ring.
pub(crate) const COST: &str = "ring-cost";
/// CPU time of a lap against the size of the ring.
pub(crate) const CPU: &str = "ring-cpu";
/// Switches per hop against the size of the ring.
const SWITCHES: &str = "ring-switches";

/// Points of a curve between its ends.
const CURVE_POINTS: usize = 48;

/// Cases that differ in nothing but their size, by size.
struct Group<'a> {
    name: String,
    cases: Vec<(usize, &'a CaseSummary)>,
}

/// The figures of a run of rings without work. `index` is its place among the runs that are drawn together, and
/// stands in every series. Each figure has another id.
pub(crate) fn figures(run: &Run, record: &Record, index: usize) -> Vec<Figure> {
    let groups = groups(record);
    let several_sizes = groups.iter().any(|group| group.cases.len() > 1);
    let mut all = Vec::new();
    if several_sizes || groups.len() == 1 {
        all.extend(by_size(record, &groups, index));
    }
    if groups.len() > 1 {
        all.extend(compared(&groups, index));
    }
    if several_sizes {
        all.extend(cpu(run, &groups, index));
        all.extend(switches(&groups, index));
    }
    all
}

fn groups(record: &Record) -> Vec<Group<'_>> {
    let mut groups: Vec<(Case, Group)> = Vec::new();
    let rings = record.cases.iter().enumerate().filter(|(_, of)| of.case.members > 1);
    for (number, summary) in rings {
        let key = Case { members: 1, ..summary.case.clone() };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.cases.push((number, summary)),
            None => {
                let name = name(&summary.case);
                groups.push((key, Group { name, cases: vec![(number, summary)] }));
            }
        }
    }
    let mut groups: Vec<Group> = groups.into_iter().map(|(_, group)| group).collect();
    for group in &mut groups {
        group.cases.sort_by_key(|(_, summary)| summary.case.members);
    }
    groups
}

/// What tells a ring from others but for its size. What goes without saying is left out.
fn name(case: &Case) -> String {
    let mut words = vec![case.link.clone()];
    if case.kind == Kind::Thread {
        words.push("threads".to_string());
    }
    words.extend(case.work.map(|work| work.in_words()));
    if !matches!(case.placement, Placement::Same { .. }) {
        words.push(format!("on {}", case.placement));
    }
    if case.policy != Policy::Other {
        words.push(case.policy.to_string());
    }
    words.extend(case.state.map(|state| format!("registers {state}")));
    words.join(", ")
}

fn members(scale: Scale) -> Axis {
    Axis::new("members of the ring", Unit::Count, scale)
}

fn of_size(summary: &CaseSummary, of: Option<&Estimate>) -> Option<Point> {
    Some(point(f64::from(summary.case.members), of?))
}

fn by_size(record: &Record, groups: &[Group], index: usize) -> Option<Figure> {
    let measured = |group: &Group| {
        let cost =
            |(_, of): &(usize, &CaseSummary)| of_size(of, of.ns_per_switch_above_solo.as_ref());
        let points: Vec<Point> = group.cases.iter().filter_map(cost).collect();
        Series::new(group.name.clone(), index, Role::Measured, points)
    };
    let mut series: Vec<Series> =
        groups.iter().map(measured).filter(|series| !series.points.is_empty()).collect();
    let mut sentences: Vec<String> = series.iter().map(ends).collect();
    let mut marks = Vec::new();
    let several = groups.len() > 1;
    for law in &record.scaling {
        let first = law.cases.first().and_then(|case| record.cases.get(*case));
        let name = first.map_or_else(String::new, |of| name(&of.case));
        let of = if several { format!("{name}, ") } else { String::new() };
        let points = curve(&law.law);
        if !points.is_empty() {
            series.push(Series::new(format!("{of}law"), index, Role::Law, points));
        }
        marks.extend(law.law.knees.iter().map(|knee| mark(knee, &of)));
        sentences.push(format!("Law of {name}: {}.", law.in_words));
    }
    let y = Axis::new("cost of a switch", Unit::Nanoseconds, Scale::Linear);
    let title = "Cost of a switch by the size of the ring";
    let (in_words, base) = (sentences.join(" "), Some(2.0));
    Figure { in_words, base, marks, ..Figure::new(COST, title, members(Scale::Log), y) }
        .of(series)
        .map(Figure::with_fitting_scale)
}

/// `pipe: 1.2 us at 2 members, 1.9 us at 64.`
fn ends(series: &Series) -> String {
    let told = |point: &Point| format!("{} at {:.0}", words::time(point.y), point.x);
    match (series.points.first(), series.points.last()) {
        (Some(first), Some(last)) if first != last => {
            format!("{}: {} members, {}.", series.name, told(first), told(last))
        }
        (Some(only), _) => format!("{}: {} members.", series.name, told(only)),
        _ => String::new(),
    }
}

/// The fitted law from the smallest to the largest size: at equal ratios, and on both sides of each knee.
fn curve(law: &Verdict) -> Vec<Point> {
    let (low, high) = (f64::from(law.smallest_members), f64::from(law.largest_members));
    if low <= 0.0 || high <= low {
        return Vec::new();
    }
    let step = (high / low).powf(1.0 / CURVE_POINTS as f64);
    let mut places: Vec<f64> =
        (0..=CURVE_POINTS).map(|i| (low * step.powi(i as i32)).clamp(low, high)).collect();
    let turns = law.curve.iter().flat_map(|curve| &curve.turns);
    places.extend(turns.flat_map(|turn| [*turn, turn * (1.0 + 1e-6)]));
    places.sort_by(f64::total_cmp);
    let at = |x: f64| Some(Point::bare(x, law.cost_at(x)?));
    places.into_iter().filter_map(at).collect()
}

/// Where it is most likely, between the sizes that bracket it.
fn mark(knee: &Knee, of: &str) -> Mark {
    let (low, high) = (f64::from(knee.low_members), f64::from(knee.high_members));
    let factor = knee.factor.map_or(String::new(), |factor| format!(" {}", words::times(factor)));
    Mark { x: (low * high).sqrt(), between: Some((low, high)), label: format!("{of}knee{factor}") }
}

/// Rings of the same size, side by side.
fn compared(groups: &[Group], index: usize) -> Option<Figure> {
    let case = |group: &Group| group.cases.first().map(|(_, of)| of.case.clone());
    let first = groups.iter().find_map(case)?;
    let differs = |of: fn(&Case) -> String| {
        groups.iter().filter_map(case).any(|other| of(&other) != of(&first))
    };
    let (id, title) = if differs(|case| case.link.clone()) {
        ("links", "Links compared")
    } else if differs(|case| case.placement.to_string()) {
        ("placements", "Placements compared")
    } else {
        ("states", "Registers in use compared")
    };
    let size = common_size(groups)?;
    let cost = |group: &Group| {
        let (_, of) = group.cases.iter().find(|(_, of)| of.case.members == size)?;
        of.ns_per_switch_above_solo.map(|cost| (group.name.clone(), cost))
    };
    let known: Vec<(String, Estimate)> = groups.iter().filter_map(cost).collect();
    let left_out = groups.len() - known.len();
    let mut bars = Bars::new(id, title, "cost of a switch", known);
    bars.about = format!("Rings of {size}.");
    if left_out > 0 {
        bars.about =
            format!("{} {left_out} that have no cost of a switch are left out.", bars.about);
    }
    bars.figure(index)
}

/// The smallest size that most of them have.
fn common_size(groups: &[Group]) -> Option<u32> {
    let sizes =
        || groups.iter().flat_map(|group| group.cases.iter().map(|(_, of)| of.case.members));
    let having = |size: u32| sizes().filter(|other| *other == size).count();
    sizes().max_by_key(|size| (having(*size), std::cmp::Reverse(*size)))
}

/// CPU time of a lap, and the ring of two scaled to each size.
fn cpu(run: &Run, groups: &[Group], index: usize) -> Option<Figure> {
    let grouped = Grouped::new(&run.header.plan, sample::rings(&run.samples));
    let estimate = |number: usize| {
        // A random stream of its own, apart from those of the record.
        let stream = (3 << 32) + grouped.rank(number);
        grouped.over_rounds(&grouped.as_found_by_round(number, Sample::cpu_ns_per_hop), stream)
    };
    let of_lap = |(number, of): &(usize, &CaseSummary)| {
        of_size(of, estimate(*number)?.scaled(f64::from(of.case.members)).as_ref())
    };
    let projected = |(_, of): &(usize, &CaseSummary)| {
        Some(Point::bare(f64::from(of.case.members), of.projected_cpu_ns_per_lap?))
    };
    let of_group = |group: &Group| {
        let measured: Vec<Point> = group.cases.iter().filter_map(of_lap).collect();
        let line: Vec<Point> = group.cases.iter().filter_map(projected).collect();
        let apart = if groups.len() > 1 { format!("{}, ", group.name) } else { String::new() };
        [
            Series::new(group.name.clone(), index, Role::Measured, measured),
            Series::new(format!("{apart}projected"), index, Role::Projected, line),
        ]
    };
    let y = Axis::new("CPU time of a lap", Unit::Nanoseconds, Scale::Linear);
    let figure = Figure::new(CPU, "CPU time of a lap", members(Scale::Linear), y);
    let figure = Figure { base: Some(2.0), ..figure }.of(groups.iter().flat_map(of_group))?;
    let measured = figure.series().iter().filter(|of| of.role == Role::Measured);
    let told: Vec<String> = measured.map(ends).collect();
    let in_words = format!(
        "CPU time of all members for one lap; the projected line is that of the ring of two, scaled. {}",
        told.join(" ")
    );
    Some(Figure { in_words, ..figure })
}

fn switches(groups: &[Group], index: usize) -> Option<Figure> {
    let of_group = |group: &Group| {
        let count = |(_, of): &(usize, &CaseSummary)| of_size(of, of.switches_per_hop.as_ref());
        let points: Vec<Point> = group.cases.iter().filter_map(count).collect();
        Series::new(group.name.clone(), index, Role::Measured, points)
    };
    let title = "Switches per hop, as the kernel counted them";
    let y = Axis::new("switches per hop", Unit::Ratio, Scale::Linear);
    let figure = Figure::new(SWITCHES, title, members(Scale::Log), y);
    let figure = figure.of(groups.iter().map(of_group))?;
    let values = || figure.series().iter().flat_map(|of| &of.points).map(|point| point.y);
    let (least, most) =
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let in_words = format!(
        "From {least:.2} to {most:.2} switches per hop: costs are divided by these, not by hops."
    );
    Some(Figure { in_words, ..figure })
}
