//! A signal whose handler is taken away by its delivery and installs itself again, as those of the
//! memorandum's programs had to (signal(2) of System III; SA_RESETHAND). A handler that did not
//! would end the process by its second signal.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::io::Errno;

use super::process::last_errno;
use super::watch::member_lost;

/// Not that of the ring's links.
const SIGNAL: c_int = libc::SIGUSR2;

// One thread and its handlers share these: relaxed order is their order.
static CAUGHT: AtomicU64 = AtomicU64::new(0);
static PEER: AtomicI32 = AtomicI32::new(0);
static ANSWERS_LEFT: AtomicU64 = AtomicU64::new(0);

/// Signals that a handler of this process has caught.
pub fn caught() -> u64 {
    CAUGHT.load(Ordering::Relaxed)
}

/// What the C library says of it: in a handler nothing else may be done with a failure, and the next
/// signal shows it.
#[inline(always)]
fn install(handler: extern "C" fn(c_int)) -> c_int {
    // SAFETY: a sigaction of zeros is valid (the empty mask too), and the handler has the signature
    // that no SA_SIGINFO asks for. sigaction(2) is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESETHAND;
        libc::sigaction(SIGNAL, &action, std::ptr::null_mut())
    }
}

#[inline(always)]
fn checked(result: c_int) -> Result<(), Errno> {
    if result == -1 { Err(last_errno()) } else { Ok(()) }
}

/// Gives the mask as it was.
fn change_mask(how: c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: each set is initialised, by sigemptyset or by the kernel, before it is read. With
    // valid arguments none of these can fail.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), SIGNAL);
        libc::pthread_sigmask(how, set.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

#[inline(always)]
fn count() {
    CAUGHT.store(CAUGHT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[inline(always)]
fn kill(pid: i32) -> c_int {
    // By syscall(2), as the calls that are taken off. SAFETY: kill touches no memory, and is
    // async-signal-safe.
    unsafe { libc::syscall(libc::SYS_kill, pid, SIGNAL) as c_int }
}

/// The memorandum's func() of simsig.
extern "C" fn catch(_signal: c_int) {
    install(catch);
    count();
}

/// The memorandum's func() of twosig. A process that is gone is noticed by its parent.
extern "C" fn catch_and_answer(_signal: c_int) {
    install(catch_and_answer);
    count();
    let left = ANSWERS_LEFT.load(Ordering::Relaxed);
    if left > 0 {
        ANSWERS_LEFT.store(left - 1, Ordering::Relaxed);
        kill(PEER.load(Ordering::Relaxed));
    }
}

/// A signal that a process sends to itself.
pub struct OwnSignal {
    pid: i32,
}

impl OwnSignal {
    /// Installs the handler and lets the signal in, whatever the process was started with.
    pub fn new() -> Result<Self, Errno> {
        Self::install()?;
        change_mask(libc::SIG_UNBLOCK);
        Ok(Self { pid: std::process::id() as i32 })
    }

    /// Installs the handler (sigaction(2)).
    #[inline(always)]
    pub fn install() -> Result<(), Errno> {
        checked(install(catch))
    }

    /// Sends it (kill(2)): it is caught before this returns.
    #[inline(always)]
    pub fn send(&self) -> Result<(), Errno> {
        checked(kill(self.pid))
    }
}

/// Waiting for a signal of the other process: pause(2) without its race (sigsuspend(2)).
pub struct Pause {
    waiting: libc::sigset_t,
}

impl Pause {
    /// Installs the handler, and blocks the signal but while it is waited for, in the calling
    /// process and all that it forks from now on.
    pub fn new() -> Result<Self, Errno> {
        checked(install(catch_and_answer))?;
        let mut waiting = change_mask(libc::SIG_BLOCK);
        // SAFETY: changes a set that the kernel gave.
        unsafe { libc::sigdelset(&mut waiting, SIGNAL) };
        Ok(Self { waiting })
    }

    #[inline(always)]
    fn wait(&self) {
        // SAFETY: reads a valid set. It always returns -1 with EINTR.
        unsafe { libc::sigsuspend(&self.waiting) };
    }

    /// Sends `peer` a signal and waits for the answer, `loops` times; all but the first are sent by
    /// the handler. Fails when a child has died (see [`super::watch_members`]).
    #[inline(always)]
    pub fn exchange(&self, peer: i32, loops: u32) -> Result<(), Errno> {
        PEER.store(peer, Ordering::Relaxed);
        ANSWERS_LEFT.store(u64::from(loops.saturating_sub(1)), Ordering::Relaxed);
        let last = caught() + u64::from(loops);
        checked(kill(peer))?;
        while caught() < last {
            if member_lost() {
                return Err(Errno::CHILD);
            }
            self.wait();
        }
        Ok(())
    }

    /// Answers so many signals of `peer`.
    pub fn answer(&self, peer: i32, signals: u64) {
        PEER.store(peer, Ordering::Relaxed);
        ANSWERS_LEFT.store(signals, Ordering::Relaxed);
        CAUGHT.store(0, Ordering::Relaxed);
        while caught() < signals {
            self.wait();
        }
    }
}
