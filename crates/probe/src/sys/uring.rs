//! Rings of io_uring(7): a pipe's end that makes each call by one, and the ring of a task that
//! queues operations and submits them in the call that waits.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::thread::futex::WaitFlags;

use super::page::TokenSlot;
use super::signal::member_lost;
use crate::end::{CallContext, CallError, LinkEnd, LinkError};

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Submits what is queued and waits for a completion.
#[inline(always)]
fn submit_and_wait(ring: &mut IoUring) -> Result<cqueue::Entry, Errno> {
    loop {
        let submitted = ring.submit_and_wait(1);
        if let Some(completion) = ring.completion().next() {
            return Ok(completion);
        }
        // After an interruption the kernel has the operations, which must not be submitted again.
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

/// Returns an operation's result: a count, or its errno.
#[inline(always)]
fn result_value(completion: &cqueue::Entry) -> Result<u32, Errno> {
    match completion.result() {
        failed if failed < 0 => Err(Errno::from_raw_os_error(-failed)),
        value => Ok(value as u32),
    }
}

/// One end of a pipe, with an io_uring for one operation at a time.
pub struct UringLink {
    pipe: OwnedFd,
    ring: IoUring,
    /// Buffer of the operation, never freed: one that was given up may still write to it.
    buffer: &'static mut UringBuffer,
}

/// A buffer in cache lines of its own (two are fetched together): ends on two CPUs share none.
#[repr(align(128))]
struct UringBuffer {
    byte: u8,
}

/// Offset for a pipe, which has no positions.
const NO_OFFSET: u64 = u64::MAX;

impl UringLink {
    /// Builds an end of a link from an end of a pipe.
    pub fn new(pipe: OwnedFd) -> Result<Self, Errno> {
        let ring = IoUring::new(1).map_err(|error| errno(&error))?;
        Ok(Self { pipe, ring, buffer: Box::leak(Box::new(UringBuffer { byte: 0 })) })
    }

    /// Submits an operation and waits for its result.
    #[inline(always)]
    fn wait(&mut self, operation: &squeue::Entry) -> Result<u32, Errno> {
        // SAFETY: the operation's buffer is never freed, and nothing uses it until the operation
        // has come back or was given up for good. With one at a time the queue cannot be full.
        let _ = unsafe { self.ring.submission().push(operation) };
        result_value(&submit_and_wait(&mut self.ring)?)
    }
}

impl LinkEnd for UringLink {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.buffer.byte = token;
        let at: *const u8 = &raw const self.buffer.byte;
        let write = opcode::Write::new(types::Fd(self.pipe.as_raw_fd()), at, 1).offset(NO_OFFSET);
        self.wait(&write.build())?;
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let at: *mut u8 = &raw mut self.buffer.byte;
        let read = opcode::Read::new(types::Fd(self.pipe.as_raw_fd()), at, 1).offset(NO_OFFSET);
        match self.wait(&read.build())? {
            0 => Err(LinkError::Closed),
            _ => Ok(self.buffer.byte),
        }
    }
}

/// An operation that not every kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UringOperation {
    /// A completion that is posted to another ring (Linux 5.18).
    Message,
    /// A poll of a descriptor (Linux 5.1), which stays armed since 5.13.
    Poll,
    /// A wait for a word in memory; waking goes with it (Linux 6.7).
    FutexWait,
}

impl UringOperation {
    /// Returns the operation's name in the kernel's headers, and its code.
    fn name_and_code(self) -> (&'static str, u8) {
        match self {
            Self::Message => ("IORING_OP_MSG_RING", opcode::MsgRingData::CODE),
            Self::Poll => ("IORING_OP_POLL_ADD", opcode::PollAdd::CODE),
            Self::FutexWait => ("IORING_OP_FUTEX_WAIT", opcode::FutexWait::CODE),
        }
    }
}

/// Operations that a [`TaskUring`] can hold before it submits them: a wake and a wait.
const MAX_QUEUED: u32 = 2;

/// The mask of a futex that any wake matches (FUTEX_BITSET_MATCH_ANY).
const ANY_WAKE: u64 = u32::MAX as u64;

/// The io_uring of one task. It queues operations, submits them in the call that waits, and
/// completes them in that call alone (IORING_SETUP_DEFER_TASKRUN, Linux 6.1). It may be created by
/// another task than the one that uses it.
pub struct TaskUring(IoUring);

impl TaskUring {
    /// Creates a ring that no task uses yet: others cannot send messages to it.
    pub fn new() -> Result<Self, Errno> {
        let mut builder = IoUring::builder();
        builder.setup_r_disabled().setup_single_issuer().setup_defer_taskrun();
        builder.build(MAX_QUEUED).map(Self).map_err(|error| errno(&error))
    }

    /// Makes the calling task the one that uses the ring.
    pub fn enable(&self) -> Result<(), Errno> {
        self.0.submitter().register_enable_rings().map_err(|error| errno(&error))
    }

    /// Checks that this machine allows such rings and has an operation. Without the operation the
    /// error is EINVAL, as of a flag of the ring that the kernel does not know.
    pub fn check(operation: UringOperation) -> Result<(), CallError> {
        let uring = Self::new().in_call("io_uring_setup")?;
        uring.enable().in_call("io_uring_register")?;
        let mut probe = Probe::new();
        let probed = uring.0.submitter().register_probe(&mut probe);
        probed.map_err(|error| errno(&error)).in_call("io_uring_register")?;
        // Submits nothing.
        uring.submit().in_call("io_uring_enter")?;
        let (name, code) = operation.name_and_code();
        if probe.is_supported(code) { Ok(()) } else { Err((name, Errno::INVAL)) }
    }

    /// Queues a message with a token to the ring `target`, where it is the result of a completion.
    /// Here only a failure is completed.
    #[inline(always)]
    pub fn queue_message(&mut self, target: BorrowedFd<'_>, token: u8) -> Result<(), Errno> {
        let target = types::Fd(target.as_raw_fd());
        let message = opcode::MsgRingData::new(target, token.into(), 0, None).build();
        // SAFETY: the operation has no address.
        unsafe { self.push(&message.flags(squeue::Flags::SKIP_SUCCESS)) }
    }

    /// Queues a poll that completes whenever `file` becomes readable, until a completion says that
    /// it has ended.
    #[inline(always)]
    pub fn queue_poll(&mut self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        let file = types::Fd(file.as_raw_fd());
        let poll = opcode::PollAdd::new(file, PollFlags::IN.bits().into()).multi(true);
        // SAFETY: the operation has no address; it holds the file.
        unsafe { self.push(&poll.build()) }
    }

    /// Queues a wake of one task that waits for `slot`. Only a failure is completed.
    #[inline(always)]
    pub fn queue_wake(&mut self, slot: &TokenSlot, flags: WaitFlags) -> Result<(), Errno> {
        let word = slot.word().as_ptr().cast_const();
        let wake = opcode::FutexWake::new(word, 1, ANY_WAKE, flags.bits()).build();
        // SAFETY: the kernel takes the address for the name of a futex, and accesses no memory.
        unsafe { self.push(&wake.flags(squeue::Flags::SKIP_SUCCESS)) }
    }

    /// Queues a wait for a wake of `slot`. It ends with EAGAIN if there is a token in it.
    #[inline(always)]
    pub fn queue_wait(&mut self, slot: &TokenSlot, flags: WaitFlags) -> Result<(), Errno> {
        let word = slot.word().as_ptr().cast_const();
        let empty = TokenSlot::EMPTY.into();
        let wait = opcode::FutexWait::new(word, empty, ANY_WAKE, flags.bits()).build();
        // SAFETY: the kernel reads the word when it is submitted, or fails (EFAULT) if it is gone.
        unsafe { self.push(&wait) }
    }

    /// Queues an operation.
    ///
    /// # Safety
    /// Memory that the operation writes to lives until it has ended.
    #[inline(always)]
    unsafe fn push(&mut self, operation: &squeue::Entry) -> Result<(), Errno> {
        // SAFETY: the caller's contract.
        unsafe { self.0.submission().push(operation) }.map_err(|_| Errno::BUSY)
    }

    /// Submits what is queued and waits for a completion, by one call.
    #[inline(always)]
    pub fn wait(&mut self) -> Result<UringCompletion, Errno> {
        submit_and_wait(&mut self.0).map(UringCompletion)
    }

    /// Submits what is queued, without waiting.
    pub fn submit(&self) -> Result<(), Errno> {
        self.0.submit().map(|_| ()).map_err(|error| errno(&error))
    }
}

impl AsFd for TaskUring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring holds its descriptor open as long as it is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.0.as_raw_fd()) }
    }
}

/// The end of an operation, or of a part of one that goes on.
pub struct UringCompletion(cqueue::Entry);

impl UringCompletion {
    /// Returns the operation's result, or the errno of its failure.
    #[inline(always)]
    pub fn value(&self) -> Result<u32, Errno> {
        result_value(&self.0)
    }

    /// Returns whether the operation goes on and will complete again.
    #[inline(always)]
    pub fn goes_on(&self) -> bool {
        cqueue::more(self.0.flags())
    }
}
