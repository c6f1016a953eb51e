//! The leader's watch over its members: links without an end of file do not tell when a member is
//! gone, and the leader would wait for the token until its deadline.
//!
//! Nothing of it runs while the ring is whole. A process's death raises SIGCHLD, whose handler notes
//! it; of a thread's end the thread itself makes a note. Either starts a timer that interrupts the
//! leader again and again, until it has left whatever call it waits in; a single interruption could
//! come just before the wait.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::io::Errno;

use super::check;
use super::signal::{set_action, unblock};

/// Seconds that a wait which no signal interrupts (pthread_cond_wait) may go on after a member's
/// death: the worker ends with it then.
const LOST_DEADLINE_S: u32 = 2;

/// Time from one interruption to the next.
const AGAIN_NS: i64 = 10_000_000;

static LOST: AtomicBool = AtomicBool::new(false);
/// The leader is in a wait that no signal ends.
static UNINTERRUPTIBLE: AtomicBool = AtomicBool::new(false);
/// The timer's id and one: the kernel's first id is 0.
static TIMER: AtomicUsize = AtomicUsize::new(0);

/// Whether a member has ended badly since [`watch_members`].
#[inline]
pub fn member_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// From now on the bad end of a child (any but exit status 0) or of a thread with a [`EndNote`]
/// interrupts what the calling thread waits in, and makes [`member_lost`] true.
pub fn watch_members() -> Result<(), Errno> {
    unwatch_members();
    let mut timer = MaybeUninit::<libc::timer_t>::uninit();
    // SAFETY: a sigevent of zeros is valid, and its fields below are set for SIGEV_THREAD_ID.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    // To the leader alone: a signal to the process may go to any of its threads.
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = libc::SIGCHLD;
    event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_pid();
    // SAFETY: both addresses are valid; the kernel writes the timer's id or fails.
    unsafe {
        check(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, timer.as_mut_ptr()))?;
        TIMER.store(timer.assume_init() as usize + 1, Ordering::Release);
    }
    // No SA_RESTART: the point is that waits end with EINTR.
    let flags = libc::SA_SIGINFO | libc::SA_NOCLDSTOP;
    // SAFETY: the handler has the signature of SA_SIGINFO, and uses only what is async-signal-safe.
    unsafe { set_action(libc::SIGCHLD, on_child as *const () as usize, flags, &[])? };
    // It may have been inherited blocked.
    unblock(libc::SIGCHLD);
    Ok(())
}

/// Ends the watch: members may be waited for.
pub fn unwatch_members() {
    // The default action is to do nothing; giving it cannot fail.
    let _ = default_child();
    let timer = TIMER.swap(0, Ordering::AcqRel);
    if timer != 0 {
        // SAFETY: the timer was made above and is deleted once.
        unsafe { libc::timer_delete((timer - 1) as libc::timer_t) };
    }
    LOST.store(false, Ordering::SeqCst);
}

/// Gives SIGCHLD its default action, and lets it in: where it is ignored, which exec(2) hands on, no
/// child can be waited for (wait(2)).
pub fn default_child() -> Result<(), Errno> {
    // SAFETY: no handler.
    unsafe { set_action(libc::SIGCHLD, libc::SIG_DFL, 0, &[])? };
    unblock(libc::SIGCHLD);
    Ok(())
}

/// Does `wait`, which no signal interrupts: after a member's death it has [`LOST_DEADLINE_S`] left,
/// then the process ends. Where one is lost already nothing is done.
pub fn wait_uninterruptible<T>(wait: impl FnOnce() -> T) -> Option<T> {
    // Each side writes its own note before it reads the other's: one of the two sees both.
    UNINTERRUPTIBLE.store(true, Ordering::SeqCst);
    let done = (!LOST.load(Ordering::SeqCst)).then(wait);
    UNINTERRUPTIBLE.store(false, Ordering::SeqCst);
    done
}

/// What a member that is a thread leaves when it ends, by a panic too, unless it has done its part: then it
/// forgets the note.
pub struct EndNote;

impl Drop for EndNote {
    fn drop(&mut self) {
        note_loss();
    }
}

extern "C" fn on_child(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel hands over a valid siginfo; for SIGCHLD from a child it has a status.
    let (code, status) = unsafe { ((*info).si_code, (*info).si_status()) };
    // Members that have done their part end while the last lap is still going round.
    let is_done = code == libc::CLD_EXITED && status == 0;
    let of_child = matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED);
    if of_child && !is_done {
        note_loss();
    }
}

/// Async-signal-safe (signal-safety(7)). The first loss starts the timer, if there is a watch.
fn note_loss() {
    let timer = TIMER.load(Ordering::Acquire);
    if timer == 0 || LOST.swap(true, Ordering::SeqCst) {
        return;
    }
    let step = libc::timespec { tv_sec: 0, tv_nsec: AGAIN_NS as _ };
    let again = libc::itimerspec { it_interval: step, it_value: step };
    // SAFETY: both calls read valid memory only; a timer that is gone is refused. errno, which they
    // may change, is put back.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::timer_settime((timer - 1) as libc::timer_t, 0, &again, std::ptr::null_mut());
        if UNINTERRUPTIBLE.load(Ordering::SeqCst) {
            libc::alarm(LOST_DEADLINE_S);
        }
        *errno = before;
    }
}
