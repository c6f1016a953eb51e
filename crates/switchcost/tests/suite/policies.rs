//! Members run under the policy that was asked for. These tests stand apart as their real-time
//! rings take the CPU from all others.

use std::fs;
use std::process::{Child, Command};

use crate::common::{Home, IGNORE_BUSY, PROGRAM, Said, allowed_cpus, switches_per_hop};
use probe::placement::CpuShares;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use testing::{Need, skip, wait_for};

const SMALL: [&str; 8] = ["--members", "2,4", "--rounds", "2", "--laps", "200", "--csv", "-"];

/// Asks the kernel under which policy and priority the members run.
fn assert_policy(name: &str, number: u64, priority: u64) {
    let home = Home::new();
    let mut child =
        home.start(&["ring", "--members", "2", "--laps", "20000", "--policy", name, "--quiet"]);
    let pid = child.id() as i32;
    // All at one look: a ring is there for a moment only. A member is born with its leader's policy.
    let policies = wait_for("leader and member, and the controller", || {
        let all = home.processes();
        let leader = all.iter().find(|p| p.is_worker && p.parent == pid)?;
        let member = all.iter().find(|p| p.is_worker && p.parent == leader.pid)?;
        let controller = all.iter().find(|p| p.pid == pid)?;
        Some([leader.try_policy()?, member.try_policy()?, controller.try_policy()?])
    });
    let own = (number, priority);
    assert_eq!(policies, [own, own, (0, 0)], "{name}: the controller is none of them");
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
}

#[test]
fn the_normal_policies_are_kept() {
    assert_policy("other", 0, 0);
    assert_policy("batch", 3, 0);
    let rows = Home::new().measure(&[&SMALL[..], &["--policy", "batch"]].concat()).rows();
    assert_eq!(rows.rings().len(), 6);
    assert!(rows.rows.iter().all(|row| row.text("policy") == "batch"));
}

/// Under a real-time policy a woken member never preempts the writer: one switch a hop at any size.
fn assert_realtime(policy: &str, number: u64) {
    let args =
        [&["ring", "--verbose", "--wide", "--budget", "60s"], &SMALL[..], &["--policy", policy]]
            .concat();
    let said = Home::new().run(&args);
    if said.code == Some(1) && said.error().contains("CAP_SYS_NICE") {
        return skip(Need::RealTime, format_args!("policy {policy} is refused here"));
    }
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.rows().rows.iter().all(|row| row.text("policy") == policy));
    if let Some([four]) = switches_per_hop([4], &[&SMALL[..], &["--policy", policy]].concat()) {
        assert!((four - 1.0).abs() <= 0.05, "{policy}: {four} switches per hop of four");
    }
    assert_policy(policy, number, 1);
}

#[test]
fn the_fifo_policy_is_kept() {
    assert_realtime("fifo", 1);
}

#[test]
fn the_round_robin_policy_is_kept() {
    assert_realtime("rr", 2);
}

/// A shell that never rests on one CPU.
struct BusyShell(Child);

impl BusyShell {
    fn on_cpu(cpu: u32) -> Self {
        let busy =
            Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell"));
        let mut cpus = CpuSet::new();
        cpus.set(cpu as usize);
        sched_setaffinity(Pid::from_raw(busy.0.id() as i32), &cpus).expect("a CPU that is allowed");
        // It has begun to loop once it has used a tick of its own.
        wait_for("a shell that uses its CPU", || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", busy.0.id())).ok()?;
            let user = stat.rsplit(')').next()?.split_whitespace().nth(11)?;
            (user.parse::<u64>().ok()? > 1).then_some(())
        });
        busy
    }
}

impl Drop for BusyShell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How often a plan is made again until its look finds the CPU busy.
const ATTEMPTS: usize = 6;

/// Runs a command beside a busy shell on the last CPU until it finds that CPU busy; absent, with the
/// reason why the test is passed over, where it cannot.
fn beside_busy_shell(home: &Home, args: &[&str]) -> Option<Said> {
    let cpus = allowed_cpus();
    let (Some(cpu), true) = (cpus.last(), cpus.len() > 1) else {
        skip(Need::TwoCpus, "fifo is taken where another CPU is left to watch from");
        return None;
    };
    let busy_cpu = cpu;
    let _busy = BusyShell::on_cpu(*busy_cpu);
    let cpu = busy_cpu.to_string();
    let which = if args[0] == "ring" { "--placement" } else { "--cpu" };
    let args = [args, &[which, &cpu, "--verbose"]].concat();
    for _ in 0..ATTEMPTS {
        let said = Said::of(home.command(PROGRAM).args(&args).env_remove(IGNORE_BUSY));
        assert_eq!(said.code, Some(0), "{}", said.err);
        let notes = said.out.replace("\n  ", " ");
        if !notes.contains(&format!("CPU {cpu} was busy when measuring began")) {
            continue;
        }
        if notes.contains("SCHED_FIFO, under which other tasks wait, was refused") {
            assert!(notes.contains("CAP_SYS_NICE"), "{notes}");
            skip(Need::RealTime, "policy fifo is refused here");
            return None;
        }
        return Some(said);
    }
    // A quota or the hypervisor may keep all from the CPU; else the look should have found it busy.
    let share = CpuShares::measure(&cpus).of_cpu(*busy_cpu);
    assert!(share.is_none_or(|share| share < 0.5), "no note of a CPU that is busy: {share:?}");
    skip(Need::Quiet, "nobody could keep the CPU busy");
    None
}

#[test]
fn beside_a_busy_process_rings_are_measured_under_fifo_too() {
    let home = Home::new();
    let args = ["ring", "--members", "2,4", "--rounds", "2", "--laps", "200", "--budget", "60s"];
    let Some(said) = beside_busy_shell(&home, &args) else { return };
    assert!(said.out.contains("policies other and fifo"), "{}", said.out);
    let record = home.run(&["runs", "export", "last"]).json();
    let cases = record["header"]["plan"]["cases"].as_array().expect("cases");
    let of = |policy: &str| -> Vec<u64> {
        let cases = cases.iter().filter(|case| case["policy"] == policy);
        cases.map(|case| case["members"].as_u64().expect("a size")).collect()
    };
    assert_eq!((of("other"), of("fifo")), (vec![1, 2, 4], vec![1, 2, 4]));
    // Under fifo a woken member waits until the writer does: the kernel's own count.
    let four = record["cases"].as_array().expect("cases").iter();
    let four = four.filter(|of| of["case"]["policy"] == "fifo" && of["case"]["members"] == 4);
    let switches: Vec<f64> =
        four.filter_map(|of| of["switches_per_hop"]["value"].as_f64()).collect();
    assert!(switches.iter().all(|of| (of - 1.0).abs() < 0.05), "{switches:?}");
    assert_eq!(switches.len(), 1, "{record}");
}

#[test]
fn a_policy_that_was_asked_for_is_the_only_one_beside_a_busy_process() {
    let Some(cpu) = allowed_cpus().last().copied() else { return };
    let _busy = BusyShell::on_cpu(cpu);
    let cpu = cpu.to_string();
    let args = [&SMALL[..], &["--policy", "other", "--placement", &cpu]].concat();
    let home = Home::new();
    let args = [&["ring"], &args[..]].concat();
    let said = Said::of(home.command(PROGRAM).args(&args).env_remove(IGNORE_BUSY));
    assert!(said.rows().rows.iter().all(|row| row.text("policy") == "other"));
    assert_eq!(said.rows().rings().len(), 6, "{}", said.err);
}

#[test]
fn beside_a_busy_process_calls_and_parts_are_measured_under_fifo() {
    let home = Home::new();
    for args in [
        &["response", "--only", "system-calls,links", "--rounds", "1"][..],
        &["explain", "--parts-only", "--rounds", "1"],
    ] {
        let Some(said) = beside_busy_shell(&home, args) else { return };
        let heading = said.out.replace("\n  ", " ");
        assert!(heading.contains(" under fifo"), "{}", said.out);
        let record = home.run(&["runs", "export", "last"]).json();
        let cases = record["header"]["plan"]["cases"].as_array().expect("cases");
        for case in cases {
            let policy = case["ring"]["policy"].as_str().or(case["trial"]["policy"].as_str());
            assert_eq!(policy, Some("fifo"), "{case}");
        }
    }
}

/// Asked for where nothing else runs, too; and refused where it would not be what was asked for.
#[test]
fn policies_are_taken_by_calls_and_parts_and_refused_for_commands() {
    let home = Home::new();
    for args in [
        &["response", "--only", "links", "--rounds", "1", "--policy", "batch", "--json", "-"][..],
        &["explain", "--parts-only", "--rounds", "1", "--policy", "batch", "--json", "-"],
    ] {
        let said = home.run(args);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let record = said.json();
        let cases = record["header"]["plan"]["cases"].as_array().expect("cases").iter();
        let policies = cases.filter_map(|case| case["ring"]["policy"].as_str());
        assert!(policies.clone().count() > 1 && policies.clone().all(|of| of == "batch"));
    }
    for (args, why) in [
        (&["response", "--only", "wakeup", "--policy", "fifo"][..], "policies of their own"),
        (&["sensitivity", "--policy", "fifo", "--", "true"], "switchcost ring --policy fifo"),
        (&["sensitivity", "--policy", "batch", "--", "true"], "accepted: other"),
    ] {
        let said = home.run(args);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.replace("\n  ", " ").contains(why), "{}", said.err);
    }
}
