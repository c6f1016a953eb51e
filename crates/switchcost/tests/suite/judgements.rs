//! The judgements of gates as results of tests: JUnit XML and the kernel's KTAP.

use std::fs;

use serde_json::Value;

use crate::common::stored::{full_speed_run, lengthen};
use crate::common::{Home, Said};

/// A result of KTAP.
#[derive(Debug, PartialEq, Eq)]
struct KtapResult {
    is_ok: bool,
    name: String,
    /// What follows the `#`: a directive, or what was found.
    remark: String,
}

/// Reads KTAP as Documentation/dev-tools/ktap.rst of Linux has it; anything else is an error.
fn read_ktap(text: &str) -> Vec<KtapResult> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("KTAP version 1"), "{text}");
    let plan = lines.next().and_then(|line| line.strip_prefix("1..")).expect("a plan");
    let count: usize = plan.parse().expect("a number");
    let mut results = Vec::new();
    for line in lines {
        let (is_ok, rest) = match line.strip_prefix("not ok ") {
            Some(rest) => (false, rest),
            None => (true, line.strip_prefix("ok ").expect("a result")),
        };
        let (number, rest) = rest.split_once(' ').expect("a number and a name");
        assert_eq!(number.parse(), Ok(results.len() + 1), "{line}");
        let (name, remark) = rest.split_once(" # ").unwrap_or((rest, ""));
        assert!(!name.is_empty() && !name.contains('#'), "{line}");
        let (name, remark) = (name.to_string(), remark.to_string());
        results.push(KtapResult { is_ok, name, remark });
    }
    assert_eq!(results.len(), count, "{text}");
    results
}

/// The counts that JUnit's suite has: tests, failures, errors, skipped.
fn junit_counts(text: &str) -> [usize; 4] {
    let (_, suite) = text.split_once("<testsuite ").expect("a suite");
    ["tests", "failures", "errors", "skipped"].map(|name| {
        let (_, rest) = suite.split_once(&format!(" {name}=\"")).expect("a count");
        rest.split('"').next().and_then(|count| count.parse().ok()).expect("a number")
    })
}

/// Counts elements as the suite should have.
fn counted_elements(text: &str) -> [usize; 4] {
    ["<testcase ", "<failure ", "<error ", "<skipped "].map(|element| text.matches(element).count())
}

fn run_at(home: &Home, percent: u64) -> String {
    full_speed_run(home, &format!("run-{percent}.jsonl"), |line| lengthen(line, percent))
}

/// A comparison with its judgements in both formats, and its record.
fn judged(home: &Home, args: &[&str]) -> (Said, String, Vec<KtapResult>, Value) {
    let [junit, ktap, json] = ["gate.xml", "gate.ktap", "gate.json"].map(|name| {
        let path = home.path().join(name);
        path.to_str().expect("UTF-8").to_string()
    });
    let files = ["--junit", &*junit, "--ktap", &*ktap, "--json", &*json];
    let said = home.run(&[&["compare"], args, &files].concat());
    let read = |path: &str| fs::read_to_string(path).expect("a file");
    let record = serde_json::from_str(&read(&json)).expect("JSON");
    (said, read(&junit), read_ktap(&read(&ktap)), record)
}

#[test]
fn each_case_of_a_comparison_is_a_test_case() {
    let home = Home::new();
    let (base, slow) = (run_at(&home, 100), run_at(&home, 300));
    let same = full_speed_run(&home, "same.jsonl", |_| {});
    for (args, code, outcome) in [
        (&[&*base, &*slow, "--fail-above", "3%"][..], 1, "failure"),
        (&[&*slow, &*base, "--fail-above", "3%"], 0, "pass"),
        (&[&*base, &*same, "--fail-above", "3%"], 3, "skipped"),
        (&[&*base, &*same, "--fail-above", "3%", "--allow-undecided"], 0, "skipped"),
        (&[&*base, &*same, "--fail-above", "99%"], 0, "pass"),
    ] {
        let (said, junit, ktap, record) = judged(&home, args);
        assert_eq!(said.code, Some(code), "{args:?}: {}", said.err);
        let changes = record["changes"].as_array().expect("changes").len();
        assert_eq!((changes, ktap.len()), (3, 3));
        assert_eq!(junit_counts(&junit), counted_elements(&junit), "{junit}");
        let counts = match outcome {
            "failure" => [3, 3, 0, 0],
            "pass" => [3, 0, 0, 0],
            _ => [3, 0, 0, 3],
        };
        assert_eq!(junit_counts(&junit), counts, "{args:?}: {junit}");
        for result in &ktap {
            assert!(result.name.starts_with("ring of "), "{result:?}");
            let words = match outcome {
                "failure" => "is 200.0 % slower (",
                "skipped" => "SKIP UNDECIDED: may be up to ",
                _ => "",
            };
            assert_eq!(result.is_ok, outcome != "failure", "{result:?}");
            assert!(result.remark.starts_with(words), "{result:?}");
        }
        assert!(junit.contains("classname=\"switchcost.compare\" name=\"ring of 2\""), "{junit}");
    }
}

#[test]
fn a_case_that_was_lost_is_an_error() {
    let home = Home::new();
    let base = run_at(&home, 100);
    // The ring of four was planned, and never measured.
    let whole = fs::read_to_string(run_at(&home, 101)).expect("a run");
    let is_of_four = |line: &&str| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        line.pointer("/sample/case") == Some(&2.into())
    };
    let mut lines: Vec<String> =
        whole.lines().filter(|line| !is_of_four(line)).map(str::to_string).collect();
    let failure =
        serde_json::json!({"failure": {"case": 2, "round": 0, "message": "out of members"}});
    lines.insert(1, failure.to_string());
    let lost = home.path().join("lost.jsonl");
    fs::write(&lost, lines.join("\n") + "\n").expect("a file");
    let lost = lost.display().to_string();
    let (said, junit, ktap, _) = judged(&home, &[&base, &lost, "--fail-above", "99%"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(junit_counts(&junit), [3, 0, 1, 0], "{junit}");
    assert!(junit.contains(": out of members</error>"), "{junit}");
    let four = ktap.iter().find(|result| result.name == "ring of 4").expect("the ring of four");
    assert!(!four.is_ok && four.remark.starts_with("ERROR was measured in "), "{four:?}");
}

#[test]
fn standard_output_has_the_judgements_alone() {
    let home = Home::new();
    let (base, slow) = (run_at(&home, 100), run_at(&home, 300));
    let gate = ["compare", &*base, &*slow, "--fail-above", "3%"];
    let said = home.run(&[&gate[..], &["--ktap", "-"]].concat());
    assert_eq!((said.code, read_ktap(&said.out).len()), (Some(1), 3));
    assert!(said.err.contains("FAIL: "), "the table is on standard error: {}", said.err);
    for (more, words) in [
        (&["--ktap", "-", "--junit", "-"][..], "--junit - and --ktap -: only one of them"),
        (&["--ktap", "-", "--json", "-"], "--ktap - and --json -: only one of them"),
        (&["--junit", "/nonesuch/gate.xml"], "--junit /nonesuch/gate.xml: "),
    ] {
        let said = home.run(&[&gate[..], more].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{more:?}: {}", said.err);
        assert!(said.error().contains(words), "{more:?}: {}", said.err);
    }
    let open = home.run(&["compare", &base, &slow, "--ktap", "-"]);
    assert_eq!(open.code, Some(2), "{}", open.err);
    assert!(open.err.contains("--fail-above"), "{}", open.err);
}

#[test]
fn runs_without_a_common_case_are_an_error() {
    let home = Home::new();
    let base = run_at(&home, 100);
    let clock = crate::common::stored::captured_run(&home, "clock");
    let to = home.path().join("gate.xml");
    let to = to.to_str().expect("UTF-8");
    for new in [&*clock, "nonesuch"] {
        // A judgement of another day.
        fs::write(to, "<testsuites/>").expect("a file");
        let said = home.run(&["compare", &base, new, "--fail-above", "3%", "--junit", to]);
        assert_eq!(said.code, Some(2), "{new}: {}", said.err);
        let text = fs::read_to_string(to).expect("a file");
        assert_eq!(junit_counts(&text), [1, 0, 1, 0], "{new}: {text}");
    }
    let said = home.run(&["trend", "nonesuch", "--fail-above", "3%", "--junit", to]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let text = fs::read_to_string(to).expect("a file");
    assert_eq!(junit_counts(&text), [1, 0, 1, 0], "{text}");
    assert!(text.contains("classname=\"switchcost.trend\""), "{text}");
}

#[test]
fn a_series_that_was_not_ended_is_an_error() {
    let home = Home::new();
    let (count, to) = (home.path().join("count"), home.path().join("gate.ktap"));
    let (count, to) = (count.display(), to.to_str().expect("UTF-8"));
    for limit in [0, 24] {
        // Prepared so often, it fails.
        let prepare = format!("TOKEN=hidden; echo >> {count}; test $(wc -l < {count}) -le {limit}");
        fs::write(count.to_string(), "").expect("a file");
        fs::write(to, "KTAP version 1\n1..1\nok 1 of another day\n").expect("a file");
        let run = ["run", "--no-estimate", "--quiet", "-n", "20", "--figures", "voluntary"];
        let more = ["--fail-above", "90%", "--prepare", &prepare, "--ktap", to];
        let said = home.run(&[&run[..], &more, &["true", "true"]].concat());
        assert_eq!(said.code, Some(2), "{limit}: {}", said.err);
        let text = fs::read_to_string(to).expect("a file");
        assert!(!text.contains("hidden"), "{text}");
        let results = read_ktap(&text);
        let [result] = &results[..] else { panic!("{limit}: {results:?}") };
        assert!(!result.is_ok && result.remark.starts_with("ERROR "), "{limit}: {result:?}");
    }
}

#[test]
fn commands_that_differ_in_their_middle_have_two_names() {
    let home = Home::new();
    let long = |word: &str| format!("true {}{word}{}", "a".repeat(40), "z".repeat(40));
    let run = ["run", "--no-estimate", "--quiet", "-n", "5", "--figures", "voluntary"];
    let gate = ["--fail-above", "90%", "--allow-undecided", "--ktap", "-"];
    let said = home.run(&[&run[..], &gate, &["true", &long("x"), &long("y")]].concat());
    let results = read_ktap(&said.out);
    assert_eq!(results.len(), 2, "{results:?}");
    assert_ne!(results[0].name, results[1].name);
}

/// A command that takes so many turns, each with a child to wait for.
fn turns(count: u32) -> String {
    let turn = "while [ $turns -gt 0 ]; do /bin/true; turns=$((turns - 1)); done";
    format!("turns={count}; {turn}")
}

#[test]
fn each_figure_of_a_command_is_a_test_case() {
    let home = Home::new();
    let gate = |new: &str, more: &[&str]| {
        let args = ["run", "--no-estimate", "-n", "6", "--figures", "voluntary,switches"];
        let names = ["--command-name", "base", "--command-name", "new #1"];
        let base = turns(10);
        home.run(&[&args[..], &names, &["--fail-above", "50%"], more, &[&*base, new]].concat())
    };
    let said = gate(&turns(40), &["--ktap", "-", "--quiet"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let results = read_ktap(&said.out);
    let names: Vec<&str> = results.iter().map(|result| &*result.name).collect();
    assert_eq!(names, ["new 1: voluntary switches", "new 1: switches"]);
    assert!(results.iter().all(|result| !result.is_ok), "{results:?}");
    assert!(results[0].remark.starts_with("more than 50 % above the base: "), "{results:?}");
    // Nothing was compared.
    let said = gate("exit 3", &["--junit", "-", "--quiet"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert_eq!(junit_counts(&said.out), [2, 0, 2, 0], "{}", said.out);
    assert!(said.out.contains("nothing was compared, as new #1: 6 of 6 runs"), "{}", said.out);
}

#[test]
fn the_newest_change_of_a_series_is_a_test_case() {
    let home = Home::new();
    crate::trend::twelve(&home, 1050);
    for (limit, code, remark) in [
        ("3%", 1, "slower by more than 3 %: "),
        ("10%", 0, ""),
        ("5%", 3, "SKIP UNDECIDED: it may be slower by more than 5 %: "),
    ] {
        let said = home.run(&["trend", "--fail-above", limit, "--ktap", "-"]);
        assert_eq!(said.code, Some(code), "{limit}: {}", said.err);
        let results = read_ktap(&said.out);
        let [result] = &results[..] else { panic!("{results:?}") };
        assert_eq!((&*result.name, result.is_ok), ("ring of 2", code != 1), "{limit}");
        assert!(result.remark.starts_with(remark), "{limit}: {result:?}");
        assert_eq!(result.remark.is_empty(), remark.is_empty(), "{limit}: {result:?}");
    }
}
