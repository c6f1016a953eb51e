//! `switchcost top` as a program. Needs root, and is skipped without.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::{Need, lacks};

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Said, catches_interrupts, wait_for};
use crate::trace::can_trace;

#[test]
fn updates_are_lines_of_json_that_follow_the_schema() {
    if !can_trace() {
        return;
    }
    let args = ["top", "--batch=json", "--interval", "0.1", "--updates", "3", "--by", "user"];
    let said = Home::new().run(&args);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let updates: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(updates.len(), 3);
    let schema = Schema::of("top-update");
    updates.iter().for_each(|update| schema.assert_holds(update));
    // Whoever runs this has switched.
    let has_root = |of: &Value| {
        of["rows"].as_array().is_some_and(|rows| rows.iter().any(|row| row["name"] == "root"))
    };
    assert!(updates.iter().all(has_root), "{updates:?}");
}

#[test]
fn text_for_scripts_is_filtered_sorted_and_ends_with_a_signal() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let mut command = home.command(PROGRAM);
    command.args([
        "top",
        "--batch",
        "--interval",
        "60",
        "--by",
        "thread",
        "--filter",
        "switchcost",
    ]);
    let child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    wait_for("its handler", || catches_interrupts(child.id()).then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.err), (Some(130), ""));
    let mut lines = said.out.lines();
    assert!(lines.next().is_some_and(|line| line.contains("switches a second")), "{}", said.out);
    assert!(said.out.contains("\nthis tracer: "), "{}", said.out);
    // There is no profile in this home.
    assert!(said.out.contains("\ncost: no stored cost profile"), "{}", said.out);
    let rows = said.out.lines().skip_while(|line| !line.starts_with("name ")).skip(1);
    assert!(
        rows.filter(|line| !line.is_empty() && *line != "this program:")
            .all(|line| line.starts_with("switchcost")),
        "{}",
        said.out
    );
    assert!(said.out.lines().all(|line| line.len() <= 80), "{}", said.out);
}

#[test]
fn a_terminal_is_taken_and_given_back() {
    if !can_trace() || lacks([Need::Program("script")]) {
        return;
    }
    let line = format!("stty cols 120 rows 30; {PROGRAM} top --interval 0.1 --updates 2; stty -a");
    let home = Home::new();
    let mut command = home.command("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    let said = Said::of(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.out);
    let (enter, leave) = (said.out.find("\u{1b}[?1049h"), said.out.find("\u{1b}[?1049l"));
    assert!(enter.is_some() && enter < leave, "{}", said.out);
    assert!(
        said.out.contains("preempted by") && said.out.contains("\u{1b}[30;1Hq quit"),
        "{}",
        said.out
    );
    assert!(said.out.contains(" icanon") && said.out.contains(" echo "), "{}", said.out);
}

#[test]
fn it_ends_when_nobody_reads_any_longer() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let mut command = home.command(PROGRAM);
    command.args(["top", "--batch=json", "--interval", "0.1"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("a line");
    drop(out);
    let status = wait_for("its end", || child.try_wait().expect("a child"));
    assert_eq!((status.code(), line.ends_with('\n')), (Some(0), true));
}

#[test]
fn without_a_terminal_it_says_what_to_type() {
    let said = Home::new().run(&["top"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""));
    assert!(said.error().contains("--batch prints the updates"), "{}", said.err);
}
