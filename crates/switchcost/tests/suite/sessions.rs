//! `compare --ab`: two settings measured in one session.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::common::schema::Schema;
use crate::common::{Home, Said, allowed_cpus, lines_of, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::{Need, lacks, skip};

fn compared(home: &Home, args: &[&str]) -> Said {
    home.run(&[&["compare"], args].concat())
}

fn json(said: &Said) -> Value {
    assert!(said.code == Some(0), "{}", said.err);
    let value = said.json();
    Schema::of("comparison").assert_holds(&value);
    value
}

/// A session of few rounds and laps: counts, not times.
const SESSION: [&str; 8] = ["--members", "2", "--rounds", "2", "--laps", "50", "--budget", "600s"];

/// More precise than it can be: it goes on until it is ended.
const LONG: [&str; 6] = ["--members", "2", "--budget", "600s", "--precision", "0.01%"];

fn session(home: &Home, a: &str, b: &str, more: &[&str]) -> Said {
    compared(home, &[&["--ab", a, b], &SESSION[..], more].concat())
}

fn header(file: &Path) -> Value {
    lines_of(file)[0]["header"].clone()
}

#[test]
fn a_session_is_two_runs_that_know_of_each_other() {
    let home = Home::new();
    let said = session(&home, "", "env SWITCHCOST_SIDE=b", &["--json", "-"]);
    let found = json(&said);
    assert_eq!(
        (&found["paired"], found["changes"].as_array().map(Vec::len)),
        (&Value::Bool(true), Some(2))
    );
    let files = home.run_files();
    let [a, b] = &files[..] else { panic!("{files:?}") };
    let (one, other) = (header(a), header(b));
    assert_eq!((&one["session"]["arm"], &other["session"]["arm"]), (&"A".into(), &"B".into()));
    assert_eq!(one["session"]["id"], other["session"]["id"]);
    assert_eq!(
        (&one["session"]["other"], &other["session"]["other"]),
        (&other["run"], &one["run"])
    );
    assert_eq!(other["session"]["prefix"][0], "env");
    // Every round has every case of both.
    let cases = |file: &PathBuf| crate::common::order_of(file);
    assert_eq!((cases(a).len(), cases(b).len()), (4, 4));
    // Stored, it is compared as it was, and by rounds.
    let names = [one["run"].as_str().unwrap_or(""), other["run"].as_str().unwrap_or("")];
    let again = json(&compared(&home, &[names[0], names[1], "--json", "-"]));
    assert_eq!(again["changes"], found["changes"]);
    // Each half is a run like any other, but for going on.
    assert_eq!(home.run(&["runs", "show", names[0]]).code, Some(0));
    let resumed = home.run(&["runs", "resume", names[0], "--rounds", "1"]);
    assert_eq!(resumed.code, Some(2), "{resumed:?}");
    assert!(resumed.error().contains("one half of a session"), "{}", resumed.err);
    home.wait_until_alone();
}

#[test]
fn what_a_prefix_sets_is_what_its_rings_have() {
    if lacks([Need::TwoCpus, Need::Program("taskset"), Need::Program("chrt")]) {
        return;
    }
    let cpus = allowed_cpus();
    let (first, last) = (&cpus[0], &cpus[cpus.len() - 1]);
    let home = Home::new();
    let on = |cpu: &u32| format!("taskset -c {cpu}");
    let said = session(&home, &on(first), &format!("{} chrt -b 0", on(last)), &[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let files = home.run_files();
    let case = |file: &PathBuf| header(file)["plan"]["cases"][0].clone();
    let (a, b) = (case(&files[0]), case(&files[1]));
    assert_eq!((&a["placement"]["cpu"], &a["policy"]), (&(*first).into(), &"other".into()));
    assert_eq!((&b["placement"]["cpu"], &b["policy"]), (&(*last).into(), &"batch".into()));
    // Samples say where they ran: nobody moved.
    for file in &files {
        for line in lines_of(file) {
            if let Some(moved) = line.pointer("/sample/counters/migrations") {
                assert_eq!(moved, 0, "{line}");
            }
        }
    }
}

#[test]
fn a_prefix_that_does_not_become_the_worker_is_refused() {
    for (prefix, words) in [
        ("sh -c '\"$0\" \"$@\"; true'", "as a child instead"),
        ("true", "did not start the worker"),
        ("/nonesuch/prefix", "cannot be started"),
        ("'", "words as a shell splits them"),
    ] {
        for at in [0, 1] {
            let home = Home::new();
            let mut both = ["", ""];
            both[at] = prefix;
            let said = session(&home, both[0], both[1], &[]);
            assert_eq!((said.code, &*said.out), (Some(2), ""), "{prefix}: {said:?}");
            let error = said.error();
            assert!(error.contains(words) && error.contains(["A", "B"][at]), "{prefix}: {error}");
            assert_eq!(home.run_files().len(), 0, "{prefix} left a run file");
        }
    }
}

#[test]
fn a_worker_behind_a_prefix_goes_with_the_program() {
    let home = Home::new();
    let prefix = "env SWITCHCOST_SIDE=a";
    let args = ["compare", "--ab", prefix, prefix];
    let mut child = home.start(&[&args[..], &LONG].concat());
    home.wait_for_sample();
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
    home.wait_until_alone();
}

/// Ctrl-C comes to the program alone.
fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::INT).expect("the program is there");
}

/// Starts something that holds the worker's output, and becomes the worker.
const LEAVES_A_CHILD: &str = "sh -c 'sleep 100 & exec \"$0\" \"$@\"'";

#[test]
fn what_a_prefix_leaves_running_holds_nobody_up_and_ends_with_its_worker() {
    let home = Home::new();
    let said = session(&home, LEAVES_A_CHILD, "", &["--json", "-"]);
    assert_eq!(json(&said)["changes"].as_array().map(Vec::len), Some(2));
    home.wait_until_alone();
    let refused = session(&home, "sh -c 'sleep 100 & \"$0\" \"$@\"; true'", "", &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.error().contains("as a child instead"), "{}", refused.err);
    home.wait_until_alone();
}

#[test]
fn an_interrupt_ends_what_a_prefix_has_started() {
    let home = Home::new();
    let args = ["compare", "--ab", LEAVES_A_CHILD, LEAVES_A_CHILD, "--laps", "2000"];
    let child = home.start(&[&args[..], &LONG].concat());
    home.wait_for_sample();
    interrupt(&child);
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(130), "{said:?}");
    home.wait_until_alone();
}

#[test]
fn an_interrupt_before_the_first_round_is_an_interrupt() {
    let home = Home::new();
    let child = home.start(&["compare", "--ab", "", "sh -c 'sleep 100; true'", "--members", "2"]);
    let program = child.id() as i32;
    wait_for("a prefix that does not become the worker", || {
        home.processes().into_iter().find(|process| {
            let words = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            process.pid != program && words.starts_with(b"sleep")
        })
    });
    interrupt(&child);
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.out), (Some(130), ""), "{said:?}");
    assert!(!said.err.contains("error:"), "{}", said.err);
    home.wait_until_alone();
    assert_eq!(home.run_files().len(), 0);
}

/// The program itself moves out of the way of what it measures; a prefix is started as it was.
#[test]
fn a_prefix_finds_the_cpus_that_the_program_was_given() {
    let home = Home::new();
    let seen = home.path().join("seen");
    let prefix = format!(
        "sh -c 'grep Cpus_allowed_list /proc/self/status >> {}; exec \"$0\" \"$@\"'",
        seen.display()
    );
    let said = session(&home, &prefix, &prefix, &[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let own = fs::read_to_string("/proc/self/status").expect("a status");
    let own = own.lines().find(|line| line.starts_with("Cpus_allowed_list")).expect("a list");
    let seen = fs::read_to_string(seen).expect("what it saw");
    // Looked at twice and measured in two rounds of a ring and its solo, on either side.
    assert_eq!(seen.lines().count(), 2 * (2 + 2 * 2), "{seen}");
    assert!(seen.lines().all(|line| line == own), "{own}: {seen}");
}

#[test]
fn the_program_makes_way_for_the_workers_of_both_sides() {
    if lacks([Need::TwoCpus, Need::Program("taskset")]) {
        return;
    }
    let cpus = allowed_cpus();
    let home = Home::new();
    let [a, b] = [0, 1].map(|at| format!("taskset -c {}", cpus[at]));
    let args = ["compare", "--ab", &a, &b, "--laps", "20000"];
    let mut child = home.start(&[&args[..], &LONG].concat());
    for cpu in &cpus[..2] {
        let program = wait_for("a worker on that CPU", || {
            let worker = home.wait_for_worker(&mut child, 2).expect("a run that goes on");
            let is_there = worker.cpus() == Some(cpu.to_string());
            let program = home.processes().into_iter().find(|p| p.pid == child.id() as i32)?;
            let program = program.cpus()?;
            // Still the same worker: what was read in between belongs together.
            (is_there && home.processes().contains(&worker)).then_some(program)
        });
        assert!(!listed(&program).contains(cpu), "the program may run on {program}, beside {cpu}");
    }
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
    home.wait_until_alone();
}

/// `0-2,5` as numbers.
fn listed(cpus: &str) -> Vec<u32> {
    let number = |text: &str| text.parse::<u32>().expect("a CPU");
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(part)..=number(part),
    };
    cpus.split(',').flat_map(range).collect()
}

#[test]
fn a_policy_that_was_typed_is_not_undone_by_a_prefix_nor_the_other_way_round() {
    if lacks([Need::Program("chrt")]) {
        return;
    }
    for (prefix, policy, set) in [
        ("chrt -o 0", "batch", "other"),
        ("chrt -b 0", "other", "batch"),
        ("chrt -o 0", "fifo", "other"),
    ] {
        let home = Home::new();
        let said = session(&home, "", prefix, &["--policy", policy]);
        if said.err.contains("CAP_SYS_NICE") {
            skip(Need::RealTime, format!("policy {policy} is refused here"));
            continue;
        }
        assert_eq!(said.code, Some(2), "{prefix}, {policy}: {said:?}");
        let words = format!("it sets policy {set}, and --policy {policy} would undo it");
        assert!(said.error().contains(&words), "{}", said.err);
        assert_eq!(home.run_files().len(), 0);
    }
    for (prefix, policy, expected) in [
        ("chrt -o 0", &[][..], ["other", "other"]),
        ("chrt -b 0", &["--policy", "batch"], ["batch", "batch"]),
        ("env X=1", &["--policy", "batch"], ["batch", "batch"]),
    ] {
        let home = Home::new();
        let said = session(&home, "", prefix, policy);
        assert_eq!(said.code, Some(0), "{prefix}, {policy:?}: {said:?}");
        let files = home.run_files();
        let policy_of = |file: &Path| header(file)["plan"]["cases"][0]["policy"].clone();
        assert_eq!([&files[0], &files[1]].map(|f| policy_of(f)), expected, "{prefix}, {policy:?}");
    }
}

#[test]
fn a_case_that_fails_behind_the_new_prefix_does_not_pass_the_gate() {
    let home = Home::new();
    let few = "sh -c 'ulimit -n 60; exec \"$0\" \"$@\"'";
    let args = ["--ab", "", few, "--kind", "thread", "--members", "2,64", "--rounds", "2"];
    let more = ["--laps", "9", "--budget", "600s", "--fail-above", "99%", "--cost", "hop"];
    let said = compared(&home, &[&args[..], &more].concat());
    // 1 if the rest has doubled meanwhile, 3 if it was not measured at full speed: this test is
    // about neither.
    assert!(matches!(said.code, Some(1..=3)), "{said:?}");
    assert!(said.err.contains("B: ring of 64"), "{}", said.err);
    home.wait_until_alone();
}
