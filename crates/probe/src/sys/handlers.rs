//! Signals as the memorandum's programs catch them (VENIX 1984, appendix): by a handler that
//! installs itself again, as System V removed a handler when it ran, and that may answer with a
//! signal.
//!
//! The handlers' state is the process's own: a forked process has a copy.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use rustix::io::Errno;

use super::check;
use super::signal::{block, member_lost, unblock};

// One thread and its handlers share these: relaxed order is their order.

/// Number of signals that a handler of this process has caught.
static CAUGHT: AtomicU64 = AtomicU64::new(0);
/// Process to which the handler answers.
static PEER: AtomicI32 = AtomicI32::new(0);
static ANSWERS_LEFT: AtomicU64 = AtomicU64::new(0);

/// A signal, and the calls that install its handler and send it. Both return the C library's
/// result: a handler cannot treat a failure, and the next signal shows it.
pub trait SignalMethod: 'static {
    /// Number of the signal, which no link of the ring uses.
    const SIGNAL: c_int;
    /// Installs a handler.
    fn install(handler: extern "C" fn(c_int)) -> c_int;
    /// Sends the signal.
    fn kill(pid: i32) -> c_int;
}

/// SIGHUP by signal(2), as in the memorandum's programs.
pub struct HangupSignal;

impl SignalMethod for HangupSignal {
    const SIGNAL: c_int = libc::SIGHUP;

    #[inline(always)]
    fn install(handler: extern "C" fn(c_int)) -> c_int {
        // SAFETY: signal(2) may be called in a handler, and these do no more than what may be done
        // in one: atomics and system calls.
        let before = unsafe { libc::signal(Self::SIGNAL, handler as *const () as usize) };
        if before == libc::SIG_ERR { -1 } else { 0 }
    }

    #[inline(always)]
    fn kill(pid: i32) -> c_int {
        // SAFETY: kill touches no memory, and is async-signal-safe.
        unsafe { libc::kill(pid, Self::SIGNAL) }
    }
}

/// SIGUSR2, whose handler is removed by its delivery (SA_RESETHAND), for the trials.
pub struct ResetSignal;

impl SignalMethod for ResetSignal {
    const SIGNAL: c_int = libc::SIGUSR2;

    #[inline(always)]
    fn install(handler: extern "C" fn(c_int)) -> c_int {
        // SAFETY: a sigaction of zeros is valid (the empty mask too), and the handler has the
        // signature that no SA_SIGINFO asks for. sigaction(2) is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(Self::SIGNAL, &action, std::ptr::null_mut())
        }
    }

    #[inline(always)]
    fn kill(pid: i32) -> c_int {
        // By syscall(2), like the calls that are subtracted. SAFETY: kill touches no memory, and is
        // async-signal-safe.
        unsafe { libc::syscall(libc::SYS_kill, pid, Self::SIGNAL) as c_int }
    }
}

/// Returns the number of signals that a handler of this process has caught.
pub fn caught() -> u64 {
    CAUGHT.load(Relaxed)
}

#[inline(always)]
fn count() {
    CAUGHT.store(CAUGHT.load(Relaxed) + 1, Relaxed);
}

/// Catches a signal like func() of the memorandum's simsig. Measured code.
extern "C" fn catch<S: SignalMethod>(_signal: c_int) {
    S::install(catch::<S>);
    count();
}

/// Catches and answers a signal like func() of the memorandum's twosig. If the peer is gone, its
/// parent notices it. Measured code.
extern "C" fn catch_and_answer<S: SignalMethod>(_signal: c_int) {
    S::install(catch_and_answer::<S>);
    count();
    let left = ANSWERS_LEFT.load(Relaxed);
    if left > 0 {
        ANSWERS_LEFT.store(left - 1, Relaxed);
        S::kill(PEER.load(Relaxed));
    }
}

/// A signal that a process sends to itself.
pub struct OwnSignal<S> {
    pid: i32,
    signal: PhantomData<S>,
}

impl<S: SignalMethod> OwnSignal<S> {
    /// Installs the handler and unblocks the signal, which the process may have inherited blocked.
    pub fn new() -> Result<Self, Errno> {
        Self::install()?;
        unblock(S::SIGNAL);
        Ok(Self { pid: std::process::id() as i32, signal: PhantomData })
    }

    /// Installs the handler.
    #[inline(always)]
    pub fn install() -> Result<(), Errno> {
        check(S::install(catch::<S>)).map(|_| ())
    }

    /// Sends the signal (kill(2)): it is caught before this returns.
    #[inline(always)]
    pub fn send(&self) -> Result<(), Errno> {
        check(S::kill(self.pid)).map(|_| ())
    }
}

/// Signals exchanged with another process, waited for by sigsuspend(2), which is pause(2) without
/// its race.
pub struct PeerSignal<S> {
    waiting: libc::sigset_t,
    signal: PhantomData<S>,
}

impl<S: SignalMethod> PeerSignal<S> {
    /// Installs the handler, and blocks the signal except while it is waited for, in the calling
    /// process and all that it forks from now on.
    pub fn new() -> Result<Self, Errno> {
        let waiting = block(&[S::SIGNAL]);
        check(S::install(catch_and_answer::<S>))?;
        Ok(Self { waiting, signal: PhantomData })
    }

    #[inline(always)]
    fn wait(&self) {
        // SAFETY: reads a valid set. It always returns -1 with EINTR.
        unsafe { libc::sigsuspend(&self.waiting) };
    }

    /// Sends `peer` a signal and waits for the answer, `loops` times; the handler sends all but the
    /// first. Fails if a child has died (see [`super::watch_members`]).
    #[inline(always)]
    pub fn exchange(&self, peer: i32, loops: u32) -> Result<(), Errno> {
        PEER.store(peer, Relaxed);
        ANSWERS_LEFT.store(u64::from(loops.saturating_sub(1)), Relaxed);
        let last = caught() + u64::from(loops);
        check(S::kill(peer))?;
        while caught() < last {
            if member_lost() {
                return Err(Errno::CHILD);
            }
            self.wait();
        }
        Ok(())
    }

    /// Answers `signals` signals of `peer`.
    #[inline(always)]
    pub fn answer(&self, peer: i32, signals: u64) {
        PEER.store(peer, Relaxed);
        ANSWERS_LEFT.store(signals, Relaxed);
        CAUGHT.store(0, Relaxed);
        while caught() < signals {
            self.wait();
        }
    }
}
