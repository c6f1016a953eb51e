//! Becoming another program: a command in a process of its own, this program again, this process.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use rustix::param::page_size;
use rustix::process::Pid;

use super::inherited::Inherited;
use super::page::{Shareable, Shared};
use super::process::last_errno;
use super::stop::{StopHandlers, stop_signal};
use super::usage::{Whose, usage};
use super::words::Command;

/// What the child tells of itself before its exec, and of a failed one.
#[derive(Default)]
pub struct Note {
    rehearsal: AtomicBool,
    errno: AtomicI32,
    held: AtomicBool,
    found: AtomicUsize,
    resident_kib: AtomicU64,
    minor_faults: AtomicU64,
    cpu_ns: AtomicU64,
}

// SAFETY: atomics, which are a value when zero and the same in every process.
unsafe impl Shareable for Note {}

impl Note {
    /// Whether children are to end where they would become the command.
    pub fn rehearse(&self, rehearsal: bool) {
        self.rehearsal.store(rehearsal, Ordering::Release);
    }

    /// Whether they are.
    pub fn is_rehearsal(&self) -> bool {
        self.rehearsal.load(Ordering::Acquire)
    }

    /// What the last child told.
    pub fn read(&self) -> BeforeExec {
        let read = |value: &AtomicU64| value.load(Ordering::Acquire);
        let errno = self.errno.load(Ordering::Acquire);
        BeforeExec {
            failure: (errno != 0).then(|| Errno::from_raw_os_error(errno)),
            held: self.held.load(Ordering::Acquire),
            found: self.found.load(Ordering::Acquire),
            resident_bytes: read(&self.resident_kib) * 1024,
            minor_faults: read(&self.minor_faults),
            cpu_ns: read(&self.cpu_ns),
        }
    }
}

/// A child of [`Starter::start`] just before its exec.
#[derive(Clone, Copy, Debug)]
pub struct BeforeExec {
    /// Why the exec failed, if it did.
    pub failure: Option<Errno>,
    /// Whether the command was not begun, as a signal had asked to stop.
    pub held: bool,
    /// Where the program was looked for last; a new start begins there.
    pub found: usize,
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// Minor page faults so far.
    pub minor_faults: u64,
    /// CPU time so far in nanoseconds.
    pub cpu_ns: u64,
}

/// Starts commands.
pub struct Starter {
    inherited: Inherited,
    stack: *mut c_void,
}

/// Of a child before its exec: some calls deep, more where somebody has wrapped execve(2). One page guards.
const STACK_BYTES: usize = 128 << 10;

/// What the child needs.
struct Start<'a> {
    command: Command<'a>,
    note: &'a Note,
    handlers: &'a StopHandlers,
    inherited: Inherited,
}

impl Starter {
    /// Of commands that find `inherited` as it was.
    pub fn new(inherited: Inherited) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping aliases nothing; it stays to the end of the process.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), STACK_BYTES, access, MapFlags::PRIVATE)?
        };
        // SAFETY: its lowest page, which nobody uses: beyond it there is memory that the child shares.
        unsafe { mprotect(base, page_size(), MprotectFlags::empty())? };
        // SAFETY: the end of the mapping; stacks grow down, and pages are aligned as any stack has to be.
        let stack = unsafe { base.cast::<u8>().add(STACK_BYTES).cast() };
        Ok(Self { inherited, stack })
    }

    /// Starts a command, looking for its program from path `found` on; gives its id, and since Linux 5.2 a
    /// descriptor that is readable at its end. The child has the parent's descriptors and mask, and its
    /// memory up to the exec, for which the calling thread waits (vfork(2)): no page table is copied, no
    /// page faults once more.
    ///
    /// A stopping signal that came before the child was made holds it back: the kernel delivers what is
    /// pending before it forks, and gives what comes to the whole group meanwhile to both
    /// (kernel/fork.c, `delayed`).
    pub fn start(
        &self,
        command: Command<'_>,
        found: usize,
        note: &Shared<Note>,
        handlers: &StopHandlers,
    ) -> Result<(Pid, Option<OwnedFd>), Errno> {
        note.errno.store(0, Ordering::Release);
        note.held.store(false, Ordering::Release);
        note.found.store(found, Ordering::Release);
        let start = Start { command, note, handlers, inherited: self.inherited };
        let name = command.name();
        let mut handle: c_int = -1;
        let shared = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let mut clone = |flags| {
            // SAFETY: the child runs on a stack of its own while this thread, the only one that has this
            // Starter and the command's words, waits for its exec or its end; what it writes meanwhile are atomics, errno and the command's name, which is
            // put back. The kernel writes one descriptor.
            unsafe {
                let argument = (&raw const start).cast_mut().cast();
                libc::clone(become_command, self.stack, flags, argument, &raw mut handle)
            }
        };
        let mut pid = clone(shared | libc::CLONE_PIDFD);
        if pid == -1 && last_errno() == Errno::INVAL {
            // Linux before 5.2.
            pid = clone(shared);
        }
        command.rename(name);
        // SAFETY: the kernel has made this descriptor for the caller alone, closed by exec.
        let handle = (handle >= 0 && pid > 0).then(|| unsafe { OwnedFd::from_raw_fd(handle) });
        match pid {
            -1 => Err(last_errno()),
            pid => Ok((Pid::from_raw(pid).ok_or(Errno::INVAL)?, handle)),
        }
    }
}

extern "C" fn become_command(start: *mut c_void) -> c_int {
    // SAFETY: `Starter::start` gives the address of a Start that lives on.
    let Start { command, note, handlers, inherited } = unsafe { &*start.cast::<Start<'_>>() };
    handlers.set_default();
    // By a handler that ran here before they were forgotten.
    if stop_signal().is_some() {
        note.held.store(true, Ordering::Release);
        super::exit_now(127);
    }
    inherited.restore();
    let used = usage(Whose::Own);
    note.resident_kib.store(used.max_resident_kib(), Ordering::Release);
    let used = used.read();
    note.minor_faults.store(used.minor_faults, Ordering::Release);
    note.cpu_ns.store(used.total_ns(), Ordering::Release);
    if note.is_rehearsal() {
        super::exit_now(0);
    }
    let errno = command.exec(note.found.load(Ordering::Acquire), |place| {
        note.found.store(place, Ordering::Release);
    });
    note.errno.store(errno.raw_os_error(), Ordering::Release);
    super::exit_now(127)
}

/// This program once more, with `words`: the copy has `descriptors`, which exec would close, the caller's
/// signals and all that it was started with.
pub fn start_again(words: &[&CStr], descriptors: &[BorrowedFd<'_>]) -> Result<Pid, Errno> {
    let table = table_of(words);
    // SAFETY: the child makes system calls and nothing else, which it may whatever other threads were
    // doing. The table holds C strings and ends with a null.
    unsafe {
        match libc::fork() {
            -1 => Err(last_errno()),
            0 => {
                for descriptor in descriptors {
                    libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0);
                }
                libc::execv(c"/proc/self/exe".as_ptr(), table.as_ptr());
                super::exit_now(127)
            }
            pid => Pid::from_raw(pid).ok_or(Errno::INVAL),
        }
    }
}

/// Becomes the program `path`, with these arguments, the first of which is its name, the environment as
/// it is, and the signals and streams that this process was started with. `std` searches PATH, and hands
/// what is no program to a shell. Returns why it failed.
pub fn execute(path: &CStr, args: &[&CStr]) -> Errno {
    let table = table_of(args);
    Inherited::own().restore();
    // SAFETY: path and table are C strings, and the table ends with a null.
    unsafe { libc::execv(path.as_ptr(), table.as_ptr()) };
    last_errno()
}

fn table_of(words: &[&CStr]) -> Vec<*const c_char> {
    words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
}
