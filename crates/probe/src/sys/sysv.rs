//! Semaphores and message queues of System V. They outlive their makers, and removing one destroys
//! it at once for all: only the end of their IPC namespace takes them away in every case.

use std::ffi::c_int;

use rustix::io::Errno;

use super::process::last_errno;

/// Moves the calling process into an IPC namespace of its own, which the kernel takes away with all
/// that is in it when the last process in there has ended, however it did. Where the privilege is
/// missing (CAP_SYS_ADMIN) through a user namespace, which the process must be single-threaded for.
pub fn own_ipc_namespace() -> Result<(), Errno> {
    own_namespace(libc::CLONE_NEWIPC)
}

/// The same for a namespace of another kind (CLONE_NEW*).
pub(super) fn own_namespace(kind: c_int) -> Result<(), Errno> {
    match unshare(kind) {
        Err(Errno::PERM) => unshare(libc::CLONE_NEWUSER | kind),
        done => done,
    }
}

/// [`own_ipc_namespace`] without the way through a user namespace: users whom that does not map have no POSIX
/// queues in it (EOVERFLOW).
pub fn privileged_ipc_namespace() -> Result<(), Errno> {
    unshare(libc::CLONE_NEWIPC)
}

fn unshare(flags: c_int) -> Result<(), Errno> {
    // SAFETY: touches no memory.
    match unsafe { libc::unshare(flags) } {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
}

/// Permissions: the owner's alone.
const MODE: c_int = 0o600 | libc::IPC_CREAT | libc::IPC_EXCL;

/// A set of one semaphore, at zero. Copies are the same semaphore. Nobody removes it: the namespace
/// ends with it.
#[derive(Clone, Copy, Debug)]
pub struct SysvSemaphore {
    id: c_int,
}

impl SysvSemaphore {
    /// A new one.
    pub fn new() -> Result<Self, Errno> {
        // SAFETY: touches no memory.
        match unsafe { libc::semget(libc::IPC_PRIVATE, 1, MODE) } {
            -1 => Err(last_errno()),
            id => Ok(Self { id }),
        }
    }

    /// One up.
    #[inline(always)]
    pub fn up(self) -> Result<(), Errno> {
        self.change(1)
    }

    /// One down, or waits until that can be.
    #[inline(always)]
    pub fn down(self) -> Result<(), Errno> {
        self.change(-1)
    }

    #[inline(always)]
    fn change(self, by: i16) -> Result<(), Errno> {
        let mut operation = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
        // SAFETY: the kernel reads one operation from a valid address.
        match unsafe { libc::semop(self.id, &mut operation, 1) } {
            -1 => Err(last_errno()),
            _ => Ok(()),
        }
    }
}

/// A message queue. Copies are the same queue. Nobody removes it, as above.
#[derive(Clone, Copy, Debug)]
pub struct SysvQueue {
    id: c_int,
}

/// msgbuf of msgop(2) with one byte of text.
#[repr(C)]
struct Message {
    kind: libc::c_long,
    text: [u8; 1],
}

impl SysvQueue {
    /// A new one.
    pub fn new() -> Result<Self, Errno> {
        // SAFETY: touches no memory.
        match unsafe { libc::msgget(libc::IPC_PRIVATE, MODE) } {
            -1 => Err(last_errno()),
            id => Ok(Self { id }),
        }
    }

    /// A message of one byte.
    #[inline(always)]
    pub fn send(self, byte: u8) -> Result<(), Errno> {
        let message = Message { kind: 1, text: [byte] };
        let (id, message) = (self.id, &raw const message);
        // The C library's call is a point of cancellation: two locked operations more for threads.
        // SAFETY: the kernel reads the kind and one byte from a valid address.
        match unsafe { libc::syscall(libc::SYS_msgsnd, id, message, 1_usize, 0) } {
            -1 => Err(last_errno()),
            _ => Ok(()),
        }
    }

    /// Waits for a message of one byte.
    #[inline(always)]
    pub fn receive(self) -> Result<u8, Errno> {
        let mut message = Message { kind: 0, text: [0] };
        let (id, room, any): (_, _, libc::c_long) = (self.id, &raw mut message, 0);
        // SAFETY: the kernel writes the kind and at most one byte to a valid address.
        match unsafe { libc::syscall(libc::SYS_msgrcv, id, room, 1_usize, any, 0) } {
            -1 => Err(last_errno()),
            _ => Ok(message.text[0]),
        }
    }
}
