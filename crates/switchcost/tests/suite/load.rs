//! Wake-ups under load by the real program: what is sent is received, exactly; what is compared; what
//! is refused; what a kill leaves.

use std::process::Child;

use serde_json::Value;
use testing::{Need, lacks, wait_for};

use crate::common::{Home, Said};

/// Measures so many rounds with these options.
fn measure(home: &Home, args: &[&str]) -> Said {
    let all = [&["response", "--only", "load", "--budget", "60s", "--json", "-"], args].concat();
    let said = home.run(&all);
    assert_eq!(said.code, Some(0), "{all:?}: {}", said.err);
    said
}

fn counts(record: &Value, case: usize) -> &Value {
    &record["cases"][case]["trial"]["counts"]
}

/// Number of values of a tally; 0 without it.
fn values(record: &Value, case: usize, tally: &str) -> i64 {
    record["cases"][case]["trial"]["quantities"][tally]["count"].as_i64().unwrap_or(0)
}

fn cases(record: &Value) -> Vec<&Value> {
    let cases = record["header"]["plan"]["cases"].as_array().expect("cases");
    cases.iter().map(|case| &case["trial"]["trial"]).collect()
}

#[test]
fn every_request_that_is_sent_is_received_and_every_wake_is_counted() {
    for kind in ["thread", "process"] {
        let home = Home::new();
        let said = measure(
            &home,
            &[
                "--rounds",
                "2",
                "--rate",
                "2000",
                "--think",
                "1us",
                "--wake",
                "futex,eventfd,pipe",
                "--workers",
                "3",
                "--messengers",
                "2",
                "--busy",
                "1",
                "--kind",
                kind,
            ],
        );
        let record = said.json();
        assert_eq!(cases(&record).len(), 6, "the idle machine and a rate, three times");
        for case in 0..6 {
            let counted = counts(&record, case);
            let sent = counted["requests_sent"].as_i64().expect("a count");
            assert!(sent >= 2 * 3 * 4, "{counted}");
            assert_eq!(counted["requests_received"], sent, "{counted}");
            assert_eq!(values(&record, case, "request_ns"), sent, "{counted}");
            let wakes = values(&record, case, "wake_ns");
            assert!((1..=sent).contains(&wakes), "{wakes} of {sent}");
            // A worker that was woken had slept.
            assert!(counted["voluntary"].as_i64() >= Some(wakes), "{counted}");
            // Only futexes tell whom a wake woke.
            assert_eq!(counted["kernel_wakes_sent"], counted["kernel_wakes_received"], "{counted}");
            assert_eq!(counted["kernel_wakes_sent"].is_i64(), case < 2, "{counted}");
            let is_busy = cases(&record)[case]["busy_tasks"] == 1;
            assert_eq!(counted["busy_cpu_ns"].is_i64(), is_busy, "{counted}");
        }
        // 2,000 a second in 250 ms: 167 for each of three workers, in each of two rounds.
        assert_eq!(counts(&record, 1)["requests_sent"], 2 * 3 * 167);
        home.wait_until_alone();
    }
}

#[test]
fn work_takes_the_bytes_that_were_asked_for_and_every_place_serves() {
    let home = Home::new();
    let mut places = vec!["same", "free"];
    if !lacks([Need::TwoCpus]) {
        places.extend(["near", "far"]);
    }
    for place in places {
        let said =
            measure(&home, &["--rounds", "1", "--load", "5%", "--work", "64K", "--waker", place]);
        let record = said.json();
        let load = cases(&record)[1];
        assert_eq!((&load["place"], &load["work"]["bytes"]), (&place.into(), &65_536.into()));
        let counted = counts(&record, 1);
        assert_eq!(counted["requests_sent"], counted["requests_received"], "{counted}");
        assert!(counted["demand_ns"].as_i64() > Some(0), "{counted}");
        let both = [&load["worker_cpus"], &load["messenger_cpus"]];
        let is_pair = matches!(place, "near" | "far");
        assert_eq!(both[0] != both[1], is_pair, "{load}");
    }
}

#[test]
fn a_sweep_of_sleeps_has_a_case_each_and_no_idle_machine() {
    let said = measure(&Home::new(), &["--rounds", "1", "--sleep", "100us,1ms,10ms"]);
    let record = said.json();
    let sleeps: Vec<&Value> = cases(&record).iter().map(|case| &case["arrivals"]).collect();
    let ns = [100_000, 1_000_000, 10_000_000].map(|ns| serde_json::json!({ "sleep_ns": ns }));
    assert_eq!(sleeps, ns.iter().collect::<Vec<_>>());
    let sent = [0, 1, 2].map(|case| counts(&record, case)["requests_sent"].as_i64());
    assert_eq!(sent, [Some(2500), Some(250), Some(25)]);
}

/// The part is not measured unless it is named: plans of earlier versions stay as they were.
#[test]
fn what_is_refused_says_why() {
    let home = Home::new();
    for (args, why) in [
        (&["--rate", "10"][..], "--only load"),
        (&["--only", "wakeup", "--busy", "1"], "--busy: only the part load has it"),
        (&["--only", "load", "--load", "500%"], "accepted: 0.1% to 400%"),
        (&["--only", "load", "--rate", "0"], "1000000"),
        (&["--only", "load", "--rate", "10", "--workers", "20"], "accepted: 20 to"),
        (&["--only", "load", "--messengers", "2"], "accepted: 1 to 1"),
        (&["--only", "load", "--workers", "257"], "256"),
        (&["--only", "load", "--think", "11ms"], "accepted: 0 to 10ms"),
        (&["--only", "load", "--think", "0"], "a load needs work"),
        (&["--only", "load", "--sleep", "999ns"], "accepted: 1us to 100ms"),
        (&["--only", "load", "--sleep", "1ms", "--load", "5%"], "cannot be used with"),
        (&["--only", "load", "--work", "8", "--think", "1us"], "cannot be used with"),
        (&["--only", "load", "--work", "7"], "accepted: 8 to 1024 MiB"),
        (&["--only", "load", "--wake", "signal"], "futex, eventfd, pipe"),
        (&["--only", "load", "--waker", "0"], "same, near, far, free"),
        (&["--only", "load", "--policy", "fifo"], "policies of their own"),
    ] {
        let said = home.run(&[&["response", "--rounds", "1"], args].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.err.replace("\n  ", " ").contains(why), "{args:?}: {}", said.err);
    }
    assert!(home.run_files().is_empty(), "nothing was measured");
}

/// Starts a run of a minute and waits until its busy tasks, workers and messengers are there.
fn start(home: &Home) -> Child {
    let args = [
        "response",
        "--only",
        "load",
        "--budget",
        "60s",
        "--kind",
        "process",
        "--workers",
        "3",
        "--busy",
        "2",
        "--rate",
        "1000",
    ];
    let child = home.start(&args);
    // The program, its worker, two busy tasks, three workers, a messenger.
    wait_for("all processes", || Some(()).filter(|()| home.processes().len() >= 8));
    child
}

#[test]
fn a_kill_leaves_nothing() {
    let home = Home::new();
    let mut child = start(&home);
    child.kill().expect("a living process");
    child.wait().expect("its end");
    home.wait_until_alone();
}

/// A member that is killed ends the case with its reason, not the run with a hang.
#[test]
fn a_member_that_is_killed_is_told() {
    let home = Home::new();
    let child = start(&home);
    let program = child.id() as i32;
    let said = wait_for("the failure", || {
        // Once more in each round: a member may have ended by itself when it is found.
        let all = home.processes();
        let worker = all.iter().find(|process| process.parent == program);
        if let Some(member) = all.iter().find(|one| Some(one.parent) == worker.map(|w| w.pid)) {
            member.kill();
        }
        let text = std::fs::read_to_string(home.run_files().pop()?).ok()?;
        text.contains("exited without output").then_some(text)
    });
    assert!(said.contains("busy task") || said.contains("worker or messenger"), "{said}");
    let mut child = child;
    child.kill().expect("a living process");
    child.wait().expect("its end");
    home.wait_until_alone();
}

#[test]
fn percentiles_are_compared_and_gated_by_their_names() {
    let home = Home::new();
    for name in ["before", "after"] {
        measure(&home, &["--rounds", "6", "--rate", "2000", "--name", name]);
    }
    for (cost, quantity) in [
        ("switch", "wake_p50_ns"),
        ("p99", "wake_p99_ns"),
        ("request-p50", "request_p50_ns"),
        ("request-p99", "request_p99_ns"),
    ] {
        // Nothing is ten times as slow: decided or not, it is not a failure.
        let args = [
            "compare",
            "before",
            "after",
            "--cost",
            cost,
            "--fail-above",
            "99%",
            "--allow-undecided",
            "--json",
            "-",
        ];
        let said = home.run(&args);
        assert!(matches!(said.code, Some(0 | 1)), "{}", said.err);
        let comparison = said.json();
        let changes = comparison["changes"].as_array().expect("changes");
        // The idle machine and the rate.
        assert_eq!(changes.len(), 2, "{comparison}");
        for change in changes {
            assert_eq!(change["of"], quantity, "{change}");
            assert!(change["ratio"]["value"].is_number(), "{change}");
            assert_ne!(change["answer"]["reason"], "no_full_speed", "{change}");
        }
    }
}
