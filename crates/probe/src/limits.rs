//! Limits that a failed call has reached: their values, and how to raise them.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rundata::machine::{CgroupLimit, Machine};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::machine;
use crate::procfs::ids_in;

/// A limit of the kernel.
#[derive(Clone, Debug)]
struct KernelLimit {
    /// Name in the manuals.
    name: &'static str,
    value: u64,
    /// How much of it is in use, if that is known.
    in_use: Option<u64>,
    /// How to raise it.
    raise: String,
}

impl KernelLimit {
    /// Returns whether the use is within two per cent of the limit: other tasks come and go
    /// meanwhile.
    fn is_reached(&self) -> bool {
        self.in_use.is_some_and(|used| used.saturating_add(self.value / 50) >= self.value)
    }
}

impl fmt::Display for KernelLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.name, self.value)?;
        if let Some(used) = self.in_use {
            write!(f, " ({used} in use)")?;
        }
        write!(f, "; to raise it: {}", self.raise)
    }
}

/// Describes the limits behind `errno` of `call` in the present state of the machine. To be called
/// before anything that was created is released.
pub fn behind(call: &str, errno: Errno) -> String {
    let (suspects, certain) = suspects(call, errno);
    let words: Vec<String> = suspects.iter().map(KernelLimit::to_string).collect();
    match (words.is_empty(), certain) {
        (true, _) => "No limit that this program knows explains it".to_string(),
        (false, true) => format!("Limit reached: {}", words.join("; also ")),
        (false, false) => format!("One of these limits explains it: {}", words.join("; or ")),
    }
}

/// Returns the limits that are reached, and true; or, if none is, all that may be behind it, and
/// false.
fn suspects(call: &str, errno: Errno) -> (Vec<KernelLimit>, bool) {
    // Without a free descriptor no file can be read, and there is no other cause, except that a
    // queue refused for its bytes fails with the same errno.
    if errno == Errno::MFILE && call != "mq_open" {
        return (vec![open_files()], true);
    }
    let all = candidates(Path::new("/"), call, errno);
    let reached: Vec<KernelLimit> =
        all.iter().filter(|limit| limit.is_reached()).cloned().collect();
    if reached.is_empty() { (all, false) } else { (reached, true) }
}

/// Returns all limits that may be behind an errno of a call.
fn candidates(root: &Path, call: &str, errno: Errno) -> Vec<KernelLimit> {
    let found = match errno {
        Errno::MFILE => vec![Some(open_files()), queue_bytes()],
        Errno::NOSPC => vec![ipc_objects(root, call)],
        Errno::ADDRINUSE | Errno::ADDRNOTAVAIL => vec![ports(root)],
        Errno::NFILE => {
            let pages = sysctl(root, "fs.pipe-user-pages-hard", None);
            let raise = "sysctl fs.pipe-user-pages-hard=0 (or run as root)".to_string();
            vec![
                sysctl(root, "fs.file-max", number_in(root, "proc/sys/fs/file-nr", 0)),
                pages.filter(|limit| limit.value > 0).map(|limit| KernelLimit { raise, ..limit }),
            ]
        }
        Errno::NOMEM => memory(root, &machine::read(root)),
        // Whatever the call: some run in a helper process, which needs a process too.
        Errno::AGAIN => {
            let machine = machine::read(root);
            let mut limits = tasks(root, &machine);
            // A thread without memory for its stack fails with EAGAIN, too.
            for limit in memory(root, &machine).into_iter().flatten() {
                if limit.is_reached() {
                    limits.push(Some(limit));
                }
            }
            limits
        }
        _ => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

/// Smallest memory of the kernel for a process: its stack, page tables and descriptors.
const TASK_BYTES: u64 = 32 << 10;

/// Checks that `count` more processes or threads are possible, and leave room for some others. The
/// error describes the limit that forbids it.
pub fn check_tasks(machine: &Machine, count: u64) -> Result<(), String> {
    if let Some(free) = machine.memory.available_bytes.known() {
        let needed = count.saturating_mul(TASK_BYTES);
        if needed > free / 10 * 9 {
            let (needed, free) = (needed >> 20, free >> 20);
            return Err(format!("they need {needed} MiB at least, and {free} MiB are free"));
        }
    }
    // Root is not held by its own limit (fork(2)).
    let is_root = rustix::process::geteuid().is_root();
    let limits = tasks(Path::new("/"), machine).into_iter().flatten();
    for limit in limits.filter(|limit| !is_root || limit.name != "RLIMIT_NPROC") {
        let room = limit.value.saturating_sub(limit.in_use.unwrap_or(0));
        if count > room.saturating_sub(limit.value / 50) {
            return Err(limit.to_string());
        }
    }
    Ok(())
}

/// Descriptors that a worker has beside those of its rings, at most.
const OTHER_DESCRIPTORS: u64 = 32;

/// Checks that this process may open `count` more descriptors. The error describes the limit.
pub fn check_open_files(count: u64) -> Result<(), String> {
    let limit = open_files();
    if count.saturating_add(OTHER_DESCRIPTORS) <= limit.value {
        return Ok(());
    }
    let needed = count.saturating_add(OTHER_DESCRIPTORS);
    let raise = format!("ulimit -n {needed} (root, or the hard limit in limits.conf(5))");
    Err(KernelLimit { raise, ..limit }.to_string())
}

/// Returns the limits of tasks.
fn tasks(root: &Path, machine: &Machine) -> Vec<Option<KernelLimit>> {
    let all_tasks = machine.load.tasks.known().copied();
    let group = machine.cgroup.pids_max.known().and_then(Option::as_ref);
    let raise_pids = "sysctl kernel.pid_max=4194304 (root)".to_string();
    vec![
        group.map(|limit| {
            let raise = format!("write more to {}/pids.max", limit.path);
            of_group("pids.max of the control group", limit, raise)
        }),
        getrlimit(Resource::Nproc).current.map(|value| {
            let twice = value.saturating_mul(2);
            let raise = format!("ulimit -u {twice} (root, or the hard limit in limits.conf(5))");
            KernelLimit { name: "RLIMIT_NPROC", value, in_use: own_tasks(root), raise }
        }),
        sysctl(root, "kernel.pid_max", all_tasks)
            .map(|limit| KernelLimit { raise: raise_pids, ..limit }),
        sysctl(root, "kernel.threads-max", all_tasks),
    ]
}

/// Returns the limits of memory.
fn memory(root: &Path, machine: &Machine) -> Vec<Option<KernelLimit>> {
    let group = machine.cgroup.memory_max_bytes.known().and_then(Option::as_ref);
    let (total, free) = (&machine.memory.total_bytes, &machine.memory.available_bytes);
    vec![
        group.map(|limit| {
            let raise = format!("raise the memory limit of {}", limit.path);
            of_group("the control group's memory in bytes", limit, raise)
        }),
        total.known().zip(free.known()).map(|(total, free)| KernelLimit {
            name: "the machine's memory in bytes",
            value: *total,
            in_use: Some(total.saturating_sub(*free)),
            raise: "ask for fewer members".to_string(),
        }),
        mappings(root),
    ]
}

/// Builds the limit of a control group.
fn of_group(name: &'static str, limit: &CgroupLimit, raise: String) -> KernelLimit {
    KernelLimit { name, value: limit.max, in_use: limit.current.known().copied(), raise }
}

/// Returns the limit of mappings: stacks of threads and coroutines take two each, and memory that
/// neighbours share takes one.
fn mappings(root: &Path) -> Option<KernelLimit> {
    let maps = fs::read_to_string(root.join("proc/self/maps")).unwrap_or_default();
    let in_use = Some(maps.lines().count() as u64).filter(|count| *count > 0);
    sysctl(root, "vm.max_map_count", in_use)
}

/// Counts the tasks of the calling user like RLIMIT_NPROC. Not known in a user namespace without
/// mapped users, where all users look alike (user_namespaces(7)).
fn own_tasks(root: &Path) -> Option<u64> {
    let mapped = fs::read_to_string(root.join("proc/self/uid_map"));
    if mapped.is_ok_and(|map| map.trim().is_empty()) {
        return None;
    }
    let uid = rustix::process::getuid().as_raw();
    let mut count = 0;
    for pid in ids_in(&root.join("proc")) {
        let folder = root.join(format!("proc/{pid}"));
        if fs::metadata(&folder).is_ok_and(|metadata| metadata.uid() == uid) {
            count += ids_in(&folder.join("task")).len() as u64;
        }
    }
    if count > 0 { Some(count) } else { None }
}

fn open_files() -> KernelLimit {
    let value = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let twice = value.saturating_mul(2);
    let raise = format!("ulimit -n {twice} (members that are threads share one table)");
    KernelLimit { name: "RLIMIT_NOFILE", value, in_use: None, raise }
}

/// Returns the limit of the bytes of all the user's queues (mq_overview(7)).
fn queue_bytes() -> Option<KernelLimit> {
    let value = getrlimit(Resource::Msgqueue).current?;
    let raise = "ulimit -q unlimited (root, or the hard limit in limits.conf(5))".to_string();
    Some(KernelLimit { name: "RLIMIT_MSGQUEUE", value, in_use: None, raise })
}

/// Returns the number of ports that the kernel gives to sockets without one (ip(7)). Each end of a
/// connection takes one.
fn ports(root: &Path) -> Option<KernelLimit> {
    const FILE: &str = "proc/sys/net/ipv4/ip_local_port_range";
    let (first, last) = (number_in(root, FILE, 0)?, number_in(root, FILE, 1)?);
    let name = "net.ipv4.ip_local_port_range in ports";
    let raise = "sysctl net.ipv4.ip_local_port_range='1024 65535' (root)".to_string();
    Some(KernelLimit { name, value: (last + 1).saturating_sub(first), in_use: None, raise })
}

/// Returns the limit of objects of a kind of IPC (mq_overview(7), proc_sys_kernel(5)).
fn ipc_objects(root: &Path, call: &str) -> Option<KernelLimit> {
    let limit = match call {
        "mq_open" => return sysctl(root, "fs.mqueue.queues_max", None),
        "msgget" => sysctl(root, "kernel.msgmni", None)?,
        "semget" => {
            // SEMMNI.
            let value = number_in(root, "proc/sys/kernel/sem", 3)?;
            let name = "kernel.sem (its fourth number)";
            KernelLimit { name, value, in_use: None, raise: String::new() }
        }
        _ => return None,
    };
    // A new namespace has the kernel's default values, whatever the machine's are.
    let raise = "ask for fewer members: the ring has an IPC namespace of its own, with the \
        kernel's default limits";
    Some(KernelLimit { raise: raise.to_string(), ..limit })
}

/// Reads a limit that has a file in /proc/sys.
fn sysctl(root: &Path, name: &'static str, in_use: Option<u64>) -> Option<KernelLimit> {
    let value = number_in(root, &format!("proc/sys/{}", name.replace('.', "/")), 0)?;
    let raise = format!("sysctl {name}={} (root)", value.saturating_mul(2));
    Some(KernelLimit { name, value, in_use, raise })
}

fn number_in(root: &Path, file: &str, field: usize) -> Option<u64> {
    let text = fs::read_to_string(root.join(file)).ok()?;
    text.split_whitespace().nth(field)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use rundata::reading::Reading;

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
        let value = |call| ipc_objects(root.path(), call).map(|limit| limit.value);
        assert_eq!(value("mq_open"), Some(256));
        assert_eq!(value("msgget"), Some(11));
        assert_eq!(value("semget"), Some(44));
        assert_eq!(value("pipe"), None);
    }

    fn names(limits: Vec<KernelLimit>) -> Vec<&'static str> {
        limits.into_iter().map(|limit| limit.name).collect()
    }

    #[test]
    fn whatever_call_finds_no_room_for_a_task_the_limits_of_tasks_are_named() {
        let behind = |call| names(candidates(Path::new("/"), call, Errno::AGAIN));
        let of_fork = behind("fork");
        assert!(of_fork.contains(&"kernel.pid_max"), "{of_fork:?}");
        // What the helper process of a FIFO and of a POSIX queue is made by.
        assert_eq!(behind("clone"), of_fork);
    }

    #[test]
    fn tasks_that_cannot_be_had_are_known_beforehand() {
        let machine = machine::read(Path::new("/"));
        assert_eq!(check_tasks(&machine, 2), Ok(()));
        let machine = Machine { memory: Default::default(), ..machine };
        let why = check_tasks(&machine, 1 << 23).unwrap_err();
        assert!(why.contains(" in use); to raise it: "), "{why}");
        let available_bytes = Reading::Known(10 << 20);
        let memory = rundata::machine::SystemMemory { available_bytes, ..machine.memory.clone() };
        let machine = Machine { memory, ..machine };
        let why = check_tasks(&machine, 1000).unwrap_err();
        assert_eq!(why, "they need 31 MiB at least, and 10 MiB are free");
    }

    #[test]
    fn descriptors_that_cannot_be_had_are_known_beforehand() {
        assert_eq!(check_open_files(1), Ok(()));
        let Some(limit) = getrlimit(Resource::Nofile).current else { return };
        let why = check_open_files(limit).unwrap_err();
        let begin = format!("RLIMIT_NOFILE is {limit}; to raise it: ulimit -n {}", limit + 32);
        assert!(why.starts_with(&begin), "{why}");
    }

    #[test]
    fn connections_are_limited_by_the_ports_that_the_kernel_gives() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/sys/net/ipv4");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("ip_local_port_range"), "32768\t60999\n").unwrap();
        let all = candidates(root.path(), "bind", Errno::ADDRINUSE);
        let [limit] = &all[..] else { panic!("{all:?}") };
        assert_eq!(limit.value, 28_232);
        assert!(limit.raise.contains("net.ipv4.ip_local_port_range='1024 65535'"));
    }

    #[test]
    fn no_memory_may_be_too_many_mappings() {
        let root = tempfile::tempdir().unwrap();
        let (sys, own) = (root.path().join("proc/sys/vm"), root.path().join("proc/self"));
        fs::create_dir_all(&sys).unwrap();
        fs::create_dir_all(&own).unwrap();
        fs::write(sys.join("max_map_count"), "65530\n").unwrap();
        fs::write(own.join("maps"), "a\n".repeat(65528)).unwrap();
        let limit = mappings(root.path()).unwrap();
        assert_eq!((limit.value, limit.in_use), (65530, Some(65528)));
        assert!(limit.is_reached() && limit.raise.contains("vm.max_map_count=131060"));
        let all = candidates(Path::new("/"), "mmap", Errno::NOMEM);
        assert!(names(all).contains(&"vm.max_map_count"));
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
        let (of_pipes, certain) = suspects("pipe", Errno::MFILE);
        assert_eq!((certain, of_pipes.len()), (true, 1));
        let (of_queues, _) = suspects("mq_open", Errno::MFILE);
        assert_eq!(names(of_queues), ["RLIMIT_NOFILE", "RLIMIT_MSGQUEUE"]);
    }
}
