//! A run in the formats of other programs: Go's benchmark format, and OpenMetrics.

use analysis::measures::{self, RingMeasure};
use analysis::program::RatePrices;
use analysis::results::{
    CaseFigure, CaseResults, LaunchFigure, Origin, Quantity, QuantityUnit, Results,
};
use charts::{clean, is_obeyed, printable};
use rundata::experiment::Experiment;

/// Go's unit of the time that a benchmark takes.
const NS_PER_OPERATION: &str = "ns/op";

/// Returns a run in Go's benchmark format (golang.org/design/14313-benchmark-format): configuration
/// lines, then a line for each case and round.
///
/// The samples of a round share a worker, so they are no repetitions of each other for benchstat: a
/// line has the median of a round, over all its hops.
pub(crate) fn go_bench(results: &Results) -> Vec<u8> {
    let mut text = go_configuration(results);
    let target = target(results);
    let cpus = results.machine.cpu.online.known().map_or(1, |list| list.as_slice().len()).max(1);
    for case in &results.cases {
        let name = go_name(case);
        for (round, iterations) in &case.iterations {
            let figures = go_figures(case, *round, target);
            // benchstat knows no line without a figure.
            if figures.is_empty() {
                continue;
            }
            text += &format!("{name}-{cpus}\t{iterations}");
            for figure in figures {
                text += &format!("\t{} {}", decimal(figure.value), figure.unit);
            }
            text.push('\n');
        }
    }
    text.into_bytes()
}

/// Returns the configuration lines. benchstat compares only benchmarks of equal configuration: what
/// may differ between two runs that are compared is a remark, which it passes over.
fn go_configuration(results: &Results) -> String {
    let mut text = format!("# run: {}\n", clean(&results.side.name));
    if let Some(release) = results.machine.kernel.release.known() {
        text += &format!("# kernel: {}\n", clean(release));
    }
    if let Some(ghz) = results.clock_ghz {
        text += &format!("# clock: {ghz:.2} GHz\n");
    }
    // These four are lines of `go test`.
    text += "goos: linux\n";
    if let Some(target) = target(results) {
        text += &format!("goarch: {}\n", go_architecture(target));
    }
    text += "pkg: switchcost\n";
    if let Some(cpu) = results.machine.cpu_name() {
        text += &format!("cpu: {}\n", clean(cpu));
    }
    text += "Unit ns/switch better=lower\nUnit cpu-ns/op better=lower\n";
    text + "Unit cycles/switch better=lower\nUnit cycles/op better=lower\n\n"
}

/// A figure of a line with its unit.
struct GoFigure {
    value: f64,
    unit: &'static str,
}

/// Returns the figures of a case in a round, in nanoseconds and in cycles, first that in `ns/op`:
/// benchstat takes the first figure for that of the line, as `go test` prints it.
fn go_figures(case: &CaseResults, round: u32, target: Option<&str>) -> Vec<GoFigure> {
    let mut figures = Vec::new();
    for (quantity, values) in &case.figures {
        let Some(rounds) = values.by_round() else { continue };
        let (Some(&ns), Some(units)) = (rounds.get(&round), quantity.go_units()) else { continue };
        figures.push(GoFigure { value: ns, unit: units.ns });
        let clock_ghz = target.and_then(|target| clock_ghz(values, target));
        if let (Some(ghz), Some(unit)) = (clock_ghz, units.cycles) {
            figures.push(GoFigure { value: ns * ghz, unit });
        }
    }
    figures.sort_by_key(|figure| figure.unit != NS_PER_OPERATION);
    figures
}

/// Returns the target triple that the run's program was built for.
pub(super) fn target(results: &Results) -> Option<&str> {
    match &results.side.origin {
        Origin::Run { build, .. } => Some(&build.target),
        Origin::Publication { .. } => None,
    }
}

/// Returns the core's clock of a figure if the figure may be quoted in its cycles.
fn clock_ghz(values: &CaseFigure, target: &str) -> Option<f64> {
    let launch = values.launches().first()?;
    launch.cycles(target)?.quote_cost().ok()?;
    launch.clock_ghz(target)
}

/// Returns Go's name of the architecture of a target triple, or the triple's own where Go has none.
fn go_architecture(target: &str) -> &str {
    match target.split('-').next().unwrap_or(target) {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i686" | "i586" => "386",
        other => other,
    }
}

/// Returns the name of a benchmark, a word whose labels are set apart by `/`:
/// `BenchmarkRing/members=2/kind=process/...`.
fn go_name(case: &CaseResults) -> String {
    let is_ring_of_response =
        case.label("members").is_some() && case.experiment == Experiment::Response.name();
    let experiment = if is_ring_of_response { "ring" } else { case.experiment };
    let mut name = "Benchmark".to_string();
    for word in experiment.split('-') {
        name += &capitalized(word);
    }
    for (label, value) in &case.labels {
        name += &format!("/{}={}", go_word(label), go_word(value));
    }
    name
}

/// Replaces what would end a label of a benchmark's name.
fn go_word(text: &str) -> String {
    text.replace(|c: char| c.is_whitespace() || c == '/' || is_obeyed(c), "_")
}

/// Returns the text with a capital at its start.
pub(crate) fn capitalized(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

/// Returns a number with at most three decimals, without an exponent and without zeros at its end.
fn decimal(value: f64) -> String {
    format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Labels of a line, by name and value.
pub(crate) type Labels = Vec<(String, String)>;

/// Returns a run as OpenMetrics text (github.com/prometheus/OpenMetrics, version 1.0).
///
/// The text has gauges only and no time stamps, so that the textfile collector of node_exporter reads
/// it too: that parses Prometheus' older format, takes `# UNIT` and `# EOF` for comments, and refuses
/// time stamps.
///
/// `prices` are those of a run with costs by working set: what a dashboard multiplies rates of switches
/// by.
pub(crate) fn openmetrics(results: &Results, prices: Option<RatePrices>) -> Vec<u8> {
    openmetrics_beside(results, &prices.map(price_gauges).unwrap_or_default())
}

/// Returns results as OpenMetrics with further gauges, each as [`Gauge::text`] returns it.
pub(crate) fn openmetrics_beside(results: &Results, further: &str) -> Vec<u8> {
    openmetrics_with(results, measures::exported_measures(), further)
}

/// Returns the text with gauges of the exported measures, and further ones.
fn openmetrics_with(
    results: &Results,
    exported: impl Iterator<Item = &'static RingMeasure>,
    further: &str,
) -> Vec<u8> {
    let mut text = String::new();
    for quantity in Quantity::ALL {
        text += &quantity_gauges(results, quantity);
    }
    for measure in exported {
        let gauge = Gauge {
            name: &format!("switchcost_{}", measure.id),
            unit: "",
            help: &format!("{}.", capitalized(measure.meaning)),
        };
        let values = case_values(results, |case| (measure.read)(case.summary.as_deref()?).number());
        text += &gauge.text(&values);
    }
    text += further;
    text += &clock_gauge(results);
    text += &not_quotable_gauge(results);
    let gauge = Gauge { name: "switchcost_rounds", unit: "", help: "Rounds behind a case." };
    text += &gauge.text(&case_values(results, |case| {
        let rounds = case.figures.values().next()?.by_round()?;
        Some(rounds.len() as f64)
    }));
    text += &spread_gauge(results);
    let gauge = Gauge {
        name: "switchcost_run_info",
        unit: "",
        help: "The run that these figures are from.",
    };
    let labels = [experiment_label(&results.side.experiment), run_labels(results)].concat();
    text += &gauge.text(&[GaugeValue { labels, value: 1.0 }]);
    text.push_str("# EOF\n");
    text.into_bytes()
}

/// A gauge: a family of lines that have a value each.
pub(crate) struct Gauge<'a> {
    pub(crate) name: &'a str,
    /// Ends the name; empty for counts.
    pub(crate) unit: &'a str,
    pub(crate) help: &'a str,
}

/// A line of a gauge.
pub(crate) struct GaugeValue {
    pub(crate) labels: Labels,
    pub(crate) value: f64,
}

impl Gauge<'_> {
    /// Returns the gauge with its lines; empty without values.
    pub(crate) fn text(&self, values: &[GaugeValue]) -> String {
        if values.is_empty() {
            return String::new();
        }
        let Self { name, unit, help } = self;
        let mut text = format!("# TYPE {name} gauge\n");
        if !unit.is_empty() {
            text += &format!("# UNIT {name} {unit}\n");
        }
        text += &format!("# HELP {name} {help}\n");
        for GaugeValue { labels, value } in values {
            text += &format!("{name}{} {value}\n", labels_text(labels));
        }
        text
    }
}

/// Returns the gauges of the prices of a switch: its least and its most by its kind, and what refilling
/// caches adds at most. Upper estimates have no least.
fn price_gauges(prices: RatePrices) -> String {
    let low = Gauge {
        name: "switchcost_price_low_seconds",
        unit: "seconds",
        help: "Least CPU time that a switch itself takes, by its kind.",
    };
    let high = Gauge {
        name: "switchcost_price_high_seconds",
        unit: "seconds",
        help: "Most CPU time that a switch itself takes, by its kind.",
    };
    let kinds = [("voluntary", prices.voluntary), ("involuntary", prices.involuntary)];
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    for (kind, ns) in kinds {
        if !prices.is_rough {
            lows.push(price_value(Some(kind), ns.low / 1e9));
        }
        highs.push(price_value(Some(kind), ns.high / 1e9));
    }
    let rough = Gauge {
        name: "switchcost_price_rough",
        unit: "",
        help: "Whether the prices are upper estimates, of too few rounds for an interval.",
    };
    let is_rough = price_value(None, f64::from(u8::from(prices.is_rough)));
    let mut text = low.text(&lows) + &high.text(&highs) + &rough.text(&[is_rough]);
    if let Some(refill) = prices.refill {
        let most = Gauge {
            name: "switchcost_refill_high_seconds",
            unit: "seconds",
            help: "Most CPU time that refilling caches adds to a switch, of all measured working sets.",
        };
        text += &most.text(&[price_value(None, refill.most_ns / 1e9)]);
        let share = Gauge {
            name: "switchcost_refill_high_ratio",
            unit: "ratio",
            help: "Largest share of the CPU time between two switches that refilling caches takes, of all measured working sets.",
        };
        text += &share.text(&[price_value(None, refill.most_share)]);
    }
    text
}

fn price_value(kind: Option<&str>, value: f64) -> GaugeValue {
    let mut labels = experiment_label(Experiment::Cost.name());
    labels.extend(kind.map(|kind| ("kind".to_string(), kind.to_string())));
    GaugeValue { labels, value }
}

/// Returns the gauges of a quantity: in seconds or what its unit is, and in cycles where that may be
/// quoted.
fn quantity_gauges(results: &Results, quantity: Quantity) -> String {
    let (name, help) = (quantity.metric(), quantity.meaning());
    let (unit, scale) = match quantity.unit() {
        QuantityUnit::Nanoseconds => ("seconds", 1e9),
        QuantityUnit::PerSecond => ("per_second", 1.0),
        QuantityUnit::Share => ("ratio", 1.0),
    };
    let seconds = Gauge { name: &format!("{name}_{unit}"), unit, help: &format!("{help}.") };
    let seconds = seconds.text(&case_values(results, |case| {
        let estimate = launch(case, quantity)?.estimate?;
        Some(quantity.quote(&estimate).ok()?.value() / scale)
    }));
    let cycles = Gauge {
        name: &format!("{name}_cycles"),
        unit: "cycles",
        help: &format!("{help}, in cycles of the core's clock."),
    };
    let cycles = cycles.text(&case_values(results, |case| {
        let cycles = launch(case, quantity)?.cycles(target(results)?)?;
        Some(cycles.quote_cost().ok()?.value())
    }));
    seconds + &cycles
}

fn clock_gauge(results: &Results) -> String {
    let gauge = Gauge {
        name: "switchcost_clock_hertz",
        unit: "hertz",
        help: "The core's clock that the figures of a case are at.",
    };
    gauge.text(&case_values(results, |case| {
        let target = target(results)?;
        Some(case.figures.values().find_map(|values| clock_ghz(values, target))? * 1e9)
    }))
}

/// Returns the gauge of the cases whose figure may not be quoted, with the reason as a label.
fn not_quotable_gauge(results: &Results) -> String {
    let mut values = Vec::new();
    for case in &results.cases {
        let Some((quantity, _)) = case.figures.first_key_value() else { continue };
        let Some(launch) = launch(case, *quantity) else { continue };
        let Some(estimate) = launch.estimate else { continue };
        let Err(why) = quantity.quote(&estimate) else { continue };
        let mut labels = case_labels(case);
        labels.push(("why".to_string(), why.reason()));
        values.push(GaugeValue { labels, value: 1.0 });
    }
    let gauge = Gauge {
        name: "switchcost_not_quotable",
        unit: "",
        help: "Cases that were measured and have no figure, and why.",
    };
    gauge.text(&values)
}

fn spread_gauge(results: &Results) -> String {
    let Some(value) = results.noise.as_ref().and_then(|noise| noise.round_spread) else {
        return String::new();
    };
    let gauge = Gauge {
        name: "switchcost_round_spread_ratio",
        unit: "ratio",
        help: "Scatter of the figures from round to round.",
    };
    gauge.text(&[GaugeValue { labels: experiment_label(&results.side.experiment), value }])
}

/// Returns the label that every line has. Not the run's name: each run would be a time series of its
/// own for ever.
fn experiment_label(experiment: &str) -> Labels {
    vec![("experiment".to_string(), experiment.to_string())]
}

/// Returns the labels of the lines of a case.
pub(crate) fn case_labels(case: &CaseResults) -> Labels {
    [experiment_label(case.experiment), case.labels.clone()].concat()
}

/// Returns a case's figure of the run's only launch.
pub(super) fn launch(case: &CaseResults, quantity: Quantity) -> Option<&LaunchFigure> {
    case.figures.get(&quantity)?.launches().first()
}

/// Returns the lines of the cases that have a finite value.
fn case_values(results: &Results, value: impl Fn(&CaseResults) -> Option<f64>) -> Vec<GaugeValue> {
    let mut values = Vec::new();
    for case in &results.cases {
        if let Some(value) = value(case).filter(|value| value.is_finite()) {
            values.push(GaugeValue { labels: case_labels(case), value });
        }
    }
    values
}

/// Returns the facts of a run by the names that they have in tables of Python and in datasets.
pub(super) fn run_labels(results: &Results) -> Labels {
    let mut facts = vec![("run", &results.side.name)];
    if let Origin::Run { started, build, .. } = &results.side.origin {
        facts.extend([("started", started), ("build_version", &build.version)]);
    }
    if let Some(name) = results.machine.cpu_name() {
        facts.push(("cpu_model", name));
    }
    if let Some(release) = results.machine.kernel.release.known() {
        facts.push(("kernel_release", release));
    }
    facts.into_iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

/// Writes `{a="b",c="d"}`. Names have letters, digits and `_` only; in values `\`, `"` and the end
/// of line are escaped.
pub(crate) fn labels_text(labels: &[(String, String)]) -> String {
    let mut parts = Vec::new();
    for (name, value) in labels {
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        // The format takes control characters as they are; a terminal would obey them.
        let value =
            printable(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        parts.push(format!("{name}=\"{value}\""));
    }
    format!("{{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use analysis::at_clock::AtClock;
    use analysis::estimate::Speed;
    use analysis::program::Range;

    use super::*;
    use crate::report::figures::tests::fixture;

    /// Returns the results of the stored run of rings as if it had been at full speed and 2 GHz, a
    /// quantum of 21,600 cycles; the hop of the ring of four may not be quoted.
    fn at_two_ghz() -> Results {
        let mut results = Results::from_run(&fixture());
        let clock = Some(AtClock { quantum_ns: 10_800.0, elasticity: None, known: None });
        for case in &mut results.cases {
            let is_ring_of_four = case.label("members") == Some("4");
            for quantity in [Quantity::NsPerSwitchAboveSolo, Quantity::NsPerHop] {
                let Some(CaseFigure::Measured(launches)) = case.figures.get_mut(&quantity) else {
                    continue;
                };
                let estimate = launches[0].estimate.as_mut().unwrap();
                estimate.speed = Speed::Full;
                if is_ring_of_four && quantity == Quantity::NsPerHop {
                    (estimate.low, estimate.high) =
                        (Some(-estimate.value), Some(3.0 * estimate.value));
                    estimate.resolved = false;
                }
                launches[0].clock = clock;
            }
        }
        results
    }

    /// Returns the words of each line that has a label, behind its name and iterations.
    fn lines<'a>(text: &'a str, label: &str) -> Vec<Vec<&'a str>> {
        let lines = text.lines().filter(|line| line.contains(label));
        lines.map(|line| line.split_whitespace().skip(2).collect()).collect()
    }

    #[test]
    fn go_gets_the_cycles_of_what_may_be_quoted() {
        let text = String::from_utf8(go_bench(&at_two_ghz())).unwrap();
        let units = |label: &str| {
            let first = lines(&text, label).swap_remove(0);
            first.iter().skip(1).step_by(2).map(|unit| unit.to_string()).collect::<Vec<_>>()
        };
        let with = ["ns/op", "ns/switch", "cycles/switch", "cycles/op", "cpu-ns/op"];
        assert_eq!(units("members=2/"), with);
        let without = ["ns/op", "ns/switch", "cycles/switch", "cpu-ns/op"];
        assert_eq!(units("members=4/"), without);
        for line in lines(&text, "members=2/") {
            let at = |place: usize| line[place].parse::<f64>().unwrap();
            assert!((at(6) - 2.0 * at(0)).abs() < 0.01 && (at(4) - 2.0 * at(2)).abs() < 0.01);
        }
    }

    #[test]
    fn a_collector_gets_cycles_and_the_clock_of_what_may_be_quoted() {
        let text = String::from_utf8(openmetrics(&at_two_ghz(), None)).unwrap();
        let value = |name: &str, members: &str| {
            let mut lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")));
            let line = lines.find(|line| line.contains(&format!("members=\"{members}\"")))?;
            line.rsplit(' ').next()?.parse::<f64>().ok()
        };
        for (what, members) in [("hop", "1"), ("hop", "2"), ("switch", "2"), ("switch", "4")] {
            let seconds = value(&format!("switchcost_{what}_seconds"), members).unwrap();
            let cycles = value(&format!("switchcost_{what}_cycles"), members).unwrap();
            assert!((cycles / (seconds * 2e9) - 1.0).abs() < 1e-9, "{what} {members}");
        }
        assert_eq!(value("switchcost_hop_cycles", "4"), None);
        assert_eq!(value("switchcost_clock_hertz", "2"), Some(2e9));
        assert!(!text.contains("cpu_cycles"), "{text}");
        let plain = String::from_utf8(openmetrics(&Results::from_run(&fixture()), None)).unwrap();
        assert!(!plain.contains("_cycles") && !plain.contains("_hertz"), "{plain}");
    }

    #[test]
    fn a_collector_gets_exported_measures() {
        let results = Results::from_run(&fixture());
        let text = openmetrics_with(&results, [&measures::NS_PER_HOP].into_iter(), "");
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("# HELP switchcost_ns_per_hop Time of a hop.\n"), "{text}");
        let mut lines = text.lines().filter(|line| line.starts_with("switchcost_ns_per_hop{"));
        for case in &results.cases {
            let hop = case.summary.as_ref().unwrap().ns_per_hop.unwrap();
            let line = lines.next().unwrap();
            assert!(line.ends_with(&format!("}} {}", hop.value)), "{line}");
        }
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn upper_estimates_have_no_least_price() {
        let range = Range { low: 500.0, high: 1100.0 };
        let prices =
            RatePrices { voluntary: range, involuntary: range, refill: None, is_rough: false };
        let sure = price_gauges(prices);
        assert!(
            sure.contains(
                "switchcost_price_low_seconds{experiment=\"cost\",kind=\"voluntary\"} 0.0000005\n"
            ),
            "{sure}"
        );
        assert!(sure.contains("switchcost_price_rough{experiment=\"cost\"} 0\n"), "{sure}");
        let rough = price_gauges(RatePrices { is_rough: true, ..prices });
        assert!(!rough.contains("price_low"), "{rough}");
        assert!(rough.contains("switchcost_price_rough{experiment=\"cost\"} 1\n"), "{rough}");
        assert!(rough.contains("switchcost_price_high_seconds"), "{rough}");
    }

    #[test]
    fn labels_are_escaped() {
        let label = |value: &str| labels_text(&[("huge-pages".to_string(), value.to_string())]);
        assert_eq!(label("a\"b\\c\nd"), r#"{huge_pages="a\"b\\c\nd"}"#);
    }

    #[test]
    fn numbers_have_neither_exponent_nor_tail() {
        assert_eq!(decimal(3214.5), "3214.5");
        assert_eq!(decimal(1e9), "1000000000");
        assert_eq!(decimal(-0.25), "-0.25");
    }
}
