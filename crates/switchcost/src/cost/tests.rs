//! Charts of costs by working set.

use charts::{Figure, Role, Scale, Unit};
use model::experiment::Experiment;
use model::record::Record;
use model::ring::{Case, Op, Walk, Work};

use crate::figures::tests::*;
use crate::terminal::{Text, View};

const KIB: [u64; 12] = [16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];

fn whole(kib: u64, stride: u64) -> Work {
    Work::new(kib * 1024, stride, Op::Rmw).unwrap()
}

/// 3 us while two arrays fit into 512 KiB, then 100 ns for each KiB beyond; twice that by long strides.
fn l2(case: &Case) -> u64 {
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
    let c1 = series(cost, Role::Measured, "without work (c1)");
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

fn text_of(cases: Vec<Case>, view: View) -> Text {
    let run = run(Experiment::Cost, cases, l2);
    let record = Record::of(&run);
    super::table::text(&record, record.cost.as_ref().unwrap(), view)
}

fn with_and_without(works: impl IntoIterator<Item = Work>) -> Vec<Case> {
    std::iter::once(None).chain(works.into_iter().map(Some)).map(|work| case(2, work)).collect()
}

#[test]
fn the_answer_has_both_costs_and_where_caches_overflow() {
    let cases = with_and_without(KIB.map(|kib| whole(kib, 128)));
    let words = text_of(cases.clone(), View::default()).headline;
    assert!(
        words.starts_with("A switch costs 3.01 us (")
            || words.starts_with("A switch costs 3.00 us ("),
        "{words}"
    );
    let beyond = "us with 256 KiB: combined working sets exceed the cache from ";
    assert!(words.contains(") without a working set, 3.0") && words.contains(beyond), "{words}");
    assert!(words.ends_with(" on."), "{words}");
    // Of lines at random, where they were measured, and of the nearest array.
    let chase = |kib: u64| Work { walk: Walk::Chase, ..whole(kib, 64) };
    let both = [whole(256, 64), whole(512, 64), chase(64), chase(384)];
    let words = text_of(with_and_without(both), View::default()).headline;
    assert!(
        words.contains(" without a working set, 15.") && words.ends_with("us with 384 KiB."),
        "{words}"
    );
    // Without one of the two costs.
    let words = text_of(cases[1..].to_vec(), View::default()).headline;
    assert!(words.contains(") with 256 KiB: combined") && !words.contains("without"), "{words}");
    let words = text_of(vec![case(2, None)], View::default()).headline;
    assert!(words.ends_with(") without a working set."), "{words}");
    let words = text_of(vec![case(4, None)], View::default()).headline;
    assert!(words.starts_with("A switch among 4 processes costs 3.0"), "{words}");
    let none = text_of(vec![case(1, None)], View::default()).headline;
    assert_eq!(none, "What a switch costs was not measured.");
}

#[test]
fn tables_fit_eighty_columns_and_the_paper_is_history() {
    let cases = with_and_without(KIB.map(|kib| whole(kib, 128)));
    let brief = text_of(cases.clone(), View::default());
    assert!(
        brief.table.lines().all(|line| line.trim_end().chars().count() <= 80),
        "{}",
        brief.table
    );
    let columns: Vec<&str> = brief.table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(columns, ["array", "ns/switch", "interval", "indirect", "ns", "interval"]);
    // The smallest arrays add nothing that is resolved.
    assert!(brief.table.ends_with("( ): not resolved from zero\n"), "{}", brief.table);
    assert!(brief.findings.iter().all(|line| !line.contains("Li, Ding")), "{:?}", brief.findings);
    assert!(brief.details.contains("c1 of 2 members: 30"), "{}", brief.details);
    let history = text_of(cases, View::ALL);
    assert!(history.findings[0].contains("theirs 4.44"), "{:?}", history.findings);
    assert!(history.table.lines().nth(1).unwrap().contains("switches/hop"));
}

#[test]
fn the_indirect_cost_is_a_figure_of_its_own_of_what_is_resolved() {
    let figures = drawn(&[128]);
    let indirect = series(figure(&figures, "cost-indirect"), Role::Measured, "rmw by 128 B");
    assert!(indirect.points.iter().all(|point| point.low > Some(0.0)), "{indirect:?}");
    assert!(indirect.points.len() < 12, "the smallest arrays add nothing that is resolved");
    assert!(indirect.points.last().is_some_and(|point| near(point.y, 179_200.0)), "{indirect:?}");
}

#[test]
fn several_strides_are_a_map_with_empty_cells_where_nothing_was_measured() {
    assert!(drawn(&[128]).iter().all(|figure| !figure.id.starts_with("cost-map")));
    let works = [whole(64, 8), whole(1024, 8), whole(1024, 512)].map(Some);
    let cases = std::iter::once(None).chain(works).map(|work| case(2, work)).collect();
    let figures = figures(&run(Experiment::Cost, cases, l2));
    let map = figure(&figures, "cost-map");
    assert_eq!(map.y.names, ["rmw by 8 B", "rmw by 512 B"]);
    let charts::Body::Map(map) = &map.body else { panic!("a map") };
    assert_eq!((&map.xs[..], &map.ys[..]), (&[65_536.0, 1_048_576.0][..], &[0.0, 1.0][..]));
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
