//! A command in a process of its own: fork, what it had before its exec, exec; and signals for it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::Pid;

use super::page::{Shareable, Shared};
use super::process::last_errno;
use super::usage::{Whose, usage};

/// Signals that are handed on to the command.
const RELAYED: [c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// The command that runs; 0 while there is none. It is reaped only after this is 0 again, so that no
/// signal goes to another process with the same id.
static COMMAND: AtomicI32 = AtomicI32::new(0);

/// What the child tells of itself before its exec, and of a failed one.
#[derive(Default)]
pub struct Note {
    errno: AtomicI32,
    resident_kib: AtomicU64,
    minor_faults: AtomicU64,
    cpu_ns: AtomicU64,
}

// SAFETY: atomics, which are a value when zero and the same in every process.
unsafe impl Shareable for Note {}

impl Note {
    /// Why the exec failed, if it did.
    pub fn failure(&self) -> Option<Errno> {
        let errno = self.errno.load(Ordering::Acquire);
        (errno != 0).then(|| Errno::from_raw_os_error(errno))
    }

    /// Resident memory in bytes, minor faults and CPU time in ns just before the exec.
    pub fn before_exec(&self) -> (u64, u64, u64) {
        let read = |value: &AtomicU64| value.load(Ordering::Acquire);
        (read(&self.resident_kib) * 1024, read(&self.minor_faults), read(&self.cpu_ns))
    }

    fn clear(&self) {
        self.errno.store(0, Ordering::Release);
    }
}

/// The words of a command as execvp(3) takes them.
pub struct Words {
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

impl Words {
    /// Of at least one word.
    pub fn new(texts: Vec<CString>) -> Option<Self> {
        let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        (!texts.is_empty()).then_some(Self { pointers, _texts: texts })
    }
}

/// Hands signals on to the command, if another process sent them: those of the terminal reach the
/// command by themselves. What this process was started with ignoring stays ignored, for both.
pub struct Relay {
    caught: Vec<c_int>,
}

impl Relay {
    /// Installs the handlers. For a process with one thread.
    pub fn install() -> Result<Self, Errno> {
        let mut caught = Vec::new();
        for signal in RELAYED {
            // SAFETY: a sigaction of zeros is valid; the handler has the signature that SA_SIGINFO
            // asks for and uses only what is async-signal-safe.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut before);
                if before.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = hand_on as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                if libc::sigaction(signal, &action, std::ptr::null_mut()) != 0 {
                    return Err(last_errno());
                }
            }
            caught.push(signal);
        }
        Ok(Self { caught })
    }

    /// Starts a command. The child has the parent's descriptors, and its signals as they were; SIGPIPE,
    /// which this program ignores, ends it again.
    pub fn start(&self, words: &Words, note: &Shared<Note>) -> Result<Pid, Errno> {
        note.clear();
        let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // A signal between the fork and its noting would be handed on to nobody.
        // SAFETY: both sets are valid for the calls; the kernel fills `before` first.
        let before = unsafe {
            let mut relayed = std::mem::zeroed();
            libc::sigemptyset(&mut relayed);
            for signal in &self.caught {
                libc::sigaddset(&mut relayed, *signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &relayed, before.as_mut_ptr());
            before.assume_init()
        };
        // SAFETY: this process has one thread: the child has copies of everything.
        let forked = match unsafe { libc::fork() } {
            0 => self.become_command(words, note, &before),
            -1 => Err(last_errno()),
            pid => {
                COMMAND.store(pid, Ordering::SeqCst);
                Pid::from_raw(pid).ok_or(Errno::INVAL)
            }
        };
        // SAFETY: a valid set.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
        forked
    }

    /// From here on the command gets no signal: it may be reaped.
    pub fn release(&self) {
        COMMAND.store(0, Ordering::SeqCst);
    }

    fn become_command(&self, words: &Words, note: &Note, mask: &libc::sigset_t) -> ! {
        // SAFETY: signal and sigprocmask touch no memory but the valid set.
        unsafe {
            for signal in self.caught.iter().chain(&[libc::SIGPIPE]) {
                libc::signal(*signal, libc::SIG_DFL);
            }
        }
        let used = usage(Whose::Own);
        note.resident_kib.store(used.max_resident_kib(), Ordering::Release);
        let used = used.read();
        note.minor_faults.store(used.minor_faults, Ordering::Release);
        note.cpu_ns.store(used.total_ns(), Ordering::Release);
        // SAFETY: the set is valid; the pointers are those of C strings, ended by a null, that live as
        // long as `words`.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
            libc::execvp(words.pointers[0], words.pointers.as_ptr());
        }
        note.errno.store(last_errno().raw_os_error(), Ordering::Release);
        super::exit_now(127)
    }
}

extern "C" fn hand_on(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the kernel gives a valid siginfo. kill touches no memory, and the errno
    // of whatever was interrupted is put back.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        // Above 0 are the kernel's: the terminal's own signals have reached the command too.
        let command = COMMAND.load(Ordering::SeqCst);
        if (*info).si_code <= 0 && command > 0 {
            libc::kill(command, signal);
        }
        *errno = before;
    }
}
