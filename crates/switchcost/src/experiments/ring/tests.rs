//! Charts of rings without work.

use analysis::estimate::{Estimate, Speed};
use analysis::summary::CaseSummary;
use charts::{Figure, Point, Role, Scale, Unit};
use rundata::case::{Case, Sample};
use rundata::experiment::Experiment;
use rundata::ring::{Flight, Policy};
use rundata::run::{Run, StopReason};

use crate::registry::Record;
use crate::report::figures::tests::*;
use crate::report::terminal::View;

const SIZES: [u32; 9] = [2, 4, 8, 10, 16, 20, 32, 48, 64];

/// 3 us up to 10 members, 9 us beyond.
fn stepped() -> Vec<Figure> {
    let cases = SIZES.iter().map(|members| case(*members, None)).collect();
    figures(&run(Experiment::Ring, cases, |case| if case.members <= 10 { 3000 } else { 9000 }))
}

#[test]
fn cost_knee_and_law_are_those_that_went_in() {
    let figures = stepped();
    let cost = figure(&figures, "ring-cost");
    let measured = series(cost, Role::Measured, "pipe");
    assert_eq!(measured.run, Some(0));
    let sizes: Vec<f64> = measured.points.iter().map(|point| point.x).collect();
    assert_eq!(sizes, SIZES.map(f64::from));
    for point in &measured.points {
        let wanted = if point.x <= 10.0 { 3000.0 } else { 9000.0 };
        assert!(near(point.y, wanted), "{point:?}");
        assert!(point.low.unwrap() <= point.y && point.y <= point.high.unwrap(), "{point:?}");
    }
    let [knee] = &cost.marks[..] else { panic!("{:?}", cost.marks) };
    assert_eq!((knee.between, &*knee.label), (Some((10.0, 16.0)), "knee 3.00x"));
    let law = series(cost, Role::Law, "law");
    assert!(law.points.is_sorted_by(|one, other| one.x <= other.x));
    let at = |x: f64| law.points.iter().find(|point| point.x >= x).unwrap().y;
    assert!(near(at(2.0), 3000.0) && near(at(12.0), 3000.0) && near(at(13.0), 9000.0));
    assert!(cost.in_words.contains("3.01 us at 2 members"), "{}", cost.in_words);
    assert!(cost.in_words.contains("between 10 and 16"), "{}", cost.in_words);
}

#[test]
fn a_law_that_leaves_the_values_is_not_drawn() {
    let at = |x: f64, y: f64| Point::with_ends(x, y, [0.9 * y, 1.1 * y]);
    let values = [at(2.0, 100.0), at(8.0, 110.0), at(64.0, 400.0)];
    let line =
        |last: f64| [Point::bare(2.0, 100.0), Point::bare(8.0, 120.0), Point::bare(64.0, last)];
    assert!(super::figures::is_near(&line(400.0), &values));
    assert!(super::figures::is_near(&line(330.0), &values), "within a quarter");
    assert!(!super::figures::is_near(&line(250.0), &values));
    assert!(!super::figures::is_near(&line(400.0)[..2], &values), "nothing at the last");
}

#[test]
fn tiles_are_of_the_smallest_and_the_largest_ring_first() {
    let cases = SIZES.iter().map(|members| case(*members, None)).collect();
    let tiles = Record::from_run(&run(Experiment::Ring, cases, |_| 3000)).tiles();
    let names: Vec<&str> = tiles.iter().map(|tile| &*tile.name).collect();
    let last = SIZES[SIZES.len() - 1];
    assert_eq!(names[..2], ["switch, 2 processes", &format!("switch, {last} processes")]);
    assert_eq!(names[2..4], ["hop, 2 processes", "hop, ring of one"]);
    assert_eq!((&*tiles[3].figure(), tiles[3].unit), ("1.00", "us"));
}

#[test]
fn the_first_line_says_where_the_cost_jumps_and_how_far() {
    let of = |cost: fn(&rundata::ring::RingCase) -> u64| {
        let cases = SIZES.iter().map(|members| case(*members, None)).collect();
        super::answer::headline(&analysis::record::RingRecord::from_run(&run(
            Experiment::Ring,
            cases,
            cost,
        )))
    };
    let words = of(|case| if case.members <= 10 { 3000 } else { 9000 });
    let jump = " It jumps from 3.01 us to 9.04 us between 10 and 16 members, 3.00x (";
    assert!(words.contains(jump), "{words}");
    assert!(!of(|_| 3000).contains("jumps"));
    assert!(!of(|case| 3000 + 40 * u64::from(case.members)).contains("jumps"));
}

/// Rings of these sizes under the normal policy, and under fifo beside it.
fn under_both(sizes: &[u32], cost: impl Fn(&rundata::ring::RingCase) -> u64) -> Run {
    let fifo = |of: &u32| rundata::ring::RingCase { policy: Policy::Fifo, ..case(*of, None) };
    let normal = sizes.iter().map(|of| case(*of, None));
    run(Experiment::Ring, normal.chain(sizes.iter().map(fifo)).collect(), cost)
}

fn by_policy(case: &rundata::ring::RingCase) -> u64 {
    if case.policy == Policy::Fifo { 2000 } else { 3000 }
}

/// With other tasks on the CPU of the rings under these policies.
fn shared(run: &Run, policies: &[Policy]) -> analysis::record::RingRecord {
    let mut record = analysis::record::RingRecord::from_run(run);
    let is_shared = |of: &&mut CaseSummary| policies.contains(&of.case.policy);
    for of in record.cases.iter_mut().filter(is_shared) {
        let cost = of.ns_per_switch_above_solo;
        of.ns_per_switch_above_solo = cost.map(|of| Estimate { speed: Speed::NotAlone, ..of });
    }
    record
}

#[test]
fn the_first_line_tells_fifo_beside_the_normal_policy_or_before_it() {
    let run = under_both(&[2], by_policy);
    let words = |policies: &[Policy]| super::answer::headline(&shared(&run, policies));
    let both = words(&[]);
    assert!(both.starts_with("A switch costs 3.01"), "{both}");
    assert!(both.ends_with(" with 2 processes; 2.01 us under fifo."), "{both}");
    let fifo = words(&[Policy::Other]);
    assert!(fifo.starts_with("A switch costs 2.008 us ("), "{fifo}");
    let end = ") under fifo, with 2 processes; with the normal policy ~3.012 us (3.003 to 3.024, CPU \
               shared).";
    assert!(fifo.ends_with(end), "{fifo}");
    let neither = words(&[Policy::Other, Policy::Fifo]);
    assert!(neither.contains("with the normal policy ~3.01"), "{neither}");
}

#[test]
fn each_policy_has_rows_and_a_law_of_its_own() {
    let run = under_both(&SIZES, |case| match case.policy {
        Policy::Fifo if case.members > 10 => 9000,
        Policy::Fifo => 3000,
        _ => 5000,
    });
    let record = analysis::record::RingRecord::from_run(&run);
    assert_eq!(record.found.scaling.len(), 2);
    let text = super::table::text(&record, View::default());
    assert!(text.heading.contains("policies other and fifo"), "{}", text.heading);
    let table = text.table.to_string();
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["policy", "members", "ns/switch"]);
    let of = |policy: &str| rows.iter().filter(|row| row.first() == Some(&policy)).count();
    assert_eq!((of("other"), of("fifo")), (SIZES.len() + 1, SIZES.len() + 1), "{table}");
    assert!(text.details.to_string().contains("scaling: "), "{}", text.details);
    assert!(text.details.to_string().contains("scaling under fifo: "), "{}", text.details);
    let normal = super::answer::headline(&record);
    assert!(normal.contains("does not depend on their number; 3.01 us under fifo."), "{normal}");
    let fifo = super::answer::headline(&shared(&run, &[Policy::Other]));
    assert!(fifo.contains(": it steps between 10 and 16; with the normal policy"), "{fifo}");
    assert!(fifo.contains(" It jumps from 3.01 us to 9.04 us between 10 and 16"), "{fifo}");
    let figures = figures(&run);
    assert_eq!(figure(&figures, "policies").x.names, ["pipe, fifo", "pipe"]);
}

#[test]
fn a_run_is_listed_with_the_figure_that_it_has() {
    let run = under_both(&[2], by_policy);
    let result = |policies: &[Policy]| {
        Record::Rings(Box::new(shared(&run, policies))).result().expect("a ring").text
    };
    assert_eq!(result(&[]), "3.01 us a switch (2)");
    assert_eq!(result(&[Policy::Other]), "2.01 us a switch (2, fifo)");
    assert_eq!(result(&[Policy::Other, Policy::Fifo]), "~3.01 us a switch (2)");
}

/// One by one an item takes 4 us, with 16 under way 1.5 us, over a full link 2 us.
fn in_flight(flights: &[Option<Flight>]) -> Run {
    let mut cases = Vec::new();
    for flight in flights {
        cases.push(rundata::ring::RingCase { flight: *flight, ..case(2, None) });
    }
    run(Experiment::Ring, cases, |case| match case.flight {
        None => 3000,
        Some(Flight::Items(_)) => 500,
        // Of a lap of one hop.
        Some(Flight::Full) => 1000,
    })
}

#[test]
fn the_first_line_tells_an_item_beside_one_by_one() {
    let headline = |flights: &[Option<Flight>]| {
        let run = in_flight(flights);
        super::answer::headline(&analysis::record::RingRecord::from_run(&run)).to_string()
    };
    let several = Some(Flight::Items(16));
    let words = headline(&[None, several, Some(Flight::Full)]);
    assert!(words.starts_with("With 16 items under way an item takes 1.50"), "{words}");
    assert!(
        words.contains(" and 1.00 switches, 2.67x less than one by one (4.01 us); "),
        "{words}"
    );
    assert!(words.ends_with("; with a full link 2.00 us and 1.00 switches."), "{words}");
    let alone = headline(&[several]);
    assert!(alone.ends_with(") and 1.00 switches."), "{alone}");
    assert!(headline(&[None]).starts_with("A switch costs 3.01"));
}

/// One by one the token is the count of an eventfd; several are counted.
#[test]
fn a_link_that_carries_several_items_by_other_means_says_so() {
    let mut run = in_flight(&[None, Some(Flight::Items(16))]);
    let details = |run: &Run| {
        let record = analysis::record::RingRecord::from_run(run);
        super::table::text(&record, View::default()).details.to_string()
    };
    assert!(!details(&run).contains("pipe: "), "{}", details(&run));
    for case in run.header.plan.cases.iter_mut().filter_map(Case::ring_mut) {
        case.link = "eventfd".to_string();
    }
    assert!(
        details(&run).contains("\neventfd: one item is its count; several"),
        "{}",
        details(&run)
    );
}

#[test]
fn several_items_have_no_cost_of_a_switch_and_no_law() {
    let flights = [2, 4, 8, 16].map(|count| Some(Flight::Items(count)));
    let run = in_flight(&[&[None], &flights[..]].concat());
    let record = analysis::record::RingRecord::from_run(&run);
    for summary in &record.cases {
        let is_several = summary.case.flight.is_some();
        assert_eq!(
            summary.ns_per_switch_above_solo.is_some(),
            !is_several && summary.case.members > 1
        );
        assert!(!summary.counts_disagree && !summary.does_not_switch);
        let wakeups = if summary.case.members > 1 { 1.0 } else { 0.0 };
        assert_eq!(summary.wakeups_per_hop.map(|count| count.value), Some(wakeups));
    }
    assert!(record.found.scaling.iter().all(|series| series.cases.len() == 1));
    let table = super::table::text(&record, View::default()).table.to_string();
    assert!(table.contains("under way") && table.contains("wake-ups/hop"), "{table}");
    let items = figures(&run);
    let names = &figure(&items, "flights").x.names;
    assert_eq!(names.len(), 5, "{names:?}");
    let result = Record::from_run(&in_flight(&flights[..1])).result().expect("an item");
    assert_eq!(result.text, "1.50 us an item (2 under way)");
    // Without several items the record is as it was.
    let plain = analysis::record::RingRecord::from_run(&in_flight(&[None]));
    assert!(plain.cases.iter().all(|summary| summary.wakeups_per_hop.is_none()));
}

#[test]
fn the_projected_line_is_that_of_two_scaled() {
    let figures = stepped();
    let cpu = figure(&figures, "ring-cpu");
    let measured = series(cpu, Role::Measured, "pipe");
    let projected = series(cpu, Role::Projected, "projected");
    // A lap of two: two hops of 4 us. All of it is CPU time.
    assert!(near(measured.points[0].y, 8000.0), "{measured:?}");
    assert!(near(measured.points[8].y, 640_000.0), "64 x 10 us: {measured:?}");
    for (point, members) in projected.points.iter().zip(SIZES) {
        assert!(near(point.y, 4000.0 * f64::from(members)), "{point:?}");
    }
    let switches = series(figure(&figures, "ring-switches"), Role::Measured, "pipe");
    assert!(switches.points.iter().all(|point| point.y == 1.0));
}

#[test]
fn links_at_one_size_are_bars_cheapest_first() {
    let by = |link: &str| rundata::ring::RingCase { link: link.into(), ..case(2, None) };
    let cost = |case: &rundata::ring::RingCase| match &*case.link {
        "pipe" => 3000,
        "futex" => 2000,
        _ => 70_000,
    };
    let figures =
        figures(&run(Experiment::Ring, ["pipe", "futex", "sysv-msg"].map(by).to_vec(), cost));
    let links = figure(&figures, "links");
    assert_eq!(links.x.names, ["futex", "pipe", "sysv-msg"]);
    assert_eq!((links.x.unit, links.y.scale), (Unit::Names, Scale::Log), "2 to 70 us");
    let bars = series(links, Role::Bars, "measured");
    for (point, wanted) in bars.points.iter().zip([2000.0, 3000.0, 70_000.0]) {
        assert!(near(point.y, wanted), "{point:?}");
    }
    assert!(figures.iter().all(|figure| figure.id != "ring-cost"), "nothing to draw against size");
}

#[test]
fn a_stored_run_has_its_figures() {
    let figures = figures(&fixture());
    let cost = figure(&figures, "ring-cost");
    let measured = series(cost, Role::Measured, "pipe");
    assert_eq!(measured.points.iter().map(|point| point.x).collect::<Vec<_>>(), [2.0, 4.0]);
    assert!(cost.marks.is_empty() && !cost.in_words.contains("law"), "two sizes are no law");
    let mut ids: Vec<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), figures.len());
}

#[test]
fn a_run_without_samples_has_nothing_to_draw() {
    let mut empty = fixture();
    empty.samples.clear();
    assert!(figures(&empty).is_empty());
}

/// Rings of two by three links; of the last the solo is dearer in every other round.
fn links() -> Run {
    let by = |link: &str| rundata::ring::RingCase { link: link.into(), ..case(2, None) };
    let cost = |case: &rundata::ring::RingCase| if case.link == "pipe" { 3000 } else { 2000 };
    let mut run = run(Experiment::Ring, ["pipe", "futex", "yield"].map(by).to_vec(), cost);
    let plan = run.header.plan.clone();
    let is_yield =
        |case: usize| plan.ring(case).is_some_and(|of| of.link == "yield" && of.members == 2);
    for sample in run.samples.iter_mut().filter_map(Sample::ring_mut) {
        if is_yield(sample.case) {
            let hop_ns = if sample.round % 2 == 0 { 400 } else { 1700 };
            sample.elapsed_ns = sample.hops * hop_ns;
        }
    }
    run
}

/// As a report had it: a link at -562 ns and one at 41.5, drawn beside the others.
#[test]
fn what_is_not_resolved_is_not_drawn_but_said() {
    let figures = figures(&links());
    let links = figure(&figures, "links");
    assert_eq!(links.x.names, ["futex", "pipe"]);
    assert!(links.in_words.contains(" Not drawn: yield (not resolved: -"), "{}", links.in_words);
}

fn interrupted(mut run: Run) -> Run {
    if let Some(end) = &mut run.end {
        end.reason = StopReason::Interrupted;
    }
    run
}

fn printed(run: &Run) -> String {
    Record::from_run(run).text(run, None, View::default()).to_string().replace("\n  ", " ")
}

#[test]
fn an_interrupted_run_says_so_and_ranks_nothing() {
    assert!(printed(&links()).starts_with("Cheapest is "), "{}", printed(&links()));
    let text = printed(&interrupted(links()));
    assert!(text.starts_with("Interrupted: A hop by pipe takes "), "{text}");
    assert!(text.contains("; links are not ranked.") && !text.contains("Cheapest"), "{text}");
    let killed = printed(&Run { end: None, ..links() });
    assert!(killed.starts_with("Not finished: A hop by pipe takes "), "{killed}");
}

/// Where one figure lacks this and the other that, both are told, of the longest names that there
/// are.
#[test]
fn a_table_by_link_fits_eighty_columns_whatever_its_figures_lack() {
    let mut run = links();
    let names = [("futex", "handler-signal"), ("yield", "socket-dgram")];
    let cases = run.header.plan.cases.iter_mut().filter_map(Case::ring_mut);
    for case in cases {
        let name = names.iter().find(|(old, _)| case.link == *old);
        case.link = name.map_or(case.link.as_str(), |(_, new)| new).to_string();
    }
    let lacks = [Speed::Full, Speed::NotAlone, Speed::Contended];
    let mut told = String::new();
    for (hop, switch) in lacks.iter().flat_map(|hop| lacks.map(|switch| (*hop, switch))) {
        let mut record = analysis::record::RingRecord::from_run(&run);
        for of in record.cases.iter_mut().filter(|of| of.case.link == "handler-signal") {
            // As --strict leaves them.
            let lacks = |of: Estimate, speed: Speed| match speed {
                Speed::Full => Estimate { speed, ..of },
                _ => Estimate { speed, low: None, high: None, ..of },
            };
            of.ns_per_hop = of.ns_per_hop.map(|of| lacks(of, hop));
            let cost = of.ns_per_switch_above_solo;
            of.ns_per_switch_above_solo = cost.map(|of| lacks(of, switch));
        }
        let table = super::table::text(&record, View::default()).table;
        assert!(table.to_string().lines().all(|line| line.chars().count() <= 80), "{table}");
        told += &table.to_string();
    }
    for why in ["its CPU was shared", "CPU shared", "no full speed", "not resolved"] {
        assert!(told.contains(why), "no {why}: {told}");
    }
}

#[test]
fn an_interrupted_run_has_no_law() {
    let cases = SIZES.iter().map(|members| case(*members, None)).collect();
    let whole = run(Experiment::Ring, cases, |case| if case.members <= 10 { 3000 } else { 9000 });
    assert!(printed(&whole).contains(": it steps between 10 and 16"), "{}", printed(&whole));
    let cut = interrupted(whole);
    assert!(
        printed(&cut).starts_with("Interrupted: A switch costs 3.012 us ("),
        "{}",
        printed(&cut)
    );
    assert!(!printed(&cut).contains("steps"), "{}", printed(&cut));
    let figures = figures(&cut);
    let cost = figure(&figures, "ring-cost");
    assert!(cost.series().iter().all(|of| of.role != Role::Law) && cost.marks.is_empty());
}
