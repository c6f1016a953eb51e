//! POSIX message queues. On Linux a queue is a descriptor (mq_overview(7)), so that its name can be
//! taken away at once.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::process::last_errno;
use super::vfork_helper::{FailedCall, in_vfork_helper};

/// Opens a new queue for one message of one byte at a time, and takes its name away.
pub fn mq_open_unlinked(name: &CStr) -> Result<OwnedFd, FailedCall> {
    // SAFETY: two system calls on a name that is there.
    let made = unsafe { in_vfork_helper(|| open_and_unlink(name)) };
    made.map_err(|errno| ("clone", errno))?.map_err(|errno| ("mq_open", errno))
}

fn open_and_unlink(name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: the attributes' remaining fields may be zero; the name ends with a zero; a descriptor
    // that is given is ours.
    unsafe {
        let mut room: libc::mq_attr = std::mem::zeroed();
        room.mq_maxmsg = 1;
        room.mq_msgsize = 1;
        let mode: libc::mode_t = 0o600;
        match libc::mq_open(name.as_ptr(), flags, mode, &raw mut room) {
            -1 => Err(last_errno()),
            fd => {
                libc::mq_unlink(name.as_ptr());
                Ok(OwnedFd::from_raw_fd(fd))
            }
        }
    }
}

fn no_timeout() -> *const libc::timespec {
    std::ptr::null()
}

/// Puts one byte into a queue.
#[inline(always)]
pub fn mq_send(queue: BorrowedFd<'_>, byte: u8) -> Result<(), Errno> {
    let (queue, byte, forever) = (queue.as_raw_fd(), &raw const byte, no_timeout());
    // The C library's call is a point of cancellation: two locked operations more for threads.
    // SAFETY: the kernel reads one byte from a valid address.
    match unsafe { libc::syscall(libc::SYS_mq_timedsend, queue, byte, 1_usize, 0_u32, forever) } {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
}

/// Waits for one byte from a queue.
#[inline(always)]
pub fn mq_receive(queue: BorrowedFd<'_>) -> Result<u8, Errno> {
    let mut byte = 0_u8;
    let (queue, room, forever) = (queue.as_raw_fd(), &raw mut byte, no_timeout());
    let no_priority = std::ptr::null_mut::<libc::c_uint>();
    // SAFETY: the kernel writes at most one byte to a valid address; no priority is asked for.
    match unsafe {
        libc::syscall(libc::SYS_mq_timedreceive, queue, room, 1_usize, no_priority, forever)
    } {
        -1 => Err(last_errno()),
        _ => Ok(byte),
    }
}
