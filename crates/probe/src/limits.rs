//! When the machine runs out: which limit it was, its value, and how to raise it.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::machine::{Bound, Machine};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::machine;

/// A limit that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name, as the manuals call it.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// How much of it is in use, where that can be told.
    pub in_use: Option<u64>,
    /// How to raise it.
    pub raise: String,
}

impl Limit {
    fn new(name: &str, value: u64, in_use: Option<u64>, raise: impl Into<String>) -> Self {
        Self { name: name.to_string(), value, in_use, raise: raise.into() }
    }

    /// Within two per cent of the limit: others of the same user come and go meanwhile.
    fn is_reached(&self) -> bool {
        self.in_use.is_some_and(|used| used.saturating_add(self.value / 50) >= self.value)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.name, self.value)?;
        if let Some(used) = self.in_use {
            write!(f, " ({used} in use)")?;
        }
        write!(f, "; to raise it: {}", self.raise)
    }
}

/// The limits behind a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Those that are reached, or all that could be behind it where none stands out.
    pub suspects: Vec<Limit>,
    /// Whether the suspects are reached.
    pub certain: bool,
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.suspects.iter().map(Limit::to_string).collect();
        match (words.is_empty(), self.certain) {
            (true, _) => f.write_str("No limit that this program knows is behind it"),
            (false, true) => write!(f, "Limit reached: {}", words.join("; also ")),
            (false, false) => {
                write!(f, "One of these limits is behind it: {}", words.join("; or "))
            }
        }
    }
}

impl Limits {
    /// The limits behind `errno` of `call`, as the machine is now: to be asked before anything that
    /// was made is given back.
    pub fn behind(call: &str, errno: Errno) -> Self {
        // Without a free descriptor nothing else can be read, and nothing else can be behind it.
        // A queue refused for its bytes gives the same errno.
        if errno == Errno::MFILE && call != "mq_open" {
            return open_files();
        }
        let machine = machine::read(Path::new("/"));
        let in_use = InUse::read(Path::new("/"));
        Self::judge(candidates(call, errno, &machine, &in_use))
    }

    fn judge(all: Vec<Limit>) -> Self {
        let reached: Vec<Limit> = all.iter().filter(|limit| limit.is_reached()).cloned().collect();
        match reached.is_empty() {
            true => Self { suspects: all, certain: false },
            false => Self { suspects: reached, certain: true },
        }
    }
}

/// What is in use of the limits that the kernel does not count itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InUse {
    tasks: Option<u64>,
    own_tasks: Option<u64>,
    open_files: Option<u64>,
    mappings: Option<u64>,
}

impl InUse {
    fn read(root: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        // loadavg's fourth field is runnable/all tasks (proc_loadavg(5)).
        let tasks = text("proc/loadavg")
            .split_whitespace()
            .nth(3)
            .and_then(|field| field.split_once('/')?.1.parse().ok());
        let open_files = text("proc/sys/fs/file-nr")
            .split_whitespace()
            .next()
            .and_then(|field| field.parse().ok());
        let mappings = text("proc/self/maps").lines().count() as u64;
        let mappings = (mappings > 0).then_some(mappings);
        Self { tasks, own_tasks: own_tasks(root), open_files, mappings }
    }
}

/// Tasks of the calling user, as RLIMIT_NPROC counts them. In a user namespace that maps nobody all
/// users look alike (user_namespaces(7)): then it is not known.
fn own_tasks(root: &Path) -> Option<u64> {
    let mapped = fs::read_to_string(root.join("proc/self/uid_map"));
    if mapped.is_ok_and(|map| map.trim().is_empty()) {
        return None;
    }
    let uid = rustix::process::getuid().as_raw();
    let mut count = 0;
    for entry in fs::read_dir(root.join("proc")).ok()?.flatten() {
        let is_pid = entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit());
        if is_pid && entry.metadata().is_ok_and(|meta| meta.uid() == uid) {
            let threads = fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count);
            count += threads as u64;
        }
    }
    Some(count)
}

fn candidates(call: &str, errno: Errno, machine: &Machine, in_use: &InUse) -> Vec<Limit> {
    match errno {
        Errno::MFILE => open_files().suspects.into_iter().chain(queue_bytes()).collect(),
        Errno::NOSPC => of_kind(call, Path::new("/")).into_iter().collect(),
        Errno::NFILE => system_files(machine, in_use),
        Errno::NOMEM => {
            let mut all = memory(machine);
            all.extend(mappings(Path::new("/"), in_use));
            all
        }
        // Of whatever call: one that is sheltered takes a process too.
        Errno::AGAIN => {
            let mut all = tasks(machine, in_use);
            // A thread whose stack cannot be had fails with EAGAIN too.
            let of_memory = memory(machine).into_iter().chain(mappings(Path::new("/"), in_use));
            all.extend(of_memory.filter(Limit::is_reached));
            all
        }
        _ => Vec::new(),
    }
}

fn tasks(machine: &Machine, in_use: &InUse) -> Vec<Limit> {
    let mut all = Vec::new();
    if let Some(limit) = machine.cgroup.pids_max.known().and_then(Option::as_ref) {
        let file = format!("{}/pids.max", limit.path);
        let used = limit.current.known().copied();
        all.push(Limit::new(
            "pids.max of the control group",
            limit.max,
            used,
            format!("write more to {file}"),
        ));
    }
    if let Some(Bound::At(value)) = machine.limits.processes.known().map(|l| l.soft) {
        let raise = format!("ulimit -u {} (root, or the hard limit in limits.conf(5))", value * 2);
        all.push(Limit::new("RLIMIT_NPROC", value, in_use.own_tasks, raise));
    }
    if let Some(value) = machine.limits.pid_max.known() {
        let raise = "sysctl kernel.pid_max=4194304";
        all.push(Limit::new("kernel.pid_max", *value, in_use.tasks, raise));
    }
    if let Some(value) = machine.limits.threads_max.known() {
        let raise = format!("sysctl kernel.threads-max={}", value * 2);
        all.push(Limit::new("kernel.threads-max", *value, in_use.tasks, raise));
    }
    all
}

fn open_files() -> Limits {
    let value = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let twice = value.saturating_mul(2);
    let raise = format!("ulimit -n {twice} (members that are threads share one table)");
    Limits { suspects: vec![Limit::new("RLIMIT_NOFILE", value, None, raise)], certain: true }
}

/// Bytes of all queues of the user (mq_overview(7)).
fn queue_bytes() -> Option<Limit> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find(|line| line.starts_with("Max msgqueue size"))?;
    let value = line.split_whitespace().nth(3)?.parse().ok()?;
    let raise = "ulimit -q unlimited (root, or the hard limit in limits.conf(5))";
    Some(Limit::new("RLIMIT_MSGQUEUE", value, None, raise))
}

/// How many objects of a kind of IPC there may be (mq_overview(7), proc_sys_kernel(5)).
fn of_kind(call: &str, root: &Path) -> Option<Limit> {
    let (name, file, field) = match call {
        "mq_open" => ("fs.mqueue.queues_max", "fs/mqueue/queues_max", 0),
        "msgget" => ("kernel.msgmni", "kernel/msgmni", 0),
        // The fourth number of kernel.sem is SEMMNI.
        "semget" => ("kernel.sem (its fourth number)", "kernel/sem", 3),
        _ => return None,
    };
    let text = fs::read_to_string(root.join("proc/sys").join(file)).ok()?;
    let value = text.split_whitespace().nth(field)?.parse().ok()?;
    let sysctl = file.replace('/', ".");
    let raise = match call {
        "mq_open" => format!("sysctl {sysctl} (root)"),
        // With the kernel's own values, whatever the machine's are.
        _ => format!(
            "ask for fewer members: the ring lives in an IPC namespace of its own, which begins \
             with the kernel's default, whatever {sysctl} is outside"
        ),
    };
    Some(Limit::new(name, value, None, raise))
}

/// Stacks of threads and of coroutines are mappings, two each, and so is what neighbours share.
fn mappings(root: &Path, in_use: &InUse) -> Option<Limit> {
    let text = fs::read_to_string(root.join("proc/sys/vm/max_map_count")).ok()?;
    let value: u64 = text.trim().parse().ok()?;
    let raise = format!("sysctl vm.max_map_count={} (root)", value.saturating_mul(2));
    Some(Limit::new("vm.max_map_count", value, in_use.mappings, raise))
}

fn system_files(machine: &Machine, in_use: &InUse) -> Vec<Limit> {
    let mut all = Vec::new();
    if let Some(value) = machine.limits.file_max.known() {
        let raise = format!("sysctl fs.file-max={}", value.saturating_mul(2));
        all.push(Limit::new("fs.file-max", *value, in_use.open_files, raise));
    }
    if let Some(value) = machine.limits.pipe_user_pages_hard.known().filter(|v| **v > 0) {
        let raise = "sysctl fs.pipe-user-pages-hard=0 (or run as root)";
        all.push(Limit::new("fs.pipe-user-pages-hard", *value, None, raise));
    }
    all
}

fn memory(machine: &Machine) -> Vec<Limit> {
    let mut all = Vec::new();
    if let Some(limit) = machine.cgroup.memory_max_bytes.known().and_then(Option::as_ref) {
        let used = limit.current.known().copied();
        let raise = format!("raise the memory limit of {}", limit.path);
        all.push(Limit::new("the control group's memory in bytes", limit.max, used, raise));
    }
    let total = machine.memory.total_bytes.known();
    if let Some((total, free)) = total.zip(machine.memory.available_bytes.known()) {
        let used = total.saturating_sub(*free);
        all.push(Limit::new(
            "the machine's memory in bytes",
            *total,
            Some(used),
            "ask for fewer members",
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_ipc_has_a_limit_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("proc/sys");
        for (file, text) in [
            ("fs/mqueue/queues_max", "256\n"),
            ("kernel/msgmni", "11\n"),
            ("kernel/sem", "1 2\t3 44\n"),
        ] {
            let file = sys.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let value = |call| of_kind(call, root.path()).map(|limit| limit.value);
        assert_eq!(value("mq_open"), Some(256));
        assert_eq!(value("msgget"), Some(11));
        assert_eq!(value("semget"), Some(44));
        assert_eq!(value("pipe"), None);
    }

    fn names(limits: Vec<Limit>) -> Vec<String> {
        limits.into_iter().map(|limit| limit.name).collect()
    }

    #[test]
    fn whatever_call_finds_no_room_for_a_task_the_limits_of_tasks_are_named() {
        let machine = machine::read(Path::new("/"));
        let behind = |call| names(candidates(call, Errno::AGAIN, &machine, &InUse::default()));
        let of_fork = behind("fork");
        assert!(of_fork.contains(&"kernel.pid_max".to_string()), "{of_fork:?}");
        // What the shelter of a FIFO and of a POSIX queue is made by.
        assert_eq!(behind("clone"), of_fork);
    }

    #[test]
    fn no_memory_may_be_too_many_mappings() {
        let root = tempfile::tempdir().unwrap();
        let (sys, own) = (root.path().join("proc/sys/vm"), root.path().join("proc/self"));
        fs::create_dir_all(&sys).unwrap();
        fs::create_dir_all(&own).unwrap();
        fs::write(sys.join("max_map_count"), "65530\n").unwrap();
        fs::write(own.join("maps"), "a\n".repeat(65528)).unwrap();
        let limit = mappings(root.path(), &InUse::read(root.path())).unwrap();
        assert_eq!((limit.value, limit.in_use), (65530, Some(65528)));
        assert!(limit.is_reached() && limit.raise.contains("vm.max_map_count=131060"));
        let all = candidates("mmap", Errno::NOMEM, &Machine::default(), &InUse::default());
        assert!(names(all).contains(&"vm.max_map_count".to_string()));
    }

    #[test]
    fn whose_tasks_are_whose_is_not_known_where_no_user_is_mapped() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("proc/self");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(root.path().join("proc/7/task/7")).unwrap();
        fs::write(own.join("uid_map"), "0 0 4294967295\n").unwrap();
        assert_eq!(own_tasks(root.path()), Some(1));
        fs::write(own.join("uid_map"), "").unwrap();
        assert_eq!(own_tasks(root.path()), None);
    }

    #[test]
    fn a_queue_may_be_refused_for_descriptors_or_for_bytes() {
        let of_pipes = Limits::behind("pipe", Errno::MFILE);
        assert_eq!((of_pipes.certain, of_pipes.suspects.len()), (true, 1));
        let of_queues = Limits::behind("mq_open", Errno::MFILE).suspects;
        assert_eq!(names(of_queues), ["RLIMIT_NOFILE", "RLIMIT_MSGQUEUE"]);
    }
}
