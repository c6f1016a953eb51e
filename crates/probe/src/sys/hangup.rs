//! SIGHUP as the memorandum's programs catch it (VENIX 1984, appendix): by a handler that installs
//! itself again, as System V forgot a handler that had run, and that may answer with a signal.
//!
//! What the handlers know is the process's own: a fork has copies.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering::Relaxed};

use rustix::io::Errno;

use super::process::last_errno;

/// Signals still to be caught.
static LEFT: AtomicI64 = AtomicI64::new(0);
/// Who is answered.
static PEER: AtomicI32 = AtomicI32::new(0);
/// The signal that leaves so many is the first that is not answered.
static LAST: AtomicI64 = AtomicI64::new(0);
/// A child has ended.
static CHILD_ENDED: AtomicBool = AtomicBool::new(false);

/// Measured code.
extern "C" fn caught(_signal: c_int) {
    install(caught);
    LEFT.store(LEFT.load(Relaxed) - 1, Relaxed);
}

/// Measured code.
extern "C" fn answered(_signal: c_int) {
    install(answered);
    let left = LEFT.load(Relaxed) - 1;
    LEFT.store(left, Relaxed);
    if left > LAST.load(Relaxed) {
        hang_up(PEER.load(Relaxed));
    }
}

extern "C" fn child_ended(_signal: c_int) {
    CHILD_ENDED.store(true, Relaxed);
}

#[inline(always)]
fn install(handler: extern "C" fn(c_int)) {
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
    LEFT.load(Relaxed)
}

/// Catches `count` SIGHUPs as they come, whatever the process was started with: a signal that is
/// blocked stays so over exec.
pub fn catch_hangups(count: i64) {
    LEFT.store(count, Relaxed);
    install(caught);
    change_mask(libc::SIG_UNBLOCK, &set_of(&[libc::SIGHUP]));
}

/// SIGHUPs that are answered: blocked but while they are waited for.
pub struct Hangups {
    waiting: libc::sigset_t,
}

/// Is about to catch `count` SIGHUPs in the calling process and what it forks. A child's end, too, is
/// noticed within [`Hangups::wait`] alone.
pub fn answer_hangups(count: i64) -> Result<Hangups, Errno> {
    LEFT.store(count, Relaxed);
    let both = [libc::SIGHUP, libc::SIGCHLD];
    let mut waiting = change_mask(libc::SIG_BLOCK, &set_of(&both));
    for signal in both {
        // SAFETY: the mask was given by the kernel.
        unsafe { libc::sigdelset(&mut waiting, signal) };
    }
    install(answered);
    // A SIGCHLD that is ignored from the start would reap the child behind our back.
    // SAFETY: a sigaction of zeros is valid, and the handler has the signature that its flag asks
    // for; it touches an atomic alone.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = child_ended as *const () as usize;
        action.sa_flags = libc::SA_NOCLDSTOP;
        libc::sigemptyset(&mut action.sa_mask);
        match libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut()) {
            -1 => Err(last_errno()),
            _ => Ok(Hangups { waiting }),
        }
    }
}

impl Hangups {
    /// Answers go to `peer`, until `last` are left.
    pub fn answer(&self, peer: i32, last: i64) {
        PEER.store(peer, Relaxed);
        LAST.store(last, Relaxed);
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
        CHILD_ENDED.load(Relaxed) && has_lost(PEER.load(Relaxed)) && !is_pending()
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

pub(super) fn set_of(signals: &[c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; both calls write to it only.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Changes the calling thread's mask of blocked signals; gives it as it was.
pub(super) fn change_mask(how: c_int, set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = *set;
    // SAFETY: both sets are valid. With a valid `how` it cannot fail.
    unsafe { libc::pthread_sigmask(how, set, &mut before) };
    before
}
