//! Signals as the memorandum's programs catch them (VENIX 1984, appendix): by a handler that installs itself
//! again, as System V forgot a handler that had run, and that may answer with a signal. SIGHUP as in those
//! programs, and one whose handler is removed by its delivery (SA_RESETHAND) for the trials.
//!
//! What the handlers know is the process's own: a fork has copies.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering::Relaxed};

use rustix::io::Errno;

use super::errno::check;
use super::signal::{block, set_action, unblock};
use super::watch::member_lost;

// One thread and its handlers share these: relaxed order is their order.

/// Signals with [`SIGNAL`]'s number that a handler of this process has caught.
static CAUGHT: AtomicU64 = AtomicU64::new(0);
static PEER: AtomicI32 = AtomicI32::new(0);
static ANSWERS_LEFT: AtomicU64 = AtomicU64::new(0);

/// Signals still to be caught.
static HANGUPS_LEFT: AtomicI64 = AtomicI64::new(0);
/// Who is answered.
static HANGUP_PEER: AtomicI32 = AtomicI32::new(0);
/// The signal that leaves so many is the first that is not answered.
static LAST_ANSWERED: AtomicI64 = AtomicI64::new(0);
/// A child has ended.
static CHILD_ENDED: AtomicBool = AtomicBool::new(false);

/// Measured code.
extern "C" fn catch_hangup(_signal: c_int) {
    install_hangup(catch_hangup);
    HANGUPS_LEFT.store(HANGUPS_LEFT.load(Relaxed) - 1, Relaxed);
}

/// Measured code.
extern "C" fn answer_hangup(_signal: c_int) {
    install_hangup(answer_hangup);
    let left = HANGUPS_LEFT.load(Relaxed) - 1;
    HANGUPS_LEFT.store(left, Relaxed);
    if left > LAST_ANSWERED.load(Relaxed) {
        hang_up(HANGUP_PEER.load(Relaxed));
    }
}

extern "C" fn child_ended(_signal: c_int) {
    CHILD_ENDED.store(true, Relaxed);
}

#[inline(always)]
fn install_hangup(handler: extern "C" fn(c_int)) {
    // SAFETY: signal(2) may be called in a handler, and these do no more than what may be done in
    // one: atomics and system calls. SIGHUP can be caught, so that it cannot fail.
    unsafe { libc::signal(libc::SIGHUP, handler as *const () as libc::sighandler_t) };
}

/// Sends SIGHUP to a process. One that is gone is no error.
#[inline(always)]
pub fn hang_up(pid: i32) {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid, libc::SIGHUP) };
}

/// How many SIGHUPs are still to be caught.
#[inline(always)]
pub fn hangups_left() -> i64 {
    HANGUPS_LEFT.load(Relaxed)
}

/// Catches `count` SIGHUPs as they come, whatever the process was started with: a signal that is
/// blocked stays so over exec.
pub fn catch_hangups(count: i64) {
    HANGUPS_LEFT.store(count, Relaxed);
    install_hangup(catch_hangup);
    unblock(libc::SIGHUP);
}

/// SIGHUPs that are answered: blocked but while they are waited for.
pub struct Hangups {
    waiting: libc::sigset_t,
}

/// Is about to catch `count` SIGHUPs in the calling process and what it forks. A child's end, too, is
/// noticed within [`Hangups::wait`] alone.
pub fn answer_hangups(count: i64) -> Result<Hangups, Errno> {
    HANGUPS_LEFT.store(count, Relaxed);
    let waiting = block(&[libc::SIGHUP, libc::SIGCHLD]);
    install_hangup(answer_hangup);
    // A SIGCHLD that is ignored from the start would reap the child behind our back.
    // SAFETY: the handler has the signature that its flag asks for, and touches an atomic alone.
    unsafe {
        set_action(libc::SIGCHLD, child_ended as *const () as usize, libc::SA_NOCLDSTOP)?;
    }
    Ok(Hangups { waiting })
}

impl Hangups {
    /// Answers go to `peer`, until `last` are left.
    pub fn answer(&self, peer: i32, last: i64) {
        HANGUP_PEER.store(peer, Relaxed);
        LAST_ANSWERED.store(last, Relaxed);
    }

    /// Lets signals in and waits for one: pause(2) without its race (sigsuspend(2)).
    #[inline(always)]
    pub fn wait(&self) {
        // SAFETY: reads a valid set. It always returns -1 with EINTR.
        unsafe { libc::sigsuspend(&self.waiting) };
    }

    /// Whether the peer is a child that has ended, and no SIGHUP waits to be caught: a child's last signal
    /// and its end may come while a handler runs, and then only the end is seen at once. Children that
    /// this process was started with may end too, and are nobody here.
    #[inline(always)]
    pub fn abandoned(&self) -> bool {
        CHILD_ENDED.load(Relaxed) && has_lost(HANGUP_PEER.load(Relaxed)) && !is_pending()
    }
}

/// Whether `peer` has ended; if not, the next child's end is noted anew.
#[cold]
fn has_lost(peer: i32) -> bool {
    // First: an end that comes meanwhile is noted again.
    CHILD_ENDED.store(false, Relaxed);
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the address is valid for what the kernel writes there; zeroes are a valid siginfo, of no
    // process, which it leaves where that child still runs.
    let lost = unsafe {
        libc::waitid(libc::P_PID, peer as libc::id_t, info.as_mut_ptr(), how) == 0
            && info.assume_init().si_pid() == peer
    };
    if lost {
        CHILD_ENDED.store(true, Relaxed);
    }
    lost
}

fn is_pending() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: the kernel fills the set. With a valid address it cannot fail.
    unsafe {
        libc::sigpending(pending.as_mut_ptr());
        libc::sigismember(pending.as_ptr(), libc::SIGHUP) == 1
    }
}

/// Not that of the ring's links.
const SIGNAL: c_int = libc::SIGUSR2;

/// Signals that a handler of this process has caught.
pub fn caught() -> u64 {
    CAUGHT.load(Relaxed)
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
fn count() {
    CAUGHT.store(CAUGHT.load(Relaxed) + 1, Relaxed);
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
    let left = ANSWERS_LEFT.load(Relaxed);
    if left > 0 {
        ANSWERS_LEFT.store(left - 1, Relaxed);
        kill(PEER.load(Relaxed));
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
        unblock(SIGNAL);
        Ok(Self { pid: std::process::id() as i32 })
    }

    /// Installs the handler (sigaction(2)).
    #[inline(always)]
    pub fn install() -> Result<(), Errno> {
        check(install(catch)).map(|_| ())
    }

    /// Sends it (kill(2)): it is caught before this returns.
    #[inline(always)]
    pub fn send(&self) -> Result<(), Errno> {
        check(kill(self.pid)).map(|_| ())
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
        check(install(catch_and_answer))?;
        Ok(Self { waiting: block(&[SIGNAL]) })
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
        PEER.store(peer, Relaxed);
        ANSWERS_LEFT.store(u64::from(loops.saturating_sub(1)), Relaxed);
        let last = caught() + u64::from(loops);
        check(kill(peer))?;
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
        PEER.store(peer, Relaxed);
        ANSWERS_LEFT.store(signals, Relaxed);
        CAUGHT.store(0, Relaxed);
        while caught() < signals {
            self.wait();
        }
    }
}
