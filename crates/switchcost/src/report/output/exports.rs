//! Formats of other programs: Go's benchmark format, and OpenMetrics.

use analysis::measures::{self, RingMeasure};
use analysis::results::{CaseFigure, CaseResults, LaunchFigure, Origin, Quantity, Results};
use charts::{clean, is_obeyed, printable};
use rundata::experiment::Experiment;

/// Go's benchmark format (golang.org/design/14313-benchmark-format): configuration lines, then a
/// line for each case and round. Samples of one round share a worker and are no repetitions of each
/// other, so that a line is a round: its median, over all its hops.
pub(crate) fn go_bench(results: &Results) -> Vec<u8> {
    // benchstat compares only what has the same configuration: what may differ between two runs
    // that are compared stands in a remark, which it passes over.
    let mut text = format!("# run: {}\n", clean(&results.side.name));
    if let Some(release) = results.machine.kernel.release.known() {
        text += &format!("# kernel: {}\n", clean(release));
    }
    if let Some(ghz) = results.clock_ghz {
        text += &format!("# clock: {ghz:.2} GHz\n");
    }
    // What `go test` prints too.
    text += "goos: linux\n";
    let target = target(results);
    if let Some(target) = target {
        text += &format!("goarch: {}\n", go_architecture(target));
    }
    text += "pkg: switchcost\n";
    if let Some(cpu) = results.machine.cpu_name() {
        text += &format!("cpu: {}\n", clean(cpu));
    }
    text += "Unit ns/switch better=lower\nUnit cpu-ns/op better=lower\n";
    text += "Unit cycles/switch better=lower\nUnit cycles/op better=lower\n\n";
    let cpus = results.machine.cpu.online.known().map_or(1, |list| list.as_slice().len()).max(1);
    for case in &results.cases {
        let name = benchmark(case);
        for (round, iterations) in &case.iterations {
            let figures = case.figures.iter();
            let figures = figures.filter_map(|(of, values)| in_round(*of, values, *round, target));
            let mut figures: Vec<(f64, &str)> = figures.flatten().collect();
            // benchstat takes the first for the figure of the line, as in what `go test` prints;
            // without any there is none.
            figures.sort_by_key(|(_, unit)| *unit != NS_PER_OPERATION);
            if !figures.is_empty() {
                text += &format!("{name}-{cpus}\t{iterations}");
                for (value, unit) in figures {
                    text += &format!("\t{} {unit}", decimal(value));
                }
                text.push('\n');
            }
        }
    }
    text.into_bytes()
}

/// Go's unit of what a benchmark takes.
const NS_PER_OPERATION: &str = "ns/op";

/// A round's figure with its unit, in nanoseconds and, as far as it may be quoted in them, in
/// cycles.
fn in_round(
    of: Quantity,
    values: &CaseFigure,
    round: u32,
    target: Option<&str>,
) -> Option<impl Iterator<Item = (f64, &'static str)>> {
    let ns = *values.by_round()?.get(&round)?;
    let units = of.go_units()?;
    let clock_ghz = target.and_then(|target| clock_ghz(values, target));
    let cycles = clock_ghz.zip(units.cycles).map(|(ghz, unit)| (ns * ghz, unit));
    Some([Some((ns, units.ns)), cycles].into_iter().flatten())
}

/// What a run's program was built for.
fn target(results: &Results) -> Option<&str> {
    match &results.side.origin {
        Origin::Run { build, .. } => Some(&build.target),
        Origin::Publication { .. } => None,
    }
}

/// The clock that a figure is at, if it may be quoted in cycles of it.
fn clock_ghz(values: &CaseFigure, target: &str) -> Option<f64> {
    let launch = values.launches().first()?;
    launch.cycles(target)?.quote_cost().ok()?;
    launch.clock_ghz(target)
}

/// Go's name of the architecture of a target triple; its own where Go has none.
fn go_architecture(target: &str) -> &str {
    match target.split('-').next().unwrap_or(target) {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i686" | "i586" => "386",
        other => other,
    }
}

/// `BenchmarkRing/members=2/kind=process/...`. A name is one word; `/` parts its labels.
fn benchmark(case: &CaseResults) -> String {
    let experiment = match case.label("members").is_some() {
        true if case.experiment == Experiment::Response.name() => "ring",
        _ => case.experiment,
    };
    let mut name = "Benchmark".to_string();
    for word in experiment.split('-') {
        name += &capitalized(word);
    }
    let plain = |c: char| if c.is_whitespace() || c == '/' || is_obeyed(c) { '_' } else { c };
    for (label, value) in &case.labels {
        name.push('/');
        name.extend(label.chars().map(plain).chain(['=']).chain(value.chars().map(plain)));
    }
    name
}

/// Returns the text with a capital at its start.
fn capitalized(text: &str) -> String {
    let (first, others) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + others
}

/// A number without an exponent and without a tail of noughts.
fn decimal(value: f64) -> String {
    format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_string()
}

type Labels = Vec<(String, String)>;

/// OpenMetrics text (github.com/prometheus/OpenMetrics, version 1.0), of gauges only: what the
/// textfile collector of node_exporter reads, which parses Prometheus' older format, is then the
/// same text; it takes `# UNIT` and `# EOF` for comments. No time stamps, which it refuses.
pub(crate) fn openmetrics(results: &Results) -> Vec<u8> {
    openmetrics_with(results, measures::exported_measures())
}

/// Returns the text with gauges of these measures.
fn openmetrics_with(
    results: &Results,
    exported: impl Iterator<Item = &'static RingMeasure>,
) -> Vec<u8> {
    let mut text = String::new();
    let mut family = |name: &str, unit: &str, help: &str, values: Vec<(Labels, f64)>| {
        if values.is_empty() {
            return;
        }
        text += &format!("# TYPE {name} gauge\n");
        if !unit.is_empty() {
            text += &format!("# UNIT {name} {unit}\n");
        }
        text += &format!("# HELP {name} {help}\n");
        for (own, value) in values {
            text += &format!("{name}{} {value}\n", labels(&own));
        }
    };
    for of in Quantity::ALL {
        let (name, help) = (of.metric(), of.meaning());
        let seconds = told(results, |case| {
            Some(launch(case, of)?.estimate?.quote_cost().ok()?.value() / 1e9)
        });
        family(&format!("{name}_seconds"), "seconds", &format!("{help}."), seconds);
        let cycles = told(results, |case| {
            Some(launch(case, of)?.cycles(target(results)?)?.quote_cost().ok()?.value())
        });
        let help = format!("{help}, in cycles of the core's clock.");
        family(&format!("{name}_cycles"), "cycles", &help, cycles);
    }
    for measure in exported {
        let name = format!("switchcost_{}", measure.id);
        let values = told(results, |case| (measure.read)(case.summary.as_deref()?).number());
        family(&name, "", &format!("{}.", capitalized(measure.meaning)), values);
    }
    let clock = told(results, |case| {
        let target = target(results)?;
        Some(case.figures.values().find_map(|values| clock_ghz(values, target))? * 1e9)
    });
    let help = "The core's clock that the figures of a case are at.";
    family("switchcost_clock_hertz", "hertz", help, clock);
    let why = |case: &CaseResults| {
        let (of, _) = case.figures.first_key_value()?;
        let why = launch(case, *of)?.estimate?.quote_cost().err()?.reason();
        Some(([&about_case(case)[..], &[("why".to_string(), why)]].concat(), 1.0))
    };
    let not_quotable = results.cases.iter().filter_map(why).collect();
    let help = "Cases that were measured and have no figure, and why.";
    family("switchcost_not_quotable", "", help, not_quotable);
    let rounds = told(results, |case| Some(case.figures.values().next()?.by_round()?.len() as f64));
    family("switchcost_rounds", "", "Rounds behind a case.", rounds);
    let spread = results.noise.as_ref().and_then(|noise| noise.round_spread);
    let help = "Scatter of the figures from round to round.";
    let about = || about(&results.side.experiment);
    let spread = spread.map(|spread| (about(), spread)).into_iter().collect();
    family("switchcost_round_spread_ratio", "ratio", help, spread);
    let help = "The run that these figures are from.";
    let described = [about(), described(results)].concat();
    family("switchcost_run_info", "", help, vec![(described, 1.0)]);
    text.push_str("# EOF\n");
    text.into_bytes()
}

/// What every line has: the experiment. Not the run's name: each run would be a series of its own
/// for ever.
fn about(experiment: &str) -> Labels {
    vec![("experiment".to_string(), experiment.to_string())]
}

fn about_case(case: &CaseResults) -> Labels {
    [about(case.experiment), case.labels.clone()].concat()
}

/// What a run says of a figure of a case.
fn launch(case: &CaseResults, of: Quantity) -> Option<&LaunchFigure> {
    case.figures.get(&of)?.launches().first()
}

/// The cases that have a figure, with it.
fn told(results: &Results, of: impl Fn(&CaseResults) -> Option<f64>) -> Vec<(Labels, f64)> {
    let told = |case: &CaseResults| {
        let value = of(case).filter(|value| value.is_finite())?;
        Some((about_case(case), value))
    };
    results.cases.iter().filter_map(told).collect()
}

/// By the names that these facts have in tables of Python and datasets.
fn described(results: &Results) -> Labels {
    let mut all = vec![("run", &results.side.name)];
    if let Origin::Run { started, build, .. } = &results.side.origin {
        all.extend([("started", started), ("build_version", &build.version)]);
    }
    all.extend(results.machine.cpu_name().map(|name| ("cpu_model", name)));
    all.extend(results.machine.kernel.release.known().map(|release| ("kernel_release", release)));
    all.into_iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

/// `{a="b",c="d"}`. Names have letters, digits and `_` only; in values `\`, `"` and the end of line
/// are escaped.
fn labels(all: &[(String, String)]) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let one = |(name, value): &(String, String)| {
        // The format takes control characters as they are; a terminal would obey them.
        let value =
            printable(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{}=\"{value}\"", name.chars().map(letter).collect::<String>())
    };
    format!("{{{}}}", all.iter().map(one).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use analysis::at_clock::AtClock;
    use analysis::estimate::Speed;

    use super::*;
    use crate::report::figures::tests::fixture;

    /// The stored run of rings as if it had been at full speed and 2 GHz, a quantum of 21,600
    /// cycles; the hop of the ring of four may not be quoted.
    fn at_two_ghz() -> Results {
        let mut results = Results::from_run(&fixture());
        let clock = Some(AtClock { quantum_ns: 10_800.0, elasticity: None, known: None });
        for case in &mut results.cases {
            let is_open = case.label("members") == Some("4");
            for of in [Quantity::NsPerSwitchAboveSolo, Quantity::NsPerHop] {
                let Some(CaseFigure::Measured(launches)) = case.figures.get_mut(&of) else {
                    continue;
                };
                let estimate = launches[0].estimate.as_mut().unwrap();
                estimate.speed = Speed::Full;
                if is_open && of == Quantity::NsPerHop {
                    (estimate.low, estimate.high) =
                        (Some(-estimate.value), Some(3.0 * estimate.value));
                    estimate.resolved = false;
                }
                launches[0].clock = clock;
            }
        }
        results
    }

    /// The words behind a line's name and iterations, of the lines that have such a label.
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
        let text = String::from_utf8(openmetrics(&at_two_ghz())).unwrap();
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
        let plain = String::from_utf8(openmetrics(&Results::from_run(&fixture()))).unwrap();
        assert!(!plain.contains("_cycles") && !plain.contains("_hertz"), "{plain}");
    }

    #[test]
    fn a_collector_gets_exported_measures() {
        let results = Results::from_run(&fixture());
        let text = openmetrics_with(&results, [&measures::NS_PER_HOP].into_iter());
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
    fn labels_are_escaped() {
        let label = |value: &str| labels(&[("huge-pages".to_string(), value.to_string())]);
        assert_eq!(label("a\"b\\c\nd"), r#"{huge_pages="a\"b\\c\nd"}"#);
    }

    #[test]
    fn numbers_have_neither_exponent_nor_tail() {
        assert_eq!(decimal(3214.5), "3214.5");
        assert_eq!(decimal(1e9), "1000000000");
        assert_eq!(decimal(-0.25), "-0.25");
    }
}
