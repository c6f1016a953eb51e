//! `switchcost sensitivity`: what runs beside what, what is counted, and what is said of it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testing::{Need, wait_for};

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Process, Said, lines_of};

/// Some milliseconds of work, of a shell alone.
const WORK: [&str; 3] = ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"];
/// Work that goes on until it is killed, and tells how far it is by a file that grows.
const LINES: &str =
    "while :; do i=0; while [ $i -lt 500 ]; do i=$((i+1)); done; echo >> lines; done";

fn sensitivity(home: &Home, args: &[&str]) -> Said {
    let said = home.run(&[&["sensitivity", "--budget", "600s"], args].concat());
    assert_eq!((said.code, &*said.err), (Some(0), ""), "{args:?}: {}", said.err);
    said
}

fn record(home: &Home) -> Value {
    home.run(&["runs", "export", "last"]).json()
}

/// The cases of a record: what was tried, and the counts.
fn cases(record: &Value) -> Vec<(Value, Value)> {
    let all = record["cases"].as_array().expect("cases").iter();
    all.map(|case| (case["case"]["trial"].clone(), case["counts"].clone())).collect()
}

/// A process that works in the home until the test ends.
struct Worker(Child);

impl Worker {
    fn start(home: &Home) -> Self {
        let mut shell = home.command("sh");
        let shell = shell.args(["-c", LINES]).current_dir(home.path());
        let worker = Self(shell.stdout(Stdio::null()).spawn().expect("a shell"));
        let lines = home.path().join("lines");
        wait_for("a line", || fs::metadata(&lines).ok().filter(|file| file.len() > 0));
        worker
    }

    fn process(&self, home: &Home) -> Process {
        let pid = self.0.id() as i32;
        home.processes().into_iter().find(|of| of.pid == pid).expect("the worker")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The worker needs them, and nobody else.
#[test]
fn the_words_of_the_command_are_in_no_file() {
    let home = Home::new();
    let quick = "sensitivity --budget 600s --neighbour 0 --rate 1000 --rounds 1 --json - --";
    let quick: Vec<&str> = quick.split(' ').collect();
    let said = home.run(&[&quick[..], &["sh", "-c", WORK[2], "hunter2"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let file = home.run_file();
    let text = fs::read_to_string(&file).expect("a file");
    assert!(!text.contains("hunter2") && !said.out.contains("hunter2"), "{text}");
    assert!(!said.err.contains("hunter2"), "{}", said.err);
    assert!(text.contains("\"words:"), "{text}");
    let resumed = home.run(&["runs", "resume", "last"]);
    assert_eq!(resumed.code, Some(2), "{resumed:?}");
    assert!(resumed.error().contains("words are not stored"), "{}", resumed.err);
}

#[test]
fn the_command_ignores_no_signal_that_its_caller_does_not() {
    let home = Home::new();
    let file = home.path().join("ignored");
    let script = format!("grep SigIgn /proc/self/status >{}", file.display());
    let args = ["--rounds", "1", "--neighbour", "0", "--", "sh", "-c", &script];
    let said = home.run(&[&["sensitivity", "--budget", "600s"], &args[..]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    // Those from 32 on are the C library's own.
    let ignored = || {
        let text = fs::read_to_string(&file).expect("what the command wrote");
        let mask = u64::from_str_radix(text.trim_start_matches("SigIgn:").trim(), 16);
        mask.expect("a mask") & 0x7fff_ffff
    };
    let seen = ignored();
    assert!(home.command("sh").args(["-c", &script]).status().expect("sh").success());
    assert_eq!(seen, ignored());
}

#[test]
fn an_anonymous_run_names_no_command() {
    let home = Home::new();
    let args = ["--anonymous", "--rounds", "1", "--neighbour", "0", "--", "/bin/sh", "-c", ":"];
    let said = home.run(&[&["sensitivity", "--budget", "600s"], &args[..]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = fs::read_to_string(home.run_file()).expect("a run file");
    assert!(!text.contains("bin/sh") && !text.contains("words:"), "{text}");
}

#[test]
fn every_setting_runs_in_every_round_and_is_counted() {
    let home = Home::new();
    let said = sensitivity(
        &home,
        &[&["--neighbour", "64K", "--rate", "1500", "--rounds", "2", "--verbose", "--"], &WORK[..]]
            .concat(),
    );
    let record = record(&home);
    Schema::of("record").assert_holds(&record);
    let lines = Schema::of("run-line");
    lines_of(&home.run_file()).iter().for_each(|line| lines.assert_holds(line));
    let cases = cases(&record);
    let beside: Vec<(&str, u64, u64)> = cases
        .iter()
        .map(|(trial, _)| {
            let number = |name: &str| trial[name].as_u64().expect("a number");
            (trial["neighbour"].as_str().expect("who"), number("rate_hz"), number("bytes"))
        })
        .collect();
    assert_eq!((beside[0], beside[1]), (("nobody", 0, 0), ("elsewhere", 4500, 0)), "{}", said.out);
    let preempts = &[
        ("preempts", 750, 0),
        ("preempts", 1500, 0),
        ("preempts", 750, 65536),
        ("preempts", 1500, 65536),
    ];
    assert_eq!(&beside[2..], preempts);
    let count = |case: usize, name: &str| cases[case].1[name].as_i64();
    let done = count(1, "done").expect("runs");
    assert_eq!(
        (done % 2, count(0, "done")),
        (0, Some(3 * done)),
        "alone it runs three times as often"
    );
    for (case, (trial, counts)) in cases.iter().enumerate().skip(2) {
        let times = if trial["rate_hz"].as_i64() < Some(1000) { 2 } else { 1 };
        assert_eq!(counts["done"].as_i64(), Some(times * done), "{trial}");
        let [wakes, preemptions] =
            ["wakes", "preemptions"].map(|name| count(case, name).expect("a count"));
        assert!(wakes > 0 && preemptions > 0, "{counts}");
    }
    assert_eq!(count(0, "wakes"), None, "no neighbour wakes beside a run alone");
    // Of each sample it is known how fast the CPU was, where there are quanta.
    let samples: Vec<Value> = lines_of(&home.run_file())
        .iter()
        .map(|line| line["sample"].clone())
        .filter(|of| !of.is_null())
        .collect();
    let looks = |of: &Value, name: &str| of["tallies"][name].as_array().map(Vec::len);
    for of in samples.iter().filter(|_| cfg!(any(target_arch = "x86_64", target_arch = "aarch64")))
    {
        let names = ["latency_quantum_ns", "quantum_ratio_thousandths"];
        assert!(names.iter().all(|name| looks(of, name) > Some(0)), "{of}");
    }
}

/// Whenever it wakes it has the CPU so long, whoever needs it.
#[test]
fn a_neighbour_that_stays_keeps_the_cpu_and_one_that_leaves_is_beside_it() {
    let home = Home::new();
    let asked = ["--neighbour", "0,4K", "--stay", "3ms", "--rounds", "1", "--quiet", "--"];
    let said = home.run(&[&["sensitivity", "--budget", "600s"], &asked[..], &WORK].concat());
    if said.code == Some(2) && said.err.contains("--stay: policy fifo was refused") {
        return testing::skip(Need::RealTime, said.err);
    }
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = record(&home);
    let stays = |case: &Value| case["case"]["trial"]["stays_ns"].as_u64().unwrap_or_default();
    let all = record["cases"].as_array().expect("cases");
    let of = |case: &Value| (stays(case), case["case"]["trial"]["bytes"].as_u64().expect("bytes"));
    let beside = all.iter().filter(|case| case["case"]["trial"]["neighbour"] == "preempts");
    let kinds: BTreeSet<(u64, u64)> = beside.map(of).collect();
    assert_eq!(kinds, BTreeSet::from([(0, 0), (3_000_000, 0), (3_000_000, 4096)]));
    for line in lines_of(&home.run_file()) {
        let Some(number) = line["sample"]["case"].as_u64() else { continue };
        let stay_ns = stays(&all[number as usize]);
        let wakes = line["sample"]["counts"]["wakes"].as_u64().unwrap_or_default();
        let elapsed_ns = line["sample"]["elapsed_ns"].as_u64().expect("a time");
        // The last stay may be under way when the sample ends, the first when it begins.
        assert!(elapsed_ns + stay_ns >= wakes * stay_ns, "{wakes} in {elapsed_ns} ns");
        assert!(stay_ns == 0 || wakes > 0, "nobody woke");
    }
}

/// The samples of a run in place of those that were measured: a preemption costs this many
/// microseconds by a neighbour without memory, and by one with.
fn stored(home: &Home, [without, with]: [f64; 2]) {
    let file = home.run_file();
    let lines = lines_of(&file);
    let plan = lines[0]["header"]["plan"]["cases"].as_array().expect("cases").clone();
    let mut written = File::create(&file).expect("a run file");
    let mut put = |line: &Value| writeln!(written, "{line}").expect("a line");
    put(&lines[0]);
    for round in 0..6 {
        for (case, of) in plan.iter().enumerate() {
            let trial = &of["trial"];
            let number = |name: &str| trial[name].as_f64().expect("a number");
            let events = number("rate_hz") / 10.0;
            let (each_us, events_of) = match trial["neighbour"].as_str() {
                Some("preempts") if number("bytes") > 0.0 => (1.0 + with, "preemptions"),
                Some("preempts") => (1.0 + without, "preemptions"),
                _ => (1.0, "timer_interrupts"),
            };
            let ns = 100_000_000 + (1000.0 * each_us * events) as i64;
            let mut counts = json!({"done": 1, "preemptions": 0});
            if events > 0.0 {
                counts[events_of] = json!(events as i64);
            }
            put(&json!({"sample": {
                "case": case, "round": round, "elapsed_ns": ns, "counts": counts,
                "tallies": {"cpu_ns": [[ns, 1]], "real_ns": [[ns, 1]]},
            }}));
        }
    }
    put(lines.last().expect("an end"));
}

fn with_stored(home: &Home) {
    let args = ["--neighbour", "0,64K", "--rate", "4000", "--rounds", "1", "--"];
    sensitivity(home, &[&args[..], &WORK].concat());
    stored(home, [2.0, 14.0]);
}

#[test]
fn the_answer_is_what_a_preemption_costs_by_the_least_and_the_most() {
    let home = Home::new();
    with_stored(&home);
    let said = home.run(&["runs", "show", "last"]);
    let first = "A preemption costs sh 2.00 us (2.00 to 2.00) by a neighbour without memory, 14.0 us \
                 (14.0 to 14.0) by one of 64 KiB. At 1,000 preemptions a second that is 0.2 to 1.4 % \
                 of its CPU time.";
    assert_eq!(said.out.lines().next(), Some(first));
}

/// What stands for words in a run file: FNV-1a.
fn hash(words: &[&str]) -> String {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("words:{hash:016x}")
}

#[test]
fn a_program_that_was_measured_itself_is_priced_by_that() {
    let home = Home::new();
    with_stored(&home);
    // A shell with other words does other work; the stored run is made one of this one's.
    let worker = Worker::start(&home);
    let pid = worker.0.id().to_string();
    let other = home.run(&["cost", "--pid", &pid, "--budget", "1s", "--json", "-", "--quiet"]);
    assert_eq!(other.json()["own"], Value::Null);
    let file = home.run_file();
    let text = fs::read_to_string(&file).expect("a run file");
    let [of_work, of_lines] = [WORK[2], LINES].map(|script| hash(&["-c", script]));
    assert!(text.contains(&of_work), "{text}");
    fs::write(&file, text.replace(&of_work, &of_lines)).expect("a run file");
    let out = home.path().join("cost.json");
    let said =
        home.run(&["cost", "--pid", &pid, "--budget", "1s", "--json", &out.to_string_lossy()]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let report: Value =
        serde_json::from_str(&fs::read_to_string(out).expect("a report")).expect("JSON");
    Schema::of("program").assert_holds(&report);
    let own = &report["own"];
    assert_eq!(own["each_ns"], json!({"low": 2000.0, "high": 14000.0}), "{report}");
    assert_eq!(own["most_bytes"], json!(65536));
    assert_eq!(report["cost"]["cost_ns"], own["each_ns"]);
    assert!(said.out.contains("as measured on"), "{}", said.out);
}

#[test]
fn a_command_that_fails_is_told_before_anything_is_measured() {
    let home = Home::new();
    let said = home.run(&["sensitivity", "--", "sh", "-c", "echo why >&2; exit 3"]);
    assert_eq!((said.code, &*said.out), (Some(1), ""), "{}", said.err);
    assert!(said.err.contains("why\n") && said.err.contains("exit status: 3"), "{}", said.err);
    for rate in ["0", "20001"] {
        let said = home.run(&["sensitivity", "--rate", rate, "--", "true"]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains("2 to 20000"), "{}", said.err);
    }
    let said = home.run(&["sensitivity", "--", "no-such-program"]);
    assert!(said.code != Some(0) && said.err.contains("no-such-program"), "{}", said.err);
    assert!(home.run_files().is_empty());
}

#[test]
fn a_process_is_preempted_only_where_that_is_agreed() {
    let home = Home::new();
    let worker = Worker::start(&home);
    let pid = worker.0.id().to_string();
    let said = home.run(&["sensitivity", "--pid", &pid]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("--inject"), "{}", said.err);
    let gone =
        home.run(&["sensitivity", "--pid", "2147483647", "--inject", "--progress", "echo 1"]);
    assert_eq!(gone.code, Some(2), "{}", gone.err);
    let lines = home.path().join("lines");
    let before = worker.process(&home);
    let (cpus, policy) = (before.cpus(), before.policy());
    sensitivity(
        &home,
        &[
            "--pid",
            &pid,
            "--inject",
            "--progress-file",
            &lines.to_string_lossy(),
            "--neighbour",
            "0",
            "--rounds",
            "1",
            "--quiet",
        ],
    );
    let after = worker.process(&home);
    assert_eq!((after.cpus(), after.policy()), (cpus, policy), "nothing of it is changed");
    let cases = cases(&record(&home));
    for (trial, counts) in &cases {
        assert!(counts["done"].as_i64().is_some_and(|done| done > 0), "{trial}: {counts}");
    }
    let bad = home.run(&["sensitivity", "--pid", &pid, "--inject", "--progress", "echo words"]);
    assert_eq!(bad.code, Some(2));
    assert!(bad.err.contains("\"words\""), "{}", bad.err);
}

/// A program of three processes: its children do the work, and are not told to be stopped.
#[test]
fn a_running_program_is_measured_with_its_children() {
    let home = Home::new();
    let mut shell = home.command("setsid");
    let script = format!("for i in 1 2; do sh -c '{LINES}' & done; wait");
    let shell = shell.args(["sh", "-c", &script]).current_dir(home.path());
    let mut shell = shell.stdout(Stdio::null()).spawn().expect("a shell");
    let lines = home.path().join("lines");
    wait_for("a line", || fs::metadata(&lines).ok().filter(|file| file.len() > 0));
    let parent = shell.id();
    let children: Vec<i32> =
        crate::processes::children_of(parent).into_iter().map(|pid| pid as i32).collect();
    let ids = children.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let progress = lines.to_string_lossy().into_owned();
    let flags = ["--inject", "--progress-file", &progress, "--neighbour", "0", "--rounds", "1"];
    let measured = |asked: &[&str]| {
        sensitivity(&home, &[asked, &flags, &["--quiet"]].concat());
        record(&home)
    };
    let parent = parent.to_string();
    let whole = measured(&["--pid", &parent]);
    let listed = measured(&["--pid", &ids]);
    let alone = measured(&["--pid", &parent, "--no-children"]);
    for pid in &children {
        kill_process(Pid::from_raw(*pid).expect("a process id"), Signal::KILL).expect("killed");
    }
    shell.wait().expect("its end");
    for (record, works) in [(&whole, true), (&listed, true), (&alone, false)] {
        // The parent alone sleeps all the time; its children are preempted by the neighbour.
        let preemptions =
            cases(record).into_iter().map(|(_, counts)| counts["preemptions"].as_i64());
        let preemptions: i64 = preemptions.map(|count| count.expect("a count")).sum();
        assert_eq!(preemptions > 0, works, "{preemptions}: {record}");
        let tasks = record["competing_tasks"]["tasks"].as_array().cloned().unwrap_or_default();
        let is_own = |task: &Value| children.iter().any(|pid| task["pid"] == *pid);
        assert!(!tasks.iter().any(is_own), "{tasks:?} of {children:?}");
    }
    let subject = &cases(&listed)[0].0["subject"]["process"];
    assert_eq!(subject["pid"], children[0], "{subject}");
    assert_eq!(
        (&subject["others"], &subject["has_children"]),
        (&json!([children[1]]), &json!(true))
    );
}

/// The command and its neighbour belong to the worker: they end with it, and it with the program.
#[test]
fn whoever_is_killed_nothing_is_left() {
    for which in ["controller", "worker", "neighbour"] {
        let home = Home::new();
        let mut command = home.command(PROGRAM);
        command.args([
            "sensitivity",
            "--neighbour",
            "64K",
            "--rounds",
            "1",
            "--budget",
            "600s",
            "--",
        ]);
        command.args(["sh", "-c", "exec sleep 3"]);
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        let own = child.id() as i32;
        let is_neighbour = |of: &Process| of.name().as_deref() == Some("switchcost-nb");
        let all = wait_for("a neighbour", || {
            Some(home.processes()).filter(|all| all.iter().any(is_neighbour))
        });
        let found = match which {
            "controller" => Some(own),
            "worker" => all.iter().find(|of| of.is_worker && of.parent == own).map(|of| of.pid),
            _ => all.iter().find(|of| is_neighbour(of)).map(|of| of.pid),
        };
        let pid = Pid::from_raw(found.expect("whom to kill")).expect("a process id");
        kill_process(pid, Signal::KILL).expect("killed");
        if which != "controller" {
            // What is lost is told, and the others are measured; that is not waited for.
            wait_for("its end", || {
                home.processes().iter().all(|of| of.pid != pid.as_raw_pid()).then_some(())
            });
            let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        }
        let _ = child.wait();
        home.wait_until_alone();
    }
}
