//! Formats of programs that follow figures over commits, held against what these document.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::stored::{captured_run, full_speed_run, lengthen};
use crate::common::{Home, Rows, Said};

/// The key of the ring of two in the stored run, the same in every run.
const RING_OF_TWO: &str = "ring members=2 kind=process link=pipe placement=same policy=other";

fn export(home: &Home, names: &[&str], format: &str) -> Said {
    home.run(&[&["runs", "export"], names, &["--format", format]].concat())
}

fn exported(home: &Home, names: &[&str], format: &str) -> String {
    let said = export(home, names, format);
    assert_eq!(said.code, Some(0), "{format}: {}", said.err);
    said.out
}

/// Checks a value against a schema.
fn assert_holds(schema: &Value, value: &Value) {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let errors: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{value}");
}

/// The schema of Bencher's Metric Format as its reference has it, and that names fit.
fn bencher_schema() -> Value {
    let number = json!({"type": "number"});
    json!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"minLength": 1, "maxLength": 1024},
        "additionalProperties": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": "^[a-z0-9-]{1,64}$"},
            "additionalProperties": {
                "type": "object",
                "properties": {"value": number, "lower_value": number, "upper_value": number},
                "required": ["value"],
                "additionalProperties": false,
            },
        },
    })
}

/// Checks that an estimate of the record is a metric, to six digits.
fn assert_is_metric(metric: &Value, estimate: &Value) {
    for (name, end) in [("value", "value"), ("lower_value", "low"), ("upper_value", "high")] {
        let (found, wanted) = (metric[name].as_f64(), estimate[end].as_f64());
        let (found, wanted) = (found.expect("a number"), wanted.expect("an end"));
        assert!((found / wanted - 1.0).abs() < 1e-5, "{name}: {found} of {wanted}");
    }
}

#[test]
fn bencher_gets_the_figures_of_the_record_with_their_intervals() {
    let home = Home::new();
    let run = full_speed_run(&home, "run.jsonl", |_| {});
    let found: Value = serde_json::from_str(&exported(&home, &[&run], "bmf")).expect("JSON");
    assert_holds(&bencher_schema(), &found);
    let record: Value = serde_json::from_str(&exported(&home, &[&run], "json")).expect("JSON");
    let two = &record["cases"][1];
    assert_eq!(two["case"]["members"], 2);
    assert_is_metric(&found[RING_OF_TWO]["ns-per-hop"], &two["ns_per_hop"]);
    let switch = &found[RING_OF_TWO]["ns-per-switch-above-solo"];
    assert_is_metric(switch, &two["ns_per_switch_above_solo"]);
    assert_is_metric(
        &found[RING_OF_TWO]["cycles-per-switch-above-solo"],
        &two["cycles_per_switch"],
    );
    assert_is_metric(&found[RING_OF_TWO]["switches-per-hop"], &two["switches_per_hop"]);
    // What a ring of one counts is noise.
    let ring_of_one = RING_OF_TWO.replace("members=2", "members=1");
    assert!(found[&ring_of_one]["ns-per-hop"].is_object());
    assert_eq!(found[&ring_of_one]["switches-per-hop"], Value::Null);
    for format in ["bmf", "gab", "otava"] {
        for name in ["ring", "links", "cost", "response", "calls", "clock"] {
            let captured = captured_run(&home, name);
            let said = export(&home, &[&captured], format);
            assert_eq!(said.code, Some(0), "{format} of {name}: {}", said.err);
        }
    }
    for name in ["ring", "links", "cost", "response", "calls", "clock", "trace"] {
        let captured = captured_run(&home, name);
        let found = serde_json::from_str(&exported(&home, &[&captured], "bmf")).expect("JSON");
        assert_holds(&bencher_schema(), &found);
    }
}

#[test]
fn github_action_benchmark_gets_a_list_of_costs() {
    let home = Home::new();
    let schema = json!({
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "unit": {"type": "string"},
                "value": {"type": "number"},
                "range": {"type": "string"},
                "extra": {"type": "string"},
            },
            "required": ["name", "unit", "value"],
            "additionalProperties": false,
        },
    });
    for name in ["ring", "response", "clock", "trace"] {
        let captured = captured_run(&home, name);
        let found: Value =
            serde_json::from_str(&exported(&home, &[&captured], "gab")).expect("JSON");
        assert_holds(&schema, &found);
        let figures = found.as_array().expect("figures");
        let names: BTreeSet<&str> =
            figures.iter().filter_map(|figure| figure["name"].as_str()).collect();
        assert_eq!(names.len(), figures.len(), "{name}: each name once");
        // More events a second of a trace are not worse.
        assert!(names.iter().all(|name| !name.contains("per_second")), "{name}");
        let said = export(&home, &[&captured], "gab");
        let words = "left out, as more of them is not worse: trace tasks=machine figure=";
        let err = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(err.contains(words), name == "trace", "{name}: {err}");
    }
    let run = full_speed_run(&home, "run.jsonl", |_| {});
    let found: Value = serde_json::from_str(&exported(&home, &[&run], "gab")).expect("JSON");
    let name = format!("{RING_OF_TWO}: ns_per_hop");
    let figures = found.as_array().expect("figures");
    let hop = figures.iter().find(|figure| figure["name"] == *name).expect("the hop");
    assert_eq!(hop["unit"], "ns");
    let range = hop["range"].as_str().expect("an interval");
    let (low, high) = range.split_once(" to ").expect("two ends");
    let [low, high] = [low, high].map(|end| end.parse::<f64>().expect("a number"));
    let value = hop["value"].as_f64().expect("a value");
    assert!(low < value && value < high, "{low} {value} {high}");
    let extra = hop["extra"].as_str().expect("lines");
    assert!(extra.lines().any(|line| line == "rounds: 12"), "{extra}");
    assert!(extra.lines().any(|line| line == "interval: 95 %"), "{extra}");
}

/// The rows of Otava's CSV: the time column is what its `parse_datetime` reads, metrics are numbers.
fn otava_rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let Rows { columns, rows } = Rows::parse(text);
    assert_eq!(columns[..3], ["time", "run", "experiment"]);
    let mut read = Vec::new();
    for row in &rows {
        let mut cells = BTreeMap::new();
        for column in &columns {
            cells.insert(column.clone(), row.text(column).to_string());
        }
        assert!(humantime_like(&cells["time"]), "{}", cells["time"]);
        for (column, cell) in &cells {
            if column.contains(": ") && !cell.is_empty() {
                assert!(cell.parse::<f64>().is_ok_and(f64::is_finite), "{column}: {cell}");
            }
        }
        read.push(cells);
    }
    read
}

/// Returns whether a text is a time as RFC 3339 has it, in UTC: `2026-11-29T18:35:12Z`.
fn humantime_like(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z')
}

#[test]
fn otava_gets_a_row_a_run_in_the_order_of_time() {
    let home = Home::new();
    let mut runs = Vec::new();
    // The newest first: the series is sorted.
    for (day, percent) in [(3, 110), (2, 100), (1, 100)] {
        runs.push(full_speed_run(&home, &format!("day-{day}.jsonl"), |line| {
            if let Some(header) = line.get_mut("header") {
                header["started"] = format!("2026-11-0{day}T12:00:00Z").into();
            }
            lengthen(line, percent);
        }));
    }
    let names: Vec<&str> = runs.iter().map(String::as_str).collect();
    let rows = otava_rows(&exported(&home, &names, "otava"));
    let column = |name: &str| -> Vec<&str> { rows.iter().map(|row| &*row[name]).collect() };
    assert_eq!(column("run"), ["day-1", "day-2", "day-3"]);
    let hop: Vec<f64> = column(&format!("{RING_OF_TWO}: ns_per_hop"))
        .iter()
        .map(|cell| cell.parse().expect("a number"))
        .collect();
    assert_eq!(hop[0], hop[1]);
    assert!((hop[2] / hop[0] - 1.1).abs() < 0.01, "{hop:?}");
    for end in ["low", "high"] {
        assert!(column(&format!("{RING_OF_TWO}: ns_per_hop {end}")).iter().all(|c| !c.is_empty()));
    }
}

/// Makes the times of every other round a hundred times as long: no time may be quoted.
fn disturb(line: &mut Value) {
    if line.pointer("/sample/round").and_then(Value::as_u64).is_none_or(|round| round % 2 == 0) {
        return;
    }
    lengthen(line, 10_000);
    for name in ["cpu_ns", "user_ns", "system_ns"] {
        let time = &mut line["sample"]["counters"][name];
        *time = time.as_i64().map_or(Value::Null, |ns| (100 * ns).into());
    }
}

#[test]
fn counts_alone_are_no_result() {
    let home = Home::new();
    let run = full_speed_run(&home, "run.jsonl", disturb);
    let record = home.run(&["runs", "export", &run]).json();
    // They could be quoted.
    let counted = &record["cases"][1]["switches_per_hop"];
    assert!(counted["low"].is_number(), "{counted}");
    for format in ["bmf", "gab", "otava"] {
        let said = export(&home, &[&run], format);
        assert_eq!((said.code, &*said.out), (Some(1), ""), "{format}: {}", said.err);
        let err = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(err.contains("no figure may be quoted"), "{format}: {err}");
        assert!(err.ends_with("(raise --budget, or use --policy fifo)"), "{format}: {err}");
    }
}

#[test]
fn a_run_without_figures_has_no_row_in_a_series() {
    let home = Home::new();
    let on_day = |day: u32, is_disturbed: bool| {
        full_speed_run(&home, &format!("day-{day}.jsonl"), |line| {
            if let Some(header) = line.get_mut("header") {
                header["started"] = format!("2026-11-0{day}T12:00:00Z").into();
            }
            if is_disturbed {
                disturb(line);
            }
        })
    };
    let [one, noisy, three] = [on_day(1, false), on_day(2, true), on_day(3, false)];
    let said = export(&home, &[&one, &noisy, &three], "otava");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("note: no row: day-2: no figure may be quoted"), "{}", said.err);
    let rows = otava_rows(&said.out);
    let names: Vec<&str> = rows.iter().map(|row| &*row["run"]).collect();
    assert_eq!(names, ["day-1", "day-3"]);
    let again = on_day(4, true);
    let said = export(&home, &[&noisy, &again], "otava");
    assert_eq!((said.code, &*said.out), (Some(1), ""), "{}", said.err);
    assert!(said.err.contains("none of 2 runs has a row: day-2: "), "{}", said.err);
}

#[test]
fn what_may_not_be_quoted_is_left_out_and_named() {
    let home = Home::new();
    let small = ["--members", "2", "--rounds", "1", "--laps", "9", "--name", "small"];
    home.measure(&small);
    let to = home.path().join("small.json");
    for format in ["bmf", "gab", "otava"] {
        let to = to.display().to_string();
        let said = home.run(&["runs", "export", "small", "--format", format, "-o", &to]);
        assert_eq!((said.code, &*said.out), (Some(1), ""), "{format}: {}", said.err);
        let words = "no figure may be quoted, so there is nothing to export: ring of ";
        assert!(said.err.contains(words), "{format}: {}", said.err);
        assert!(!Path::new(&to).exists(), "{format}");
    }
    // One case of the others: they are there, and it is named.
    let run = full_speed_run(&home, "run.jsonl", |line| {
        let is_of_four = line.pointer("/sample/case") == Some(&2.into());
        if is_of_four && line["sample"]["round"].as_u64().is_some_and(|round| round > 0) {
            line["sample"]["case"] = 1.into();
        }
    });
    let said = export(&home, &[&run], "bmf");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.starts_with("note: run: left out, as they may not be quoted: ring of 4, "));
    assert!(!said.out.contains("members=4") || !said.out.contains("\"ns-per-hop\": {}"));
}

/// What `run --json` and `profile --json` wrote.
fn record(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captured");
    folder.join(name).display().to_string()
}

#[test]
fn records_of_commands_are_exported_as_results() {
    let home = Home::new();
    let run = record("run.json");
    let text = fs::read_to_string(&run).expect("a record");
    let stored: Value = serde_json::from_str(&text).expect("JSON");
    let commands = stored["commands"].as_array().expect("commands").len();
    let found: Value = serde_json::from_str(&exported(&home, &[&run], "bmf")).expect("JSON");
    assert_holds(&bencher_schema(), &found);
    let benchmarks = found.as_object().expect("benchmarks");
    assert_eq!(benchmarks.len(), commands);
    for measures in benchmarks.values() {
        assert!(
            measures["real-ns"]["lower_value"].as_f64() <= measures["real-ns"]["value"].as_f64()
        );
    }
    let metrics = exported(&home, &[&run], "openmetrics");
    let lines = |name: &str| metrics.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(lines("switchcost_run_real_seconds{"), commands, "{metrics}");
    assert_eq!(lines("switchcost_run_voluntary{"), commands, "{metrics}");
    assert!(metrics.ends_with("# EOF\n"));
    let profile: Value =
        serde_json::from_str(&exported(&home, &[&record("profile.json")], "bmf")).expect("JSON");
    assert_holds(&bencher_schema(), &profile);
    for format in ["csv", "json", "summary-csv", "markdown", "history"] {
        let said = export(&home, &[&run], format);
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{format}: {}", said.err);
        assert!(said.err.contains("accepted of it: go-bench, openmetrics, bmf"), "{}", said.err);
    }
}

#[test]
fn run_writes_its_metrics_itself() {
    let home = Home::new();
    let to = home.path().join("metrics.txt");
    let path = to.to_str().expect("UTF-8");
    let args = ["run", "--no-estimate", "-n", "5", "--openmetrics", path, "true", "sleep 0"];
    let said = home.run(&args);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let metrics = fs::read_to_string(&to).expect("metrics");
    for command in ["true", "sleep 0"] {
        let labels = format!("{{experiment=\"run\",command=\"{command}\"");
        let has =
            |name: &str| metrics.lines().any(|line| line.starts_with(&format!("{name}{labels}")));
        assert!(has("switchcost_run_max_resident_bytes"), "{metrics}");
        // On a busy machine the interval of a time may be too wide.
        let is_told = has("switchcost_run_real_seconds") || has("switchcost_not_quotable");
        assert!(is_told, "{metrics}");
    }
    assert!(metrics.contains("# UNIT switchcost_run_max_resident_bytes bytes\n"), "{metrics}");
    let shown = home.run(&["run", "--show-output", "--openmetrics", "-", "true"]);
    assert_eq!(shown.code, Some(2), "{}", shown.err);
    // Names that differ in their middle alone are two series.
    let long = |word: &str| format!("true {}{word}{}", "a".repeat(40), "z".repeat(40));
    let args = ["run", "--no-estimate", "-n", "5", "--quiet", "--openmetrics", path];
    let said = home.run(&[&args[..], &[&*long("x"), &long("y")]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let metrics = fs::read_to_string(&to).expect("metrics");
    let series = metrics.lines().filter(|line| line.starts_with("switchcost_run_voluntary{"));
    let names: BTreeSet<&str> =
        series.filter_map(|line| line.rsplit_once(' ')).map(|s| s.0).collect();
    assert_eq!(names.len(), 2, "{metrics}");
}
