//! Becoming another program: a command in a process of its own, this program again, this process.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use rustix::param::page_size;
use rustix::process::Pid;

use super::errno::last_errno;
use super::inherited::Inherited;
use super::stop::{StopHandlers, stop_signal};
use super::usage::{Whose, usage};
use super::words::Command;

/// A command that was started.
pub struct Started {
    /// Its process id.
    pub pid: Pid,
    /// Readable at its end; absent before Linux 5.2.
    pub handle: Option<OwnedFd>,
    /// What the child noted before its exec.
    pub before_exec: BeforeExec,
}

/// A child just before its exec, and how that went.
#[derive(Clone, Copy, Debug, Default)]
pub struct BeforeExec {
    /// Why the exec failed, if it did.
    pub failure: Option<Errno>,
    /// Whether the command was not begun, as a signal had asked to stop.
    pub held: bool,
    /// Which path the program was looked for at last; a new start begins there.
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

/// What the child needs, and what it notes.
struct Start<'a> {
    command: Command<'a>,
    handlers: &'a StopHandlers,
    inherited: Inherited,
    rehearsal: bool,
    found: Cell<usize>,
    noted: Cell<BeforeExec>,
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

    /// Starts a command, looking for its program from path `found` on; a `rehearsal` ends where it would
    /// become the command. The child has the parent's descriptors and mask, and its memory up to the exec,
    /// for which the calling thread waits (vfork(2)): no page table is copied, no page faults once more.
    ///
    /// A stopping signal that came before the child was made holds it back: the kernel delivers what is
    /// pending before it forks, and gives what comes to the whole group meanwhile to both
    /// (kernel/fork.c, `delayed`).
    pub fn start(
        &self,
        command: Command<'_>,
        found: usize,
        rehearsal: bool,
        handlers: &StopHandlers,
    ) -> Result<Started, Errno> {
        let (inherited, found) = (self.inherited, Cell::new(found));
        let noted = Cell::default();
        let start = Start { command, handlers, inherited, rehearsal, found, noted };
        let name = command.name();
        let mut handle: c_int = -1;
        let shared = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let mut clone = |flags| {
            // SAFETY: the child runs on a stack of its own while this thread, the only one that has this
            // Starter and the command's words, waits for its exec or its end; what it writes meanwhile
            // are cells, errno and the command's name, which is put back. The kernel writes one
            // descriptor.
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
        let failure = last_errno();
        command.rename(name);
        let pid = Pid::from_raw(pid.max(0)).ok_or(failure)?;
        // SAFETY: the kernel has made this descriptor for the caller alone, closed by exec.
        let handle = (handle >= 0).then(|| unsafe { OwnedFd::from_raw_fd(handle) });
        let before_exec = BeforeExec { found: start.found.get(), ..start.noted.get() };
        Ok(Started { pid, handle, before_exec })
    }
}

extern "C" fn become_command(start: *mut c_void) -> c_int {
    // SAFETY: `Starter::start` gives the address of a Start that lives on, and waits.
    let Start { command, handlers, inherited, rehearsal, found, noted } =
        unsafe { &*start.cast::<Start<'_>>() };
    handlers.set_default();
    // By a handler that ran here before they were set.
    if stop_signal().is_some() {
        noted.set(BeforeExec { held: true, ..BeforeExec::default() });
        super::exit_now(127);
    }
    inherited.restore();
    let usage = usage(Whose::Own);
    let resident_bytes = usage.max_resident_kib() * 1024;
    let used = usage.read();
    let (minor_faults, cpu_ns) = (used.minor_faults, used.total_ns());
    let before = BeforeExec { resident_bytes, minor_faults, cpu_ns, ..BeforeExec::default() };
    noted.set(before);
    if *rehearsal {
        super::exit_now(0);
    }
    let failure = Some(command.exec(found));
    noted.set(BeforeExec { failure, ..before });
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
