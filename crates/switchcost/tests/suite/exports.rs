//! Formats of other programs, read back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::common::stored::{captured_run, stored_run};
use crate::common::{Home, Rows};
use serde_json::Value;

/// A run of two rings and their solo, 6 rounds of 3 samples of 200 laps.
fn run() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.join("../rundata/tests/fixtures/run-v1.jsonl").display().to_string()
}

fn exported(run: &str, format: &str) -> String {
    let said = Home::new().run(&["runs", "export", run, "--format", format]);
    assert_eq!((said.code, &*said.err), (Some(0), ""), "{format}");
    said.out
}

/// A line of Go's benchmark format: name, iterations, values by unit.
struct Benchmark {
    name: String,
    iterations: u64,
    values: BTreeMap<String, f64>,
}

/// Reads what golang.org/design/14313-benchmark-format describes; anything else is an error.
fn read_go(text: &str) -> (BTreeMap<String, String>, Vec<Benchmark>) {
    let (mut configuration, mut all) = (BTreeMap::new(), Vec::new());
    let is_remark = |line: &&str| line.is_empty() || line.starts_with('#');
    for line in text.lines().filter(|line| !is_remark(line)) {
        if let Some(rest) = line.strip_prefix("Benchmark") {
            assert!(rest.starts_with(|c: char| !c.is_lowercase()), "{line}");
            let fields: Vec<&str> = line.split_whitespace().collect();
            assert!(fields.len() >= 4 && fields.len() % 2 == 0, "{line}");
            let values = fields[2..].chunks(2);
            let values =
                values.map(|pair| (pair[1].to_string(), pair[0].parse().expect("a number")));
            all.push(Benchmark {
                name: fields[0].to_string(),
                iterations: fields[1].parse().expect("iterations"),
                values: values.collect(),
            });
        } else if line.starts_with("Unit ") {
            assert!(line.split_whitespace().skip(2).all(|pair| pair.contains('=')), "{line}");
        } else {
            let (key, value) = line.split_once(": ").expect("a configuration line");
            assert!(key.starts_with(|c: char| c.is_lowercase()), "{line}");
            assert!(!key.contains(char::is_whitespace), "{line}");
            configuration.insert(key.to_string(), value.to_string());
        }
    }
    (configuration, all)
}

#[test]
fn benchstat_gets_a_line_for_each_case_and_round() {
    let (configuration, all) = read_go(&exported(&run(), "go-bench"));
    assert_eq!(configuration["goos"], "linux");
    assert_eq!(configuration["goarch"], "amd64");
    // benchstat sets side by side only what agrees in all of these: nothing of one run alone.
    let keys: Vec<&str> = configuration.keys().map(String::as_str).collect();
    assert_eq!(keys, ["cpu", "goarch", "goos", "pkg"]);
    assert_eq!(all.len(), 3 * 6);
    let names: BTreeSet<&str> = all.iter().map(|line| &*line.name).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for line in &all {
        let (name, cpus) = line.name.rsplit_once('-').expect("the number of CPUs");
        assert!(cpus.parse::<u32>().is_ok(), "{}", line.name);
        let labels: BTreeMap<&str, &str> =
            name.split('/').skip(1).map(|label| label.split_once('=').expect("a label")).collect();
        let members: u64 = labels["members"].parse().expect("a size");
        assert!(name.starts_with("BenchmarkRing/members="), "{name}");
        assert_eq!((labels["link"], labels["kind"]), ("pipe", "process"));
        // Three samples of 200 laps.
        assert_eq!(line.iterations, 3 * 200 * members);
        assert!(line.values["ns/op"] > 0.0);
        assert_eq!(line.values.contains_key("ns/switch"), members > 1, "{name}");
    }
}

/// A metric as read: its labels and its value.
pub type Metrics = BTreeMap<String, Vec<(BTreeMap<String, String>, f64)>>;

/// Reads OpenMetrics text as its ABNF has it, of gauges and counters: families in one piece, metadata
/// before samples, labels escaped, an end.
pub fn read_metrics(text: &str) -> Metrics {
    let body = text.strip_suffix("# EOF\n").expect("an end");
    let (mut metrics, mut family, mut suffix) = (Metrics::new(), String::new(), "");
    for line in body.lines() {
        if let Some(meta) = line.strip_prefix("# ") {
            let mut words = meta.splitn(3, ' ');
            let (what, name, rest) = (words.next(), words.next(), words.next());
            let name = name.expect("a name");
            if what == Some("TYPE") {
                assert!(matches!(rest, Some("gauge" | "counter")), "{line}");
                suffix = if rest == Some("counter") { "_total" } else { "" };
                assert!(!metrics.contains_key(name), "{name} is not in one piece");
                metrics.insert(name.to_string(), Vec::new());
                family = name.to_string();
            }
            assert!(matches!(what, Some("TYPE" | "UNIT" | "HELP")), "{line}");
            assert_eq!(name, family, "{line}");
            assert!(metrics[name].is_empty(), "{line}: behind its samples");
            if what == Some("UNIT") {
                assert!(name.ends_with(&format!("_{}", rest.expect("a unit"))), "{line}");
            }
            continue;
        }
        let (sample, rest) = line.split_once('{').expect("labels");
        let name = sample.strip_suffix(suffix).expect("the name of a counter");
        assert_eq!(name, family, "{line}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
        let (labels, rest) = read_labels(rest);
        let value: f64 = rest.strip_prefix(' ').expect("a blank").parse().expect("a number");
        let known = metrics.get_mut(name).expect("a family");
        assert!(known.iter().all(|(other, _)| *other != labels), "twice: {line}");
        known.push((labels, value));
    }
    metrics
}

/// Labels up to the closing brace, and what is behind it.
fn read_labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let (mut labels, mut rest) = (BTreeMap::new(), text);
    if let Some(rest) = text.strip_prefix('}') {
        return (labels, rest);
    }
    loop {
        let (name, quoted) = rest.split_once("=\"").expect("a label");
        assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
        let (mut value, mut characters) = (String::new(), quoted.char_indices());
        let end = loop {
            match characters.next().expect("the end of a value") {
                (end, '"') => break end,
                (_, '\\') => value.push(match characters.next().expect("an escape").1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    other => panic!("\\{other}"),
                }),
                (_, c) => value.push(c),
            }
        };
        labels.insert(name.to_string(), value);
        rest = &quoted[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (labels, rest.strip_prefix('}').expect("a closing brace")),
        }
    }
}

#[test]
fn a_collector_gets_the_figures_of_the_record() {
    let metrics = read_metrics(&exported(&run(), "openmetrics"));
    let record: serde_json::Value =
        serde_json::from_str(&exported(&run(), "json")).expect("a record");
    let of = |name: &str, members: &str| {
        let all = metrics[name].iter();
        all.filter(|(labels, _)| labels["members"] == members).map(|(_, value)| *value).next()
    };
    for case in record["cases"].as_array().expect("cases") {
        let members = case["case"]["members"].to_string();
        for (name, figure) in [
            ("switchcost_hop_seconds", "ns_per_hop"),
            ("switchcost_switch_seconds", "ns_per_switch_above_solo"),
        ] {
            let expected = case[figure]["value"].as_f64().map(|ns| ns / 1e9);
            assert_eq!(of(name, &members), expected, "{name} of {members}");
        }
        assert_eq!(of("switchcost_rounds", &members), Some(6.0));
    }
    let (labels, value) = &metrics["switchcost_run_info"][0];
    assert_eq!((*value, &labels["experiment"]), (1.0, &"ring".to_string()));
    assert!(labels.contains_key("kernel_release") && labels.contains_key("cpu_model"));
}

fn price(metrics: &Metrics, name: &str, kind: &str) -> f64 {
    let found = metrics[name].iter().find(|(labels, _)| labels["kind"] == kind);
    found.expect("a price of each kind").1
}

/// The least and the most that a switch costs, for dashboards: of a run of `cost`, and of its part of a
/// run of several experiments. Others have none.
#[test]
fn costs_by_working_set_have_prices() {
    let home = Home::new();
    let measure = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/measure.jsonl");
    for run in [captured_run(&home, "cost"), measure.display().to_string()] {
        let metrics = read_metrics(&exported(&run, "openmetrics"));
        for kind in ["voluntary", "involuntary"] {
            let low = price(&metrics, "switchcost_price_low_seconds", kind);
            let high = price(&metrics, "switchcost_price_high_seconds", kind);
            assert!(0.0 < low && low <= high && high < 1e-3, "{run}, {kind}: {low} to {high}");
        }
        let (labels, refill) = &metrics["switchcost_refill_high_seconds"][0];
        assert_eq!(labels["experiment"], "cost");
        let (_, share) = metrics["switchcost_refill_high_ratio"][0];
        assert!(*refill > 0.0 && share > 0.0 && share <= 1.0, "{run}: {refill}, {share}");
    }
    let metrics = read_metrics(&exported(&captured_run(&home, "ring"), "openmetrics"));
    assert!(!metrics.contains_key("switchcost_price_low_seconds"));
}

/// A run file is data of anybody: its names may have what a terminal obeys.
#[test]
fn what_a_terminal_would_obey_is_in_no_format() {
    let hostile = "a\u{1b}[31m\r\u{7f}\u{9b}\u{202e}\u{0}\nb|c\"d";
    let home = Home::new();
    let run = stored_run(&home, "hostile.jsonl", |line| {
        let Some(header) = line.get_mut("header") else { return };
        for field in ["run", "name", "host"] {
            header[field] = hostile.into();
        }
        header["machine"]["kernel"]["release"] = hostile.into();
        header["machine"]["cpu"]["models"][0]["name"] = hostile.into();
        header["plan"]["cases"].as_array_mut().expect("cases").iter_mut().for_each(|case| {
            case["link"] = hostile.into();
        });
    });
    let all = [
        "json",
        "csv",
        "summary-csv",
        "markdown",
        "go-bench",
        "openmetrics",
        "bmf",
        "gab",
        "otava",
        "history",
        "rows",
    ];
    for format in all {
        let text = exported(&run, format);
        let obeyed =
            text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t') || *c == '\u{202e}');
        assert_eq!(obeyed, None, "{format}");
    }
    // JSON can say all of it.
    let record: serde_json::Value = serde_json::from_str(&exported(&run, "json")).expect("JSON");
    assert_eq!(record["header"]["run"], hostile);
    read_go(&exported(&run, "go-bench"));
    let metrics = read_metrics(&exported(&run, "openmetrics"));
    assert_eq!(metrics["switchcost_run_info"][0].0["run"], "a[31m\nb|c\"d");
}

/// A table of samples without what has a figure for each slice.
fn without_slices(table: &str) -> String {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(table.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("CSV")).collect();
    let kept = |at: &usize| {
        !["slices_ns", "latency_quanta_ns", "throughput_quanta_ns"].contains(&&rows[0][*at])
    };
    let kept: Vec<usize> = (0..rows[0].len()).filter(kept).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in &rows {
        writer.write_record(kept.iter().map(|at| &row[*at])).expect("CSV");
    }
    String::from_utf8(writer.into_inner().expect("CSV")).expect("UTF-8")
}

/// A line of each run, in their order: what the other formats have, or why there is nothing.
#[test]
fn what_tells_cases_apart_is_in_columns_and_in_a_unique_key() {
    let run = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/measure.jsonl");
    let rows = Rows::parse(&exported(&run.display().to_string(), "summary-csv"));
    let keys: BTreeSet<&str> = rows.rows.iter().map(|row| row.text("key")).collect();
    assert_eq!(keys.len(), rows.rows.len());
    let chase = rows.rows.iter().find(|row| row.text("walk") == "chase").expect("a chase");
    assert_eq!(chase.text("huge_pages"), "true");
    assert!(chase.text("key").contains(" walk=chase huge-pages=true "), "{}", chase.text("key"));
    let wakeup = rows.rows.iter().find(|row| row.text("load") == "busy").expect("a wake-up");
    assert_eq!(wakeup.text("timer_slack_ns"), "1");
}

#[test]
fn rows_of_many_runs_come_from_one_process_whatever_one_of_them_is() {
    let home = Home::new();
    let [ring, clock] = ["ring", "clock"].map(|name| captured_run(&home, name));
    let broken = home.path().join("broken.jsonl");
    fs::write(&broken, "no run\n").expect("a file");
    let all = [&*ring, broken.to_str().expect("a path"), &*clock];
    let said = home.run(&[&["runs", "export", "--format", "rows"], &all[..]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = said.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    assert_eq!(lines.len(), all.len());
    for (line, run) in lines.iter().zip(all) {
        let as_file = |format| home.run(&["runs", "export", run, "--format", format]);
        if let Some(why) = line["error"].as_str() {
            assert!(run.ends_with("broken.jsonl") && as_file("json").err.contains(why), "{why}");
            continue;
        }
        assert_eq!(line["summary"], as_file("summary-csv").out);
        assert_eq!(line["samples"], without_slices(&as_file("csv").out));
        let record: Value = serde_json::from_str(&as_file("json").out).expect("a record");
        for fact in ["header", "end", "noise"] {
            assert_eq!(line[fact], record[fact], "{fact} of {run}");
        }
    }
    let two = home.run(&["runs", "export", &ring, &clock]);
    assert_eq!(two.code, Some(2), "{}", two.err);
}
