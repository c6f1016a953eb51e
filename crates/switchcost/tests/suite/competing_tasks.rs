//! Who else ran on the measured CPU is named, in the run file, the record and the report.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use crate::common::schema::Schema;
use crate::common::{Home, allowed_cpus, lines_of};
use analysis::noise::NOISY_DISTURBED;
use rustix::process::{Pid, getsid};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use testing::{Need, skip, wait_for};

/// A shell that never rests, under a name that no other test's has: tasks are told by their names.
struct Busy(Child);

impl Busy {
    fn on(home: &Home, cpu: u32, name: &str) -> Self {
        let program = home.path().join(name);
        symlink("/bin/sh", &program).expect("a link to the shell");
        // What the shell is called goes by the link, what it does by its first argument.
        let mut command = Command::new(&program);
        command.arg0("sh").args(["-c", "while :; do :; done"]);
        let busy = Self(command.spawn().expect("a shell"));
        let mut cpus = CpuSet::new();
        cpus.set(cpu as usize);
        let pid = Pid::from_raw(busy.pid() as i32);
        sched_setaffinity(pid, &cpus).expect("a CPU that is allowed");
        wait_for("the shell's own name", || {
            let own = fs::read_to_string(format!("/proc/{}/comm", busy.pid())).ok()?;
            (own.trim_end() == name).then_some(())
        });
        busy
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn competing_lines(file: &std::path::Path) -> Vec<Value> {
    lines_of(file).iter().filter_map(|line| line.get("competing_tasks").cloned()).collect()
}

/// How often a run is made again until its neighbour, whom others may keep from the CPU, had enough
/// of it.
const ATTEMPTS: usize = 6;

#[test]
fn a_busy_process_on_the_measured_cpu_is_found_by_name() {
    const NAME: &str = "busy-and-found";
    let cpu = *allowed_cpus().last().expect("a CPU");
    let neighbours = Home::new();
    let busy = Busy::on(&neighbours, cpu, NAME);
    let placement = cpu.to_string();
    let args = ["--members", "2", "--rounds", "2", "--laps", "5000", "--placement", &placement];
    let schema = Schema::of("run-line");
    let mut was_found = false;
    let mut is_told = || {
        let home = Home::new();
        let said = home.measure(&args);
        let record = home.run(&["runs", "export", "last"]).json();
        Schema::of("record").assert_holds(&record);
        lines_of(&home.run_file()).iter().for_each(|line| schema.assert_holds(line));
        assert_eq!(home.run(&["runs", "show", "last", "--verbose", "--wide"]).out, said.out);
        let competing = &record["competing_tasks"];
        assert_eq!(competing["cpus"], serde_json::json!([cpu]));
        let tasks = competing["tasks"].as_array().expect("tasks");
        let Some(found) = tasks.iter().find(|task| task["pid"] == busy.pid()) else { return false };
        assert_eq!((&found["name"], &found["cpu"]), (&NAME.into(), &cpu.into()), "{competing}");
        assert_eq!((&found["on"], &found["kernel"]), (&"measured".into(), &false.into()));
        let ns = |of: &Value, name: &str| of[name].as_u64().expect("nanoseconds");
        let own_ns = ns(found, "cpu_ns");
        assert!(own_ns > 0, "{competing}");
        was_found = true;
        // Who had a share of it and was among the first is told.
        let ahead = tasks.iter().filter(|task| ns(task, "cpu_ns") > own_ns).count();
        let is_told = own_ns * 50 >= ns(competing, "elapsed_ns") && ahead < 5;
        let line = said.out.lines().find(|line| line.starts_with("also on CPU "));
        let has_name = line.is_some_and(|line| line.contains(NAME));
        assert!(has_name || !is_told, "{}", said.out);
        is_told
    };
    let was_told = (0..ATTEMPTS).any(|_| is_told());
    assert!(was_found, "in {ATTEMPTS} runs it had no time of the CPU");
    if !was_told {
        skip(Need::Quiet, "others had the CPU instead of the neighbour");
    }
}

#[test]
fn slices_that_others_ran_in_are_told_from_those_of_the_ring_alone() {
    const NAME: &str = "busy-in-slices";
    let cpu = *allowed_cpus().last().expect("a CPU");
    let neighbours = Home::new();
    let busy = Busy::on(&neighbours, cpu, NAME);
    let placement = cpu.to_string();
    let args = ["--members", "2", "--rounds", "2", "--laps", "5000", "--placement", &placement];
    let mut all_shared = 0;
    let mut is_told = || {
        let home = Home::new();
        let said = home.measure(&args);
        let record = home.run(&["runs", "export", "last"]).json();
        let (mut shared, mut slices) = (0, 0);
        for sample in lines_of(&home.run_file()).iter().filter_map(|line| line.get("sample")) {
            let times = |name: &str| -> Vec<u64> {
                let all = sample["slices"][name].as_array().expect("times");
                all.iter().map(|ns| ns.as_u64().expect("a time")).collect()
            };
            let (elapsed_ns, cpu_ns) = (times("elapsed_ns"), times("cpu_ns"));
            assert_eq!(elapsed_ns.len(), cpu_ns.len(), "{sample}");
            let is_shared = |(all, own): &(&u64, &u64)| !rundata::ring::is_alone(**all, **own);
            shared += elapsed_ns.iter().zip(&cpu_ns).filter(is_shared).count();
            slices += elapsed_ns.len();
        }
        all_shared += shared;
        // It counts those beside them, too.
        let share = record["noise"]["not_alone_share"].as_f64().unwrap_or(0.0);
        assert!(share > 0.0 || shared * 10 < slices, "{shared}: {}", record["noise"]);
        if share <= NOISY_DISTURBED {
            return false;
        }
        assert_ne!(record["noise"]["level"], "quiet", "{}", record["noise"]);
        assert!(said.out.contains("other tasks shared the CPU"), "{}", said.out);
        // By default too, unless others had more of the CPU.
        let shown = home.run(&["runs", "show", "last"]).out;
        let tasks = record["competing_tasks"]["tasks"].as_array().expect("tasks");
        let most = tasks.iter().max_by_key(|task| task["cpu_ns"].as_u64());
        let is_first = most.is_some_and(|task| task["pid"] == busy.pid());
        assert!(shown.contains(NAME) || !is_first, "{shown}");
        shown.contains(NAME)
    };
    let was_told = (0..ATTEMPTS).any(|_| is_told());
    assert!(all_shared > 0, "no slice was shared");
    if !was_told {
        skip(Need::Quiet, "others had the CPU instead of the neighbour");
    }
    drop(busy);
}

#[test]
fn workers_run_in_a_session_of_their_own() {
    let home = Home::new();
    let mut program = home.start(&["ring", "--members", "2", "--laps", "10000000"]);
    // It is called a worker once it runs the program: the session is made before.
    let worker = wait_for("a worker", || {
        home.processes().into_iter().find(|p| p.is_worker && p.parent == program.id() as i32)
    });
    assert_eq!(getsid(Pid::from_raw(worker.pid)).expect("its session").as_raw_pid(), worker.pid);
    program.kill().and_then(|()| program.wait()).expect("its end");
    home.wait_until_alone();
}

#[test]
fn every_instrument_has_it_and_sessions_are_summed() {
    let ring = ["ring", "--verbose", "--wide", "--members", "2", "--laps", "200"];
    let overhead = ["clock", "overhead", "--calls", "monotonic,times", "--trials", "100"];
    let response = ["response", "--only", "system-calls"];
    for args in [&ring[..], &overhead, &response] {
        let home = Home::new();
        let bounds = ["--rounds", "1", "--budget", "60s"];
        let said = home.run(&[args, &bounds].concat());
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        let looks = |of: &Value| of["looks"].as_u64().unwrap_or(0);
        let record = home.run(&["runs", "export", "last"]).json();
        assert!(looks(&record["competing_tasks"]) >= 2, "{args:?}: {}", record["competing_tasks"]);
        let said = home.run(&["runs", "resume", "last", "--rounds", "1", "--budget", "60s"]);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        let lines = competing_lines(&home.run_file());
        let sum: u64 = lines.iter().map(looks).sum();
        let record = home.run(&["runs", "export", "last"]).json();
        assert_eq!((lines.len(), looks(&record["competing_tasks"])), (2, sum), "{args:?}");
    }
}

#[test]
fn both_halves_of_a_session_have_the_same_competing_tasks() {
    let home = Home::new();
    let said = home.run(&[
        "compare",
        "--ab",
        "",
        "env X=1",
        "--members",
        "2",
        "--rounds",
        "1",
        "--laps",
        "200",
        "--budget",
        "60s",
    ]);
    assert!(said.code.is_some(), "{}", said.err);
    let files = home.run_files();
    let [a, b] = &files[..] else { panic!("{files:?}") };
    let (one, other) = (competing_lines(a), competing_lines(b));
    assert_eq!((one.len(), &one), (1, &other));
    let kinds =
        |file| lines_of(file).iter().rev().take(2).map(Value::to_string).collect::<Vec<_>>();
    assert!(kinds(a)[0].starts_with("{\"end\"") && kinds(a)[1].starts_with("{\"competing_tasks\""));
}
