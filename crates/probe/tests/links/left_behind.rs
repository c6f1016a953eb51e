//! What a ring leaves behind when it, or part of it, is killed: nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rundata::ring::{MemberKind, RingCase};
use rustix::process::{Pid, Signal, kill_process};
use testing::{PATIENCE, repeats, wait_for};

use crate::rings::available;
use crate::{Test, elsewhere, worker};

pub const TESTS: &[Test] = &[
    ("a_killed_worker_leaves_nothing", killed_worker),
    ("a_killed_ring_by_tcp_leaves_no_port", killed_by_tcp),
    ("a_worker_killed_while_it_makes_names_leaves_none", killed_in_set_up),
];

/// Laps that no test waits for the end of: a deadline of as many is days away.
pub const ENDLESS: u64 = 1_000_000_000;

/// A folder for what rings give names, which nobody else uses.
pub static NAMES: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    // For an ordinary user's as well.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    folder
});

/// All that a ring might leave on the machine, by its name.
pub fn things() -> Vec<String> {
    let mut all = sysv("sem");
    all.extend(sysv("msg"));
    all.extend(queues());
    all.extend(names_in(NAMES.path()));
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

fn names_in(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The processes that a worker has forked, in whatever state, by the process group that it leads.
pub fn group(leader: u32) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| field(*pid, 5) == Some(i64::from(leader))).collect()
}

/// A worker and those whom it has forked: at once, where the kernel lists children (proc(5)).
pub fn members(worker: &Child) -> Vec<i32> {
    let leader = worker.id();
    match fs::read_to_string(format!("/proc/{leader}/task/{leader}/children")) {
        Ok(text) => {
            let children = text.split_whitespace().filter_map(|pid| pid.parse().ok());
            std::iter::once(leader as i32).chain(children).collect()
        }
        Err(_) => group(leader),
    }
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

/// Whether it comes to be so.
pub fn is_so_soon(mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        sleep(Duration::from_millis(2));
    }
    false
}

pub fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A ring of three processes in the midst of its laps.
pub fn turning(link: &str, laps: u64) -> Child {
    until_it_turns(worker::start(&worker::case(link, MemberKind::Process, 3), laps))
}

/// As ps(1) shows it: `S` sleeps, `T` is stopped. None: it is gone.
pub fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether a signal has come to a process that it has not taken yet.
pub fn has_pending(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let sets = status.lines().filter(|line| line.contains("Pnd:"));
    let mut sets = sets.filter_map(|line| u64::from_str_radix(line.rsplit('\t').next()?, 16).ok());
    sets.any(|set| set & 1 << (signal.as_raw() - 1) != 0)
}

/// Switches of a process so far.
pub fn switches(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let counts = status.lines().filter(|line| line.contains("voluntary_ctxt_switches:"));
    counts.filter_map(|line| line.rsplit('\t').next()?.parse::<u64>().ok()).sum()
}

pub fn until_it_turns(child: Child) -> Child {
    if !turns(&child) {
        panic!("it ended: {:?}", worker::finish(child));
    }
    child
}

/// Waits until a ring of three processes is in the midst of its laps; false if it ended before.
pub fn turns(child: &Child) -> bool {
    // Each lap is a switch of each member at least; while they are made there are a few.
    const MANY: u64 = 300;
    let leader = child.id() as i32;
    wait_for("ring that turns", || {
        let all = members(child);
        let turns = all.len() == 3 && all.iter().all(|pid| switches(*pid) > MANY);
        (turns || state(leader) == Some('Z')).then_some(turns)
    })
}

pub fn member_of(worker: &Child) -> i32 {
    *members(worker).iter().find(|pid| **pid != worker.id() as i32).unwrap()
}

/// Those who have ended are not left, however long whoever inherited them lets them lie.
pub fn until_alone(leader: u32) {
    let has_ended = |pid: &i32| matches!(state(*pid), None | Some('Z'));
    wait_for("end of all members", || group(leader).iter().all(has_ended).then_some(()));
}

/// Each link that processes can use.
pub fn each(act: impl Fn(&str)) {
    for link in available() {
        if link.suits(&worker::case(link.name, MemberKind::Process, 3)).is_ok() {
            act(link.name);
        }
    }
}

/// What is said at the end of a ring that lost a member.
pub fn end_of(child: Child) -> String {
    let leader = child.id();
    let said = worker::finish(child).expect_err("a ring that lost a member");
    until_alone(leader);
    said
}

fn killed_worker() {
    each(|link| kill(turning(link, ENDLESS)));
}

pub fn kill(mut worker: Child) {
    let leader = worker.id();
    worker.kill().unwrap();
    worker.wait().unwrap();
    until_alone(leader);
}

/// A line of /proc/net/tcp.
struct TcpSocket {
    /// Addresses of both ends, its own first.
    ends: [String; 2],
    state: String,
    inode: String,
}

/// Returns all TCP sockets of this network namespace, also those that no process has any longer.
fn tcp_sockets() -> Vec<TcpSocket> {
    let text = fs::read_to_string("/proc/net/tcp").unwrap();
    let mut sockets = Vec::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [local, remote, state, inode] = [1, 2, 3, 9].map(|field| fields[field].to_string());
        sockets.push(TcpSocket { ends: [local, remote], state, inode });
    }
    sockets
}

/// Returns the inodes of the sockets that a process has open.
fn socket_inodes(pid: i32) -> Vec<String> {
    let mut inodes = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inodes.extend(inode.map(str::to_string));
    }
    inodes
}

/// It listens nowhere while its token goes round, and no connection of it waits after its death.
fn killed_by_tcp() {
    const ESTABLISHED: &str = "01";
    if !available().any(|link| link.name == "tcp") {
        return;
    }
    let child = turning("tcp", ENDLESS);
    let inodes: Vec<String> = members(&child).into_iter().flat_map(socket_inodes).collect();
    let mut sockets = tcp_sockets();
    sockets.retain(|socket| inodes.contains(&socket.inode));
    // Three connections of the ring; each member may have one to itself.
    assert!([6, 12].contains(&sockets.len()), "{} sockets", sockets.len());
    assert!(sockets.iter().all(|socket| socket.state == ESTABLISHED));
    kill(child);
    // At once: who waits for them to go away sees nothing of those that wait for a minute.
    let is_left = |socket: &TcpSocket| sockets.iter().any(|was| was.ends == socket.ends);
    assert!(!tcp_sockets().iter().any(is_left), "a port of a killed ring");
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

fn kill_in_set_up(link: &str, start: impl Fn(&RingCase) -> Child) {
    let moments = repeats(15, 60);
    for moment in 0..moments {
        let child = start(&worker::case(link, MemberKind::Thread, 200));
        // Any moment will do, also one before or after its set-up.
        sleep(Duration::from_micros(2000 + 20_000 * moment / moments));
        kill(child);
    }
}
