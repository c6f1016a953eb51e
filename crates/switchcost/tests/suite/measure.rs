//! `switchcost measure`: all experiments in one go, a summary, run files, a report.

use std::fs;
use std::path::Path;

use crate::common::stored::measured;
use crate::common::{Home, PROGRAM, Said, order_of};
use rustix::process::{Pid, Signal, kill_process};
use testing::{Need, skip};

/// As little as can be: a round of everything.
const SMALL: [&str; 3] = ["measure", "--budget", "1ms"];

fn experiments(home: &Home) -> Vec<String> {
    let mut all: Vec<String> = home
        .run_files()
        .iter()
        .map(|file| {
            let text = fs::read_to_string(file).expect("a run file");
            let header = text.lines().next().expect("a header");
            let header: serde_json::Value = serde_json::from_str(header).expect("JSON");
            assert!(text.lines().any(|line| line.starts_with("{\"end\"")), "{file:?}");
            header["header"]["plan"]["experiment"].as_str().expect("a name").to_owned()
        })
        .collect();
    all.sort();
    all
}

#[test]
fn everything_is_measured_stored_and_told() {
    let home = Home::new();
    let report = home.path().join("report.html");
    let to = report.to_str().expect("a path");
    let said = home.run(&[&SMALL[..], &["--verbose", "--report", to]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(experiments(&home), ["clock-overhead", "cost", "response", "ring"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].contains("switch costs "), "what matters comes first: {}", said.out);
    assert!(lines.iter().any(|line| line.starts_with("measured on ")), "{}", said.out);
    let first = said.out.split("\n\n").next().expect("a headline").replace("\n  ", " ");
    assert!(first.contains(" of working set"), "{}", said.out);
    for name in ["ring ", "cost ", "response ", "clock "] {
        assert!(lines.iter().any(|line| line.starts_with(name)), "{name}: {}", said.out);
    }
    for file in home.run_files() {
        assert!(said.out.contains(&format!("run file: {}", file.display())), "{}", said.out);
    }
    assert!(said.out.ends_with(&format!("report: {}\n", report.display())), "{}", said.out);
    let report = fs::read_to_string(report).expect("a report");
    let lead = lines[0].split(['(', ';']).next().expect("a start");
    assert!(report.contains(&format!("<p class=\"lead\">{lead}")), "{lead}");
}

#[test]
fn quiet_says_nothing_and_writes_everything() {
    let measured = measured();
    let said = &measured.said;
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "", ""));
    assert_eq!(measured.runs.len(), 4);
    assert!(measured.report.trim_end().ends_with("</html>"));
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
    assert_eq!(home.run_files(), std::slice::from_ref(&file), "no other experiment was begun");
    assert!(!order_of(&file).is_empty());
    assert!(said.out.starts_with("Interrupted: "), "{}", said.out);
    assert!(report.exists(), "{}", said.out);
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
    assert_eq!(lines.count(), 4, "{}", said.err);
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
    // Its plans keep their budgets: what one took too much, the others would lack.
    assert_eq!(home.run_files().len(), 4);
    for file in home.run_files() {
        let header = &crate::common::lines_of(&file)[0]["header"];
        assert_eq!(header["plan"]["stopping"]["fixed_budget"], true, "{file:?}");
    }
    // So does one that was typed; with a + it may be extended.
    for (budget, is_kept) in [("600", true), ("600s+", false)] {
        let home = Home::new();
        let small = ["ring", "--members", "2", "--rounds", "1", "--laps", "100", "--budget"];
        assert_eq!(home.run(&[&small[..], &[budget]].concat()).code, Some(0));
        let header = &crate::common::lines_of(&home.run_file())[0]["header"];
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
