//! Processes: fork, the end, deadlines, policies; children: one that never outlives its parent, how
//! one ended and what it used (wait4(2)), descriptors handed down, signals; a child whose system
//! calls are counted.

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

/// On which side of a fork the caller is.
pub enum ForkSide {
    /// In the new process.
    Child,
    /// In the old one.
    Parent(Pid),
}

/// Forks the calling process. EBUSY where it has other threads, or may have: the child has their
/// locks and none of them, so that it could use only what is async-signal-safe.
pub fn fork() -> Result<ForkSide, Errno> {
    // The harness of unit tests has threads; what these fork takes no lock that those hold for
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

/// A thread that was joined is there for a moment longer.
pub(super) fn has_one_thread() -> bool {
    let is_alone = |attempt: u32| {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        is_alone()
    };
    (0..100).any(is_alone)
}

/// Asked of the kernel, which refuses CLONE_THREAD beside other threads and does nothing else
/// (unshare(2)); where that is forbidden, as containers do, by the links of the folder of tasks:
/// two, and one for each thread (proc_pid_task(5)).
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

/// The same. False also where the kernel refuses: then the caller is to end itself.
pub fn end_with_parent(parent: Pid) -> bool {
    set_parent_death_signal(parent.as_raw_pid()) == Ok(true)
}

/// Has the command's addresses be the same in every run (ADDR_NO_RANDOMIZE), where that is granted.
pub fn at_fixed_addresses(command: &mut Command) {
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

/// Whether that is granted: some containers refuse it.
pub fn check_fixed_addresses() -> Result<(), Errno> {
    // SAFETY: a flag that only exec(2) looks at, which is taken back at once.
    unsafe {
        let persona = check(libc::personality(0xffff_ffff))? as libc::c_ulong;
        check(libc::personality(persona | libc::ADDR_NO_RANDOMIZE as libc::c_ulong))?;
        check(libc::personality(persona))?;
    }
    Ok(())
}

/// Forks ([`fork`]) one that waits until nobody has the other end of `watched` any more, then does
/// `act` and ends. It is in a session of its own, outlives its parent, and has no other descriptor:
/// nobody waits for the end of what it has inherited.
pub fn act_behind(watched: OwnedFd, act: impl FnOnce()) -> Result<Pid, Errno> {
    match fork()? {
        ForkSide::Parent(pid) => Ok(pid),
        ForkSide::Child => {
            // Signals to the parent's group are not for it. It leads none, so this cannot fail.
            let _ = setsid();
            close_all_but(watched.as_raw_fd());
            let _ = File::from(watched).read_to_end(&mut Vec::new());
            act();
            exit_now(0);
        }
    }
}

/// Closes every descriptor of this process but `kept`. Nobody in it may use another from here on.
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

/// Returns the numbers of this process's descriptors; where /proc does not tell them, all that there
/// can be.
fn open_descriptors() -> Vec<RawFd> {
    let mut numbers = Vec::new();
    if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
        for entry in entries.flatten() {
            numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
        }
        return numbers;
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(MOST_DESCRIPTORS);
    numbers.extend(0..limit.min(MOST_DESCRIPTORS) as RawFd);
    numbers
}

/// Descriptors that are closed one by one at most, where nobody tells which are open.
const MOST_DESCRIPTORS: u64 = 1 << 20;

/// What the calling thread, and what it forks or starts from now on, is called by ps(1), top(1) and
/// tracers: up to 15 bytes. StartedCommand through /proc/self/exe, a process is called `exe`.
pub fn set_own_name(name: &CStr) {
    // Only what it is called hangs on it.
    let _ = set_name(name);
}

/// Ends the calling process at once: no destructor, no buffer of the parent's is written twice.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Makes SIGALRM end the process again, whatever it was started with: signals that are ignored or
/// blocked stay so over exec.
pub fn default_alarm() {
    // SAFETY: the default action needs no handler.
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_DFL) };
    unblock(libc::SIGALRM);
}

/// Lets SIGALRM end the calling process after `seconds`, unless it is called again before; 0 takes
/// the deadline away. A process that hangs takes its members with it.
pub fn deadline(seconds: u32) {
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

/// Gives the calling thread, and what it forks or starts from now on, a scheduling policy
/// (`libc::SCHED_*`) at a priority.
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
    /// What it used with its threads and the children that it waited for. Fields that Linux does
    /// not fill are 0.
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

/// A child that has ended and waits to be reaped: `None` while all still run, ECHILD where there is
/// none (waitid(2)).
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

/// Lets children go on that asked to be traced by this process (PTRACE_TRACEME) and stand since a
/// signal or an exec, and are traced no longer. Each gets its signal, but for those by which a child
/// waits for its tracer. Returns whether there was one.
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
        // One that was killed meanwhile is gone.
        let _ = request(libc::PTRACE_DETACH, child, signal);
    }
}

/// A descriptor that this process was started with, under another number; exec closes both. EBADF
/// where none is open, and for standard streams.
pub fn inherited(number: i32) -> Result<OwnedFd, Errno> {
    if number < 3 {
        return Err(Errno::BADF);
    }
    // SAFETY: only checked for being open, and not closed here: its owner keeps it.
    let found = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(found, FdFlags::CLOEXEC)?;
    fcntl_dupfd_cloexec(found, 3)
}

/// Sends a signal to a process. One that is gone is no error.
pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid, signal) };
}

// A child whose system calls are counted by its parent (ptrace(2)). It needs no privilege: the
// child asks for it.

/// The head of the kernel's `struct ptrace_syscall_info` (linux/ptrace.h), as far as it is read.
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

/// Forks ([`fork`]), runs `act` in the child and gives how often it made each system call, by
/// number. The child is gone when this returns.
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
    let counts = watch(child.0)?;
    // It is gone: its number may soon be another's.
    std::mem::forget(child);
    Ok(counts)
}

/// A stop at a system call, with PTRACE_O_TRACESYSGOOD.
const AT_A_CALL: i32 = libc::SIGTRAP | 0x80;

fn watch(child: Pid) -> Result<BTreeMap<i64, u64>, Errno> {
    let mut counts = BTreeMap::new();
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    let mut status = wait(child)?;
    if status.stopped() {
        request(libc::PTRACE_SETOPTIONS, child, options as usize)?;
    }
    // The first stop is its own asking for it.
    let mut signal = 0;
    while status.stopped() {
        request(libc::PTRACE_SYSCALL, child, signal)?;
        status = wait(child)?;
        signal = match status.stopping_signal() {
            Some(AT_A_CALL) => {
                if let Some(number) = entered(child)? {
                    *counts.entry(number).or_default() += 1;
                }
                0
            }
            // What it does to itself, such as abort(3), must happen to it.
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

/// The number of the call that the child is about to make; none when it comes out of one.
fn entered(child: Pid) -> Result<Option<i64>, Errno> {
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

/// A child of this process; dropping it kills it.
pub struct ChildProcess(pub Pid);

impl ChildProcess {
    /// Forks one that does `act` and ends ([`fork`]).
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

    /// Forks one that gets something ready before it acts, as [`Self::start`] does; gives it once
    /// it is, or why it is not.
    pub fn start_ready<T>(
        ready: impl FnOnce() -> Result<T, String>,
        act: impl FnOnce(T),
    ) -> Result<Self, String> {
        const READY: &str = "ready";
        let failed = |call| move |errno: Errno| format!("it could not be tried: {call}: {errno}");
        let parent = getpid();
        let (answers, answer) = pipe_with(PipeFlags::CLOEXEC).map_err(failed("pipe"))?;
        let child = Self::start(|| {
            let made = ready();
            let said = made.as_ref().err().map_or(READY, String::as_str);
            let sent = File::from(answer).write_all(said.as_bytes());
            // Entering a user namespace clears the parent-death signal (prctl(2)).
            if let (Ok(made), Ok(()), true) = (made, sent, end_with_parent(parent)) {
                act(made);
            }
        });
        let child = child.map_err(failed("fork"))?;
        let mut said = String::new();
        let _ = File::from(answers).read_to_string(&mut said);
        match said.as_str() {
            READY => Ok(child),
            "" => Err("the process that tried it ended without an answer".to_string()),
            _ => Err(said),
        }
    }

    /// Forks one that sleeps.
    pub fn asleep() -> Result<Self, Errno> {
        Self::start(|| sleep_for_ever())
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        // One that has ended is not taken note of here: that is left to the drop.
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.0), how), Ok(None))
    }

    /// Waits for it to end by itself; what the kernel keeps of it can be read until it is joined.
    pub fn wait(&self) {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = retry_on_intr(|| waitid(WaitId::Pid(self.0), how));
    }

    /// Waits for it to end by itself; whether it did its part.
    pub fn join(self) -> bool {
        let ended = self.end(WaitOptions::empty());
        matches!(ended, Ok(Some(status)) if status.exit_status() == Some(0))
    }

    /// How it ended by itself, where that is known; itself while it runs.
    pub fn end(self, how: WaitOptions) -> Result<Option<WaitStatus>, Self> {
        let ended = retry_on_intr(|| waitpid(Some(self.0), how));
        if matches!(ended, Ok(None)) {
            return Err(self);
        }
        // It is gone: its number may soon be another's.
        std::mem::forget(self);
        Ok(ended.ok().flatten().map(|(_, status)| status))
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.0.as_raw_pid()
    }
}

/// Waits for the end of the process.
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
