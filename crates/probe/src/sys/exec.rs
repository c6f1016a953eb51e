//! Starting other programs: a command in a new process, this program again, or in place of this
//! process.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::param::linux_execfn;
use rustix::process::{Pid, getpid, setsid};
use serde::{Deserialize, Serialize};

use super::clock::{ResourceUsage, UsageScope, usage};
use super::last_errno;
use super::page::GuardedStack;
use super::process::{ForkSide, end_with_parent, fork, set_parent_death_signal};
use super::signal::{action_of, block, change_mask, has, set_of};
use super::stop::{StopHandlers, stop_signal};
use super::words::MappedCommand;

/// A process that was started for a command.
pub struct StartedCommand {
    /// Process id.
    pub pid: Pid,
    /// Process descriptor, readable at its end; `None` before Linux 5.2.
    pub handle: Option<OwnedFd>,
    /// State that the child noted before its exec.
    pub before_exec: BeforeExec,
}

/// State of a child before its exec, and the result of the exec.
#[derive(Clone, Copy, Debug, Default)]
pub struct BeforeExec {
    /// Errno of the exec, if it failed.
    pub failure: Option<Errno>,
    /// Whether the exec was not tried because a signal had asked to stop.
    pub held: bool,
    /// Number of the path that was tried last; the next start begins with it.
    pub found: usize,
    /// Resources used before the exec.
    pub usage: Option<ResourceUsage>,
}

/// Starts commands in new processes.
pub struct CommandStarter {
    inherited: InheritedState,
    stack: GuardedStack,
}

/// Descriptors that become standard streams of a command; a stream without one is the caller's.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandStreams<'a> {
    /// Standard input.
    pub input: Option<BorrowedFd<'a>>,
    /// Standard output.
    pub output: Option<BorrowedFd<'a>>,
    /// Standard error.
    pub error: Option<BorrowedFd<'a>>,
}

/// Stack of a child before its exec: a few calls deep, more if execve(2) is wrapped.
const STACK_BYTES: usize = 128 << 10;

/// Everything that the child needs, and the cells in which it notes its state.
struct StartRequest<'a> {
    command: &'a MappedCommand<'a>,
    handlers: &'a StopHandlers,
    inherited: InheritedState,
    streams: CommandStreams<'a>,
    rehearsal: bool,
    found: Cell<usize>,
    noted: Cell<BeforeExec>,
}

impl CommandStreams<'_> {
    /// Puts the descriptors in place of the standard streams, in a child before its exec. A stream
    /// stays as it is if that fails.
    fn redirect(self) {
        let streams = [self.input, self.output, self.error];
        for (number, stream) in streams.into_iter().enumerate() {
            if let Some(stream) = stream {
                // SAFETY: touches no memory.
                unsafe { libc::dup2(stream.as_raw_fd(), number as c_int) };
            }
        }
    }
}

impl CommandStarter {
    /// Builds a starter whose commands get the state in `inherited`.
    pub fn new(inherited: InheritedState) -> Result<Self, Errno> {
        Ok(Self { inherited, stack: GuardedStack::new(STACK_BYTES)? })
    }

    /// Starts a command with these `streams`, trying its paths from number `found` on. A `rehearsal`
    /// ends before the exec. The child has the parent's descriptors and mask, and shares its memory
    /// up to the exec, for which the calling thread waits (vfork(2)): no page table is copied, and
    /// no page faults again.
    ///
    /// A stopping signal that came before the child existed prevents its exec: the kernel delivers
    /// pending signals before it forks, and delivers signals to the whole group meanwhile to both
    /// (kernel/fork.c, `delayed`).
    pub fn start(
        &self,
        command: &MappedCommand<'_>,
        found: usize,
        streams: CommandStreams<'_>,
        rehearsal: bool,
        handlers: &StopHandlers,
    ) -> Result<StartedCommand, Errno> {
        let (inherited, found) = (self.inherited, Cell::new(found));
        let noted = Cell::default();
        let start = StartRequest { command, handlers, inherited, streams, rehearsal, found, noted };
        let mut handle: c_int = -1;
        let shared = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: `start` lives on, and this thread, the only one that has this starter and the
        // command, waits for the child's exec or its end.
        let mut pid = unsafe { self.clone_child(&start, shared | libc::CLONE_PIDFD, &mut handle) };
        if pid == -1 && last_errno() == Errno::INVAL {
            // Linux before 5.2 has no CLONE_PIDFD.
            // SAFETY: as above.
            pid = unsafe { self.clone_child(&start, shared, &mut handle) };
        }
        let failure = last_errno();
        let pid = Pid::from_raw(pid.max(0)).ok_or(failure)?;
        // SAFETY: the kernel has made this descriptor for the caller alone, closed by exec.
        let handle = (handle >= 0).then(|| unsafe { OwnedFd::from_raw_fd(handle) });
        let before_exec = BeforeExec { found: start.found.get(), ..start.noted.get() };
        Ok(StartedCommand { pid, handle, before_exec })
    }

    /// Makes the child, which runs [`become_command`] on the starter's stack. Returns its process
    /// id, or -1 with errno; the kernel writes a descriptor to `handle`.
    ///
    /// # Safety
    /// `start` outlives the child's use of it, the caller waits for the child's exec or end
    /// (CLONE_VFORK), and no other thread uses the starter or the command meanwhile: what the child
    /// writes are cells, errno and the command's table.
    unsafe fn clone_child(
        &self,
        start: &StartRequest<'_>,
        flags: c_int,
        handle: &mut c_int,
    ) -> c_int {
        let argument = std::ptr::from_ref(start).cast_mut().cast();
        // SAFETY: the stack grows down from the aligned end of its mapping; the caller guarantees
        // the rest. The kernel writes one descriptor.
        unsafe {
            libc::clone(
                become_command,
                self.stack.top(),
                flags,
                argument,
                std::ptr::from_mut(handle),
            )
        }
    }
}

/// Becomes the command, in the child: restores inherited state, and executes it. Ends the child if
/// that fails.
extern "C" fn become_command(start: *mut c_void) -> c_int {
    // SAFETY: `CommandStarter::start` passes the address of a StartRequest that lives on, and
    // waits.
    let StartRequest { command, handlers, inherited, streams, rehearsal, found, noted } =
        unsafe { &*start.cast::<StartRequest<'_>>() };
    handlers.set_default();
    // A handler may have run in this process before the actions were reset.
    if stop_signal().is_some() {
        noted.set(BeforeExec { held: true, ..BeforeExec::default() });
        super::exit_now(127);
    }
    inherited.restore();
    streams.redirect();
    let before = BeforeExec { usage: Some(usage(UsageScope::Own)), ..BeforeExec::default() };
    noted.set(before);
    if *rehearsal {
        super::exit_now(0);
    }
    let failure = Some(command.exec(found));
    noted.set(BeforeExec { failure, ..before });
    super::exit_now(127)
}

/// Starts this program again with `words`. The copy gets `descriptors`, which exec would close, the
/// caller's signals and its inherited state. EBUSY if there are other threads.
pub fn start_again(words: &[&CStr], descriptors: &[BorrowedFd<'_>]) -> Result<Pid, Errno> {
    let table = table_of(words);
    let link = c"/proc/self/exe";
    // Without /proc it uses the path by which the program was started.
    let path = if access(link, Access::EXISTS).is_ok() { link } else { linux_execfn() };
    match fork()? {
        ForkSide::Parent(pid) => Ok(pid),
        ForkSide::Child => {
            for descriptor in descriptors {
                // SAFETY: touches no memory.
                unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) };
            }
            // SAFETY: the table holds C strings and ends with a null.
            unsafe { libc::execv(path.as_ptr(), table.as_ptr()) };
            super::exit_now(127)
        }
    }
}

/// Sets a variable (`NAME=VALUE`) in the environment of this process, and so of all that it starts.
/// EBUSY if there are other threads, which may be reading it; EINVAL without a `=`.
pub fn set_variable(variable: CString) -> Result<(), Errno> {
    if !variable.as_bytes().contains(&b'=') {
        return Err(Errno::INVAL);
    }
    if !super::process::has_one_thread() {
        return Err(Errno::BUSY);
    }
    // SAFETY: no other thread reads the environment. The text becomes a part of it, and is never
    // freed.
    match unsafe { libc::putenv(variable.into_raw()) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

/// A variable in the environment of this process whose value changes without taking more memory.
/// For a process with one thread.
pub struct ReusedVariable {
    name: &'static CStr,
    /// `NAME=VALUE` and a null, which the environment refers to; never freed.
    text: *mut u8,
    value_offset: usize,
    value_bytes: usize,
}

impl ReusedVariable {
    /// Adds the variable, with room for a value of so many bytes; it is empty at first. EBUSY if
    /// there are other threads, which may be reading the environment.
    pub fn new(name: &'static CStr, value_bytes: usize) -> Result<Self, Errno> {
        if !super::process::has_one_thread() {
            return Err(Errno::BUSY);
        }
        let mut text = name.to_bytes().to_vec();
        text.push(b'=');
        let value_offset = text.len();
        text.resize(value_offset + value_bytes + 1, 0);
        let text = Box::into_raw(text.into_boxed_slice()).cast::<u8>();
        // SAFETY: no other thread reads the environment. The text ends with a null; it becomes a
        // part of the environment, and is never freed.
        match unsafe { libc::putenv(text.cast()) } {
            0 => Ok(Self { name, text, value_offset, value_bytes }),
            _ => Err(last_errno()),
        }
    }

    /// Replaces the value. What the room does not hold is cut off.
    pub fn set(&mut self, value: &[u8]) {
        let bytes = value.len().min(self.value_bytes);
        // SAFETY: the text is never freed, and has room for so many bytes and a null. No other
        // thread reads it.
        unsafe {
            let place = self.text.add(self.value_offset);
            place.copy_from_nonoverlapping(value.as_ptr(), bytes);
            place.add(bytes).write(0);
        }
    }

    /// Takes the variable out of the environment.
    pub fn remove(self) {
        // SAFETY: the name is a C string, and no other thread reads the environment.
        unsafe { libc::unsetenv(self.name.as_ptr()) };
    }
}

/// Starts the command's process in a session of its own (setsid(2)). Where the scheduler groups
/// tasks by session (sched(7), autogroup), its members share their CPU with others turn by turn,
/// and not hop by hop; a signal from the terminal does not come to it. It ends with this process
/// from its first moment on, whatever it becomes: on a machine under load it may be long until it
/// can ask for that itself, and a command that is to become it never does.
pub fn in_own_session(command: &mut std::process::Command) {
    let parent = getpid();
    let inherited = InheritedState::own();
    // SAFETY: between fork and exec the child makes some system calls and touches no memory. It has
    // just been made, so it leads no group, and setsid(2) cannot fail.
    unsafe {
        command.pre_exec(move || {
            let _ = setsid();
            inherited.restore_signals();
            // A kernel that refuses refuses the worker, too, which says so.
            let asked = set_parent_death_signal(parent.as_raw_pid());
            if asked == Ok(false) { Err(std::io::Error::from(Errno::CHILD)) } else { Ok(()) }
        });
    }
}

/// Makes the kernel kill the command's process when this one ends (PR_SET_PDEATHSIG), but not its
/// own children.
pub fn end_with_this_process(command: &mut std::process::Command) {
    let parent = getpid();
    let inherited = InheritedState::own();
    // SAFETY: between fork and exec the child makes some system calls and touches no memory.
    unsafe {
        command.pre_exec(move || {
            inherited.restore_signals();
            if end_with_parent(parent) { Ok(()) } else { Err(std::io::Error::from(Errno::CHILD)) }
        });
    }
}

/// Replaces this process by the program `path`, with these arguments, the first of which is its
/// name, the present environment, and the signals and streams that this process inherited. Returns
/// the errno if it fails. (`std` would search PATH, and give a file that is no program to a shell.)
pub fn execute(path: &CStr, args: &[&CStr]) -> Errno {
    let table = table_of(args);
    InheritedState::own().restore();
    // SAFETY: path and table are C strings, and the table ends with a null.
    unsafe { libc::execv(path.as_ptr(), table.as_ptr()) };
    last_errno()
}

/// Builds the table of words for exec, which ends with a null.
fn table_of(words: &[&CStr]) -> Vec<*const c_char> {
    let mut table: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    table.push(std::ptr::null());
    table
}

// Inherited state that Rust's runtime and `main` change first: SIGPIPE, SIGCHLD, SIGXFSZ, and
// standard streams that were closed. Commands get it as the caller of this program left it.

/// Signals that commands ignore if this program's caller did; their bit is their index.
const SIGNALS: [c_int; 3] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGXFSZ];
/// Bit of standard stream 0, if it was closed.
const STREAMS: usize = 8;
/// Bit of a blocked SIGCHLD.
const CHILD_BLOCKED: u64 = 1 << 16;

static FOUND: AtomicU64 = AtomicU64::new(0);

/// Run by the dynamic loader before `main` (System V ABI, section 5.2.3).
#[used]
// SAFETY: the section holds pointers to functions of this signature, called once each; this one
// uses no more than system calls and an atomic.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note_state;

/// Notes the state that this process inherited, before anything changes it.
extern "C" fn note_state() {
    let mut found = 0;
    for (place, signal) in SIGNALS.into_iter().enumerate() {
        found |= u64::from(action_of(signal).sa_sigaction == libc::SIG_IGN) << place;
    }
    for stream in 0..3 {
        // SAFETY: fcntl with F_GETFD touches no memory.
        let closed = unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1;
        found |= u64::from(closed) << (STREAMS + stream as usize);
    }
    let blocked = change_mask(libc::SIG_BLOCK, &set_of(&[]));
    found |= if has(&blocked, libc::SIGCHLD) { CHILD_BLOCKED } else { 0 };
    FOUND.store(found, Ordering::Relaxed);
}

/// Ignored signals and closed streams that this program inherited, in one number that can be passed
/// to another of its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InheritedState(u64);

impl InheritedState {
    /// Returns the state that this process inherited.
    pub fn own() -> Self {
        Self(FOUND.load(Ordering::Relaxed))
    }

    /// Returns whether a standard stream was closed: its number belongs to /dev/null now.
    pub fn had_closed(self, stream: usize) -> bool {
        self.0 & (1 << (STREAMS + stream)) != 0
    }

    /// Ignores the signals that were ignored, and no others, in a child before its exec.
    pub(super) fn restore_signals(self) {
        for (place, signal) in SIGNALS.into_iter().enumerate() {
            let ignored = self.0 & (1 << place) != 0;
            // SAFETY: neither call touches memory of ours.
            unsafe { libc::signal(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL }) };
        }
    }

    /// Restores all of it for the program that is about to replace this process.
    pub(super) fn restore(self) {
        self.restore_signals();
        if self.0 & CHILD_BLOCKED != 0 {
            block(&[libc::SIGCHLD]);
        }
        for stream in (0..3).filter(|stream| self.had_closed(*stream)) {
            // Closed by the exec, not before: if that fails, the number is not reused.
            // SAFETY: touches no memory.
            unsafe { libc::fcntl(stream as c_int, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Returns whether this program's file gave it more privileges than its caller has (capabilities,
/// set-user-id; AT_SECURE). The dynamic linker ignores LD_PRELOAD then, and other processes of the
/// same user may not read its links in /proc.
pub fn has_file_privileges() -> bool {
    // SAFETY: getauxval reads what the kernel left for this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
