//! What is printed by default fits a terminal of 80 columns, and begins with the answer.

use crate::common::{Home, Said};

/// Bounded by rounds and laps, so that it takes a second.
const SMALL: [&str; 6] = ["--rounds", "2", "--laps", "100", "--budget", "60s"];

/// No line is too wide or ends with a blank, and the first one is a sentence.
fn assert_fits(said: &Said, args: &[&str]) {
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
    for line in said.out.lines() {
        assert!(line.chars().count() <= 80, "{args:?}: {} columns: {line}", line.chars().count());
        assert_eq!(line, line.trim_end(), "{args:?}: blanks at the end");
    }
    let first = said.out.lines().next().unwrap_or_default();
    let is_answer = first.starts_with(|c: char| c.is_alphanumeric()) && first.contains(' ');
    assert!(is_answer, "{args:?}: {first}");
}

#[test]
fn rings_fit_eighty_columns() {
    let home = Home::new();
    for args in [
        &["--members", "2,4"][..],
        &["--members", "2", "--link", "pipe,futex,socket-dgram"],
        &["--members", "2", "--work", "64K"],
        &["--members", "1"],
    ] {
        let args = [&["ring"], args, &SMALL[..]].concat();
        assert_fits(&home.run_in_eighty_columns(&args), &args);
        let shown = home.run_in_eighty_columns(&["runs", "show", "last"]);
        assert_fits(&shown, &["runs", "show"]);
    }
}

#[test]
fn costs_fit_eighty_columns() {
    let home = Home::new();
    // Its rings of 64 that yield take their time for a lap.
    let bounds = ["--rounds", "1", "--laps", "10", "--budget", "60s"];
    let args = [&["cost", "--array", "1K,64K"], &bounds[..]].concat();
    assert_fits(&home.run_in_eighty_columns(&args), &args);
}

#[test]
fn clocks_fit_eighty_columns() {
    let home = Home::new();
    // As wide as by default, as both ends of the default are there.
    let ends = "100,1000,5000";
    for args in [
        &["clock", "overhead", "--trials", "20"][..],
        &["classic", "experiment", "primes", "--primes", ends, "--trials", "5"],
        &["classic", "experiment", "malloc", "--sizes", ends, "--trials", "20"],
        &["classic", "experiment", "sampling", "--duration", "100ms"],
    ] {
        let args = [args, &["--rounds", "1", "--budget", "60s"]].concat();
        assert_fits(&home.run_in_eighty_columns(&args), &args);
    }
}

#[test]
fn responses_fit_eighty_columns() {
    let home = Home::new();
    for only in ["system-calls", "signals", "links", "wakeup", "interrupts", "signals,interrupts"] {
        let args = ["response", "--only", only, "--rounds", "1", "--budget", "60s"];
        assert_fits(&home.run_in_eighty_columns(&args), &args);
    }
}

#[test]
fn comparisons_and_lists_fit_eighty_columns() {
    let home = Home::new();
    for name in ["base", "new"] {
        home.measure(&[&["--members", "2,4"], &SMALL[..4], &["--name", name]].concat());
    }
    assert_fits(&home.run_in_eighty_columns(&["compare", "base", "new"]), &["compare"]);
    assert_fits(&home.run_in_eighty_columns(&["runs", "list"]), &["runs", "list"]);
    let markdown = ["compare", "base", "new", "--fail-above", "3%", "--markdown"];
    let said = home.run_in_eighty_columns(&markdown);
    assert!(said.out.starts_with("UNDECIDED: "), "{}", said.out);
    let last = |said: &Said| said.out.lines().last().unwrap_or_default().to_string();
    let verdict =
        last(&home.run_in_eighty_columns(&["compare", "base", "new", "--fail-above", "3%"]));
    assert!(verdict.starts_with("UNDECIDED: "), "{verdict}");
}
