//! Formats of other programs: Go's benchmark format, and OpenMetrics.

use charts::{clean, is_obeyed, printable};
use model::estimate::Estimate;
use model::subject::{Origin, Quantity, Subcase, Subject, Values};

/// Go's benchmark format (golang.org/design/14313-benchmark-format): configuration lines, then a line
/// for each case and round. Samples of one round share a worker and are no repetitions of each other, so
/// that a line is a round: its median, over all its hops.
pub(crate) fn go_bench(subject: &Subject) -> Vec<u8> {
    // benchstat compares only what has the same configuration: what may differ between two runs that are
    // compared stands in a remark, which it passes over.
    let mut text = format!("# run: {}\n", clean(&subject.side.name));
    if let Some(release) = subject.machine.kernel.release.known() {
        text += &format!("# kernel: {}\n", clean(release));
    }
    // What `go test` prints too.
    text += "goos: linux\n";
    if let Origin::Run { build, .. } = &subject.side.origin {
        text += &format!("goarch: {}\n", go_architecture(&build.target));
    }
    text += "pkg: switchcost\n";
    if let Some(cpu) = subject.machine.cpu_name() {
        text += &format!("cpu: {}\n", clean(cpu));
    }
    text += "Unit ns/switch better=lower\nUnit cpu-ns/op better=lower\n\n";
    let cpus = subject.machine.cpu.online.known().map_or(1, |list| list.as_slice().len()).max(1);
    for case in &subject.cases {
        let name = benchmark(subject, case);
        for (round, iterations) in &case.iterations {
            let figure = |(of, values): (&Quantity, &Values)| {
                let of_round = values.by_round()?.get(round)?;
                Some(format!("{} {}", decimal(*of_round), go_unit(*of)?))
            };
            let mut figures: Vec<String> = case.figures.iter().filter_map(figure).collect();
            // benchstat takes the first for the figure of the line, as in what `go test` prints; without any there
            // is none.
            figures.sort_by_key(|figure| !figure.ends_with(" ns/op"));
            if !figures.is_empty() {
                text += &format!("{name}-{cpus}\t{iterations}\t{}\n", figures.join("\t"));
            }
        }
    }
    text.into_bytes()
}

fn go_unit(quantity: Quantity) -> Option<&'static str> {
    match quantity {
        Quantity::NsPerHop | Quantity::TrialNs => Some("ns/op"),
        Quantity::NsPerSwitchAboveSolo => Some("ns/switch"),
        Quantity::CpuNsPerHop => Some("cpu-ns/op"),
        Quantity::CpuNsPerSwitchAboveSolo => None,
    }
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
fn benchmark(subject: &Subject, case: &Subcase) -> String {
    let experiment = match case.label("members").is_some() {
        true if subject.side.experiment == "response" => "ring",
        _ => &subject.side.experiment,
    };
    let mut name = "Benchmark".to_string();
    for word in experiment.split('-') {
        let (first, others) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        name += &(first.to_uppercase() + others);
    }
    let plain = |c: char| if c.is_whitespace() || c == '/' || is_obeyed(c) { '_' } else { c };
    for (label, value) in &case.labels {
        name.push('/');
        name.extend(label.chars().map(plain).chain(['=']).chain(value.chars().map(plain)));
    }
    name
}

/// A number without an exponent and without a tail of noughts.
fn decimal(value: f64) -> String {
    format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_string()
}

/// What a case has, in seconds, the base unit: a name, what it is, and the figure.
const FAMILIES: [(&str, &str, Quantity); 5] = [
    (
        "switchcost_switch_seconds",
        "Cost of a counted context switch above the solo ring, median over rounds.",
        Quantity::NsPerSwitchAboveSolo,
    ),
    ("switchcost_hop_seconds", "Time of a hop, median over rounds.", Quantity::NsPerHop),
    (
        "switchcost_switch_cpu_seconds",
        "CPU time of a counted context switch above the solo ring, median over rounds.",
        Quantity::CpuNsPerSwitchAboveSolo,
    ),
    ("switchcost_hop_cpu_seconds", "CPU time of a hop, median over rounds.", Quantity::CpuNsPerHop),
    (
        "switchcost_trial_seconds",
        "What a trial is judged by, median over rounds.",
        Quantity::TrialNs,
    ),
];

type Labels = Vec<(String, String)>;

/// OpenMetrics text (github.com/prometheus/OpenMetrics, version 1.0), of gauges only: what the textfile
/// collector of node_exporter reads, which parses Prometheus' older format, is then the same text; it
/// takes `# UNIT` and `# EOF` for comments. No time stamps, which it refuses.
pub(crate) fn openmetrics(subject: &Subject) -> Vec<u8> {
    let mut text = String::new();
    // On every line: the experiment. Not the run's name: each run would be a series of its own for ever.
    let about = [("experiment".to_string(), subject.side.experiment.clone())];
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
            text += &format!("{name}{} {value}\n", labels(&[&about[..], &own].concat()));
        }
    };
    for (name, help, of) in FAMILIES {
        let value = |case: &Subcase| {
            let value = estimate(case, of)?.quote_cost().ok()?.value() / 1e9;
            value.is_finite().then(|| (case.labels.clone(), value))
        };
        family(name, "seconds", help, subject.cases.iter().filter_map(value).collect());
    }
    let why = |case: &Subcase| {
        let (of, _) = case.figures.first_key_value()?;
        let why = estimate(case, *of)?.quote_cost().err()?.to_string();
        let words = why.split(':').next().unwrap_or_default().to_string();
        Some(([&case.labels[..], &[("why".to_string(), words)]].concat(), 1.0))
    };
    let not_quotable = subject.cases.iter().filter_map(why).collect();
    let help = "Cases that were measured and have no figure, and why.";
    family("switchcost_not_quotable", "", help, not_quotable);
    let rounds = |case: &Subcase| {
        let rounds = case.figures.values().next()?.by_round()?.len();
        Some((case.labels.clone(), rounds as f64))
    };
    let rounds = subject.cases.iter().filter_map(rounds).collect();
    family("switchcost_rounds", "", "Rounds behind a case.", rounds);
    let spread = subject.noise.as_ref().and_then(|noise| noise.round_spread);
    let help = "Scatter of the figures from round to round.";
    let spread = spread.map(|spread| (Labels::new(), spread)).into_iter().collect();
    family("switchcost_round_spread_ratio", "ratio", help, spread);
    let help = "The run that these figures are from.";
    family("switchcost_run_info", "", help, vec![(described(subject), 1.0)]);
    text.push_str("# EOF\n");
    text.into_bytes()
}

/// What a run says of a figure of a case.
fn estimate(case: &Subcase, of: Quantity) -> Option<Estimate> {
    case.figures.get(&of)?.launches().first()?.estimate
}

fn described(subject: &Subject) -> Labels {
    let mut all = vec![("run", &subject.side.name)];
    if let Origin::Run { started, build, .. } = &subject.side.origin {
        all.extend([("started", started), ("version", &build.version)]);
    }
    all.extend(subject.machine.cpu_name().map(|name| ("cpu_model", name)));
    all.extend(subject.machine.kernel.release.known().map(|release| ("kernel", release)));
    all.into_iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

/// `{a="b",c="d"}`. Names have letters, digits and `_` only; in values `\`, `"` and the end of line are
/// escaped.
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
    use super::*;

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
