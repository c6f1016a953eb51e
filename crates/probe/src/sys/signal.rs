//! Signals: masks and actions, and how links use them: queued and waited for, or caught by a handler.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use rustix::io::Errno;

use super::check;

/// The real-time signal of the link `signal`.
fn queued() -> c_int {
    libc::SIGRTMIN()
}

/// The signal of the link `handler-signal`.
const CAUGHT: c_int = libc::SIGUSR1;

/// Bytes of a set as the kernel has it, the first of the C library's (`_NSIG / 8` of
/// `include/uapi/asm-generic/signal.h`; all architectures but MIPS).
const SET_BYTES: usize = 8;

/// The thread that a signal goes to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aim {
    /// Its process.
    pub pid: i32,
    /// Its thread id.
    pub tid: i32,
}

/// siginfo_t as rt_sigqueueinfo(2) takes it, in the kernel's layout
/// (`include/uapi/asm-generic/siginfo.h`).
#[repr(C)]
struct Info {
    signo: c_int,
    errno: c_int,
    code: c_int,
    queued: Queued,
    rest: [u8; 104],
}

#[repr(C)]
struct Queued {
    pid: libc::pid_t,
    uid: libc::uid_t,
    // A union with a pointer: its alignment puts the whole part at offset 16 on 64-bit machines.
    value: usize,
}

const _: () = assert!(size_of::<Info>() >= 128, "the kernel reads the whole of its siginfo");

/// Sends real-time signals with a value.
pub struct QueuedSignal {
    aim: Aim,
    info: Info,
}

impl QueuedSignal {
    /// Aimed at nobody yet.
    pub fn new() -> Self {
        let (pid, uid) = (std::process::id() as i32, rustix::process::getuid().as_raw());
        let queued_part = Queued { pid, uid, value: 0 };
        let code = libc::SI_QUEUE;
        let info = Info { signo: queued(), errno: 0, code, queued: queued_part, rest: [0; 104] };
        Self { aim: Aim::default(), info }
    }

    /// Who gets it.
    pub fn aim(&mut self, aim: Aim) {
        self.aim = aim;
    }

    /// Queues the signal (rt_tgsigqueueinfo(2)): one path in the kernel for processes and threads.
    #[inline(always)]
    pub fn send(&mut self, value: u8) -> Result<(), Errno> {
        self.info.queued.value = usize::from(value);
        let (Aim { pid, tid }, signal) = (self.aim, self.info.signo);
        let info = &raw const self.info;
        // SAFETY: the kernel reads a siginfo from a valid address.
        let sent = unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info) };
        check(sent).map(|_| ())
    }
}

/// Blocks the real-time signal in the calling thread and all that it forks or starts.
pub fn block_queued() {
    block(&[queued()]);
}

/// The real-time signal, as it is waited for.
pub struct QueuedSignals {
    set: libc::sigset_t,
}

impl QueuedSignals {
    /// All that are sent to the calling thread.
    pub fn new() -> Self {
        Self { set: set_of(&[queued()]) }
    }

    /// Waits for the next one and gives its value (sigwaitinfo(2)).
    #[inline(always)]
    pub fn wait(&self) -> Result<u8, Errno> {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        let (set, room, forever) = (&raw const self.set, info.as_mut_ptr(), no_timeout());
        // The C library's call is a point of cancellation: two locked operations more for threads.
        // SAFETY: the set is valid; the kernel writes the siginfo before it returns a signal, and
        // one that was queued has a value.
        unsafe {
            check(libc::syscall(libc::SYS_rt_sigtimedwait, set, room, forever, SET_BYTES))?;
            Ok(info.assume_init_ref().si_value().sival_ptr as usize as u8)
        }
    }
}

/// Of a call that waits as long as it takes.
pub(super) fn no_timeout() -> *const libc::timespec {
    std::ptr::null()
}

/// A set of these signals.
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

/// Blocks these signals in the calling thread. Gives the mask as it was, without them: what to wait under.
pub(super) fn block(signals: &[c_int]) -> libc::sigset_t {
    let mut before = change_mask(libc::SIG_BLOCK, &set_of(signals));
    for signal in signals {
        // SAFETY: the set is valid.
        unsafe { libc::sigdelset(&mut before, *signal) };
    }
    before
}

/// Lets a signal in that the process may have been started with blocked.
pub(super) fn unblock(signal: c_int) {
    change_mask(libc::SIG_UNBLOCK, &set_of(&[signal]));
}

/// Whether a set has a signal.
pub(super) fn has(set: &libc::sigset_t, signal: c_int) -> bool {
    // SAFETY: reads a valid set.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// What the process does on a signal (sigaction(2)).
pub(super) fn action_of(signal: c_int) -> libc::sigaction {
    // SAFETY: a sigaction of zeros is valid, and the kernel fills it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        action
    }
}

/// Gives a signal its action (sigaction(2)), during which `blocked` signals wait.
///
/// # Safety
/// `handler` is SIG_DFL, SIG_IGN or the address of a function of the signature that `flags` ask for, which
/// does what is async-signal-safe and no more.
pub(super) unsafe fn set_action(
    signal: c_int,
    handler: libc::sighandler_t,
    flags: c_int,
    blocked: &[c_int],
) -> Result<(), Errno> {
    // SAFETY: a sigaction of zeros is valid; the caller vouches for the handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        action.sa_mask = set_of(blocked);
        check(libc::sigaction(signal, &action, std::ptr::null_mut())).map(|_| ())
    }
}

/// The signal that is caught: blocked but while its receiver waits for it.
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
    /// Sends it (tgkill(2)).
    #[inline(always)]
    pub fn send(self, aim: Aim) -> Result<(), Errno> {
        // SAFETY: touches no memory.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, aim.pid, aim.tid, CAUGHT) };
        check(sent).map(|_| ())
    }

    /// Lets the signal in and waits until some handler has run: pause(2) without its race
    /// (sigsuspend(2)).
    #[inline(always)]
    pub fn wait(&self) {
        // Not by the C library, as above.
        // SAFETY: reads a valid set. It always returns -1 with EINTR.
        unsafe { libc::syscall(libc::SYS_rt_sigsuspend, &raw const self.waiting, SET_BYTES) };
    }
}
