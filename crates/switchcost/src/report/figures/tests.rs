//! Known answers: runs whose costs are chosen, and the charts that they must become. The tests of
//! experiments use the helpers too.

use analysis::estimate::{Estimate, Speed};
use analysis::results::published_machines;
use charts::{Figure, Point, PointCertainty, Role, Scale, Series, overlay_runs};
use rundata::experiment::Experiment;
use rundata::machine::{CacheKind, CpuCache};
use rundata::placement::Placement;
use rundata::plan::Plan;
use rundata::reading::Reading;
use rundata::ring::{AccessKind, Counters, RingCase, RingSample, Work};
use rundata::run::Run;

use super::cost_points;
use super::published::{by_year, published_figures, with_published};
use crate::base::lines::Layout;
use crate::registry::Record;
use crate::report::printout::Printout;

pub(crate) fn figure<'a>(figures: &'a [Figure], id: &str) -> &'a Figure {
    let ids = || figures.iter().map(|figure| figure.id.as_str()).collect::<Vec<_>>();
    figures.iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("{id} in {:?}", ids()))
}

pub(crate) fn series<'a>(figure: &'a Figure, role: Role, name: &str) -> &'a Series {
    let named = |series: &&Series| series.role == role && series.name == name;
    let all = || figure.series().iter().map(|s| (s.role, s.name.as_str())).collect::<Vec<_>>();
    figure.series().iter().find(named).unwrap_or_else(|| panic!("{role:?} {name} in {:?}", all()))
}

pub(crate) fn near(value: f64, wanted: f64) -> bool {
    (value / wanted - 1.0).abs() < 0.01
}

/// Returns a stored run, which gives the header, the machine and all that a test does not replace.
pub(crate) fn fixture() -> Run {
    Run::parse(include_str!("../../../../rundata/tests/fixtures/run-v1.jsonl")).unwrap()
}

pub(crate) fn figures(run: &Run) -> Vec<Figure> {
    Record::from_run(run).figures(run, 0)
}

pub(crate) fn case(members: u32, work: Option<Work>) -> RingCase {
    RingCase { work, ..RingCase::of_processes(members, Placement::Same { cpu: 1 }) }
}

/// Returns a sample of a case in a round: hops, their time in nanoseconds, switches.
pub(crate) fn sample(
    (case, round): (usize, u32),
    hops: u64,
    elapsed_ns: u64,
    switches: u64,
) -> rundata::case::Sample {
    let cpu_ns = elapsed_ns;
    rundata::case::Sample::from(RingSample {
        case,
        round,
        laps: 1000,
        hops,
        elapsed_ns,
        counters: Counters { voluntary: switches, cpu_ns, ..Counters::default() },
        ..RingSample::default()
    })
}

/// Returns a run of eight rounds: a hop of a solo ring costs 1000 ns, a switch what `cost` says,
/// scattered by up to 0.9 %. There is one switch a hop, and all time is CPU time.
pub(crate) fn run(
    experiment: Experiment,
    cases: Vec<RingCase>,
    cost: impl Fn(&RingCase) -> u64,
) -> Run {
    let mut run = fixture();
    let cases = cases.into_iter().map(Into::into).collect();
    let plan = Plan { experiment, cases, ..run.header.plan };
    let plan = plan.with_solos();
    let one = |round: u32, index: usize| {
        let case = plan.ring(index).unwrap();
        let is_solo = case.members == 1;
        let hops = 1000 * case.hops_per_lap();
        let scatter = 1000 + [0, 7, 3, 9, 5, 1, 8, 2][(round as usize + index) % 8];
        let above = if is_solo { 0 } else { cost(case) * scatter / 1000 };
        sample((index, round), hops, hops * (1000 + above), if is_solo { 0 } else { hops })
    };
    let rounds = (0..8).flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)));
    run.samples = rounds.map(|(round, case)| one(round, case)).collect();
    run.header.plan = plan;
    run.header.machine.cpu.caches = Reading::Known(vec![cache(1, 32), cache(2, 512)]);
    run
}

/// Returns a time in cycles of a core at 2 GHz, and the same cycles with an interval so wide that they
/// may not be quoted.
pub(crate) fn in_cycles(ns: Option<Estimate>) -> [Option<Estimate>; 2] {
    let cycles = ns.and_then(|ns| ns.scaled(2.0));
    let not_resolved = cycles.map(|cycles| Estimate { low: Some(-1.0), resolved: false, ..cycles });
    [cycles, not_resolved]
}

/// Returns the cells of the row that begins with these words, in a table with all its columns.
pub(crate) fn cells(table: &Printout, first: &str) -> Vec<String> {
    let table = table.text(Layout::UNBROKEN);
    let row = table.lines().find_map(|line| line.trim_start().strip_prefix(first));
    let row = row.unwrap_or_else(|| panic!("no {first:?} in {table}"));
    row.split_whitespace().map(String::from).collect()
}

fn cache(level: u32, kib: u64) -> CpuCache {
    CpuCache {
        of_cpu: 1,
        level: Reading::Known(level),
        kind: Reading::Known(CacheKind::Unified),
        size_bytes: Reading::Known(kib * 1024),
        line_bytes: Reading::Known(64),
        ..CpuCache::default()
    }
}

fn rings() -> Vec<Figure> {
    let cases = [2, 4, 8, 16].map(|members| case(members, None)).to_vec();
    overlay_runs(vec![("mine".into(), figures(&run(Experiment::Ring, cases, |_| 3000)))])
}

fn with_all(figures: Vec<Figure>) -> Vec<Figure> {
    with_published(figures, &published_machines().unwrap(), &["mine".to_string()])
}

#[test]
fn the_nine_machines_lie_in_the_axes_of_rings() {
    let figures = with_all(rings());
    let cost = figure(&figures, "ring-cost");
    let published: Vec<&Series> =
        cost.series().iter().filter(|series| series.role == Role::Published).collect();
    let named: Vec<&str> = published.iter().map(|series| &*series.name).collect();
    assert_eq!(named.iter().filter(|name| name.ends_with(", 1992")).count(), 9, "{named:?}");
    assert!(published.iter().all(|series| series.run.is_none()));
    assert_eq!((cost.x.scale, cost.y.scale), (Scale::Log, Scale::Log));
    // 1108 seconds, of which 1096 of CPU, for a million laps of two.
    let aviion = series(cost, Role::Published, "aviion-av400, 1992");
    assert_eq!(aviion.points[0], Point::bare(2.0, 548_000.0));
    let lap = series(figure(&figures, "ring-cpu"), Role::Published, "aviion-av400, 1992");
    assert_eq!(lap.points[0], Point::bare(2.0, 1_096_000.0));
    assert_eq!(lap.points.len(), 9);
}

#[test]
fn the_years_run_from_venix_to_the_run() {
    let figures = with_all(rings());
    let history = figure(&figures, "history");
    let names: Vec<&str> = history.x.names.iter().map(String::as_str).collect();
    assert_eq!(names.len(), 3 + 9 + 1 + 1 + 1, "{names:?}");
    assert!(names[..3].iter().all(|name| name.ends_with("1984")), "{names:?}");
    assert_eq!(names[12..], ["xeon-2.0, 2007", "amd-epyc-25/17, 2026", "mine"]);
    let ours = series(history, Role::Measured, "measured");
    assert!(near(ours.points[0].y, 3000.0) && ours.points[0].x == 14.0);
    assert_eq!(series(history, Role::Published, "xeon-2.0, 2007").points[0].y, 3800.0);
    assert_eq!(series(history, Role::Published, "80186, 1984").points[0].y, 1_500_000.0);
    let today = series(history, Role::Published, "amd-epyc-25/17, 2026").points[0];
    assert_eq!((today.y, today.low, today.high), (1511.0, Some(1480.0), Some(1542.0)));
    let alone = by_year(&published_machines().unwrap());
    assert_eq!(alone.x.names, names[..14]);
    assert_eq!(alone.y.scale, Scale::Log);
    assert!(alone.series().iter().all(|series| series.role == Role::Published));
}

/// The machine's rings by pipe are one line; its working sets are a line for each way to walk them.
#[test]
fn a_machine_of_today_lies_over_rings_and_working_sets() {
    let all = published_machines().unwrap();
    let epyc = all.iter().find(|machine| machine.name == "amd-epyc-25/17").unwrap();
    let figures = published_figures(epyc, 0);
    let ids: Vec<&str> = figures.iter().map(|figure| &*figure.id).collect();
    assert_eq!(ids, ["ring-cost", "cost-by-array"]);
    let ring = &figures[0].series()[0];
    assert_eq!(ring.points.len(), 1, "not that under SCHED_FIFO: {ring:?}");
    let arrays = &figures[1];
    assert_eq!(arrays.series().len(), 2);
    let chase = series(arrays, Role::Published, "amd-epyc-25/17, 2026, rmw of lines at random");
    let last = chase.points.last().unwrap();
    assert_eq!((last.x, last.y), (4_194_304.0, 3_100_000.0));
    assert!(last.low < Some(1e6) && last.high > Some(5e6), "{last:?}");
}

#[test]
fn a_machine_that_is_asked_for_by_name_is_there_once_and_of_its_run() {
    let all = published_machines().unwrap();
    let sun = all.iter().find(|machine| machine.name == "sun-4/280").unwrap();
    let names = ["mine", "history:sun-4/280"].map(String::from);
    let runs = vec![rings(), published_figures(sun, 1)];
    let figures =
        with_published(overlay_runs(names.iter().cloned().zip(runs).collect()), &all, &names);
    for id in ["ring-cost", "ring-cpu", "history"] {
        let series = figure(&figures, id).series().iter();
        let named = series.filter(|series| series.name == "sun-4/280, 1992");
        let runs: Vec<Option<usize>> = named.map(|series| series.run).collect();
        assert_eq!(runs, [Some(1)], "{id}");
    }
}

#[test]
fn li_and_others_lie_over_working_sets() {
    let work = |kib: u64| Work::new(kib * 1024, 128, AccessKind::Rmw).unwrap();
    let works = [None, Some(work(16)), Some(work(1024))];
    let cases = works.map(|work| case(2, work)).to_vec();
    let figures = with_all(figures(&run(Experiment::Cost, cases, |_| 3000)));
    let cost = figure(&figures, "cost-by-array");
    let c1 = series(cost, Role::Published, "xeon-2.0, 2007, c1");
    assert!(c1.points.iter().all(|point| point.y == 3800.0), "{c1:?}");
    let second = series(cost, Role::Published, "xeon-2.0, 2007, 256 to 512 KiB");
    let last = &second.points[1];
    assert_eq!(
        (last.x, last.high, last.certainty),
        (524_288.0, Some(203_200.0), PointCertainty::RangeOnly)
    );
    assert!(
        figures.iter().all(|figure| figure.id != "history"),
        "no ring of two without work alone"
    );
}

#[test]
fn a_figure_that_is_not_at_full_speed_is_a_rough_point_and_one_that_is_not_resolved_none() {
    let sure = Estimate::at_full_speed(1483.0, 10.0, 20, 0.001, 0.95);
    let shared = Estimate::as_it_was(&[2030.0; 6], None, 0.95, Speed::Contended);
    let not_resolved = Estimate::at_full_speed(-3.0, 10.0, 20, 0.001, 0.95);
    let points = cost_points([(2.0, sure), (4.0, shared), (8.0, not_resolved), (16.0, None)]);
    let known: Vec<(f64, PointCertainty)> =
        points.iter().map(|point| (point.x, point.certainty)).collect();
    assert_eq!(known, [(2.0, PointCertainty::Sure), (4.0, PointCertainty::Rough)]);
}

#[test]
fn what_was_printed_as_a_range_is_drawn_as_one() {
    let all = published_machines().expect("published figures");
    let xeon = all.iter().find(|machine| machine.name == "xeon-2.0").expect("the machine");
    let figures = published_figures(xeon, 0);
    let printed = figure(&figures, "published");
    let known: Vec<PointCertainty> =
        printed.series()[0].points.iter().map(|point| point.certainty).collect();
    assert_eq!(known.first(), Some(&PointCertainty::Sure));
    assert!(known.contains(&PointCertainty::RangeOnly), "{known:?}");
}
