//! Starting a command whose process may be stopped before its exec. `Command::spawn` waits there
//! until it has become the command or has ended, and a process that a signal has stopped does
//! neither. Nobody else could look: this program has one thread, as it may fork.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::signal::{action_of, set_action, unblock};
use crate::standstill::PATIENCE;

/// One start at a time: there is one timer.
static STARTING: Mutex<()> = Mutex::new(());
/// The child that stood at the last look; 0 where none did.
static STANDS: AtomicI32 = AtomicI32::new(0);
/// How many looks in a row it has stood for.
static LOOKS: AtomicU32 = AtomicU32::new(0);
/// The child that was killed; 0 where none was.
static KILLED: AtomicI32 = AtomicI32::new(0);

/// Starts the command as `Command::spawn` does. A process that is stopped before it has become the
/// command, and that nobody continues for [`PATIENCE`], is killed: `ErrorKind::TimedOut`, with its
/// process id. The timer is SIGALRM's (setitimer(2)), which no child inherits. Without this watch
/// where another child is stopped already: which one is meant could not be told.
pub fn spawn_watched(command: &mut Command) -> io::Result<Child> {
    let one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    // With something to do between fork and exec, std forks. Otherwise the kernel would hold this
    // thread until the exec (vfork(2)), and no handler could run.
    // SAFETY: nothing is done.
    unsafe { command.pre_exec(|| Ok(())) };
    if stopped_child() != 0 {
        return command.spawn();
    }
    for note in [&STANDS, &KILLED] {
        note.store(0, Ordering::SeqCst);
    }
    LOOKS.store(0, Ordering::SeqCst);
    let before = action_of(libc::SIGALRM);
    // SAFETY: the handler has the signature that no SA_SIGINFO asks for; it uses system calls and
    // atomics, and leaves errno as it was. Calls that it interrupts go on.
    unsafe { set_action(libc::SIGALRM, look as *const () as usize, libc::SA_RESTART, &[])? };
    unblock(libc::SIGALRM);
    every_second(1);
    let started = command.spawn();
    every_second(0);
    // SAFETY: the action that was there.
    unsafe { libc::sigaction(libc::SIGALRM, &before, std::ptr::null_mut()) };
    let killed = KILLED.load(Ordering::SeqCst);
    drop(one);
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

/// Interrupts again and again; 0 ends that.
fn every_second(seconds: libc::time_t) {
    let interval = libc::timeval { tv_sec: seconds, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: reads a valid timer.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) };
}

/// The process id of a child that stands; 0 where none does. Nothing is taken note of: who waits for
/// its stop or its end still finds it.
fn stopped_child() -> libc::pid_t {
    let how = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a siginfo of zeros is valid, the kernel writes one with the fields of SIGCHLD, or
    // leaves it.
    unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        match libc::waitid(libc::P_ALL, 0, &mut found, how) {
            0 => found.si_pid(),
            _ => 0,
        }
    }
}

extern "C" fn look(_signal: libc::c_int) {
    // SAFETY: the calling thread's own.
    let errno = unsafe { *libc::__errno_location() };
    let pid = stopped_child();
    if STANDS.swap(pid, Ordering::SeqCst) != pid {
        LOOKS.store(0, Ordering::SeqCst);
    }
    // Looks and not a clock: this program may have been stopped together with it.
    if pid != 0 && u64::from(LOOKS.fetch_add(1, Ordering::SeqCst)) >= PATIENCE.as_secs() {
        KILLED.store(pid, Ordering::SeqCst);
        // SAFETY: touches no memory. It was not waited for: the number is still its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
