//! `switchcost response`: every part counted, and what is computed from parts computed within
//! rounds.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::common::schema::Schema;
use crate::common::stored::Kept;
use crate::common::{Home, Process, Row, Rows, Said, lines_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::{Need, skip, wait_for};

const SYSTEM_CALLS: [&str; 8] = [
    "getuid",
    "getppid",
    "read",
    "write",
    "clock-gettime-vdso",
    "clock-gettime",
    "futex-wake",
    "sched-yield",
];
/// The memorandum's loops in a round, with the warm-up.
const LOOPS: u64 = 10_100;
const LOOPS_OF_TWO: u64 = 2_100;

fn response(home: &Home, args: &[&str]) -> Said {
    let said = home.run(&[&["response"], args].concat());
    assert_eq!((said.code, &*said.err), (Some(0), ""), "{args:?}: {}", said.err);
    said
}

fn record(home: &Home) -> Value {
    home.run(&["runs", "export", "last"]).json()
}

/// Counts of each trial, by what is tried.
fn counts(record: &Value) -> BTreeMap<String, Value> {
    let trials = record["cases"].as_array().expect("cases").iter().filter_map(|c| c.get("trial"));
    let named = |trial: &Value| {
        let tried = &trial["case"]["trial"];
        let name = tried["call"].as_str().or(tried["of"].as_str()).expect("a name").to_string();
        (name, trial["counts"].clone())
    };
    trials.map(named).collect()
}

fn assert_sound(record: &Value, lines: &[Value]) {
    Schema::of("record").assert_holds(record);
    let schema = Schema::of("run-line");
    lines.iter().for_each(|line| schema.assert_holds(line));
}

/// One round of every part, measured once for all tests that read it.
fn measured() -> &'static Kept {
    static MEASURED: OnceLock<Kept> = OnceLock::new();
    MEASURED.get_or_init(|| {
        Kept::of(|home, csv| {
            // The first round is finished, whatever the budget.
            response(home, &["--budget", "1ms", "--verbose", "--history", "--csv", csv])
        })
    })
}

#[test]
fn by_default_every_part_is_measured_in_one_run() {
    let Kept { said, lines, record, shown, shown_briefly: short, list, .. } = measured();
    assert_sound(record, lines);
    for section in [
        "system calls",
        "signals, as the memorandum of 1984 has them",
        "links",
        "interrupts",
        "wake-up",
        "response budget",
    ] {
        assert_eq!(said.out.lines().filter(|line| *line == section).count(), 1, "{}", said.out);
    }
    let cases = record["cases"].as_array().expect("cases");
    for case in cases.iter().flat_map(|case| case.as_object().expect("ring or trial").values()) {
        assert_eq!((&case["rounds"], &case["failure"]), (&1.into(), &Value::Null), "{case}");
    }
    let counts = counts(record);
    let calls = SYSTEM_CALLS.iter().chain(&["sigaction", "signal-self"]);
    for call in calls {
        assert_eq!(counts[*call]["calls"], LOOPS, "{call}");
    }
    let links = record["links"].as_array().expect("links");
    let trials = cases.iter().filter(|case| case.get("trial").is_some()).count();
    assert_eq!(cases.len(), trials + 2 * links.len());
    assert!(trials >= counts.len(), "{trials}");
    // The 80186's switch; how many times ours it is follows where ours, of one round, is above
    // zero.
    let switch = said.out.lines().find(|line| line.trim_start().starts_with("context switch"));
    assert!(switch.is_some_and(|line| line.contains(" 1.5 ")), "{}", said.out);
    assert!(said.out.contains("80186 (8 MHz)"), "{}", said.out);
    assert_eq!(*shown, said.out);
    assert!(short.lines().count() < said.out.lines().count() / 3, "{short}");
    assert!(!short.contains("80186"), "{short}");
    let first = said.out.split("\n\n").next().unwrap_or_default().replace("\n  ", " ");
    for words in ["getuid takes ", ", a signal to oneself ", "; a timer on an idle CPU wakes "] {
        assert!(first.contains(words), "no {words:?} in {first}");
    }
    assert!(list.contains(" response ") && list.contains(" getuid"), "{list}");
}

#[test]
fn every_call_enters_the_kernel_once_and_every_signal_is_caught_once() {
    let home = Home::new();
    response(&home, &["--only", "system-calls,signals", "--rounds", "1"]);
    let record = record(&home);
    assert_sound(&record, &lines_of(&home.run_file()));
    let counts = counts(&record);
    assert_eq!(counts.len(), SYSTEM_CALLS.len() + 3);
    assert_eq!(counts["signal-self"]["caught"], LOOPS);
    assert_eq!(counts["two_processes"]["calls"], LOOPS_OF_TWO);
    assert_eq!(counts["two_processes"]["caught"], 2 * LOOPS_OF_TWO);
    // On one CPU each signal is answered by a process that had to be switched to.
    let switches = counts["two_processes"]["loop_switches"].as_u64().expect("a count");
    assert!(switches >= 2 * (LOOPS_OF_TWO - 30), "{switches} switches");
    if counts["getuid"].get("kernel_entries").is_none() {
        return skip(Need::Ptrace, "entries into the kernel are not counted");
    }
    for (call, counts) in &counts {
        let entries = match &**call {
            // By its count it is told whether this machine's clock can be read without the kernel.
            "clock-gettime-vdso" | "two_processes" => continue,
            "signal-self" => 3,
            _ => 1,
        };
        assert_eq!(counts["entered_calls"], 100, "{call}");
        assert_eq!(counts["kernel_entries"], 100 * entries, "{call}");
    }
}

#[test]
fn the_formulas_are_those_of_the_memorandum() {
    let home = Home::new();
    // In one round there is one figure of each, so that they must fit.
    let said = response(&home, &["--only", "signals", "--rounds", "1", "--verbose"]);
    let record = record(&home);
    let of = |name: &str| record["signals"][name]["value"].as_f64().expect("a figure");
    let fits = |figure: f64, expected: f64| (figure - expected).abs() < 1e-6 * expected.abs();
    let (call, signal, two) = (of("system_call_ns"), of("signal_ns"), of("two_process_loop_ns"));
    assert!(fits(of("interrupt_latency_ns"), call / 4.0));
    // What is made of a figure of clean slices and of one of all is of all slices.
    let speed = |name: &str| record["signals"][name]["speed"].as_str().expect("a speed");
    if speed("system_call_ns") == speed("signal_ns") {
        assert!(fits(of("kernel_processing_ns"), signal - 3.0 * call));
    }
    if speed("two_process_loop_ns") == speed("signal_ns") {
        assert!(fits(of("context_switch_ns"), (two - 2.0 * signal) / 2.0));
    }
    // Its system call is measured and shown, but no other: that part was not asked for.
    assert_eq!(counts(&record).len(), 4);
    assert!(said.out.contains("getuid") && !said.out.contains("getppid"), "{}", said.out);
    assert!(!said.out.lines().any(|line| line == "links"), "{}", said.out);
    // One round is an answer: with the interval that it leaves, or as one where nothing judges it.
    let is_judged = speed("signal_ns") != "not_judged";
    assert_eq!(record["signals"]["signal_ns"]["low"].is_number(), is_judged);
}

#[test]
fn rows_of_rings_and_of_trials_share_one_file() {
    let Kept { csv, record, .. } = measured();
    let rows = Rows::parse(csv);
    let ring = "experiment,case,round,sample,members,kind,link,work_bytes,stride_bytes,op,\
                placement,policy,hops,elapsed_ns,user_ns,system_ns,voluntary,involuntary,\
                migrations,minor_faults,major_faults,steal_ns";
    assert_eq!(rows.columns[..22].join(","), ring);
    let of_ring = |row: &Row| !row.text("members").is_empty();
    let mut seen = BTreeMap::new();
    for row in &rows.rows {
        let case = &record["cases"][row.number("case") as usize];
        assert_eq!(of_ring(row), case.get("ring").is_some(), "{row:?}");
        assert_eq!(row.text("experiment"), "response");
        match of_ring(row) {
            true => {
                assert_eq!(row.text("link"), case["ring"]["case"]["link"].as_str().unwrap_or("?"));
                assert!(row.number("hops") > 0 && row.text("quantity").is_empty());
            }
            false => {
                assert!(row.text("hops").is_empty() && row.text("voluntary").is_empty());
                assert!(!row.text("quantity").is_empty() && !row.text("call").is_empty());
                // Wake-ups are told apart by what the sleeper and its CPU are.
                let columns = ["call", "policy", "load", "timer_slack_ns", "cpu_latency_us"];
                let call = columns.map(|column| row.text(column)).join(" ");
                let key = (call, row.text("quantity").to_string());
                assert_eq!(seen.insert(key, row.text("total").to_string()), None, "{row:?}");
            }
        }
    }
    let total = |call: &str, of: &str| {
        let key = seen.keys().find(|key| key.0.starts_with(call) && key.1 == of);
        seen[key.expect("a row of it")].clone()
    };
    assert_eq!(total("signal-self", "caught"), format!("{LOOPS}.0"));
    assert_eq!(total("two-processes", "caught"), format!("{}.0", 2 * LOOPS_OF_TWO));
    let cases: std::collections::BTreeSet<u64> =
        rows.rows.iter().map(|row| row.number("case")).collect();
    assert_eq!(Some(cases.len()), record["cases"].as_array().map(Vec::len), "every case has rows");
}

#[test]
fn a_part_alone_and_a_run_resumed() {
    let home = Home::new();
    let said = response(&home, &["--only", "system-calls", "--rounds", "1", "--verbose"]);
    assert!(said.out.contains("system calls\n") && !said.out.contains("links\n"), "{}", said.out);
    assert!(said.out.starts_with("getuid takes "), "{}", said.out);
    let said = home.run(&["runs", "resume", "last", "--rounds", "1", "--budget", "60s"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = record(&home);
    assert_eq!(record["signals"], Value::Null);
    assert_eq!(record["cases"].as_array().map(Vec::len), Some(SYSTEM_CALLS.len()));
    for case in record["cases"].as_array().expect("cases") {
        assert_eq!(case["trial"]["rounds"], 2, "{case}");
    }
}

#[test]
fn an_interrupted_run_says_what_it_has_and_leaves_no_process() {
    let home = Home::new();
    let child = home.start(&["response", "--budget", "10m"]);
    home.wait_for_sample();
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it runs");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(said.out.contains("stopped: interrupted"), "{}", said.out);
    home.wait_until_alone();
    let last = lines_of(&home.run_file()).pop().expect("a line");
    assert_eq!(last["end"]["reason"], "interrupted");
}

#[test]
fn killed_at_any_moment_it_leaves_no_process() {
    for part in ["signals", "links", "wakeup"] {
        let home = Home::new();
        let mut child = home.start(&["response", "--only", part, "--budget", "10m"]);
        home.wait_for_sample();
        // A worker and its second process.
        wait_for("two processes beside it", || (home.processes().len() >= 3).then_some(()));
        child.kill().expect("the controller is killed");
        child.wait().expect("the controller has ended");
        home.wait_until_alone();
    }
}

/// A worker's second process.
fn second_process(home: &Home, program: u32) -> Option<Process> {
    let all = home.processes();
    let worker = all.iter().find(|process| process.parent == program as i32)?;
    all.iter().find(|process| process.parent == worker.pid).copied()
}

#[test]
fn a_second_process_that_is_killed_is_named_and_what_needs_none_goes_on() {
    for (part, rounds, named) in [("signals", 2, "second process"), ("wakeup", 1, "busy companion")]
    {
        // One that is not seen in time is looked for again.
        let said = (0..40).find_map(|_| said_without_a_second_process(part, rounds));
        let said = said.expect("a second process");
        assert!(said.err.contains(named), "{part}: {}", said.err);
        assert_eq!(said.code, Some(1), "{part}: {}", said.err);
        let record = said.json();
        let cases = record["cases"].as_array().expect("cases");
        assert!(cases.iter().any(|case| case["trial"]["rounds"] == rounds), "{part}: {}", said.err);
    }
}

/// What is said if every second process that is seen is killed; none if all samples were there
/// before.
fn said_without_a_second_process(part: &str, rounds: u32) -> Option<Said> {
    let (home, rounds) = (Home::new(), rounds.to_string());
    let args = ["response", "--only", part, "--rounds", &rounds, "--json", "-"];
    let mut child = home.start(&args);
    wait_for("the end", || {
        second_process(&home, child.id()).iter().for_each(Process::kill);
        child.try_wait().expect("it is our child")
    });
    home.wait_until_alone();
    Some(Said::at_end(child)).filter(|said| said.code != Some(0))
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let home = Home::new();
    for (args, words) in [
        (&["--only", "sundial"][..], "sundial"),
        (&["--only", ""], "--only"),
        (&["--only", "signals,"], "--only"),
        (
            &["--only", "wakeup", "--busy-policy", "fifo"],
            "--busy-policy fifo: only the part interrupts",
        ),
        (&["--cpu", "4095"], "--cpu: CPU 4095"),
        (&["--cpu", "-1"], "-1"),
        (&["--budget", "0s"], "0s"),
        (&["--precision", "0%"], "0%"),
        (&["--json", "-", "--csv", "-"], "only one"),
        (&["links"], "links"),
    ] {
        let said = home.run(&[&["response"], args].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: no {words:?} in {}", said.err);
    }
    assert!(home.run_files().is_empty());
}
