//! Formats of other programs: Go's benchmark format, and OpenMetrics.

use std::fmt::Write;

use model::machine::Machine;
use model::subject::{Origin, Quantity, Subcase, Subject};

/// Go's benchmark format (golang.org/design/14313-benchmark-format): configuration lines, then a line
/// for each case and round. Samples of one round share a worker and are no repetitions of each other, so
/// that a line is a round: its median, over all its hops.
pub(crate) fn go_bench(subject: &Subject) -> Vec<u8> {
    let mut text = String::new();
    // Writing to a String cannot fail. benchstat compares only what has the same configuration: what may
    // differ between two runs that are compared stands in a remark, which it passes over.
    let _ = writeln!(text, "# run: {}", one_line(&subject.name));
    if let Some(release) = subject.machine.kernel.release.known() {
        let _ = writeln!(text, "# kernel: {}", one_line(release));
    }
    for (key, value) in configuration(subject) {
        let _ = writeln!(text, "{key}: {value}");
    }
    let _ = writeln!(text, "Unit ns/switch better=lower");
    let _ = writeln!(text, "Unit cpu-ns/op better=lower");
    let cpus = subject.machine.cpu.online.known().map_or(1, |list| list.as_slice().len()).max(1);
    let _ = writeln!(text);
    for case in &subject.cases {
        let name = format!("{}-{cpus}", benchmark(subject, case));
        for (round, iterations) in &case.iterations {
            let figures: Vec<String> = case
                .figures
                .iter()
                .filter_map(|figure| {
                    let of_round = figure.values.by_round()?.get(round)?;
                    Some(format!("{} {}", decimal(*of_round), go_unit(figure.quantity)?))
                })
                .collect();
            // benchstat takes the first for the figure of the line; without any there is none.
            if !figures.is_empty() {
                let _ = writeln!(text, "{name}\t{iterations}\t{}", go_order(figures).join("\t"));
            }
        }
    }
    text.into_bytes()
}

/// The time of an operation comes first, as in what `go test` prints.
fn go_order(mut figures: Vec<String>) -> Vec<String> {
    figures.sort_by_key(|figure| !figure.ends_with(" ns/op"));
    figures
}

fn go_unit(quantity: Quantity) -> Option<&'static str> {
    match quantity {
        Quantity::NsPerHop | Quantity::TrialNs => Some("ns/op"),
        Quantity::NsPerSwitchAboveSolo => Some("ns/switch"),
        Quantity::CpuNsPerHop => Some("cpu-ns/op"),
        Quantity::CpuNsPerSwitchAboveSolo => None,
    }
}

/// What `go test` prints too.
fn configuration(subject: &Subject) -> Vec<(&'static str, String)> {
    let cpu = subject.machine.cpu.models.known().and_then(|models| models.first());
    let cpu = cpu.and_then(|model| model.name.known()).map(|name| one_line(name));
    let mut lines = vec![("goos", "linux".to_string())];
    if let Origin::Run { build, .. } = &subject.origin {
        lines.push(("goarch", go_architecture(&build.target)));
    }
    lines.push(("pkg", "switchcost".to_string()));
    lines.extend(cpu.map(|cpu| ("cpu", cpu)));
    lines
}

/// Go's name of the architecture of a target triple; its own where Go has none.
fn go_architecture(target: &str) -> String {
    let architecture = target.split('-').next().unwrap_or(target);
    match architecture {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i686" | "i586" => "386",
        other => other,
    }
    .to_string()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `BenchmarkRing/members=2/kind=process/...`. A name is one word; `/` parts its labels.
fn benchmark(subject: &Subject, case: &Subcase) -> String {
    let experiment = match case.label("members").is_some() {
        true if subject.experiment == "response" => "ring",
        _ => &subject.experiment,
    };
    let camel: String = experiment.split('-').map(capital).collect();
    let word = |text: &str| -> String {
        let plain = |c: char| if c.is_whitespace() || c == '/' || c.is_control() { '_' } else { c };
        text.chars().map(plain).collect()
    };
    let label = |(name, value): &(String, String)| format!("/{}={}", word(name), word(value));
    format!("Benchmark{camel}{}", case.labels.iter().map(label).collect::<String>())
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

/// A number without an exponent and without a tail of noughts.
fn decimal(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A family of metrics: one name, one value a case.
struct Family {
    name: &'static str,
    unit: Option<&'static str>,
    help: &'static str,
    of: Quantity,
}

/// All in seconds, the base unit.
const FAMILIES: &[Family] = &[
    Family {
        name: "switchcost_switch_seconds",
        unit: Some("seconds"),
        help: "Cost of a counted context switch above the solo ring, median over rounds.",
        of: Quantity::NsPerSwitchAboveSolo,
    },
    Family {
        name: "switchcost_hop_seconds",
        unit: Some("seconds"),
        help: "Time of a hop, median over rounds.",
        of: Quantity::NsPerHop,
    },
    Family {
        name: "switchcost_switch_cpu_seconds",
        unit: Some("seconds"),
        help: "CPU time of a counted context switch above the solo ring, median over rounds.",
        of: Quantity::CpuNsPerSwitchAboveSolo,
    },
    Family {
        name: "switchcost_hop_cpu_seconds",
        unit: Some("seconds"),
        help: "CPU time of a hop, median over rounds.",
        of: Quantity::CpuNsPerHop,
    },
    Family {
        name: "switchcost_trial_seconds",
        unit: Some("seconds"),
        help: "What a trial is judged by, median over rounds.",
        of: Quantity::TrialNs,
    },
];

/// OpenMetrics text (github.com/prometheus/OpenMetrics, version 1.0), of gauges only: what the textfile
/// collector of node_exporter reads, which parses Prometheus' older format, is then the same text; it
/// takes `# UNIT` and `# EOF` for comments. No time stamps, which it refuses.
pub(crate) fn openmetrics(subject: &Subject) -> Vec<u8> {
    let mut text = String::new();
    for family in FAMILIES {
        let value = |case: &Subcase| {
            Some(case.figure(family.of)?.values.middle()? / 1e9).filter(|value| value.is_finite())
        };
        write_family(&mut text, family.name, family.unit, family.help, subject, value);
    }
    let rounds = |case: &Subcase| Some(case.figures.first()?.values.by_round()?.len() as f64);
    write_family(&mut text, "switchcost_rounds", None, "Rounds behind a case.", subject, rounds);
    if let Some(spread) = subject.noise.as_ref().and_then(|noise| noise.round_spread) {
        let name = "switchcost_round_spread_ratio";
        head(&mut text, name, Some("ratio"), "Scatter of the figures from round to round.");
        let _ = writeln!(text, "{name}{} {spread}", labels(&about(subject)));
    }
    let info = "switchcost_run_info";
    head(&mut text, info, None, "The run that these figures are from.");
    let _ = writeln!(text, "{info}{} 1", labels(&described(subject)));
    text.push_str("# EOF\n");
    text.into_bytes()
}

/// The lines of a family, if any case has it: all of one name stand together.
fn write_family(
    text: &mut String,
    name: &str,
    unit: Option<&str>,
    help: &str,
    subject: &Subject,
    value: impl Fn(&Subcase) -> Option<f64>,
) {
    let lines: Vec<String> = subject
        .cases
        .iter()
        .filter_map(|case| {
            let all = [about(subject), case.labels.clone()].concat();
            Some(format!("{name}{} {}", labels(&all), value(case)?))
        })
        .collect();
    if !lines.is_empty() {
        head(text, name, unit, help);
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
    }
}

fn head(text: &mut String, name: &str, unit: Option<&str>, help: &str) {
    let _ = writeln!(text, "# TYPE {name} gauge");
    if let Some(unit) = unit {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
}

/// On every line: the experiment. Not the run's name: each run would be a series of its own for ever.
fn about(subject: &Subject) -> Vec<(String, String)> {
    vec![("experiment".to_string(), subject.experiment.clone())]
}

fn described(subject: &Subject) -> Vec<(String, String)> {
    let mut all = about(subject);
    let mut add = |name: &str, value: &str| all.push((name.to_string(), value.to_string()));
    add("run", &subject.name);
    if let Origin::Run { started, build, .. } = &subject.origin {
        add("started", started);
        add("version", &build.version);
    }
    let Machine { cpu, kernel, .. } = &subject.machine;
    let cpu = cpu.models.known().and_then(|models| models.first());
    if let Some(name) = cpu.and_then(|model| model.name.known()) {
        add("cpu_model", name);
    }
    if let Some(release) = kernel.release.known() {
        add("kernel", release);
    }
    all
}

/// `{a="b",c="d"}`. Names have letters, digits and `_` only; in values `\`, `"` and the end of line are
/// escaped.
fn labels(all: &[(String, String)]) -> String {
    let name = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
    };
    let value = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let one = |(n, v): &(String, String)| format!("{}=\"{}\"", name(n), value(v));
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
