//! Signals that ask to stop, in the program and in its launcher. Both note them in the handler itself,
//! so that whoever looks after a command's end sees what came before it.
//!
//! The terminal's signals, and those to the whole process group, reach program, launcher and command
//! by themselves. What reached the program alone is told to the launcher, which sends it to the command.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;

use super::clock::monotonic_ns;
use super::process::last_errno;

/// The signals.
const STOPPING: [c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// A signal to the group reaches the program and the launcher at once; the program's word of it comes
/// within this time, unless the machine stands still.
const TOGETHER_NS: u64 = 2_000_000_000;

/// The last that came; 0 before.
static CAME: AtomicI32 = AtomicI32::new(0);
/// Where the program tells of them; -1 in the launcher, which is told.
static TOLD: AtomicI32 = AtomicI32::new(-1);
/// Whose handlers they are: a child that shares the memory up to its exec has them too for a moment.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// What was sent to this process itself, by [`STOPPING`].
static DIRECT: [Direct; 4] = [const { Direct::new() }; 4];

struct Direct {
    count: AtomicU32,
    sender: AtomicI32,
    at_ns: AtomicU64,
}

impl Direct {
    const fn new() -> Self {
        let (count, sender, at_ns) = (AtomicU32::new(0), AtomicI32::new(0), AtomicU64::new(0));
        Self { count, sender, at_ns }
    }
}

/// What the program tells of a signal that another process sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    signal: c_int,
    sender: i32,
}

impl Told {
    /// Bytes of one on the socket.
    pub const BYTES: usize = 8;

    /// As it was written.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        let number = |bytes| i32::from_ne_bytes(bytes);
        Self { signal: number([a, b, c, d]), sender: number([e, f, g, h]) }
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.signal.to_ne_bytes();
        let [e, f, g, h] = self.sender.to_ne_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// Notes it in the launcher; gives the signal to send to the command, unless it was sent to the
    /// group, so that the command has it already.
    pub fn note(self) -> Option<c_int> {
        CAME.store(self.signal, Ordering::SeqCst);
        let place = STOPPING.iter().position(|signal| *signal == self.signal)?;
        let direct = &DIRECT[place];
        let together = direct.count.load(Ordering::SeqCst) > 0
            && direct.sender.load(Ordering::SeqCst) == self.sender
            && monotonic_ns().saturating_sub(direct.at_ns.load(Ordering::SeqCst)) < TOGETHER_NS;
        if together {
            direct.count.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        Some(self.signal)
    }
}

/// The last signal that asked to stop, if one came.
pub fn stop_signal() -> Option<c_int> {
    Some(CAME.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

/// Handlers for as long as it lives. What this process was started with ignoring stays ignored.
pub struct StopWatch {
    before: Vec<(c_int, libc::sigaction)>,
}

impl StopWatch {
    /// Installs the handlers; the program gives the `socket` to its launcher, which has to outlive this.
    pub fn install(socket: Option<BorrowedFd<'_>>) -> Result<Self, Errno> {
        let socket = socket.map_or(-1, |socket| socket.as_raw_fd());
        TOLD.store(socket, Ordering::SeqCst);
        OWNER.store(own_id(), Ordering::SeqCst);
        let mut watch = Self { before: Vec::with_capacity(STOPPING.len()) };
        for signal in STOPPING {
            // SAFETY: a sigaction of zeros is valid; the handler has the signature that SA_SIGINFO
            // asks for and uses only what is async-signal-safe.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut before);
                if before.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = came as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                // One at a time: what is told of them must not be torn.
                for other in STOPPING {
                    libc::sigaddset(&mut action.sa_mask, other);
                }
                if libc::sigaction(signal, &action, std::ptr::null_mut()) != 0 {
                    return Err(last_errno());
                }
                watch.before.push((signal, before));
            }
        }
        Ok(watch)
    }

    /// Gives the signals their default action, in a process that is about to become another program.
    pub(super) fn forget(&self) {
        for (signal, _) in &self.before {
            // SAFETY: touches no memory.
            unsafe { libc::signal(*signal, libc::SIG_DFL) };
        }
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: the action is the one that the kernel gave.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
        TOLD.store(-1, Ordering::SeqCst);
    }
}

/// What becomes of this process by the stopping signals, put back at the end of its life: some handlers
/// have nobody who takes them away.
pub struct KeptActions {
    before: Vec<(c_int, libc::sigaction)>,
}

impl KeptActions {
    /// As it is.
    pub fn keep() -> Self {
        let now = |signal| {
            // SAFETY: a sigaction of zeros is valid, and the kernel fills it.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut action);
                (signal, action)
            }
        };
        Self { before: STOPPING.into_iter().map(now).collect() }
    }
}

impl Drop for KeptActions {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: the action is the one that the kernel gave.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// getpid(2), which a handler may call.
fn own_id() -> i32 {
    // SAFETY: touches no memory, cannot fail.
    unsafe { libc::getpid() }
}

extern "C" fn came(signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    CAME.store(signal, Ordering::SeqCst);
    // SAFETY: with SA_SIGINFO the kernel gives a valid siginfo; one that a process sent has its id.
    let (from_process, sender) = unsafe { ((*info).si_code <= 0, (*info).si_pid()) };
    // The kernel's own, as those of the terminal are, go to all that are concerned.
    if !from_process {
        return;
    }
    let socket = TOLD.load(Ordering::SeqCst);
    if socket >= 0 {
        let bytes = Told { signal, sender }.to_bytes();
        // SAFETY: reads as many bytes as there are. MSG_NOSIGNAL: a launcher that is gone is no news.
        // The errno of whatever was interrupted is put back.
        unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL);
            *errno = before;
        }
    } else if OWNER.load(Ordering::SeqCst) != own_id() {
        // The group's: its owner counts it too.
    } else if let Some(place) = STOPPING.iter().position(|stopping| *stopping == signal) {
        let direct = &DIRECT[place];
        let now_ns = monotonic_ns();
        let before_ns = direct.at_ns.swap(now_ns, Ordering::SeqCst);
        // What nobody has told of for so long, nobody will.
        if now_ns.saturating_sub(before_ns) >= TOGETHER_NS {
            direct.count.store(0, Ordering::SeqCst);
        }
        direct.sender.store(sender, Ordering::SeqCst);
        direct.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Signals that are held back for as long as it lives: the stopping ones.
pub struct HeldBack {
    before: libc::sigset_t,
}

impl HeldBack {
    /// Holds them back in the calling thread.
    pub fn hold() -> Self {
        // SAFETY: sigemptyset and the kernel fill the sets before they are read. With valid arguments
        // nothing fails.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in STOPPING {
                libc::sigaddset(&mut set, signal);
            }
            let mut before = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            Self { before }
        }
    }

    /// Which of them were held back before, a bit each.
    pub fn before(&self) -> u64 {
        let blocked = |(place, signal): (usize, &c_int)| {
            // SAFETY: reads a valid set.
            u64::from(unsafe { libc::sigismember(&self.before, *signal) } == 1) << place
        };
        STOPPING.iter().enumerate().map(blocked).sum()
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        // SAFETY: the kernel gave the set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// Lets the stopping signals in, but for those that `before` ([`HeldBack::before`]) names.
pub fn let_in(before: u64) {
    // SAFETY: sigemptyset fills the set before it is read. With valid arguments nothing fails.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for (place, signal) in STOPPING.into_iter().enumerate() {
            if before & (1 << place) == 0 {
                libc::sigaddset(&mut set, signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}
