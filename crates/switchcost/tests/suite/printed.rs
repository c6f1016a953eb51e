//! `--print`: one number on standard output, and nothing else there.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::Home;
use crate::common::stored::{captured_run, full_speed_run};

/// The number that the program printed, alone in its line.
fn number(text: &str) -> f64 {
    let line = text.strip_suffix('\n').expect("a whole line");
    assert!(!line.contains(char::is_whitespace), "{text:?}");
    line.parse().unwrap_or_else(|_| panic!("no number: {text:?}"))
}

#[test]
fn a_stored_run_gives_the_numbers_of_its_record() {
    let home = Home::new();
    let run = full_speed_run(&home, "run.jsonl", |_| {});
    let record = home.run(&["runs", "export", &run]).json();
    let printed = |command: &str, request: &str| {
        let said = home.run(&["runs", command, &run, "--print", request]);
        assert_eq!((said.code, &*said.err), (Some(0), ""), "{request}");
        number(&said.out)
    };
    let [one, two, four] = [0, 1, 2].map(|case| record["cases"][case].clone());
    let value = |case: &Value, name: &str| case[name]["value"].as_f64().expect("a value");
    for (request, expected) in [
        // The first line is of the smallest ring.
        ("ns", value(&two, "ns_per_switch_above_solo")),
        ("low", two["ns_per_switch_above_solo"]["low"].as_f64().expect("an end")),
        ("high", two["ns_per_switch_above_solo"]["high"].as_f64().expect("an end")),
        ("cycles", value(&two, "cycles_per_switch")),
        ("ns-per-hop", value(&two, "ns_per_hop")),
        ("ns_per_hop:ring of 4", value(&four, "ns_per_hop")),
        ("ns:ring of 4", value(&four, "ns_per_switch_above_solo")),
        ("ns-per-hop:members=1", value(&one, "ns_per_hop")),
        ("switches-per-hop", value(&two, "switches_per_hop")),
        ("clock-ghz", two["clock_ghz"].as_f64().expect("a clock")),
        ("rounds", 12.0),
    ] {
        for command in ["show", "export"] {
            assert_eq!(printed(command, request), expected, "{command} {request}");
        }
    }
}

#[test]
fn what_is_measured_is_reported_beside_its_number() {
    let home = Home::new();
    let ring = ["ring", "--members", "2", "--rounds", "1", "--laps", "9", "--budget", "600s"];
    let said = home.run(&[&ring[..], &["--print", "switches-per-hop"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let counted = number(&said.out);
    // The kernel counts a switch for each hop, and what else takes the CPU adds some.
    assert!(counted >= 0.9, "{counted}");
    assert!(said.err.contains("A switch costs "), "the report is on standard error: {}", said.err);
    // A figure of one round is printed, and marked.
    let said = home.run(&[&ring[..], &["--print", "ns-per-hop", "--quiet"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(number(&said.out) > 0.0);
    assert!(said.err.starts_with("note: ring of 2, ns-per-hop: not for quoting: "), "{}", said.err);
}

#[test]
fn wake_ups_calls_and_parts_have_numbers() {
    let home = Home::new();
    for (name, request) in [
        ("wakeup", "p50"),
        ("wakeup", "p99"),
        ("calls", "ns"),
        ("clock", "ns"),
        ("response", "p99"),
        ("links", "ns:ring of 2 by futex"),
        ("cost", "ns"),
    ] {
        let run = captured_run(&home, name);
        let said = home.run(&["runs", "show", &run, "--print", request]);
        assert_eq!(said.code, Some(0), "{name} {request}: {}", said.err);
        assert!(number(&said.out) > 0.0, "{name} {request}");
    }
    let fixture = |name: &str| {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        folder.join(name).display().to_string()
    };
    for name in ["explain.jsonl", "measure.jsonl"] {
        let said = home.run(&["runs", "show", &fixture(name), "--print", "ns"]);
        assert_eq!(said.code, Some(0), "{name}: {}", said.err);
        assert!(number(&said.out) > 0.0, "{name}");
    }
}

#[test]
fn commands_have_numbers() {
    let home = Home::new();
    let run = ["run", "--no-estimate", "--quiet", "-n", "5"];
    let said = home.run(&[&run[..], &["--print", "voluntary", "true"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(number(&said.out) >= 0.0);
    let two = ["--print", "real-ns", "true", "sleep 0"];
    let said = home.run(&[&run[..], &two].concat());
    assert_eq!((said.code, &*said.out), (Some(1), ""), "{}", said.err);
    let words = "2 cases have it: name one, as --print 'real-ns:true'";
    assert!(said.err.contains(words), "{}", said.err);
    let said = home.run(&[&run[..], &["--print", "real-ns:sleep 0", "true", "sleep 0"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(number(&said.out) > 0.0);
    // The exit code is the command's, as ever.
    let said = home.run(&["run", "--no-estimate", "--quiet", "--print", "real-ns", "--", "false"]);
    assert_eq!((said.code, number(&said.out) > 0.0), (Some(1), true), "{}", said.err);
    let record = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captured/run.json");
    let record = record.display().to_string();
    let said = home.run(&["runs", "export", &record, "--print", "max-resident-bytes"]);
    assert_eq!(said.code, Some(2), "several commands: {}", said.err);
}

#[test]
fn what_cannot_be_printed_is_refused_by_name() {
    let home = Home::new();
    let run = full_speed_run(&home, "run.jsonl", |_| {});
    let response = captured_run(&home, "response");
    for (args, code, words) in [
        (&["runs", "show", &*run, "--print", "nss"][..], 2, "no measure has this name"),
        (&["runs", "show", &*run, "--print", "switch-per-hop"], 2, "'switches-per-hop'?"),
        (&["runs", "show", &*run, "--print", "p99"], 1, "no case has it (known here: ns, "),
        (&["runs", "show", &*run, "--print", "ns:ring of 5"], 2, "no case is called 'ring of 5'"),
        (&["runs", "show", &*response, "--print", "ns-per-hop"], 2, "cases have it: name one, as"),
        (&["runs", "export", &*run, "--print", "ns", "--format", "csv"], 2, "cannot be used with"),
        (&["compare", &*run, &*run, "--print", "ns"], 2, "a comparison has many figures"),
        (&["ring", "--print", "ns", "--json", "-"], 2, "only one of them can have standard"),
        (&["ring", "--print", "ns", "--launches", "2"], 2, "(no --json, --csv, --print"),
        (&["run", "--show-output", "--print", "real-ns", "true"], 2, "--show-output"),
        (
            &["cost", "--print", "ns", "--openmetrics", "-"],
            2,
            "--print and --openmetrics -: only one",
        ),
    ] {
        let said = home.run(args);
        assert_eq!((said.code, &*said.out), (Some(code), ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
    for (command, flag) in [
        ("run", "--json"),
        ("run", "--openmetrics"),
        ("run", "--markdown"),
        ("run", "--junit"),
        ("run", "--ktap"),
        ("run", "--report"),
        ("run", "--export-json"),
        ("run", "--export-csv"),
        ("run", "--export-markdown"),
        ("profile", "--csv"),
        ("profile", "--report"),
    ] {
        let mut args = vec![command, "--print", "ns", flag, "-"];
        match command {
            "run" => args.extend(["--fail-above", "5%", "true", "true"]),
            _ => args.extend(["--malloc", "--", "true"]),
        }
        let said = home.run(&args);
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {}", said.err);
        assert!(said.err.contains("only one of them can have standard output"), "{}", said.err);
    }
    assert_eq!(home.run_files().len(), 0);
}

#[test]
fn what_is_not_for_quoting_is_marked() {
    let home = Home::new();
    // One run has no interval.
    let args = ["run", "--no-estimate", "--quiet", "-n", "1", "--print", "voluntary", "true"];
    let said = home.run(&args);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(number(&said.out) >= 0.0);
    assert!(said.err.contains("note: true, voluntary: not for quoting: "), "{}", said.err);
    // Few rounds have none of a median, however many values there are.
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let run = fixtures.join("response-gaps.jsonl").display().to_string();
    for request in ["p50:gaps in a busy loop", "p99:gaps in a busy loop"] {
        let said = home.run(&["runs", "show", &run, "--print", request]);
        assert_eq!(said.code, Some(0), "{request}: {}", said.err);
        let marked = said.err.contains(": not for quoting: ");
        assert!(marked, "{request}: {}", said.err);
    }
}

#[test]
fn a_trace_has_nanoseconds_of_its_times_alone() {
    let home = Home::new();
    let run = captured_run(&home, "trace");
    let said = home.run(&["runs", "show", &run, "--print", "ns"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
    assert!(said.err.contains("2 cases have it"), "waits: {}", said.err);
    let said = home.run(&["runs", "show", &run, "--print", "ns:preemptions"]);
    assert_eq!((said.code, &*said.out), (Some(1), ""), "{}", said.err);
    assert!(said.err.contains("no case has it"), "{}", said.err);
}

#[test]
fn all_measures_are_listed_and_nothing_is_measured() {
    let home = Home::new();
    for args in [
        &["ring", "--print", "help"][..],
        &["run", "--print", "help", "true"],
        &["runs", "show", "last", "--print", "help"],
    ] {
        let said = home.run(args);
        assert_eq!((said.code, &*said.err), (Some(0), ""), "{args:?}");
        for id in ["ns ", "cycles ", "p99 ", "switches-per-hop ", "real-ns ", "voluntary "] {
            assert!(said.out.lines().any(|line| line.starts_with(id)), "{id}: {}", said.out);
        }
    }
    assert_eq!(home.run_files().len(), 0);
}
