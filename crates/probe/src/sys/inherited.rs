//! What this process was started with, and what Rust's runtime and `main` change before anything else:
//! SIGPIPE, SIGCHLD, and standard streams that were closed. A command is to find them as its caller left
//! them.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Signals whose being ignored is passed on, and their bits.
const SIGNALS: [c_int; 2] = [libc::SIGPIPE, libc::SIGCHLD];
/// Bit of standard stream 0.
const STREAMS: usize = 8;
/// Bit of a SIGCHLD that is blocked.
const CHILD_BLOCKED: u64 = 1 << 16;

static FOUND: AtomicU64 = AtomicU64::new(0);

/// Run by the dynamic loader before `main` (System V ABI, section 5.2.3).
#[used]
// SAFETY: the section holds pointers to functions of this signature, called once each; this one uses
// no more than system calls and an atomic.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note_state;

extern "C" fn note_state() {
    let mut found = 0;
    for (place, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: a sigaction of zeros is valid, and the kernel fills it.
        let action = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            action
        };
        found |= u64::from(action.sa_sigaction == libc::SIG_IGN) << place;
    }
    for stream in 0..3 {
        // SAFETY: fcntl with F_GETFD touches no memory.
        let closed = unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1;
        found |= u64::from(closed) << (STREAMS + stream as usize);
    }
    // SAFETY: the kernel fills the set before it is read.
    let blocked = unsafe {
        let mut mask = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
        libc::sigismember(&mask, libc::SIGCHLD) == 1
    };
    found |= if blocked { CHILD_BLOCKED } else { 0 };
    FOUND.store(found, Ordering::Relaxed);
}

/// Ignored signals and closed streams, in one number for another process of this program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inherited(u64);

impl Inherited {
    /// Of this process.
    pub fn own() -> Self {
        Self(FOUND.load(Ordering::Relaxed))
    }

    /// From [`Inherited::bits`].
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// As a number.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Whether a standard stream was closed, and what has its number now is /dev/null.
    pub fn had_closed(self, stream: usize) -> bool {
        self.0 & (1 << (STREAMS + stream)) != 0
    }

    /// Puts it all back for the program that this process is about to become.
    pub(super) fn restore(self) {
        for (place, signal) in SIGNALS.into_iter().enumerate() {
            let ignored = self.0 & (1 << place) != 0;
            // SAFETY: neither call touches memory of ours.
            unsafe { libc::signal(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL }) };
        }
        if self.0 & CHILD_BLOCKED != 0 {
            // SAFETY: sigemptyset fills the set before it is read.
            unsafe {
                let mut child = std::mem::zeroed();
                libc::sigemptyset(&mut child);
                libc::sigaddset(&mut child, libc::SIGCHLD);
                libc::sigprocmask(libc::SIG_BLOCK, &child, std::ptr::null_mut());
            }
        }
        for stream in (0..3).filter(|stream| self.had_closed(*stream)) {
            // Closed by the exec and not before: if that fails, nobody is given the number.
            // SAFETY: touches no memory.
            unsafe { libc::fcntl(stream as c_int, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}
