//! One byte read or written by a ring of io_uring(7), one operation at a time.

use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;

use super::watch::member_lost;

/// A ring of its own for one end of a joint.
pub struct Uring {
    ring: IoUring,
    /// Never freed: an operation that was given up may still write to it.
    buffer: &'static mut Buffer,
}

/// Cache lines of its own (two are fetched together): ends on two CPUs must not share one.
#[repr(align(128))]
struct Buffer {
    byte: u8,
}

/// Where in a pipe: it has no positions.
const NO_OFFSET: u64 = u64::MAX;

impl Uring {
    /// A ring for one operation at a time.
    pub fn new() -> Result<Self, Errno> {
        let ring = IoUring::new(1).map_err(|error| errno(&error))?;
        Ok(Self { ring, buffer: Box::leak(Box::new(Buffer { byte: 0 })) })
    }

    /// Writes one byte.
    #[inline(always)]
    pub fn write(&mut self, fd: BorrowedFd<'_>, byte: u8) -> Result<(), Errno> {
        self.buffer.byte = byte;
        let at: *const u8 = &raw const self.buffer.byte;
        let write = opcode::Write::new(types::Fd(fd.as_raw_fd()), at, 1).offset(NO_OFFSET);
        self.wait(&write.build()).map(|_| ())
    }

    /// Waits for one byte; `None` is the end of the file.
    #[inline(always)]
    pub fn read(&mut self, fd: BorrowedFd<'_>) -> Result<Option<u8>, Errno> {
        let at: *mut u8 = &raw mut self.buffer.byte;
        let read = opcode::Read::new(types::Fd(fd.as_raw_fd()), at, 1).offset(NO_OFFSET);
        match self.wait(&read.build())? {
            0 => Ok(None),
            _ => Ok(Some(self.buffer.byte)),
        }
    }

    /// Hands an operation in and waits for its result.
    #[inline(always)]
    fn wait(&mut self, operation: &squeue::Entry) -> Result<u32, Errno> {
        // SAFETY: the operation's buffer is never freed, and nothing uses it until the operation
        // has come back or was given up for good. With one at a time the queue cannot be full.
        let _ = unsafe { self.ring.submission().push(operation) };
        loop {
            let submitted = self.ring.submit_and_wait(1);
            if let Some(done) = self.ring.completion().next() {
                return match done.result() {
                    failed if failed < 0 => Err(Errno::from_raw_os_error(-failed)),
                    count => Ok(count as u32),
                };
            }
            // Interrupted: the operation is in the kernel already and must not be handed in again.
            match submitted {
                Ok(_) => {}
                Err(error) if errno(&error) == Errno::INTR => {}
                Err(error) => return Err(errno(&error)),
            }
            if member_lost() {
                return Err(Errno::INTR);
            }
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
