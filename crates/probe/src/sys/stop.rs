//! Signals that are meant for the command, in the program and in its launcher: those that ask to
//! stop, and SIGUSR1 and SIGUSR2. Both note a request to stop in the handler itself, so that a
//! check after a command's end sees all requests before it.
//!
//! Signals of the terminal, and those to the whole process group, reach program, launcher and
//! command by themselves. A signal that reached only the program is passed on to the launcher,
//! which sends it to the command.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};

use rustix::io::Errno;

use super::clock::monotonic_ns;
use super::signal::{action_of, change_mask, has, set_action, set_of};

/// Signals that are passed on; the first [`STOPPING`] ask to stop.
const PASSED_ON: [c_int; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];
/// Number of signals that ask to stop.
const STOPPING: usize = 4;

/// Time within which the program passes on a signal to the group, which reaches program and
/// launcher at once, unless the machine stalls.
const TOGETHER_NS: u64 = 2_000_000_000;

/// Last request to stop; 0 before.
static LAST: AtomicI32 = AtomicI32::new(0);
/// Socket by which the program passes signals on; -1 in the launcher.
static SOCKET: AtomicI32 = AtomicI32::new(-1);
/// Process of the handlers: a child that shares the memory up to its exec has them for a moment,
/// too.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// Signals that were sent to this process directly, in the order of [`PASSED_ON`].
static DIRECT: [DirectSignals; PASSED_ON.len()] = [const {
    DirectSignals { count: AtomicU32::new(0), sender: AtomicI32::new(0), at_ns: AtomicU64::new(0) }
}; PASSED_ON.len()];

/// Number, last sender and time of a signal's direct arrivals.
struct DirectSignals {
    count: AtomicU32,
    sender: AtomicI32,
    at_ns: AtomicU64,
}

/// Size of the message by which a signal is passed on: its number and its sender.
pub const FORWARDED_BYTES: usize = 8;

/// Notes in the launcher a signal that the program has passed on. Returns the signal to send to the
/// command, unless it was sent to the group: then the command has it already.
pub fn note_forwarded(bytes: [u8; FORWARDED_BYTES]) -> Option<c_int> {
    let message = u64::from_ne_bytes(bytes);
    let (signal, sender) = ((message >> 32) as c_int, message as i32);
    note(signal);
    let direct = &DIRECT[PASSED_ON.iter().position(|passed| *passed == signal)?];
    let was_to_group = direct.count.load(SeqCst) > 0
        && direct.sender.load(SeqCst) == sender
        && monotonic_ns().saturating_sub(direct.at_ns.load(SeqCst)) < TOGETHER_NS;
    if was_to_group {
        direct.count.fetch_sub(1, SeqCst);
        return None;
    }
    Some(signal)
}

/// Notes a request to stop. Async-signal-safe.
fn note(signal: c_int) {
    if PASSED_ON[..STOPPING].contains(&signal) {
        LAST.store(signal, SeqCst);
    }
}

/// Returns the last signal that asked to stop, if one came.
pub fn stop_signal() -> Option<c_int> {
    let signal = LAST.load(SeqCst);
    if signal == 0 { None } else { Some(signal) }
}

/// This process's actions for these signals, which are restored when this is dropped.
pub struct SavedActions([libc::sigaction; PASSED_ON.len()]);

impl SavedActions {
    /// Saves the present actions.
    pub fn keep() -> Self {
        Self(PASSED_ON.map(action_of))
    }

    /// Returns the signals that were not ignored.
    fn not_ignored(&self) -> impl Iterator<Item = c_int> + '_ {
        let actions = PASSED_ON.into_iter().zip(&self.0);
        let caught = actions.filter(|(_, action)| action.sa_sigaction != libc::SIG_IGN);
        caught.map(|(signal, _)| signal)
    }
}

impl Drop for SavedActions {
    fn drop(&mut self) {
        for (signal, before) in PASSED_ON.into_iter().zip(&self.0) {
            // SAFETY: the action is the one that the kernel gave.
            unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
        }
    }
}

/// Handlers that note the signals until this is dropped. Ignored signals stay ignored.
pub struct StopHandlers {
    // Dropped first: the handlers write to the socket.
    before: SavedActions,
    _socket: Option<OwnedFd>,
}

impl StopHandlers {
    /// Installs the handlers. The program passes the `socket` to its launcher; the launcher has
    /// none.
    pub fn install(socket: Option<OwnedFd>) -> Result<Self, Errno> {
        SOCKET.store(socket.as_ref().map_or(-1, AsRawFd::as_raw_fd), SeqCst);
        OWNER.store(std::process::id() as i32, SeqCst);
        let handlers = Self { before: SavedActions::keep(), _socket: socket };
        for signal in handlers.before.not_ignored() {
            let (handler, flags) =
                (on_stop_signal as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART);
            // SAFETY: the handler has the signature that SA_SIGINFO asks for and uses only what is
            // async-signal-safe. One signal at a time: what is forwarded must not be torn.
            unsafe { set_action(signal, handler, flags, &PASSED_ON)? };
        }
        Ok(handlers)
    }

    /// Sets the default action of the signals, in a process that is about to become another
    /// program.
    pub(super) fn set_default(&self) {
        for signal in self.before.not_ignored() {
            // SAFETY: touches no memory.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Handles a signal: notes a request to stop, and passes on what another process sent to this one.
extern "C" fn on_stop_signal(
    signal: c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    note(signal);
    // SAFETY: with SA_SIGINFO the kernel gives a valid siginfo; one that a process sent has its id.
    let (from_process, sender) = unsafe { ((*info).si_code <= 0, (*info).si_pid()) };
    // Signals of the kernel, such as those of the terminal, reach all processes by themselves.
    if !from_process {
        return;
    }
    let socket = SOCKET.load(SeqCst);
    if socket >= 0 {
        let bytes = (u64::from(signal as u32) << 32 | u64::from(sender as u32)).to_ne_bytes();
        // SAFETY: reads as many bytes as there are. MSG_NOSIGNAL: a launcher that is gone is
        // noticed elsewhere. The errno of the interrupted code is restored.
        unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL);
            *errno = before;
        }
    } else if OWNER.load(SeqCst) != std::process::id() as i32 {
        // A signal to the group: the owner of the handlers counts it.
    } else if let Some(place) = PASSED_ON.iter().position(|passed| *passed == signal) {
        let direct = &DIRECT[place];
        let now_ns = monotonic_ns();
        let before_ns = direct.at_ns.swap(now_ns, SeqCst);
        // A signal that was not passed on for so long will not be.
        if now_ns.saturating_sub(before_ns) >= TOGETHER_NS {
            direct.count.store(0, SeqCst);
        }
        direct.sender.store(sender, SeqCst);
        direct.count.fetch_add(1, SeqCst);
    }
}

/// Blocks these signals in the calling thread until it is dropped.
pub struct BlockedStopSignals {
    before: libc::sigset_t,
}

impl BlockedStopSignals {
    /// Blocks the signals.
    pub fn block() -> Self {
        Self { before: change_mask(libc::SIG_BLOCK, &set_of(&PASSED_ON)) }
    }

    /// Returns which of them were blocked before, a bit for each.
    pub fn before(&self) -> u64 {
        let mut bits = 0;
        for (bit, signal) in PASSED_ON.into_iter().enumerate() {
            bits |= u64::from(has(&self.before, signal)) << bit;
        }
        bits
    }
}

impl Drop for BlockedStopSignals {
    fn drop(&mut self) {
        change_mask(libc::SIG_SETMASK, &self.before);
    }
}

/// Unblocks these signals except those in `before` ([`BlockedStopSignals::before`]).
pub fn unblock_stop_signals(before: u64) {
    let mut unblocked = Vec::new();
    for (bit, signal) in PASSED_ON.into_iter().enumerate() {
        if before & (1 << bit) == 0 {
            unblocked.push(signal);
        }
    }
    change_mask(libc::SIG_UNBLOCK, &set_of(&unblocked));
}
