//! Processes: fork, exit, deadlines, policies. Children: those that never outlive their parent,
//! their ends and usage (wait4(2)), inherited descriptors, signals. And a child whose system calls
//! are counted.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, getppid,
    getrlimit, kill_process, set_parent_process_death_signal, setrlimit, setsid, waitid, waitpid,
};
use rustix::thread::{UnshareFlags, set_name, unshare_unsafe};

use super::check;
use super::clock::ResourceUsage;
use super::signal::unblock;

/// Side of a fork on which the caller is.
pub enum ForkSide {
    /// In the new process.
    Child,
    /// In the old one.
    Parent(Pid),
}

/// Forks the calling process. EBUSY if it has other threads, or may have: the child would have
/// their locks but not the threads, and could use async-signal-safe functions only.
pub fn fork() -> Result<ForkSide, Errno> {
    // The harness of unit tests has threads; children of tests take no lock that those hold for
    // long.
    if !cfg!(test) && !has_one_thread() {
        return Err(Errno::BUSY);
    }
    // SAFETY: there is no other thread: the child has all that this process has.
    match check(unsafe { libc::fork() })? {
        0 => Ok(ForkSide::Child),
        pid => Pid::from_raw(pid).map(ForkSide::Parent).ok_or(Errno::INVAL),
    }
}

/// Returns whether the calling process has one thread. Waits up to 0.1 s, as a thread that was
/// joined exists for a moment longer.
pub(super) fn has_one_thread() -> bool {
    for attempt in 0..100 {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        if is_alone() {
            return true;
        }
    }
    false
}

/// Returns whether the process has one thread now. The kernel refuses CLONE_THREAD if there are
/// others, and else does nothing (unshare(2)). If that call is forbidden, as in containers, the
/// links of the folder of tasks show it: two, and one for each thread (proc_pid_task(5)).
fn is_alone() -> bool {
    let flag = UnshareFlags::from_bits_retain(libc::CLONE_THREAD as u32);
    // SAFETY: nothing is unshared by this flag.
    match unsafe { unshare_unsafe(flag) } {
        Ok(()) => true,
        Err(Errno::INVAL) => false,
        Err(_) => std::fs::metadata("/proc/self/task").is_ok_and(|folder| folder.nlink() <= 3),
    }
}

/// Lets the calling process be killed when its parent ends (PR_SET_PDEATHSIG). False if its parent
/// is not `parent`, who then has ended already.
pub fn set_parent_death_signal(parent: i32) -> Result<bool, Errno> {
    // Asked for first, then checked: a parent that ended before is noticed too.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(getppid().map(Pid::as_raw_pid) == Some(parent))
}

/// Lets the calling process be killed when its parent ends. Returns false if the parent has ended
/// already or the kernel refuses: then the caller should end itself.
pub fn end_with_parent(parent: Pid) -> bool {
    set_parent_death_signal(parent.as_raw_pid()) == Ok(true)
}

/// Makes the command's addresses the same in every run (ADDR_NO_RANDOMIZE), if that is granted.
pub fn fix_addresses(command: &mut Command) {
    // SAFETY: between fork and exec the child makes two system calls and touches no memory.
    unsafe {
        command.pre_exec(|| {
            const AS_IT_IS: libc::c_ulong = 0xffff_ffff;
            if let Ok(persona) = libc::c_ulong::try_from(libc::personality(AS_IT_IS)) {
                libc::personality(persona | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            }
            Ok(())
        });
    }
}

/// Checks that fixed addresses are granted: some containers refuse them.
pub fn check_fixed_addresses() -> Result<(), Errno> {
    // SAFETY: a flag that only exec(2) looks at, which is taken back at once.
    unsafe {
        let persona = check(libc::personality(0xffff_ffff))? as libc::c_ulong;
        check(libc::personality(persona | libc::ADDR_NO_RANDOMIZE as libc::c_ulong))?;
        check(libc::personality(persona))?;
    }
    Ok(())
}

/// Forks ([`fork`]) a process that waits until no process has the other end of `watched`, then runs
/// `act` and ends. It has a session of its own, outlives its parent, and has no other descriptor:
/// it keeps no pipe open.
pub fn act_behind(watched: OwnedFd, act: impl FnOnce()) -> Result<Pid, Errno> {
    match fork()? {
        ForkSide::Parent(pid) => Ok(pid),
        ForkSide::Child => {
            // It shall not get signals to the parent's group. It leads no group: this cannot fail.
            let _ = setsid();
            close_all_but(watched.as_raw_fd());
            let _ = File::from(watched).read_to_end(&mut Vec::new());
            act();
            exit_now(0);
        }
    }
}

/// Closes every descriptor of this process except `kept`. No other may be used from here on.
fn close_all_but(kept: RawFd) {
    let number = kept as libc::c_uint;
    let ranges = [(0, number.checked_sub(1)), (number + 1, Some(libc::c_uint::MAX))];
    for (first, last) in ranges {
        let Some(last) = last else { continue };
        // SAFETY: the caller promises that nobody uses them.
        let status = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        // Before Linux 5.9 there is no such call.
        if status == -1 {
            for descriptor in open_descriptors() {
                if descriptor != kept {
                    // SAFETY: as above. One that is closed already is refused.
                    unsafe { libc::close(descriptor) };
                }
            }
            return;
        }
    }
}

/// Returns the numbers of this process's descriptors; where /proc does not tell them, all that
/// there can be.
fn open_descriptors() -> Vec<RawFd> {
    let mut numbers = Vec::new();
    if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
        for entry in entries.flatten() {
            numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
        }
        return numbers;
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(MAX_DESCRIPTORS);
    numbers.extend(0..limit.min(MAX_DESCRIPTORS) as RawFd);
    numbers
}

/// Largest number of descriptors that are closed one by one if the open ones are not known.
const MAX_DESCRIPTORS: u64 = 1 << 20;

/// Sets the name, up to 15 bytes, under which ps(1), top(1) and tracers show the calling thread and
/// all that it forks from now on. A process started through /proc/self/exe would be called `exe`.
pub fn set_own_name(name: &CStr) {
    // A failure changes nothing but the name.
    let _ = set_name(name);
}

/// Ends the calling process at once: no destructor runs, and no buffer of the parent is written
/// twice.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Makes SIGALRM end the process: it may have been ignored or blocked when the process was started.
pub fn reset_alarm() {
    // SAFETY: the default action needs no handler.
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_DFL) };
    unblock(libc::SIGALRM);
}

/// Lets SIGALRM end the calling process after `seconds`, unless this is called again before; 0
/// removes the deadline. The members of a ring end with the process.
pub fn set_deadline(seconds: u32) {
    // SAFETY: alarm touches no memory; the default action of SIGALRM is to terminate.
    unsafe { libc::alarm(seconds) };
}

/// Limits for how long the calling process, under a real-time policy, may run without waiting once:
/// SIGXCPU at `limit_us`, its end `grace_us` later (setrlimit(2), RLIMIT_RTTIME). Lowering it needs
/// no privilege; where a lower one is set, that one holds.
pub fn limit_real_time(limit_us: u64, grace_us: u64) {
    let limit =
        Rlimit { current: Some(limit_us), maximum: Some(limit_us.saturating_add(grace_us)) };
    let _ = setrlimit(Resource::Rttime, limit);
}

/// Sets the scheduling policy (`libc::SCHED_*`) and priority of the calling thread, and of all that
/// it forks or starts from now on.
pub fn set_policy(policy: i32, priority: i32) -> Result<(), Errno> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads one sched_param from a valid address.
    check(unsafe { libc::sched_setscheduler(0, policy, &param) }).map(|_| ())
}

/// The end of a child.
#[derive(Clone, Copy, Debug)]
pub struct ChildEnd {
    /// Wait status as wait(2) gives it.
    pub status: i32,
    /// Usage of all its threads and of the children that it waited for. Fields that Linux does not
    /// fill are 0.
    pub usage: ResourceUsage,
}

/// Waits for a child's end (wait4(2)).
pub fn wait_for(pid: i32) -> Result<ChildEnd, Errno> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both addresses are valid for what the kernel writes there.
    retry_on_intr(|| check(unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) }))?;
    // SAFETY: zeroes are a valid rusage, and the kernel has filled it.
    Ok(ChildEnd { status, usage: ResourceUsage(unsafe { usage.assume_init() }) })
}

/// Returns a child that has ended and waits to be reaped, `None` if all children still run, ECHILD
/// if there is no child (waitid(2)).
pub fn ended_child() -> Result<Option<i32>, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the address is valid for what the kernel writes there; zeroes are a valid siginfo, of
    // no process, which it leaves where no child has ended.
    let (result, info) =
        unsafe { (libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), how), info.assume_init()) };
    check(result)?;
    // SAFETY: what waitid fills has a process id.
    let pid = unsafe { info.si_pid() };
    Ok(Some(pid).filter(|pid| *pid > 0))
}

/// Detaches from children that have asked to be traced by this process (PTRACE_TRACEME) and were
/// stopped by a signal or an exec. Each gets its signal, except those by which a child waits for
/// its tracer. Returns whether there was such a child.
pub fn release_traced_children() -> bool {
    let mut was_traced = false;
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let how = libc::WSTOPPED | libc::WNOHANG;
        // SAFETY: the address is valid for what the kernel writes there; zeroes are a valid
        // siginfo, of no process, which it leaves where no child stands.
        let (result, info) =
            unsafe { (libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), how), info.assume_init()) };
        // SAFETY: what waitid fills has a process id and a status.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        let child = check(result).ok().and_then(|_| Pid::from_raw(pid));
        let Some(child) = child else { return was_traced };
        if info.si_code != libc::CLD_TRAPPED {
            continue;
        }
        was_traced = true;
        let waits = matches!(status & 0x7f, libc::SIGSTOP | libc::SIGTRAP);
        let signal = if waits { 0 } else { (status & 0x7f) as usize };
        // It may have been killed meanwhile.
        let _ = request(libc::PTRACE_DETACH, child, signal);
    }
}

/// Duplicates a descriptor that this process was started with; exec closes both. EBADF if it is not
/// open, and for standard streams.
pub fn inherited(number: i32) -> Result<OwnedFd, Errno> {
    if number < 3 {
        return Err(Errno::BADF);
    }
    // SAFETY: only checked for being open, and not closed here: its owner keeps it.
    let found = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(found, FdFlags::CLOEXEC)?;
    fcntl_dupfd_cloexec(found, 3)
}

/// Sends a signal to a process. That it is gone is no error.
pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid, signal) };
}

// Counting the system calls of a child by ptrace(2). It needs no privilege, as the child asks for
// it.

/// First fields of the kernel's `struct ptrace_syscall_info` (linux/ptrace.h).
#[repr(C)]
struct SyscallInfo {
    op: u8,
    padding: [u8; 3],
    arch: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    number: u64,
}

/// PTRACE_GET_SYSCALL_INFO and its `op` for an entry.
const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
const ENTRY: u8 = 1;

/// Runs `act` in a child ([`fork`]) and counts its system calls by their numbers. The child has
/// ended when this returns.
pub fn count_syscalls(act: impl FnOnce()) -> Result<BTreeMap<i64, u64>, Errno> {
    let child = ChildProcess::start(|| {
        // SAFETY: these calls touch no memory of ours. The parent sees the stop.
        let is_traced = unsafe {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 && libc::raise(libc::SIGSTOP) == 0
        };
        if is_traced {
            act();
        }
        exit_now(i32::from(!is_traced));
    })?;
    let counts = trace(child.0)?;
    // The child was reaped: its id may soon be another process's.
    std::mem::forget(child);
    Ok(counts)
}

/// Signal of a stop at a system call, with PTRACE_O_TRACESYSGOOD.
const AT_A_CALL: i32 = libc::SIGTRAP | 0x80;

/// Counts the system calls of a child up to its end.
fn trace(child: Pid) -> Result<BTreeMap<i64, u64>, Errno> {
    let mut counts = BTreeMap::new();
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    let mut status = wait(child)?;
    if status.stopped() {
        request(libc::PTRACE_SETOPTIONS, child, options as usize)?;
    }
    // At the first stop the child has asked to be traced.
    let mut signal = 0;
    while status.stopped() {
        request(libc::PTRACE_SYSCALL, child, signal)?;
        status = wait(child)?;
        signal = match status.stopping_signal() {
            Some(AT_A_CALL) => {
                if let Some(number) = entered_call(child)? {
                    *counts.entry(number).or_default() += 1;
                }
                0
            }
            // The child gets signals that it sends to itself, as abort(3) does.
            signal => signal.unwrap_or(0) as usize,
        };
    }
    if status.exit_status() == Some(0) { Ok(counts) } else { Err(Errno::CHILD) }
}

fn wait(child: Pid) -> Result<WaitStatus, Errno> {
    let ended = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()))?;
    ended.map(|(_, status)| status).ok_or(Errno::CHILD)
}

fn request(what: libc::c_uint, child: Pid, data: usize) -> Result<(), Errno> {
    // SAFETY: these requests take a number as data and touch no memory of ours.
    check(unsafe { libc::ptrace(what, child.as_raw_pid(), 0, data) }).map(|_| ())
}

/// Returns the number of the call that the child is about to make; `None` at the end of a call.
fn entered_call(child: Pid) -> Result<Option<i64>, Errno> {
    let mut info = MaybeUninit::<SyscallInfo>::zeroed();
    let size = size_of::<SyscallInfo>();
    // SAFETY: the kernel writes at most `size` bytes; zeroes are a valid SyscallInfo.
    let (got, info) = unsafe {
        let address = info.as_mut_ptr().cast::<c_void>();
        (libc::ptrace(GET_SYSCALL_INFO, child.as_raw_pid(), size, address), info.assume_init())
    };
    check(got)?;
    Ok((info.op == ENTRY).then_some(info.number as i64))
}

/// A child of this process. Dropping it kills the child.
pub struct ChildProcess(pub Pid);

impl ChildProcess {
    /// Forks a child that runs `act` and ends ([`fork`]).
    pub fn start(act: impl FnOnce()) -> Result<Self, Errno> {
        let parent = getpid();
        match fork()? {
            ForkSide::Parent(pid) => Ok(Self(pid)),
            ForkSide::Child => {
                if end_with_parent(parent) {
                    act();
                }
                exit_now(0);
            }
        }
    }

    /// Forks a child like [`Self::start`] that first runs `ready` and then `act`. Returns when the
    /// child is ready; the error says why it is not.
    pub fn start_ready<T>(
        ready: impl FnOnce() -> Result<T, String>,
        act: impl FnOnce(T),
    ) -> Result<Self, String> {
        const READY: &str = "ready";
        let parent = getpid();
        let (answers, answer) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|errno| not_tried("pipe", errno))?;
        let child = Self::start(|| {
            let prepared = ready();
            let text = prepared.as_ref().err().map_or(READY, String::as_str);
            let sent = File::from(answer).write_all(text.as_bytes());
            // Entering a user namespace clears the parent-death signal (prctl(2)).
            if let (Ok(prepared), Ok(()), true) = (prepared, sent, end_with_parent(parent)) {
                act(prepared);
            }
        });
        let child = child.map_err(|errno| not_tried("fork", errno))?;
        let mut text = String::new();
        let _ = File::from(answers).read_to_string(&mut text);
        match text.as_str() {
            READY => Ok(child),
            "" => Err("the process that tried it ended without an answer".to_string()),
            _ => Err(text),
        }
    }

    /// Forks a child that sleeps.
    pub fn asleep() -> Result<Self, Errno> {
        Self::start(|| sleep_for_ever())
    }

    /// Returns whether the child still runs.
    pub fn is_alive(&mut self) -> bool {
        // WNOWAIT: a child that has ended is reaped by the drop.
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.0), how), Ok(None))
    }

    /// Waits until the child has ended by itself. The kernel's files of it can be read until it is
    /// joined.
    pub fn wait(&self) {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = retry_on_intr(|| waitid(WaitId::Pid(self.0), how));
    }

    /// Waits until the child has ended by itself; returns whether its exit status was 0.
    pub fn join(self) -> bool {
        let ended = self.end(WaitOptions::empty());
        matches!(ended, Ok(Some(status)) if status.exit_status() == Some(0))
    }

    /// Waits for the child's end as `how` says. Returns its status, if that is known, or the child
    /// itself if it still runs.
    pub fn end(self, how: WaitOptions) -> Result<Option<WaitStatus>, Self> {
        let ended = retry_on_intr(|| waitpid(Some(self.0), how));
        if matches!(ended, Ok(None)) {
            return Err(self);
        }
        // The child was reaped: its id may soon be another process's.
        std::mem::forget(self);
        Ok(ended.ok().flatten().map(|(_, status)| status))
    }

    /// Returns the process id.
    pub fn pid(&self) -> i32 {
        self.0.as_raw_pid()
    }
}

/// Builds the error that a child could not even be created.
fn not_tried(call: &str, errno: Errno) -> String {
    format!("it could not be tried: {call}: {errno}")
}

/// Sleeps until the process is killed.
pub fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_thread_is_seen_and_its_end_too() {
        // The harness has threads of its own: what is asked is a child that has one.
        let alone = || {
            let before = has_one_thread();
            let (ends, held) = std::sync::mpsc::channel::<()>();
            let other = std::thread::spawn(move || held.recv().is_err());
            let beside = is_alone();
            drop(ends);
            before && !beside && other.join().is_ok() && has_one_thread()
        };
        let child = ChildProcess::start(|| exit_now(i32::from(!alone()))).unwrap();
        assert!(child.join());
    }

    #[test]
    fn no_child_is_an_error() {
        assert_eq!(wait_for(i32::MAX).err(), Some(Errno::CHILD));
    }

    #[test]
    fn every_call_is_counted_once() {
        let act = || {
            for _ in 0..7 {
                // SAFETY: getppid takes nothing and touches nothing.
                unsafe { libc::syscall(libc::SYS_getppid) };
            }
        };
        let counts = count_syscalls(act).unwrap();
        assert_eq!(counts.get(&libc::SYS_getppid), Some(&7), "{counts:?}");
        // Beside them only how raise(3) ends, and the end.
        let others = [libc::SYS_getppid, libc::SYS_rt_sigprocmask, libc::SYS_exit_group];
        assert!(counts.keys().all(|number| others.contains(number)), "{counts:?}");
    }

    #[test]
    fn a_child_that_fails_is_no_count() {
        assert!(count_syscalls(|| exit_now(3)).is_err());
        // As an allocator that finds its heap broken.
        assert!(count_syscalls(|| std::process::abort()).is_err());
    }
}
