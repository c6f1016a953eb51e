//! `switchcost measure`: all experiments in one go, a summary, one run file, a report.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::schema::Schema;
use crate::common::stored::measured;
use crate::common::{Home, PROGRAM, Rows, Said, lines_of, order_of};
use rustix::process::{Pid, Signal, kill_process};
use testing::{Need, skip};

/// As little as can be: a round of everything.
const SMALL: [&str; 3] = ["measure", "--budget", "1ms"];

/// The experiments that this machine can measure: a sleeper and calls need no counter.
fn parts(header: &Value) -> Vec<String> {
    let parts = header["header"]["plan"]["parts"].as_array().expect("parts");
    parts.iter().map(|part| part["experiment"].as_str().expect("a name").to_string()).collect()
}

#[test]
fn everything_is_measured_stored_and_told() {
    let home = Home::new();
    let report = home.path().join("report.html");
    let to = report.to_str().expect("a path");
    let said = home.run(&[&SMALL[..], &["--verbose", "--name", "all", "--report", to]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = lines_of(&home.run_file());
    assert_eq!(parts(&lines[0]), ["ring", "cost", "response", "clock-overhead"]);
    let schema = Schema::of("run-line");
    lines.iter().for_each(|line| schema.assert_holds(line));
    assert_eq!(lines[0]["header"]["name"], "all");
    assert!(lines.iter().any(|line| line.get("end").is_some()));
    // The first that is measured is a ring of two or its solo, whatever the seed.
    let first = order_of(&home.run_file())[..2].to_vec();
    let list = home.run(&["runs", "list"]).out;
    let named = list.lines().filter(|line| line.contains("  all  "));
    assert_eq!(named.count(), 1, "{list}");
    for (_, case) in first {
        let case = &lines[0]["header"]["plan"]["cases"][case as usize];
        assert!(case["ring"]["members"].as_u64().is_some_and(|members| members < 3), "{case}");
    }
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].contains("switch costs "), "what matters comes first: {}", said.out);
    assert!(lines.iter().any(|line| line.starts_with("measured on ")), "{}", said.out);
    let first = said.out.split("\n\n").next().expect("a headline").replace("\n  ", " ");
    assert!(first.contains(" of working set"), "{}", said.out);
    for name in ["ring ", "cost ", "response ", "clock "] {
        assert!(lines.iter().any(|line| line.starts_with(name)), "{name}: {}", said.out);
    }
    let file = home.run_file();
    assert!(said.out.contains(&format!("run file: {}", file.display())), "{}", said.out);
    assert!(said.out.ends_with(&format!("report: {}\n", report.display())), "{}", said.out);
    let report = fs::read_to_string(report).expect("a report");
    let lead = lines[0].split(['(', ';']).next().expect("a start").replace(" us", " µs");
    assert!(report.contains(&format!("<p class=\"lead\">{lead}")), "{lead}");
}

#[test]
fn quiet_says_nothing_and_writes_everything() {
    let measured = measured();
    let said = &measured.said;
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "", ""));
    assert_eq!(measured.runs.len(), 1);
    assert!(measured.report.trim_end().ends_with("</html>"));
}

/// Whether a round has a figure that may be quoted is the machine's affair.
#[test]
fn figures_are_shared_without_the_machines_name() {
    let home = Home::new();
    let share = home.path().join("share.csv");
    let to = share.to_str().expect("a path");
    let said = home.run(&[&SMALL[..], &["--name", "secret-name", "--share", to]].concat());
    assert_eq!(home.run_files().len(), 1, "the run is stored");
    let Ok(file) = fs::read_to_string(&share) else {
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.err.contains("no figure was seen at full speed"), "{}", said.err);
        return;
    };
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.ends_with(&format!("to share: {to}\n")), "{}", said.out);
    assert!(
        file.starts_with("# version: ") && file.contains("\n# experiment: measure\n"),
        "{file}"
    );
    assert!(file.lines().count() > 7 && !file.contains("secret-name"), "{file}");
    let exported = home.run(&["runs", "export", "last", "--format", "history"]);
    assert_eq!(exported.out, file, "the same, of the stored run");
}

#[test]
fn two_files_have_two_places_and_a_place_that_cannot_be_written_is_said_at_once() {
    let home = Home::new();
    for place in ["x.html", "-"] {
        let said = home.run(&[&SMALL[..], &["--report", place, "--share", place]].concat());
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains(&format!("--share {place}: --report")), "{}", said.err);
    }
    let said = home.run(&[&SMALL[..], &["--share", "/nowhere/share.csv"]].concat());
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(home.run_files().is_empty(), "nothing was measured");
}

#[test]
fn ctrl_c_leaves_what_was_measured_so_far() {
    let home = Home::new();
    let report = home.path().join("report.html");
    let report_name = report.to_str().expect("a path");
    let child = home.start(&["measure", "--budget", "600s", "--output", report_name]);
    let file = home.wait_for_sample();
    kill_process(Pid::from_child(&child), Signal::INT).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert_eq!(home.run_files(), std::slice::from_ref(&file), "one run");
    assert!(!order_of(&file).is_empty());
    assert!(said.out.starts_with("Interrupted: "), "{}", said.out);
    assert!(report.exists(), "{}", said.out);
    let shown = home.run(&["runs", "show", "last"]);
    assert!(shown.out.starts_with("Interrupted: "), "{}", shown.out);
    // It goes on where it was, with the same plan.
    let resumed = home.run(&["runs", "resume", "last", "--rounds", "1"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(resumed.out.contains("switch, 2 processes"), "{}", resumed.out);
    let lines = lines_of(&file);
    let of_line = |line: &&Value| line.get("sample").is_some();
    let cases: BTreeSet<String> = lines.iter().filter(of_line).map(case_of).collect();
    let all = lines[0]["header"]["plan"]["cases"].as_array().map_or(0, Vec::len);
    assert_eq!(cases.len(), all, "every case has been measured by then");
}

/// The number of a sample's case, with the kind of its case.
fn case_of(line: &Value) -> String {
    let (kind, sample) = line["sample"].as_object().and_then(|of| of.iter().next()).expect("one");
    format!("{kind} {}", sample["case"])
}

/// A copy of the run that `measure` left, under another name; gives its path.
fn copy(home: &Home, name: &str) -> String {
    let (_, text) = measured().runs.first().expect("a run");
    let (header, samples) = text.split_once('\n').expect("lines");
    let mut header: Value = serde_json::from_str(header).expect("JSON");
    header["header"]["run"] = name.into();
    let file = home.path().join(format!("{name}.jsonl"));
    fs::write(&file, format!("{header}\n{samples}")).expect("a file");
    file.display().to_string()
}

#[test]
fn its_record_and_its_exports_have_all_experiments() {
    let home = Home::new();
    let run = copy(&home, "one");
    let record = home.run(&["runs", "export", &run]).json();
    Schema::of("record").assert_holds(&record);
    let names = parts(&record);
    let of_parts = record["parts"].as_array().expect("records");
    let name = |part: &Value| part["header"]["plan"]["experiment"].as_str().map(str::to_string);
    assert_eq!(of_parts.iter().filter_map(name).collect::<Vec<_>>(), names);
    let cases: usize =
        of_parts.iter().filter_map(|part| part["cases"].as_array()).map(Vec::len).sum();
    assert_eq!(Some(cases), record["header"]["plan"]["cases"].as_array().map(Vec::len));
    for format in ["csv", "summary-csv"] {
        let rows = Rows::parse(&home.run(&["runs", "export", &run, "--format", format]).out);
        let found: BTreeSet<&str> = rows.rows.iter().map(|row| row.text("experiment")).collect();
        assert_eq!(found, names.iter().map(String::as_str).collect(), "{format}");
        let numbers: BTreeSet<u64> = rows.rows.iter().map(|row| row.number("case")).collect();
        assert_eq!(numbers.len(), cases, "{format}: numbers of the whole run");
    }
    for format in ["markdown", "go-bench", "openmetrics", "bmf", "gab", "otava", "rows", "history"]
    {
        let said = home.run(&["runs", "export", &run, "--format", format]);
        assert_eq!(said.code, Some(0), "{format}: {}", said.err);
    }
}

#[test]
fn two_of_them_are_compared_in_a_report_too_and_followed_over_time() {
    let home = Home::new();
    let [one, two] = ["one", "two"].map(|name| copy(&home, name));
    let to = home.path().join("two.html").display().to_string();
    let said = home.run(&["compare", &one, &two, "--report", &to]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let page = fs::read_to_string(&to).expect("a report");
    for name in ["A ring", "A cost", "B ring", "B clock-overhead"] {
        assert!(page.contains(name), "{name}");
    }
    let said = home.run(&["report", &one, &two, "-o", &to]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = home.run(&["report", &one, &one, "-o", &to]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    // Figures of one round hold nowhere: the case is found all the same.
    let said = home.run(&["trend", &one, &two, "ring of 2", "experiment-of-none"]);
    assert!(said.err.contains("ring of 2"), "{}", said.err);
}

/// Run files of a time when it left four.
#[test]
fn four_runs_of_before_are_one_report_still() {
    let home = Home::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = ["ring", "cost", "response", "clock-overhead"]
        .map(|name| folder.join(format!("{name}.jsonl")).display().to_string());
    let to = home.path().join("four.html").display().to_string();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let said = home.run(&[&["report"], &names[..], &["-o", &to]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    for file in &names {
        assert_eq!(home.run(&["runs", "show", file]).code, Some(0), "{file}");
    }
}

/// Where the report goes to standard output, too.
#[test]
fn runs_that_cannot_be_stored_are_told_and_drawn_all_the_same() {
    let home = Home::new();
    // A file where the folder of all runs would be.
    fs::write(home.path().join("switchcost"), "").expect("a file");
    let said = home.run(&[&SMALL[..], &["--output", "-"]].concat());
    assert_eq!(said.code, Some(1), "{}", said.err);
    let lines = said.err.lines().filter(|line| line.contains("the run is not stored"));
    assert_eq!(lines.count(), 1, "{}", said.err);
    assert!(!said.err.contains("run file: "), "{}", said.err);
    // The summary is left to standard error.
    assert!(said.out.starts_with("<!doctype html>") || said.out.starts_with("<!DOCTYPE html>"));
    assert!(said.out.trim_end().ends_with("</html>"));
    assert!(said.err.contains("switch costs "), "{}", said.err);
    assert!(!said.err.contains("report: "), "there is no file to name: {}", said.err);
}

/// A report that cannot be written costs nothing else.
#[test]
fn the_answer_fits_a_terminal_and_nothing_is_written_where_it_stands() {
    let home = Home::new();
    let here = home.path().join("here");
    fs::create_dir(&here).expect("a folder");
    let mut program = home.command(PROGRAM);
    program.current_dir(&here).args(SMALL).env_remove("COLUMNS");
    let is_full = Path::new("/dev/full").exists();
    match is_full {
        true => {
            program.args(["--output", "/dev/full"]);
        }
        false => skip(Need::Hardware("/dev/full"), "a report that cannot be written"),
    }
    let said = Said::of(&mut program);
    assert_eq!(said.code, Some(i32::from(is_full)), "{}", said.err);
    if is_full {
        assert!(said.error().contains("the report is not written"), "{}", said.err);
        assert!(said.err.contains("/dev/full"), "{}", said.err);
    }
    assert!(said.out.contains("switch costs "), "{}", said.out);
    for line in said.out.lines() {
        assert!(line.chars().count() <= 80 && line == line.trim_end(), "{line:?}");
    }
    for what in ["switch, 2 processes", "getuid", "reading time-stamp", "wake-up, idle CPU"] {
        assert!(said.out.contains(what), "{what}: {}", said.out);
    }
    assert!(!said.out.contains("run file: "), "{}", said.out);
    assert!(!said.out.contains("report: "), "announced, and not there: {}", said.out);
    assert_eq!(fs::read_dir(&here).expect("a folder").count(), 0, "something was written");
    // Its plan keeps its budget.
    let header = &lines_of(&home.run_file())[0]["header"];
    assert_eq!(header["plan"]["stopping"]["fixed_budget"], true, "{header}");
    // So does one that was typed; with a + it may be extended.
    for (budget, is_kept) in [("600", true), ("600s+", false)] {
        let home = Home::new();
        let small = ["ring", "--members", "2", "--rounds", "1", "--laps", "100", "--budget"];
        assert_eq!(home.run(&[&small[..], &[budget]].concat()).code, Some(0));
        let header = &lines_of(&home.run_file())[0]["header"];
        assert_eq!(header["plan"]["stopping"]["fixed_budget"] == true, is_kept, "{header}");
    }
}

#[test]
fn a_place_for_the_report_is_looked_at_before_anything_is_measured() {
    let home = Home::new();
    let notes = home.path().join("notes.html");
    fs::write(&notes, "mine").expect("a file");
    let notes = notes.to_str().expect("a path");
    for (flag, place) in [("--report", "/no/such/folder/r.html"), ("-o", "/"), ("--output", notes)]
    {
        let said = home.run(&["measure", flag, place]);
        assert_eq!(said.code, Some(2), "{flag}: {}", said.err);
        assert!(said.error().contains(place), "{}", said.err);
        assert_eq!(home.run_files().len(), 0);
    }
    assert_eq!(fs::read_to_string(notes).expect("a file"), "mine");
}
