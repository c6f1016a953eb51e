//! Signals: masks and actions, the signals of links (queued and waited for, or caught by a
//! handler), and the leader's watch over its members.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::page::{MemberCell, SharedArea};
use super::{check, done};

/// Returns the real-time signal of the link `signal`.
fn queued() -> c_int {
    libc::SIGRTMIN()
}

/// Signal of the link `handler-signal`.
const CAUGHT: c_int = libc::SIGUSR1;

/// Bytes of the kernel's signal set, which are the first of the C library's (`_NSIG / 8` of
/// `include/uapi/asm-generic/signal.h`; all architectures except MIPS).
const SET_BYTES: usize = 8;

/// Ids of a thread to which a signal is sent, or whose counters are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskId {
    /// Process id.
    pub pid: i32,
    /// Thread id; the process id for a member that is a process.
    pub tid: i32,
}

/// The siginfo_t of rt_sigqueueinfo(2) in the kernel's layout
/// (`include/uapi/asm-generic/siginfo.h`).
#[repr(C)]
struct SignalInfo {
    signo: c_int,
    errno: c_int,
    code: c_int,
    queued: QueuedValue,
    rest: [u8; 104],
}

#[repr(C)]
struct QueuedValue {
    pid: libc::pid_t,
    uid: libc::uid_t,
    // A union with a pointer: its alignment puts the whole part at offset 16 on 64-bit machines.
    value: usize,
}

const _: () = assert!(size_of::<SignalInfo>() >= 128, "the kernel reads the whole of its siginfo");

/// A real-time signal that carries a value, sent to one thread and waited for by the calling one.
pub struct QueuedSignal {
    /// Receiver; all zeros until it is known.
    pub aim: TaskId,
    info: SignalInfo,
    set: libc::sigset_t,
}

impl QueuedSignal {
    /// Builds a signal without a receiver.
    pub fn new() -> Self {
        let (pid, uid) = (std::process::id() as i32, rustix::process::getuid().as_raw());
        let sent = QueuedValue { pid, uid, value: 0 };
        let code = libc::SI_QUEUE;
        let info = SignalInfo { signo: queued(), errno: 0, code, queued: sent, rest: [0; 104] };
        Self { aim: TaskId::default(), info, set: set_of(&[queued()]) }
    }

    /// Blocks the signal in the calling thread and all that it forks or starts.
    pub fn block() {
        block(&[queued()]);
    }

    /// Queues the signal by rt_tgsigqueueinfo(2), which is the same for processes and threads.
    #[inline(always)]
    pub fn send(&mut self, value: u8) -> Result<(), Errno> {
        self.info.queued.value = usize::from(value);
        let (TaskId { pid, tid }, signal) = (self.aim, self.info.signo);
        let info = &raw const self.info;
        // SAFETY: the kernel reads a siginfo from a valid address.
        done(unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info) })
    }

    /// Waits for the next signal; returns its value (sigwaitinfo(2)).
    #[inline(always)]
    pub fn wait(&self) -> Result<u8, Errno> {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        let (set, room, forever) = (&raw const self.set, info.as_mut_ptr(), no_timeout());
        // The C library's call is a point of cancellation: two locked operations more for threads.
        // SAFETY: the set is valid; the kernel writes the siginfo before it returns a signal, and
        // one that was queued has a value.
        unsafe {
            done(libc::syscall(libc::SYS_rt_sigtimedwait, set, room, forever, SET_BYTES))?;
            Ok(info.assume_init_ref().si_value().sival_ptr as usize as u8)
        }
    }
}

/// Returns the timeout of a call that waits without a limit.
pub(super) fn no_timeout() -> *const libc::timespec {
    std::ptr::null()
}

/// Builds a set of these signals.
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

/// Changes the calling thread's mask of blocked signals; returns the mask before.
pub(super) fn change_mask(how: c_int, set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = *set;
    // SAFETY: both sets are valid. With a valid `how` it cannot fail.
    unsafe { libc::pthread_sigmask(how, set, &mut before) };
    before
}

/// Blocks these signals in the calling thread. Returns the mask before without them, which is the
/// mask to wait under.
pub(super) fn block(signals: &[c_int]) -> libc::sigset_t {
    let mut before = change_mask(libc::SIG_BLOCK, &set_of(signals));
    for signal in signals {
        // SAFETY: the set is valid.
        unsafe { libc::sigdelset(&mut before, *signal) };
    }
    before
}

/// Unblocks a signal, which the process may have inherited blocked.
pub(super) fn unblock(signal: c_int) {
    change_mask(libc::SIG_UNBLOCK, &set_of(&[signal]));
}

/// Returns whether a set has a signal.
pub(super) fn has(set: &libc::sigset_t, signal: c_int) -> bool {
    // SAFETY: reads a valid set.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Returns the process's action for a signal (sigaction(2)).
pub(super) fn action_of(signal: c_int) -> libc::sigaction {
    // SAFETY: a sigaction of zeros is valid, and the kernel fills it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        action
    }
}

/// Returns whether the process ignores a signal (nohup(1), `&` in a script).
pub fn is_ignored(signal: c_int) -> bool {
    action_of(signal).sa_sigaction == libc::SIG_IGN
}

/// Blocks the signal that ends a stop (SIGCONT) in the calling thread and all that it forks or
/// starts, so that it stays pending. It ends the stop all the same, and interrupts nothing.
pub fn note_continue() {
    block(&[libc::SIGCONT]);
}

/// Returns whether this process or a child was continued since the last call.
pub fn was_continued() -> bool {
    let (set, now) = (set_of(&[libc::SIGCONT]), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both addresses are valid; no siginfo is asked for.
    let signal = unsafe { libc::sigtimedwait(&set, std::ptr::null_mut(), &now) };
    let mut was_continued = signal == libc::SIGCONT;
    // This reaps no child.
    let how = WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = waitid(WaitId::All, how) {
        was_continued = true;
    }
    was_continued
}

/// Sets the action of a signal (sigaction(2)), during which the `blocked` signals are blocked.
///
/// # Safety
/// `handler` is SIG_DFL, SIG_IGN or the address of a function of the signature that `flags` ask
/// for, which does what is async-signal-safe and no more.
pub(super) unsafe fn set_action(
    signal: c_int,
    handler: libc::sighandler_t,
    flags: c_int,
    blocked: &[c_int],
) -> Result<(), Errno> {
    // SAFETY: a sigaction of zeros is valid; the caller guarantees the handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        action.sa_mask = set_of(blocked);
        check(libc::sigaction(signal, &action, std::ptr::null_mut())).map(|_| ())
    }
}

/// A signal that is caught by a handler, and blocked except while its receiver waits for it.
#[derive(Clone, Copy)]
pub struct CaughtSignal {
    waiting: libc::sigset_t,
}

/// Installs an empty handler in the process and blocks the signal in the calling thread and all
/// that it forks or starts.
pub fn catch() -> Result<CaughtSignal, Errno> {
    extern "C" fn nothing(_signal: c_int) {}
    let waiting = block(&[CAUGHT]);
    // SAFETY: an empty handler, of the signature that no flags ask for.
    unsafe { set_action(CAUGHT, nothing as *const () as usize, 0, &[]) }?;
    Ok(CaughtSignal { waiting })
}

impl CaughtSignal {
    /// Sends the signal (tgkill(2)).
    #[inline(always)]
    pub fn send(self, aim: TaskId) -> Result<(), Errno> {
        // SAFETY: touches no memory.
        done(unsafe { libc::syscall(libc::SYS_tgkill, aim.pid, aim.tid, CAUGHT) })
    }

    /// Unblocks the signal and waits until some handler has run, by sigsuspend(2): pause(2) without
    /// its race.
    #[inline(always)]
    pub fn wait(&self) {
        // The C library's call is a point of cancellation, as above.
        // SAFETY: reads a valid set. It always returns -1 with EINTR.
        unsafe { libc::syscall(libc::SYS_rt_sigsuspend, &raw const self.waiting, SET_BYTES) };
    }
}

// The leader's watch over its members. Links without an end of file do not show that a member is
// gone: the leader would wait for the token until its deadline.
//
// Nothing of the watch runs while the ring is whole. The death of a process raises SIGCHLD, whose
// handler notes the loss; a thread notes its own end. Both start a timer that interrupts the leader
// again and again until it has left the call in which it waits: a single interruption could come
// just before the wait.
//
// A SIGCHLD is dropped if another is pending (signal(7)). In the last lap members end well one
// after the other, and a death may hide behind the good end before it. Therefore the first good end
// starts the timer as well: at each interruption the handler goes along the ring, over all members
// that have ended well, to the first that has not. It finds a dead member when all before it have
// ended.

/// Seconds for which a wait that no signal interrupts (pthread_cond_wait) may go on after a
/// member's death. Then the worker is ended.
const LOST_DEADLINE_S: u32 = 2;

/// Time from one interruption to the next.
const AGAIN_NS: i64 = 10_000_000;
/// Time from one walk along the ring to the next. Most last laps are over before the first walk.
const WALK_NS: i64 = 100_000_000;

static LOST: AtomicBool = AtomicBool::new(false);
/// Whether the leader is in a wait that no signal ends.
static UNINTERRUPTIBLE: AtomicBool = AtomicBool::new(false);
/// The timer's id plus one; 0 without a timer.
static TIMER: AtomicUsize = AtomicUsize::new(0);
/// Keeps the ring's cells alive during the watch. Not used by handlers.
static RING: Mutex<Option<Arc<SharedArea>>> = Mutex::new(None);
/// The ring's cells, in its order; null if there is no ring of processes.
static CELLS: AtomicPtr<MemberCell> = AtomicPtr::new(std::ptr::null_mut());
static MEMBERS: AtomicUsize = AtomicUsize::new(0);
/// Whether the timer makes walks along the ring.
static WALKS: AtomicBool = AtomicBool::new(false);
/// Number of the first member that is not known to have ended well.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Returns whether a member has failed since [`watch_members`].
#[inline]
pub fn member_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Starts the watch. From now on a child that ends with another exit status than 0, or a thread
/// with an `EndNote` that fails, interrupts the calling thread's waits and makes `member_lost`
/// true.
pub fn watch_members() -> Result<(), Errno> {
    unwatch_members();
    let mut timer = MaybeUninit::<libc::timer_t>::uninit();
    // SAFETY: a sigevent of zeros is valid, and its fields below are set for SIGEV_THREAD_ID.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    // To the leader's thread: a signal to the process may go to any of its threads.
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
    // The process may have inherited it blocked.
    unblock(libc::SIGCHLD);
    Ok(())
}

/// Adds the members of a ring of processes to the watch, whose ids are in its cells. The calling
/// process is the leader. The area is kept until [`unwatch_members`].
pub fn watch_ring(area: &Arc<SharedArea>) {
    forget_ring();
    let mut ring = RING.lock().unwrap_or_else(PoisonError::into_inner);
    let cells = ring.insert(Arc::clone(area)).cells();
    NEXT.store(1, Ordering::SeqCst);
    MEMBERS.store(cells.len(), Ordering::SeqCst);
    CELLS.store(cells.as_ptr().cast_mut(), Ordering::SeqCst);
}

/// Releases the ring's cells, once no handler can find them.
fn forget_ring() {
    CELLS.store(std::ptr::null_mut(), Ordering::SeqCst);
    *RING.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Ends the watch: members may be waited for.
pub fn unwatch_members() {
    // The default action is to do nothing; giving it cannot fail.
    let _ = default_child();
    forget_ring();
    let timer = TIMER.swap(0, Ordering::AcqRel);
    if timer != 0 {
        // SAFETY: the timer was made above and is deleted once.
        unsafe { libc::timer_delete((timer - 1) as libc::timer_t) };
    }
    LOST.store(false, Ordering::SeqCst);
    WALKS.store(false, Ordering::SeqCst);
}

/// Gives SIGCHLD its default action and unblocks it. If it is ignored, which processes inherit over
/// exec(2), no child can be waited for (wait(2)).
pub fn default_child() -> Result<(), Errno> {
    // SAFETY: no handler.
    unsafe { set_action(libc::SIGCHLD, libc::SIG_DFL, 0, &[])? };
    unblock(libc::SIGCHLD);
    Ok(())
}

/// Ignores SIGXFSZ: a file that would exceed RLIMIT_FSIZE is an error (EFBIG) then.
pub fn ignore_file_limit() -> Result<(), Errno> {
    // SAFETY: no handler.
    unsafe { set_action(libc::SIGXFSZ, libc::SIG_IGN, 0, &[]) }
}

/// Runs `wait`, which no signal interrupts. After a member's death it may last [`LOST_DEADLINE_S`]
/// more, then the process ends. Returns `None` without waiting if a member is lost already.
pub fn wait_uninterruptible<T>(wait: impl FnOnce() -> T) -> Option<T> {
    // Each side sets its flag before it reads the other's: at least one of them sees both.
    UNINTERRUPTIBLE.store(true, Ordering::SeqCst);
    let result = if LOST.load(Ordering::SeqCst) { None } else { Some(wait()) };
    UNINTERRUPTIBLE.store(false, Ordering::SeqCst);
    result
}

/// Notes the loss of a member that is a thread when it is dropped, also by a panic. A member that
/// has done its part forgets it.
pub struct EndNote;

impl Drop for EndNote {
    fn drop(&mut self) {
        note_loss();
    }
}

/// Handles SIGCHLD of a child's end, and of the timer: notes a loss, or starts the walks.
extern "C" fn on_child(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel hands over a valid siginfo; for SIGCHLD from a child it has a status.
    let (code, status) = unsafe { ((*info).si_code, (*info).si_status()) };
    // Members that have done their part end while the last lap is still going round.
    let is_done = code == libc::CLD_EXITED && status == 0;
    let of_child = matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED);
    if of_child && !is_done || code == libc::SI_TIMER && has_lost_one() {
        note_loss();
    } else if code != libc::SI_TIMER && !CELLS.load(Ordering::SeqCst).is_null() {
        // Another death may hide behind this signal.
        start_walks();
    }
}

/// Starts the walks along the ring. Async-signal-safe.
fn start_walks() {
    let timer = TIMER.load(Ordering::Acquire);
    if timer != 0 && !LOST.load(Ordering::SeqCst) && !WALKS.swap(true, Ordering::SeqCst) {
        interrupt_every(timer, WALK_NS, || ());
    }
}

/// Walks along the ring; returns whether the first member that has not ended well has ended.
/// Async-signal-safe, and leaves errno as it was.
fn has_lost_one() -> bool {
    let cells = CELLS.load(Ordering::SeqCst);
    if cells.is_null() {
        return false;
    }
    // SAFETY: they are held until the watch has ended, and with it this handler.
    let cells = unsafe { std::slice::from_raw_parts(cells, MEMBERS.load(Ordering::SeqCst)) };
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while let Some(cell) = cells.get(NEXT.load(Ordering::SeqCst)) {
        let member = Pid::from_raw(cell.tid.load(Ordering::Acquire) as i32);
        match member.map(|member| waitid(WaitId::Pid(member), how)) {
            Some(Ok(Some(end))) if end.exit_status() == Some(0) => {
                NEXT.fetch_add(1, Ordering::SeqCst);
            }
            Some(Ok(Some(_))) => return true,
            _ => return false,
        }
    }
    false
}

/// Notes a loss; the first one starts the timer, if there is a watch. Async-signal-safe
/// (signal-safety(7)).
fn note_loss() {
    let timer = TIMER.load(Ordering::Acquire);
    if timer == 0 || LOST.swap(true, Ordering::SeqCst) {
        return;
    }
    interrupt_every(timer, AGAIN_NS, || {
        if UNINTERRUPTIBLE.load(Ordering::SeqCst) {
            // SAFETY: touches no memory.
            unsafe { libc::alarm(LOST_DEADLINE_S) };
        }
    });
}

/// Lets the timer interrupt the leader every `step_ns`, and runs `more`, which may change errno.
fn interrupt_every(timer: usize, step_ns: i64, more: impl FnOnce()) {
    let step = libc::timespec { tv_sec: 0, tv_nsec: step_ns as _ };
    let again = libc::itimerspec { it_interval: step, it_value: step };
    // SAFETY: the call reads valid memory only; a timer that is gone is refused. errno is the
    // calling thread's own, and is put back.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::timer_settime((timer - 1) as libc::timer_t, 0, &again, std::ptr::null_mut());
        more();
        *errno = before;
    }
}

#[cfg(test)]
mod tests {
    use testing::wait_for;

    use super::super::process::{ChildProcess, exit_now};
    use super::*;

    /// In a process of its own: a watch is of all children.
    #[test]
    fn a_death_behind_a_good_end_is_noticed() {
        let leader = ChildProcess::start(|| {
            let area = Arc::new(SharedArea::new(4, false).unwrap());
            watch_members().unwrap();
            watch_ring(&area);
            let _ = block(&[libc::SIGCHLD]);
            let members: [fn(); 2] = [|| (), || exit_now(1)];
            for (cell, member) in area.cells()[1..].iter().zip(members) {
                let member = ChildProcess::start(member).unwrap();
                cell.tid.store(member.pid() as u32, Ordering::Release);
                member.wait();
                std::mem::forget(member);
            }
            // Both have ended, one signal is pending: that of the first.
            unblock(libc::SIGCHLD);
            wait_for("a loss", || member_lost().then_some(()));
            exit_now(0);
        });
        assert!(leader.unwrap().join());
    }
}
