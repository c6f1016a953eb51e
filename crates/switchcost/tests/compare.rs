//! Comparisons: of stored runs, with published figures, and of two settings in one session.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::schema::Schema;
use common::{Home, Said, allowed_cpus, has, lines_of, skip};
use serde_json::Value;

/// A run of two rings and their solo, 6 rounds.
const RUN: &str = include_str!("../../model/tests/fixtures/run-v1.jsonl");

/// That run with every sample so many hundredths longer, in a file of the home.
fn run_at(home: &Home, percent: u64) -> String {
    changed(home, &format!("run-{percent}.jsonl"), |line| {
        if let Some(elapsed) = line.pointer_mut("/sample/elapsed_ns") {
            *elapsed = (elapsed.as_u64().expect("a time") * percent / 100).into();
        }
    })
}

fn changed(home: &Home, name: &str, change: impl Fn(&mut Value)) -> String {
    let line = |text: &str| {
        let mut line: Value = serde_json::from_str(text).expect("a line of JSON");
        change(&mut line);
        format!("{line}\n")
    };
    let path = home.path().join(name);
    fs::write(&path, RUN.lines().map(line).collect::<String>()).expect("a file");
    path.display().to_string()
}

fn compared(home: &Home, args: &[&str]) -> Said {
    home.run(&[&["compare"], args].concat())
}

fn json(said: &Said) -> Value {
    assert!(said.code == Some(0) || said.code == Some(1), "{}", said.err);
    let value = said.json();
    Schema::of("comparison.schema.json").assert_holds(&value);
    value
}

fn answers(found: &Value) -> Vec<&str> {
    let changes = found["changes"].as_array().expect("changes");
    changes.iter().map(|change| change["answer"].as_str().expect("an answer")).collect()
}

#[test]
fn only_dearer_beyond_the_limit_and_only_with_a_gate_is_exit_1() {
    let home = Home::new();
    let (base, slow) = (run_at(&home, 100), run_at(&home, 300));
    for (args, code) in [
        (&[&*base, &*slow][..], 0),
        (&[&*base, &*slow, "--fail-above", "3%"], 1),
        (&[&*base, &*slow, "--fail-above", "3%", "--quiet"], 1),
        (&[&*slow, &*base, "--fail-above", "3%"], 0),
        (&[&*base, &*base, "--fail-above", "3%"], 0),
        (&[&*base, "nonesuch", "--fail-above", "3%"], 2),
        (&[&*base, "history:nonesuch"], 2),
        // No interval, so nothing that a gate could go by.
        (&["history:sun-4/280", "history:sun-4/280"], 0),
        (&["history:sun-4/280", "history:sun-4/280", "--fail-above", "3%"], 2),
        (&[&*base], 2),
        (&[&*base, &*slow, "--fail-above", "0%"], 2),
        (&[&*base, &*slow, "--csv", "-"], 2),
    ] {
        let said = compared(&home, args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
    }
    let quiet = compared(&home, &[&base, &slow, "--quiet"]);
    assert_eq!((&*quiet.out, &*quiet.err), ("", ""));
}

#[test]
fn the_record_follows_its_schema_and_says_what_the_table_says() {
    let home = Home::new();
    let (base, slow) = (run_at(&home, 100), run_at(&home, 300));
    let found = json(&compared(&home, &[&base, &slow, "--json", "-"]));
    assert_eq!(answers(&found), ["changed"; 3]);
    assert_eq!(found["changes"][0]["ratio"]["value"], 3.0);
    assert_eq!(found["changes"][1]["of"], "ns_per_switch_above_solo");
    let table = compared(&home, &[&base, &slow]);
    assert!(table.out.contains("of 3 cases: 3 dearer (3 beyond 3 %)"), "{}", table.out);
    assert_eq!(table.out.matches("dearer  !").count(), 3, "{}", table.out);
    // The same runs, the same answer.
    assert_eq!(compared(&home, &[&base, &slow]).out, table.out);
    let hop = json(&compared(&home, &[&base, &slow, "--cost", "hop", "--json", "-"]));
    assert_eq!(hop["changes"][1]["of"], "ns_per_hop");
}

#[test]
fn machines_that_differ_are_listed_first_and_warned_of() {
    let home = Home::new();
    let base = run_at(&home, 100);
    let other = changed(&home, "other.jsonl", |line| {
        if let Some(machine) = line.pointer_mut("/header/machine") {
            machine["kernel"]["release"] = "2.4.20".into();
            machine["cpu"]["models"][0]["name"] = "another".into();
        }
    });
    let said = compared(&home, &[&base, &other]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let place =
        |word: &str| said.out.find(word).unwrap_or_else(|| panic!("no {word}: {}", said.out));
    assert!(place("differs: cpu.models[0].name") < place("differs: kernel.release"));
    assert!(place("differs: kernel.release") < place("warning: not fair"));
    assert!(place("warning: not fair") < place("new/base"));
}

#[test]
fn what_is_in_one_run_only_is_listed_and_nothing_in_common_is_no_comparison() {
    let home = Home::new();
    let base = run_at(&home, 100);
    let move_to = |link: &'static str, from: usize| {
        changed(&home, &format!("{link}{from}.jsonl"), move |line| {
            let cases = line.pointer_mut("/header/plan/cases").and_then(Value::as_array_mut);
            for case in cases.into_iter().flatten().skip(from) {
                case["link"] = link.into();
            }
        })
    };
    let said = compared(&home, &[&base, &move_to("futex", 2)]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("not compared: ring of 4 by futex (in new only, "), "{}", said.out);
    assert!(said.out.contains("not compared: ring of 4 (in base only, "), "{}", said.out);
    let none = compared(&home, &[&base, &move_to("futex", 0), "--fail-above", "1%"]);
    assert_eq!(none.code, Some(2), "{}", none.err);
    assert!(none.error().contains("nothing was compared"), "{}", none.err);
}

#[test]
fn published_machines_are_listed_and_compared() {
    let home = Home::new();
    let list = home.run(&["history"]);
    assert_eq!((list.code, &*list.err), (Some(0), ""));
    for name in ["80186", "sun-4/280", "rs6000/530-aix-3.1", "pentium-pro/166", "xeon-2.0"] {
        let row = list.out.lines().any(|line| line.starts_with(&format!("{name} ")));
        assert!(row, "no {name} in {}", list.out);
    }
    let all = home.run(&["history", "--json", "-"]).json();
    assert_eq!(all.as_array().map(Vec::len), Some(14));
    Schema::of("history.schema.json").assert_holds(&all);
    let one = home.run(&["history", "Sun-4/280"]);
    assert!(one.out.contains("647 us"), "{}", one.out);
    let several = home.run(&["history", "sun"]);
    assert_eq!(several.code, Some(2), "{several:?}");
    assert!(several.error().contains("the start of several names"), "{}", several.err);

    let base = run_at(&home, 100);
    let said = compared(&home, &["history:sun-4/280", &base]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("a published figure has no interval"), "{}", said.out);
    let found = json(&compared(&home, &["history:sun-4/280", &base, "--json", "-"]));
    assert_eq!(answers(&found), ["changed"; 2]);
    assert_eq!(found["changes"][0]["base_rounds"], Value::Null);
    assert_eq!(found["base"]["origin"]["from"], "publication");
}

/// A session of few laps: counts, not times.
const SESSION: [&str; 8] = ["--members", "2", "--rounds", "6", "--laps", "200", "--budget", "60s"];

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
    assert_eq!((&found["paired"], answers(&found).len()), (&Value::Bool(true), 2));
    let files = home.run_files();
    let [a, b] = &files[..] else { panic!("{files:?}") };
    let (one, other) = (header(a), header(b));
    assert_eq!((&one["session"]["arm"], &other["session"]["arm"]), (&"A".into(), &"B".into()));
    assert_eq!(one["session"]["id"], other["session"]["id"]);
    assert_eq!(
        (&one["session"]["other"], &other["session"]["other"]),
        (&other["run"], &one["run"])
    );
    assert_eq!(other["session"]["prefix"], serde_json::json!(["env", "SWITCHCOST_SIDE=b"]));
    // Every round has every case of both.
    let cases = |file: &PathBuf| common::order_of(file);
    assert_eq!((cases(a).len(), cases(b).len()), (12, 12));
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
    let cpus = allowed_cpus();
    let (Some(first), Some(last)) = (cpus.first(), cpus.last()) else { return };
    if cpus.len() < 2 || !has("taskset") || !has("chrt") {
        return skip("two CPUs, taskset and chrt are needed");
    }
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
        ("sh -c '\"$0\" \"$@\"; true'", "as a child of its own"),
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
    let args = ["compare", "--ab", prefix, prefix, "--members", "2", "--budget", "60s"];
    let mut child = home.start(&args);
    home.wait_for_sample();
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
    home.wait_until_alone();
}

#[test]
fn flags_of_rings_are_for_sessions_only() {
    let home = Home::new();
    let base = run_at(&home, 100);
    for flags in [&["--members", "2"][..], &["--budget", "1s"], &["--policy", "batch"]] {
        let said = compared(&home, &[&[&*base, &*base], flags].concat());
        assert_eq!(said.code, Some(2), "{flags:?}: {said:?}");
        assert!(said.err.contains("--ab"), "{}", said.err);
    }
    let both = compared(&home, &[&base, &base, "--ab", "", ""]);
    assert_eq!(both.code, Some(2), "{both:?}");
}
