//! Starting a command whose process may be stopped before its exec. `Command::spawn` waits until
//! the process has become the command or has ended, and a process that a signal has stopped does
//! neither. No other thread could notice that: this program has one thread, as it forks.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::io::Errno;

use super::page::SharedValue;
use super::signal::{action_of, change_mask, set_action, set_of};
use super::{check, done};
use crate::standstill::PATIENCE;

/// Held during a start: there is one timer.
static STARTING: Mutex<()> = Mutex::new(());
/// Process id of the child that is started, stored by the child; 0 before.
static CHILD_ID: OnceLock<SharedValue<AtomicU32>> = OnceLock::new();
/// Whether it is the only child of this process: then any child that stands still is it.
static IS_ONLY_CHILD: AtomicBool = AtomicBool::new(false);
/// Number of looks in a row that found it stopped.
static LOOKS: AtomicU32 = AtomicU32::new(0);
/// Process id of the child that was killed; 0 if none was.
static KILLED: AtomicI32 = AtomicI32::new(0);

/// Returns the timer's signal, which has no other use here, and which no alarm of the caller sends.
fn timer_signal() -> libc::c_int {
    libc::SIGRTMAX() - 1
}

/// Starts the command like `Command::spawn`. A process that is stopped before its exec, and that
/// nobody continues for [`PATIENCE`], is killed; the error is `ErrorKind::TimedOut`, with its
/// process id. If this process has other children, the new one is watched once it has stored its
/// id.
pub fn spawn_watched(command: &mut Command) -> io::Result<Child> {
    let only_start = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if CHILD_ID.get().is_none() {
        if let Ok(shared) = SharedValue::new() {
            // The lock is held: no other thread sets it.
            let _ = CHILD_ID.set(shared);
        }
    }
    // With something to do between fork and exec, std forks. Otherwise the kernel would hold this
    // thread until the exec (vfork(2)), and no handler could run.
    // SAFETY: the child makes a system call and writes to memory that both have.
    unsafe {
        command.pre_exec(|| {
            store_child_id(std::process::id());
            Ok(())
        })
    };
    store_child_id(0);
    IS_ONLY_CHILD.store(has_no_child(), Ordering::SeqCst);
    LOOKS.store(0, Ordering::SeqCst);
    KILLED.store(0, Ordering::SeqCst);
    let timer = SpawnTimer::start()?;
    let started = command.spawn();
    drop(timer);
    let killed = KILLED.load(Ordering::SeqCst);
    drop(only_start);
    let mut child = started?;
    if killed != child.id() as libc::pid_t {
        return Ok(child);
    }
    child.wait()?;
    let (pid, s) = (child.id(), PATIENCE.as_secs());
    let what = format!(
        "process {pid} was stopped by a signal before it had become the program, and not \
            continued within {s} s: killed"
    );
    Err(io::Error::new(io::ErrorKind::TimedOut, what))
}

fn store_child_id(pid: u32) {
    if let Some(shared) = CHILD_ID.get() {
        shared.store(pid, Ordering::SeqCst);
    }
}

/// Interrupts the calling thread every second. A child does not inherit the timer
/// (timer_create(2)), and loses the handler by its exec.
struct SpawnTimer {
    timer: libc::timer_t,
    action: libc::sigaction,
    mask: libc::sigset_t,
}

impl SpawnTimer {
    /// Creates and starts the timer.
    fn start() -> Result<Self, Errno> {
        let mut timer = MaybeUninit::<libc::timer_t>::uninit();
        // SAFETY: a sigevent of zeros is valid, and its fields below are set for SIGEV_THREAD_ID.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = timer_signal();
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_pid();
        // SAFETY: both addresses are valid; the kernel writes the timer's id or fails.
        let timer = unsafe {
            check(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, timer.as_mut_ptr()))?;
            timer.assume_init()
        };
        let action = action_of(timer_signal());
        // SAFETY: the handler has the signature that no SA_SIGINFO asks for; it uses system calls
        // and atomics, and leaves errno as it was. Calls that it interrupts go on.
        let set = unsafe {
            set_action(timer_signal(), look as *const () as usize, libc::SA_RESTART, &[])
        };
        let mask = change_mask(libc::SIG_UNBLOCK, &set_of(&[timer_signal()]));
        let clock = Self { timer, action, mask };
        set?;
        let second = libc::timespec { tv_sec: 1, tv_nsec: 0 };
        let every = libc::itimerspec { it_interval: second, it_value: second };
        // SAFETY: the timer was made above, and the kernel reads a valid time.
        done(unsafe {
            libc::timer_settime(timer, 0, &every, std::ptr::null_mut()) as libc::c_long
        })?;
        Ok(clock)
    }
}

impl Drop for SpawnTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is deleted once. The action and the mask are those that were there.
        unsafe {
            libc::timer_delete(self.timer);
            libc::sigaction(timer_signal(), &self.action, std::ptr::null_mut());
        }
        change_mask(libc::SIG_SETMASK, &self.mask);
    }
}

/// Returns whether this process has no child, also none from before its own exec.
fn has_no_child() -> bool {
    // SAFETY: as in `stopped_child`.
    unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_ALL, 0, &mut found, how) == -1
    }
}

/// Returns the process id of a child that is stopped, or 0. By WNOWAIT its stop can still be waited
/// for.
fn stopped_child(which: libc::idtype_t, id: libc::id_t) -> libc::pid_t {
    let how = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a siginfo of zeros is valid, the kernel writes one with the fields of SIGCHLD, or
    // leaves it.
    unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        match libc::waitid(which, id, &mut found, how) {
            0 => found.si_pid(),
            _ => 0,
        }
    }
}

/// Looks whether the child is stopped; kills it after [`PATIENCE`]. Runs in the timer's signal
/// handler.
extern "C" fn look(_signal: libc::c_int) {
    // SAFETY: the calling thread's own.
    let errno = unsafe { *libc::__errno_location() };
    let child_id = CHILD_ID.get().map_or(0, |shared| shared.load(Ordering::SeqCst));
    let pid = match child_id {
        0 if IS_ONLY_CHILD.load(Ordering::SeqCst) => stopped_child(libc::P_ALL, 0),
        0 => 0,
        _ => stopped_child(libc::P_PID, child_id),
    };
    // Counts looks instead of reading a clock: this program may have been stopped together with it.
    let looks = if pid == 0 { 0 } else { LOOKS.load(Ordering::SeqCst) + 1 };
    LOOKS.store(looks, Ordering::SeqCst);
    if u64::from(looks) > PATIENCE.as_secs() {
        KILLED.store(pid, Ordering::SeqCst);
        // SAFETY: touches no memory. It was not waited for: the number is still its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
