//! What a ring leaves behind when it, or part of it, is killed: nothing.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use model::ring::{Case, Kind};
use rustix::process::{Pid, Signal, kill_process};

use crate::rings::available;
use crate::{elsewhere, worker};

pub const TESTS: &[(&str, fn())] = &[
    ("a_killed_worker_leaves_nothing", killed_worker),
    ("a_worker_killed_while_it_makes_names_leaves_none", killed_in_set_up),
];

/// Laps that no test waits for the end of.
pub const ENDLESS: u64 = 1_000_000_000;

/// A step of a worker has a minute at least; a loss that only its deadline ends is a failure here.
pub const AT_ONCE: Duration = Duration::from_secs(20);

/// All that a ring might leave on the machine, by its name.
pub fn things() -> Vec<String> {
    let mut all = sysv("sem");
    all.extend(sysv("msg"));
    all.extend(queues());
    all.extend(names_in(&std::env::temp_dir(), "switchcost-"));
    all
}

/// System V objects: all lines but the heading, by key and id.
fn sysv(what: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/sysvipc/{what}")).unwrap_or_default();
    let id = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    text.lines().skip(1).map(|line| format!("{what} {}", id(line))).collect()
}

/// POSIX message queues of ours, where their file system may be mounted (mq_overview(7)): in a
/// mount namespace of its own, as the machine's may have none.
fn queues() -> Vec<String> {
    let list = "mount -t mqueue none /mnt && ls /mnt";
    let said = Command::new("unshare").args(["--mount", "sh", "-c", list]).output();
    let Some(said) = said.ok().filter(|said| said.status.success()) else { return Vec::new() };
    let names = String::from_utf8_lossy(&said.stdout).into_owned();
    names.lines().filter(|name| name.starts_with("switchcost-")).map(str::to_string).collect()
}

fn names_in(folder: &Path, start: &str) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(start)).collect()
}

/// The processes that a worker has forked, in whatever state, by the process group that it leads.
pub fn group(leader: u32) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| field(*pid, 5) == Some(i64::from(leader))).collect()
}

/// Whether a process of this program besides this one is there.
pub fn anybody() -> bool {
    let exe = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = (exe("self"), std::process::id().to_string());
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.map(|entry| entry.file_name().to_string_lossy().into_owned());
    pids.any(|pid| pid.parse::<u32>().is_ok() && pid != own.1 && exe(&pid) == own.0)
}

/// Field of /proc/PID/stat, numbered as in proc_pid_stat(5).
pub fn field(pid: i32, number: usize) -> Option<i64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(number - 3)?.parse().ok()
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + AT_ONCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        sleep(Duration::from_millis(2));
    }
}

pub fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A ring of three processes in the midst of its laps.
pub fn turning(link: &str, laps: u64) -> Child {
    until_it_turns(worker::start(&worker::case(link, Kind::Process, 3), laps))
}

pub fn until_it_turns(child: Child) -> Child {
    let ticks = |pid| field(pid, 14).unwrap_or(0) + field(pid, 15).unwrap_or(0);
    wait_until("the ring turns", || {
        let all = group(child.id());
        all.len() == 3 && all.iter().map(|pid| ticks(*pid)).sum::<i64>() >= 5
    });
    child
}

pub fn member_of(worker: &Child) -> i32 {
    *group(worker.id()).iter().find(|pid| **pid != worker.id() as i32).unwrap()
}

pub fn assert_alone(link: &str, leader: u32, before: &[String]) {
    wait_until(&format!("{link}: no process is left"), || group(leader).is_empty());
    wait_until(&format!("{link}: no thing is left"), || things() == before);
}

/// Each link that processes can use, with what it is to leave.
pub fn each(act: impl Fn(&str)) {
    for link in available() {
        if link.suits(&worker::case(link.name, Kind::Process, 3)).is_ok() {
            act(link.name);
        }
    }
}

pub fn end_of(link: &str, child: Child) -> String {
    let (leader, start) = (child.id(), Instant::now());
    let said = worker::finish(child).expect_err("a ring that lost a member");
    assert!(start.elapsed() < AT_ONCE, "{link}: only the deadline ended it: {said}");
    wait_until("no process is left", || group(leader).is_empty());
    said
}

fn killed_worker() {
    each(|link| {
        let (before, mut child) = (things(), turning(link, ENDLESS));
        let leader = child.id();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_alone(link, leader, &before);
    });
}

/// At many moments while a large ring is set up, of the links that make something with a name.
fn killed_in_set_up() {
    for link in available().filter(|link| ["fifo", "posix-mq", "sysv-msg"].contains(&link.name)) {
        kill_in_set_up(link.name, |case| worker::start(case, 10));
    }
    // Where a namespace can be had, the queues above were in one.
    if let Some(without) = elsewhere::without_namespaces() {
        kill_in_set_up("posix-mq", |case| worker::start_by(without(), case, 10));
    }
}

fn kill_in_set_up(link: &str, start: impl Fn(&Case) -> Child) {
    for moment in 0..60 {
        let before = things();
        let mut child = start(&worker::case(link, Kind::Thread, 200));
        let leader = child.id();
        sleep(Duration::from_micros(2000 + 331 * moment));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_alone(link, leader, &before);
    }
}
