//! Objects of links that need unsafe calls: queues of POSIX and of System V, semaphores, FIFOs. A
//! POSIX queue is a descriptor (mq_overview(7)), so that its name can be removed at once. Objects
//! of System V outlive their creators, and removing one destroys it for all users: only the end of
//! their IPC namespace removes them in every case.

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, open, unlink};
use rustix::io::{Errno, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::page::{GuardedStack, SharedValue, TokenQueueEnd, TokenSlot};
use super::signal::no_timeout;
use super::{check, done};
use crate::end::{CallContext, CallError, LinkEnd, LinkError};

/// Moves the calling process into a new namespace, which the kernel removes with all its objects
/// when the last process in it has ended. Without the privilege (CAP_SYS_ADMIN) it uses a user
/// namespace, for which the process must be single-threaded.
pub fn own_namespace(kind: UnshareFlags) -> Result<(), Errno> {
    match unshare(kind) {
        Err(Errno::PERM) => unshare(UnshareFlags::NEWUSER | kind),
        done => done,
    }
}

/// Like [`own_namespace`], but never uses a user namespace.
pub fn unshare(kind: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: it unshares namespaces, not the table of descriptors, which other threads use.
    unsafe { unshare_unsafe(kind.difference(UnshareFlags::FILES)) }
}

/// Mode of a new object that only its owner may use.
const MODE: c_int = 0o600 | libc::IPC_CREAT | libc::IPC_EXCL;

/// A set of one semaphore, at zero at first: a send increments it, a receive decrements it. The
/// token lies in shared memory beside it. Clones are the same semaphore. It is removed with its
/// namespace.
#[derive(Clone)]
pub struct SysvSemaphore {
    id: c_int,
    slot: SharedValue<TokenSlot>,
}

impl SysvSemaphore {
    /// Creates a semaphore.
    pub fn new() -> Result<Self, CallError> {
        Ok(Self { id: new_semaphore()?, slot: SharedValue::new().in_call("mmap")? })
    }
}

/// Creates a set of one semaphore; returns its id.
fn new_semaphore() -> Result<c_int, CallError> {
    // SAFETY: touches no memory.
    check(unsafe { libc::semget(libc::IPC_PRIVATE, 1, MODE) }).in_call("semget")
}

/// Increments a semaphore (1), or waits until it can be decremented (-1).
#[inline(always)]
fn change_semaphore(id: c_int, by: i16) -> Result<(), Errno> {
    let mut operation = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
    // SAFETY: the kernel reads one operation from a valid address.
    done(unsafe { libc::semop(id, &mut operation, 1) }.into())
}

impl LinkEnd for SysvSemaphore {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.slot.put(token);
        Ok(change_semaphore(self.id, 1)?)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        change_semaphore(self.id, -1)?;
        self.slot.take().ok_or(LinkError::Closed)
    }
}

/// A semaphore that counts several tokens, which lie in shared memory beside it. Clones are the same
/// semaphore. It is removed with its namespace.
#[derive(Clone)]
pub struct SysvItemSemaphore {
    id: c_int,
    tokens: TokenQueueEnd,
}

impl SysvItemSemaphore {
    /// Largest value of a semaphore (SEMVMX of semop(2)).
    pub const MAX_ITEMS: u32 = 32_767;

    /// Creates a semaphore for up to `room` tokens.
    pub fn new(room: u32) -> Result<Self, CallError> {
        Ok(Self { id: new_semaphore()?, tokens: TokenQueueEnd::new(room).in_call("mmap")? })
    }
}

impl LinkEnd for SysvItemSemaphore {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.tokens.put(token);
        change_semaphore(self.id, 1)?;
        self.tokens.advance();
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        change_semaphore(self.id, -1)?;
        self.tokens.take().ok_or(LinkError::Closed)
    }
}

/// A message queue. Copies are the same queue. It is removed with its namespace.
#[derive(Clone, Copy, Debug)]
pub struct SysvQueue {
    id: c_int,
}

/// msgbuf of msgop(2) with one byte of text.
#[repr(C)]
struct QueueMessage {
    kind: libc::c_long,
    text: [u8; 1],
}

impl SysvQueue {
    /// Creates a queue.
    pub fn new() -> Result<Self, Errno> {
        // SAFETY: touches no memory.
        check(unsafe { libc::msgget(libc::IPC_PRIVATE, MODE) }).map(|id| Self { id })
    }
}

impl LinkEnd for SysvQueue {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        let message = QueueMessage { kind: 1, text: [token] };
        let (id, message) = (self.id, &raw const message);
        // The C library's call is a point of cancellation: two locked operations more for threads.
        // SAFETY: the kernel reads the kind and one byte from a valid address.
        Ok(done(unsafe { libc::syscall(libc::SYS_msgsnd, id, message, 1_usize, 0) })?)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let mut message = QueueMessage { kind: 0, text: [0] };
        let (id, room, any): (_, _, libc::c_long) = (self.id, &raw mut message, 0);
        // SAFETY: the kernel writes the kind and at most one byte to a valid address.
        done(unsafe { libc::syscall(libc::SYS_msgrcv, id, room, 1_usize, any, 0) })?;
        Ok(message.text[0])
    }
}

/// A POSIX queue for messages of one byte.
pub struct PosixQueue(OwnedFd);

impl PosixQueue {
    /// Creates a queue for `room` messages and removes its name; returns both ends.
    pub fn pair(name: &CStr, room: u32) -> Result<(Self, Self), CallError> {
        // SAFETY: two system calls on a name that is there.
        let opened = unsafe { in_vfork_helper(|| open_and_unlink(name, room)) };
        let queue = opened.in_call("clone")?.in_call("mq_open")?;
        let receiver = fcntl_dupfd_cloexec(&queue, 0).in_call("fcntl")?;
        Ok((Self(queue), Self(receiver)))
    }
}

/// Creates a queue for `messages` messages of one byte, and removes its name.
fn open_and_unlink(name: &CStr, messages: u32) -> Result<OwnedFd, Errno> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: the attributes' remaining fields may be zero; the name ends with a zero; a descriptor
    // that is given is ours.
    unsafe {
        let mut room: libc::mq_attr = std::mem::zeroed();
        room.mq_maxmsg = messages.into();
        room.mq_msgsize = 1;
        let mode: libc::mode_t = 0o600;
        let queue = check(libc::mq_open(name.as_ptr(), flags, mode, &raw mut room))?;
        libc::mq_unlink(name.as_ptr());
        Ok(OwnedFd::from_raw_fd(queue))
    }
}

impl LinkEnd for PosixQueue {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        let (queue, byte, forever) = (self.0.as_raw_fd(), &raw const token, no_timeout());
        // The C library's call is a point of cancellation: two locked operations more for threads.
        let call = libc::SYS_mq_timedsend;
        // SAFETY: the kernel reads one byte from a valid address.
        Ok(done(unsafe { libc::syscall(call, queue, byte, 1_usize, 0_u32, forever) })?)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let mut byte = 0_u8;
        let (queue, room, forever) = (self.0.as_raw_fd(), &raw mut byte, no_timeout());
        let no_priority = std::ptr::null_mut::<libc::c_uint>();
        let call = libc::SYS_mq_timedreceive;
        // SAFETY: the kernel writes at most one byte to a valid address; no priority is asked for.
        done(unsafe { libc::syscall(call, queue, room, 1_usize, no_priority, forever) })?;
        Ok(byte)
    }
}

// Creating an object with a name and removing the name must not be interrupted: a worker that is
// killed with -9 between the two would leave the name behind. A vfork helper does both.

/// Stack of the helper: for a few calls, and a guard page of up to 64 KiB.
const STACK_BYTES: usize = 128 * 1024;

/// Function that the helper runs, and its result.
struct HelperTask<F, T> {
    act: Option<F>,
    result: Option<T>,
}

/// Runs `act` in a new process that shares memory and descriptors with the caller, who waits for
/// it. If the caller is killed, that process goes on: `act` is done completely or not at all.
///
/// # Safety
/// `act` makes system calls and nothing else: it does not allocate (another thread, killed with the
/// caller, may hold the allocator's lock for ever), take locks, use thread-local values or panic.
pub(super) unsafe fn in_vfork_helper<T, F: FnOnce() -> T>(act: F) -> Result<T, Errno> {
    extern "C" fn run<T, F: FnOnce() -> T>(work: *mut c_void) -> c_int {
        // SAFETY: the address of the caller's work, who is suspended until this process ends.
        let work = unsafe { &mut *work.cast::<HelperTask<F, T>>() };
        // Out of the worker's process group, which may be killed as a whole.
        // SAFETY: touches no memory.
        unsafe { libc::setpgid(0, 0) };
        work.result = work.act.take().map(|act| act());
        0
    }
    let mut work = HelperTask { act: Some(act), result: None };
    let stack = GuardedStack::new(STACK_BYTES)?;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
    // SAFETY: the stack is used by the new process alone, from its 16-byte-aligned top; it and the
    // work live on, as CLONE_VFORK suspends this thread until that process has ended (and if this
    // thread is killed, the memory stays as long as that process uses it).
    let pid = unsafe { libc::clone(run::<T, F>, stack.top(), flags, (&raw mut work).cast()) };
    let pid = check(pid)?;
    // SAFETY: waits for the process made above; no status is asked for. __WALL: it was made
    // without an exit signal, so that its end raises no signal.
    let _ =
        retry_on_intr(|| check(unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) }));
    work.result.ok_or(Errno::CANCELED)
}

/// Creates a FIFO at `path` and removes its name; returns the writing and the reading end.
pub fn fifo_unlinked(path: &CStr) -> Result<(OwnedFd, OwnedFd), CallError> {
    // SAFETY: system calls on a path that is there.
    let ends = unsafe {
        in_vfork_helper(|| {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, path, FileType::Fifo, mode, 0).in_call("mkfifo")?;
            let opened = open_both(path).in_call("open");
            unlink(path).in_call("unlink")?;
            opened
        })
    };
    ends.in_call("clone")?
}

/// Opens both ends of a FIFO. The reading end is opened first and without waiting: otherwise each
/// open would wait for the other.
fn open_both(path: &CStr) -> Result<(OwnedFd, OwnedFd), Errno> {
    let receiver = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let sender = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    fcntl_setfl(&receiver, OFlags::empty())?;
    Ok((sender, receiver))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_another_process_with_our_memory_and_descriptors() {
        let mut seen = 0;
        // SAFETY: two system calls.
        let fd = unsafe {
            in_vfork_helper(|| {
                seen = rustix::process::getpid().as_raw_pid();
                rustix::event::eventfd(7, rustix::event::EventfdFlags::CLOEXEC)
            })
        };
        let mut count = [0; 8];
        rustix::io::read(fd.unwrap().unwrap(), &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 7);
        assert_ne!(seen, rustix::process::getpid().as_raw_pid());
        assert_ne!(seen, 0);
    }
}
