//! Starting a command whose process may be stopped before its exec. `Command::spawn` waits there
//! until it has become the command or has ended, and a process that a signal has stopped does
//! neither. Nobody else could look: this program has one thread, as it may fork.

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

/// One start at a time: there is one timer.
static STARTING: Mutex<()> = Mutex::new(());
/// The process id of the child that is started, as it has told; 0 before.
static TOLD: OnceLock<SharedValue<AtomicU32>> = OnceLock::new();
/// It is the only child of this process: any that stands is it.
static ALONE: AtomicBool = AtomicBool::new(false);
/// How many looks in a row it has stood for.
static LOOKS: AtomicU32 = AtomicU32::new(0);
/// The child that was killed; 0 where none was.
static KILLED: AtomicI32 = AtomicI32::new(0);

/// Of no other use here, and not what an alarm clock of the caller's sends.
fn tick() -> libc::c_int {
    libc::SIGRTMAX() - 1
}

/// Starts the command as `Command::spawn` does. A process that is stopped before it has become the
/// command, and that nobody continues for [`PATIENCE`], is killed: `ErrorKind::TimedOut`, with its
/// process id. One of several children is known from the moment on at which it has told its own.
pub fn spawn_watched(command: &mut Command) -> io::Result<Child> {
    let one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let (None, Ok(told)) = (TOLD.get(), SharedValue::new()) {
        // Nobody else is here.
        let _ = TOLD.set(told);
    }
    // With something to do between fork and exec, std forks. Otherwise the kernel would hold this
    // thread until the exec (vfork(2)), and no handler could run.
    // SAFETY: the child makes a system call and writes to memory that both have.
    unsafe {
        command.pre_exec(|| {
            tell(std::process::id());
            Ok(())
        })
    };
    tell(0);
    ALONE.store(has_no_child(), Ordering::SeqCst);
    LOOKS.store(0, Ordering::SeqCst);
    KILLED.store(0, Ordering::SeqCst);
    let clock = SpawnTimer::start()?;
    let started = command.spawn();
    drop(clock);
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

fn tell(pid: u32) {
    TOLD.get().iter().for_each(|told| told.store(pid, Ordering::SeqCst));
}

/// Interrupts the calling thread every second. No child inherits such a timer (timer_create(2)), nor
/// its signal's handler over its exec.
struct SpawnTimer {
    timer: libc::timer_t,
    action: libc::sigaction,
    mask: libc::sigset_t,
}

impl SpawnTimer {
    fn start() -> Result<Self, Errno> {
        let mut timer = MaybeUninit::<libc::timer_t>::uninit();
        // SAFETY: a sigevent of zeros is valid, and its fields below are set for SIGEV_THREAD_ID.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = tick();
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_pid();
        // SAFETY: both addresses are valid; the kernel writes the timer's id or fails.
        let timer = unsafe {
            check(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, timer.as_mut_ptr()))?;
            timer.assume_init()
        };
        let action = action_of(tick());
        // SAFETY: the handler has the signature that no SA_SIGINFO asks for; it uses system calls and
        // atomics, and leaves errno as it was. Calls that it interrupts go on.
        let set = unsafe { set_action(tick(), look as *const () as usize, libc::SA_RESTART, &[]) };
        let mask = change_mask(libc::SIG_UNBLOCK, &set_of(&[tick()]));
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
            libc::sigaction(tick(), &self.action, std::ptr::null_mut());
        }
        change_mask(libc::SIG_SETMASK, &self.mask);
    }
}

/// Whether this process has no child, also none that it was left by whom it took the place of.
fn has_no_child() -> bool {
    // SAFETY: as in `stopped`.
    unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_ALL, 0, &mut found, how) == -1
    }
}

/// The process id of a child that stands; 0 where none does. Nothing is taken note of: who waits for
/// its stop or its end still finds it.
fn stopped(which: libc::idtype_t, id: libc::id_t) -> libc::pid_t {
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

extern "C" fn look(_signal: libc::c_int) {
    // SAFETY: the calling thread's own.
    let errno = unsafe { *libc::__errno_location() };
    let told = TOLD.get().map_or(0, |told| told.load(Ordering::SeqCst));
    let pid = match told {
        0 if ALONE.load(Ordering::SeqCst) => stopped(libc::P_ALL, 0),
        0 => 0,
        _ => stopped(libc::P_PID, told),
    };
    // Looks and not a clock: this program may have been stopped together with it.
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
