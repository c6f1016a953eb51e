//! Charts of costs by working set.

use analysis::marked::MarkedText;
use analysis::record::RingRecord;
use charts::{Figure, Role, Scale, Unit};
use rundata::experiment::Experiment;
use rundata::ring::{AccessKind, RingCase, Walk, Work};

use crate::base::lines::Layout;
use crate::registry::Record;
use crate::report::figures::tests::*;
use crate::report::terminal::{ReportText, View};

const KIB: [u64; 12] = [16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];

fn whole(kib: u64, stride: u64) -> Work {
    Work::new(kib * 1024, stride, AccessKind::Rmw).unwrap()
}

/// 3 us while two arrays fit into 512 KiB, then 100 ns for each KiB beyond; twice that by long
/// strides.
fn l2(case: &RingCase) -> u64 {
    let Some(work) = case.work else { return 3000 };
    let per_kib = if work.stride_bytes > 128 { 200 } else { 100 };
    3000 + per_kib * (work.bytes / 1024).saturating_sub(256)
}

fn drawn(strides: &[u64]) -> Vec<Figure> {
    let works = strides.iter().flat_map(|stride| KIB.map(|kib| whole(kib, *stride)));
    let cases = std::iter::once(None).chain(works.map(Some)).map(|work| case(2, work));
    figures(&run(Experiment::Cost, cases.collect(), l2))
}

#[test]
fn points_caches_regions_and_c1_are_on_the_axis_of_arrays() {
    let figures = drawn(&[128]);
    let cost = figure(&figures, "cost-by-array");
    assert_eq!((cost.x.unit, cost.x.scale, cost.y.scale), (Unit::Bytes, Scale::Log, Scale::Log));
    let measured = series(cost, Role::Measured, "rmw by 128 B");
    assert_eq!(measured.points.len(), 12);
    assert!(near(measured.points[0].y, 3000.0) && measured.points[0].x == 16.0 * 1024.0);
    assert!(near(measured.points[11].y, 182_200.0), "{:?}", measured.points[11]);
    let c1 = series(cost, Role::Measured, "no working set (c1)");
    assert!(c1.points.len() == 2 && c1.points.iter().all(|point| near(point.y, 3000.0)));
    let cache = |label: &str| cost.marks.iter().find(|mark| mark.label == label).unwrap().x;
    assert_eq!((cache("L1 32 KiB"), cache("L2 512 KiB")), (32_768.0, 524_288.0));
    let named: Vec<&str> = cost.regions.iter().map(|region| region.label.as_str()).collect();
    assert_eq!(named[..2], ["all working sets fit", "combined working sets exceed the cache"]);
    assert_eq!(cost.regions[0].to, cost.regions[1].from, "no gap between regions");
    assert!((196_608.0..=524_288.0).contains(&cost.regions[0].to), "{:?}", cost.regions);
    let found = cost.marks.iter().find(|mark| mark.label == "break, rmw by 128 B").unwrap();
    let (low, high) = found.between.unwrap();
    assert!(low <= found.x && found.x <= high);
}

fn text_of(cases: Vec<RingCase>, view: View) -> ReportText {
    let run = run(Experiment::Cost, cases, l2);
    let record = RingRecord::from_run(&run);
    let cost = record.found.cost.as_ref().unwrap();
    super::table::text(&record, cost, view)
}

fn with_and_without(works: impl IntoIterator<Item = Work>) -> Vec<RingCase> {
    std::iter::once(None).chain(works.into_iter().map(Some)).map(|work| case(2, work)).collect()
}

/// Of the machine `cost` says, whatever the caches.
fn text_by(cases: Vec<RingCase>, cost: impl Fn(&RingCase) -> u64, view: View) -> ReportText {
    let record = RingRecord::from_run(&run(Experiment::Cost, cases, cost));
    super::table::text(&record, record.found.cost.as_ref().unwrap(), view)
}

#[test]
fn the_answer_has_both_ends_the_jump_and_where_caches_overflow() {
    let cases = with_and_without(KIB.map(|kib| whole(kib, 128)));
    let words = text_of(cases.clone(), View::default()).headline;
    assert!(words.starts_with("A switch costs 3.0"), "{words}");
    let last = ") without a working set, 182.9 us (";
    let jump = "with 2 MiB; it jumps from 3.01 us to 15.9 us between 256 KiB and 384 KiB, 5.27x (";
    assert!(words.contains(last) && words.contains(jump), "{words}");
    assert!(words.contains("; combined working sets exceed the cache from "), "{words}");
    assert!(words.ends_with(" on. Possible causes: L2 512 KiB."), "{words}");
    // Without the direct cost.
    let words = text_of(cases[1..].to_vec(), View::default()).headline;
    assert!(words.contains(") with 16 KiB, 18") && !words.contains("without"), "{words}");
    let words = text_of(vec![case(2, None)], View::default()).headline;
    assert!(words.ends_with(") without a working set."), "{words}");
    let words = text_of(vec![case(4, None)], View::default()).headline;
    assert!(words.starts_with("A switch among 4 processes costs 3.0"), "{words}");
    let none = text_of(vec![case(1, None)], View::default()).headline;
    assert_eq!(none, "What a switch costs was not measured.");
}

/// The size that was asked for is told, though nothing is known of it.
#[test]
fn a_size_whose_cost_is_not_resolved_is_in_the_first_line() {
    let cost = |case: &RingCase| if case.work.is_some() { 0 } else { 940 };
    let words = text_by(with_and_without([whole(256, 64)]), cost, View::default()).headline;
    assert!(words.contains(") without a working set; with 256 KiB: not resolved"), "{words}");
}

/// No fixed place of the grid is told: 256 KiB is the least of all here.
#[test]
fn a_peak_and_a_larger_jump_are_both_in_the_first_line() {
    let chase = |kib: u64| Work { walk: Walk::Chase, ..whole(kib, 64) };
    let of = |case: &RingCase| match case.work.map(|work| work.bytes >> 10) {
        None => 940,
        Some(32) => 2430,
        Some(256) => 1050,
        Some(_) => 181_000,
    };
    let cases = with_and_without([32, 256, 1024].map(chase));
    let ReportText { headline, table, .. } = text_by(cases, of, View::default());
    assert_eq!(
        headline,
        "A switch costs 943.0 ns (940.0 to 947.0) without a working set, 181.7 us (181.2 to 182.4) \
         with 1 MiB of lines at random; it jumps from 1.05 us to 182 us between 256 KiB and 1 MiB, \
         172x (172x to 173x); it peaks at 2.44 us with 32 KiB and falls to 1.05 us with 256 KiB. \
         Possible causes: L2 512 KiB."
    );
    assert!(table.to_string().starts_with("rmw of lines at random, 2 members\n"), "{table}");
}

#[test]
fn members_are_rows_and_the_jump_of_what_pages_add_is_told() {
    let page =
        |pages: u64| Work { walk: Walk::Sparse, op: AccessKind::Read, ..whole(pages * 4, 4096) };
    let sizes: Vec<u32> = (2..=10).collect();
    let both = |members: &u32| [case(*members, None), case(*members, Some(page(256)))];
    let of = |case: &RingCase| match (case.work, case.members) {
        (None, _) => 650,
        (_, 2) => 669,
        (_, 3) => 720,
        (_, 4) => 748,
        _ => 1760,
    };
    let text = text_by(sizes.iter().flat_map(both).collect(), of, View::default());
    let words = &text.headline;
    assert!(words.starts_with("A switch among 2 processes costs 67"), "{words}");
    let ends = ") with a line in each of 256 pages, 1.766 us (";
    assert!(words.contains(ends) && words.contains(") among 10; "), "{words}");
    let jump = "what the working set adds jumps from 98";
    assert!(words.contains(jump) && words.contains(" to 1.11 us at 5 members, 11.3x ("), "{words}");
    assert!(words.contains("(the whole switch: 750 ns to 1.77 us)"), "{words}");
    let spaces = "Possible causes: the 6 address spaces that Linux keeps in a CPU's TLB";
    assert!(words.contains(spaces), "{words}");
    // One table of nine rows, and no word on courses of one size.
    let table = text.table.to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "read of one line in each 4 KiB, 256 pages");
    assert!(lines[1].trim_start().starts_with("members"), "{}", text.table);
    assert_eq!(lines.len(), 3 + 9, "{}", text.table);
    assert!(lines.iter().all(|line| line.trim_end().chars().count() <= 80));
    let findings = MarkedText::join(text.findings, "\n");
    assert!(!findings.contains("1 size"), "{findings}");
    assert!(findings.contains("by members, read of 1 MiB by 4 KiB, one line each: "), "{findings}");
    assert!(findings.contains("added by the working set: "), "{findings}");
}

#[test]
fn arrays_and_members_are_one_table_with_members_as_columns() {
    let sizes = [2, 4, 8];
    let works = |members: u32| {
        with_and_without(KIB.map(|kib| whole(kib, 128)))
            .into_iter()
            .map(move |of| RingCase { members, ..of })
    };
    let text = text_of(sizes.into_iter().flat_map(works).collect(), View::default());
    let table = text.table.to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "rmw by 128 B: a switch by array and members");
    let columns: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(columns, ["array", "2", "4", "8"]);
    assert_eq!(lines.len(), 3 + KIB.len(), "{}", text.table);
    // With --verbose a table of each ring has the intervals.
    let all = text_of(sizes.into_iter().flat_map(works).collect(), View::ALL).table;
    assert_eq!(all.to_string().matches("ns/switch").count(), 3, "{all}");
}

#[test]
fn kinds_of_access_are_rows_where_nothing_else_was_swept() {
    let works = [whole(64, 128), Work { op: AccessKind::Read, ..whole(64, 128) }];
    let of = |case: &RingCase| match case.work {
        Some(work) if work.op == AccessKind::Rmw => 6000,
        _ => 3000,
    };
    let text = text_by(with_and_without(works), of, View::default());
    let words = &text.headline;
    assert!(words.contains("; read by 128 B is cheapest at 3.0"), "{words}");
    assert!(words.contains(", rmw by 128 B most expensive at 6.0"), "{words}");
    assert_eq!(text.table.to_string().lines().next(), Some("64 KiB, 2 members"));
}

/// What cannot be quoted is marked, and says by how few rounds it is known.
#[test]
fn too_few_rounds_are_said_and_nothing_is_built_on_them() {
    let mut run = run(Experiment::Cost, with_and_without(KIB.map(|kib| whole(kib, 128))), l2);
    run.samples.retain(|sample| sample.round() < 2);
    let record = RingRecord::from_run(&run);
    let cost = record.found.cost.as_ref().unwrap();
    let text = super::table::text(&record, cost, View::default());
    assert_eq!(
        text.headline,
        "A switch costs ~3.01 us (2 rounds) without a working set, ~183 us (2 rounds) with 2 MiB."
    );
    assert!(
        text.table.to_string().lines().skip(3).all(|row| row.contains("(2 rounds)")),
        "{}",
        text.table
    );
    assert!(cost.curves[0].jump.is_none() && cost.curves[0].outcome.breaks().pieces.is_empty());
}

#[test]
fn tables_fit_eighty_columns_and_the_paper_is_history() {
    let cases = with_and_without(KIB.map(|kib| whole(kib, 128)));
    let brief = text_of(cases.clone(), View::default());
    assert!(
        brief.table.to_string().lines().all(|line| line.trim_end().chars().count() <= 80),
        "{}",
        brief.table
    );
    let table = brief.table.to_string();
    let columns: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(columns, ["array", "ns/switch", "indirect", "ns"]);
    // The smallest arrays add nothing that is resolved.
    assert!(brief.table.to_string().contains("not resolved: "), "{}", brief.table);
    assert!(brief.findings.iter().all(|line| !line.contains("Li, Ding")), "{:?}", brief.findings);
    assert!(
        brief.details.to_string().contains("direct cost (c1) with 2 members: 30"),
        "{}",
        brief.details
    );
    let history = text_of(cases, View::ALL);
    assert!(history.findings[0].contains("; 4.44 to 48.4 in Li"), "{:?}", history.findings);
    assert!(history.table.text(Layout::UNBROKEN).lines().nth(1).unwrap().contains("switches/hop"));
}

/// 3 us at 2 GHz; a cost that may not be quoted has no cycles, and by default none has.
#[test]
fn wide_tables_have_cycles_of_what_may_be_quoted() {
    let cases = with_and_without([64, 1024].map(|kib| whole(kib, 128)));
    let mut record = RingRecord::from_run(&run(Experiment::Cost, cases, l2));
    for of in &mut record.cases {
        let [cycles, open] = in_cycles(of.ns_per_switch_above_solo);
        let is_open = of.case.work.is_some_and(|work| work.bytes > 1 << 16);
        of.clock_ghz = Some(2.0);
        of.cycles_per_switch = if is_open { open } else { cycles };
    }
    let text = |view| super::table::text(&record, record.found.cost.as_ref().unwrap(), view).table;
    let wide = text(View { wide: true, ..View::default() });
    let columns = ["ns/switch", "cycles/switch", "GHz", "indirect", "ns"];
    assert_eq!(cells(&wide, "array"), columns);
    let row = cells(&wide, "64 KiB");
    let (ns, cycles) = (row[0].parse::<f64>().unwrap(), row[4].parse::<f64>().unwrap());
    assert!(near(ns, 3000.0) && (cycles - 2.0 * ns).abs() <= 1.0 && row[5] == "2.00", "{row:?}");
    assert_eq!(cells(&wide, "1 MiB")[4..6], ["-", "2.00"]);
    assert_eq!(cells(&text(View::default()), "array"), ["ns/switch", "indirect", "ns"]);
}

#[test]
fn the_indirect_cost_is_a_figure_of_its_own_and_signed() {
    let figures = drawn(&[128]);
    let indirect = series(figure(&figures, "cost-indirect"), Role::Measured, "rmw by 128 B");
    // Where all fits it adds nothing that is resolved: there is no point.
    assert!((6..12).contains(&indirect.points.len()), "{:?}", indirect.points);
    assert!(near(indirect.points.last().unwrap().y, 179_200.0));
}

#[test]
fn breaks_at_one_place_are_one_mark_and_no_line_leaves_the_values() {
    let figures = drawn(&[128, 512]);
    let cost = figure(&figures, "cost-by-array");
    let breaks = cost.marks.iter().filter(|mark| mark.label.starts_with("break"));
    let labels: Vec<&str> = breaks.map(|mark| &*mark.label).collect();
    assert_eq!(labels, ["break, 2 curves"]);
    assert!(cost.series().iter().all(|series| series.role == Role::Measured));
    assert!(cost.in_words.starts_with("Without a working set 3.0"), "{}", cost.in_words);
    assert_eq!(cost.in_words.matches(". ").count(), 1, "two sentences: {}", cost.in_words);
}

#[test]
fn tiles_are_of_the_array_that_says_most_and_of_none() {
    let works = [16, 1024].map(|kib| Some(whole(kib, 128)));
    let cases = std::iter::once(None).chain(works).map(|work| case(2, work)).collect();
    let run = run(Experiment::Cost, cases, l2);
    let tiles = Record::from_run(&run).tiles();
    let told: Vec<(&str, String, &str)> =
        tiles.iter().map(|tile| (&*tile.name, tile.figure(), tile.unit)).collect();
    assert_eq!(told[0].0, "switch, 1 MiB each");
    assert_eq!((told[0].1.starts_with("80."), told[0].2), (true, "us"), "{told:?}");
    assert_eq!(told[1].0, "switch, no working set");
    let names: Vec<&str> = told.iter().map(|(name, ..)| *name).collect();
    assert!(
        names.contains(&"added by 1 MiB") && names.contains(&"switch, 16 KiB each"),
        "{names:?}"
    );
}

#[test]
fn several_strides_are_a_map_with_empty_cells_where_nothing_was_measured() {
    let few = drawn(&[128, 512]);
    assert!(few.iter().all(|figure| !figure.id.starts_with("cost-map")), "two rows are lines");
    let works = [whole(64, 8), whole(1024, 8), whole(1024, 512), whole(64, 1024)].map(Some);
    let cases = std::iter::once(None).chain(works).map(|work| case(2, work)).collect();
    let figures = figures(&run(Experiment::Cost, cases, l2));
    let map = figure(&figures, "cost-map");
    assert_eq!(map.y.names, ["rmw by 8 B", "rmw by 512 B", "rmw by 1 KiB"]);
    let charts::FigureBody::Map(map) = &map.body else { panic!("a map") };
    assert_eq!((&map.xs[..], &map.ys[..]), (&[65_536.0, 1_048_576.0][..], &[0.0, 1.0, 2.0][..]));
    let near = |cell: Option<f64>, wanted| cell.is_some_and(|cell| near(cell, wanted));
    assert!(near(map.values[0][0], 3000.0) && near(map.values[0][1], 79_800.0));
    assert!(map.values[1][0].is_none() && near(map.values[1][1], 156_600.0), "{map:?}");
}

#[test]
fn pages_have_an_axis_of_their_own() {
    let page = |pages: u64| Work { walk: Walk::Sparse, ..whole(pages * 4, 4096) };
    let works = [4, 8, 16, 32, 64, 128, 256, 512].map(page).map(Some);
    let cases = std::iter::once(None).chain(works).map(|work| case(2, work)).collect();
    let figures = figures(&run(Experiment::Cost, cases, |_| 3000));
    let pages = figure(&figures, "cost-by-pages");
    let name = "rmw of one line in each 4 KiB";
    assert_eq!(series(pages, Role::Measured, name).points[7].x, 512.0);
    assert_eq!(pages.x.unit, Unit::Count);
    assert!(figures.iter().all(|figure| figure.id != "cost-by-array"));
}

#[test]
fn costs_by_ring_size_are_drawn_where_there_are_several() {
    let sizes: Vec<u32> = (2..=8).collect();
    let both = |members: &u32| [case(*members, None), case(*members, Some(whole(64, 128)))];
    let figures = figures(&run(Experiment::Cost, sizes.iter().flat_map(both).collect(), l2));
    let by_members = figure(&figures, "cost-by-members");
    assert_eq!(by_members.series().len(), 2);
    assert_eq!(series(by_members, Role::Measured, "no work").points.len(), 7);
}
