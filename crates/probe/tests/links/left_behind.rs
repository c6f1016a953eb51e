//! What a ring leaves behind when it, or part of it, is killed: nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use model::case::Kind;
use rustix::process::{Pid, Signal, kill_process};

use crate::rings::available;
use crate::{skip, worker};

pub const TESTS: &[(&str, fn())] = &[
    ("a_killed_member_ends_the_ring_at_once", killed_member),
    ("a_killed_member_that_was_stopped_is_noticed_too", stopped_and_killed),
    ("a_stopped_ring_goes_on", stopped),
    ("a_killed_worker_leaves_nothing", killed_worker),
    ("a_worker_killed_while_it_makes_names_leaves_none", killed_in_set_up),
];

/// Laps that no test waits for the end of.
const ENDLESS: u64 = 1_000_000_000;

/// A step of a worker has a minute at least; a loss that only its deadline ends is a failure here.
const AT_ONCE: Duration = Duration::from_secs(20);

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

/// POSIX message queues of ours: seen in a mount of their file system (mq_overview(7)).
fn queues() -> Vec<String> {
    match queue_folder() {
        Some(folder) => names_in(&folder, "switchcost-"),
        None => Vec::new(),
    }
}

fn queue_folder() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let of_queues = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let folder = words.next()?;
        (words.next()? == "mqueue").then(|| PathBuf::from(folder))
    };
    mounts.lines().find_map(of_queues)
}

fn names_in(folder: &Path, start: &str) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(start)).collect()
}

/// The processes that a worker has forked, in whatever state, by the process group that it leads.
fn group(leader: u32) -> Vec<i32> {
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
fn field(pid: i32, number: usize) -> Option<i64> {
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

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A ring of three processes in the midst of its laps.
fn turning(link: &str) -> Child {
    let child = worker::start(&worker::case(link, Kind::Process, 3), ENDLESS);
    let ticks = |pid| field(pid, 14).unwrap_or(0) + field(pid, 15).unwrap_or(0);
    wait_until("the ring turns", || {
        let all = group(child.id());
        all.len() == 3 && all.iter().map(|pid| ticks(*pid)).sum::<i64>() >= 5
    });
    child
}

fn member_of(worker: &Child) -> i32 {
    *group(worker.id()).iter().find(|pid| **pid != worker.id() as i32).unwrap()
}

fn assert_alone(link: &str, leader: u32, before: &[String]) {
    wait_until(&format!("{link}: no process is left"), || group(leader).is_empty());
    wait_until(&format!("{link}: no thing is left"), || things() == before);
}

/// Each link that processes can use, with what it is to leave.
fn each(act: impl Fn(&str)) {
    for link in available() {
        if link.suits(&worker::case(link.name, Kind::Process, 3)).is_ok() {
            act(link.name);
        }
    }
}

fn end_of(link: &str, child: Child) -> String {
    let (leader, start) = (child.id(), Instant::now());
    let said = worker::finish(child).expect_err("a ring that lost a member");
    assert!(start.elapsed() < AT_ONCE, "{link}: only the deadline ended it: {said}");
    wait_until("no process is left", || group(leader).is_empty());
    said
}

fn killed_member() {
    each(|link| {
        let (before, child) = (things(), turning(link));
        signal(member_of(&child), Signal::KILL);
        let said = end_of(link, child);
        // No signal interrupts pthread_cond_wait: such a leader is ended without a word.
        match link {
            "condvar" => assert!(said.contains("signal: 14"), "{said}"),
            _ => assert!(said.contains("was killed by signal 9"), "{link}: {said}"),
        }
        assert_eq!(things(), before, "{link}");
    });
}

/// The leader is asleep for good before the member dies: the token is with the stopped one.
fn stopped_and_killed() {
    each(|link| {
        let child = turning(link);
        let member = member_of(&child);
        signal(member, Signal::STOP);
        sleep(Duration::from_millis(20));
        signal(member, Signal::KILL);
        let said = end_of(link, child);
        assert!(link == "condvar" || said.contains("was killed by signal 9"), "{link}: {said}");
    });
}

/// Some waits end when a process was stopped and goes on: no reason to lose the token.
fn stopped() {
    each(|link| {
        let mut child = turning(link);
        let leader = child.id();
        for _ in 0..5 {
            for pid in group(leader) {
                signal(pid, Signal::STOP);
            }
            sleep(Duration::from_millis(2));
            for pid in group(leader) {
                signal(pid, Signal::CONT);
            }
            sleep(Duration::from_millis(5));
        }
        assert!(child.try_wait().unwrap().is_none(), "{link}: it ended");
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("no process is left", || group(leader).is_empty());
    });
}

fn killed_worker() {
    each(|link| {
        let (before, mut child) = (things(), turning(link));
        let leader = child.id();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_alone(link, leader, &before);
    });
}

/// At many moments while a large ring is set up, of the links that make something with a name.
fn killed_in_set_up() {
    if queue_folder().is_none() {
        skip("no mqueue file system is mounted: message queues cannot be listed");
    }
    for link in available().filter(|link| ["fifo", "posix-mq", "sysv-msg"].contains(&link.name)) {
        for moment in 0..60 {
            let before = things();
            let mut child = worker::start(&worker::case(link.name, Kind::Thread, 200), 10);
            let leader = child.id();
            sleep(Duration::from_micros(2000 + 331 * moment));
            child.kill().unwrap();
            child.wait().unwrap();
            assert_alone(link.name, leader, &before);
        }
    }
}
