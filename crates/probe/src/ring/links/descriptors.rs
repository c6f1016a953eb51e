//! Links whose two ends are descriptors: the pipe (pipe(2)), which was Sloan's link and is the one
//! that others are compared with; the FIFO, a pipe with a name (fifo(7)); the POSIX message queue
//! (mq_overview(7)); pairs of connected sockets (socketpair(2)); the event counter (eventfd(2)), in
//! semaphore mode where several items are under way. Names of FIFOs and queues are removed as soon as
//! both ends are open.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::UnshareFlags;

use crate::random::random_number;
use crate::ring::link::{CallContext, CallError, ChannelPlace, Link, LinkEnd, LinkError};
use crate::sys::{PosixQueue, TokenQueueEnd, fifo_unlinked, unshare};

/// A byte goes by one write(2) and one read(2).
impl LinkEnd for OwnedFd {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        // A blocking write of one byte writes it or fails.
        rustix::io::write(&*self, &[token])?;
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let mut token = [0];
        match rustix::io::read(&*self, &mut token)? {
            0 => Err(LinkError::Closed),
            _ => Ok(token[0]),
        }
    }
}

/// The token is a byte in a pipe.
pub struct PipeLink;

impl Link for PipeLink {
    type End = OwnedFd;

    fn channel(_: &ChannelPlace) -> Result<(OwnedFd, OwnedFd), CallError> {
        let (receiver, sender) = pipe_with(PipeFlags::CLOEXEC).in_call("pipe")?;
        Ok((sender, receiver))
    }
}

/// The token is a byte in a pipe that had a name.
pub struct FifoLink;

impl Link for FifoLink {
    type End = OwnedFd;

    fn channel(_: &ChannelPlace) -> Result<(OwnedFd, OwnedFd), CallError> {
        fifo_unlinked(&unused_name(&std::env::temp_dir(), ".fifo").in_call("mkfifo")?)
    }
}

/// The token is a byte in a pair of local stream sockets, or a datagram of one byte. The reader of
/// datagrams does not notice when the other end is gone.
pub struct SocketLink<const DATAGRAMS: bool>;

impl<const DATAGRAMS: bool> Link for SocketLink<DATAGRAMS> {
    type End = OwnedFd;

    fn channel(_: &ChannelPlace) -> Result<(OwnedFd, OwnedFd), CallError> {
        let kind = if DATAGRAMS { SocketType::DGRAM } else { SocketType::STREAM };
        socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).in_call("socketpair")
    }
}

/// The token is the count of an eventfd, which has no buffer.
pub struct EventfdLink(OwnedFd);

impl EventfdLink {
    /// Creates a counter with these flags besides CLOEXEC; returns its sending and receiving end.
    pub fn pair(flags: EventfdFlags) -> Result<(Self, Self), CallError> {
        let counter = eventfd(0, EventfdFlags::CLOEXEC | flags).in_call("eventfd")?;
        let receiver = fcntl_dupfd_cloexec(&counter, 0).in_call("fcntl")?;
        Ok((Self(counter), Self(receiver)))
    }
}

impl Link for EventfdLink {
    type End = Self;

    fn channel(_: &ChannelPlace) -> Result<(Self, Self), CallError> {
        Self::pair(EventfdFlags::empty())
    }
}

impl AsFd for EventfdLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl LinkEnd for EventfdLink {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        // A count of zero would wake no reader.
        let count = u64::from(token) + 1;
        rustix::io::write(&self.0, &count.to_ne_bytes())?;
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let mut count = [0; 8];
        rustix::io::read(&self.0, &mut count)?;
        Ok((u64::from_ne_bytes(count) - 1) as u8)
    }
}

/// An eventfd in semaphore mode, which counts tokens that lie in shared memory, as programs count
/// the items of a queue: each read takes one.
pub struct SemaphoreEventfd {
    counter: OwnedFd,
    tokens: TokenQueueEnd,
}

impl SemaphoreEventfd {
    /// Creates a counter of up to `room` tokens with these flags besides CLOEXEC and SEMAPHORE; returns
    /// its sending and receiving end.
    pub fn pair(flags: EventfdFlags, room: u32) -> Result<(Self, Self), CallError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE | flags;
        let counter = eventfd(0, flags).in_call("eventfd")?;
        let receiver = fcntl_dupfd_cloexec(&counter, 0).in_call("fcntl")?;
        let tokens = TokenQueueEnd::new(room).in_call("mmap")?;
        let sender = Self { counter, tokens: tokens.clone() };
        Ok((sender, Self { counter: receiver, tokens }))
    }
}

impl Link for SemaphoreEventfd {
    type End = Self;

    fn channel(place: &ChannelPlace) -> Result<(Self, Self), CallError> {
        Self::pair(EventfdFlags::empty(), place.room)
    }
}

impl AsFd for SemaphoreEventfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }
}

impl LinkEnd for SemaphoreEventfd {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.tokens.put(token);
        rustix::io::write(&self.counter, &1_u64.to_ne_bytes())?;
        self.tokens.advance();
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let mut one = [0; 8];
        rustix::io::read(&self.counter, &mut one)?;
        self.tokens.take().ok_or(LinkError::Closed)
    }
}

/// Creates a POSIX queue for so many messages, and removes its name.
pub fn posix_queue(messages: u32) -> Result<(PosixQueue, PosixQueue), CallError> {
    PosixQueue::pair(&unused_name(Path::new("/"), "").in_call("mq_open")?, messages)
}

/// The token is a message of one byte in a POSIX queue for as many messages as are under way.
impl Link for PosixQueue {
    type End = Self;

    /// Moves the leader into an IPC namespace, which ends with all its queues however the ring
    /// ends. If it is refused, the vfork helper sees to it that no name stays behind. A user
    /// namespace is no way around: users that it does not map have no POSIX queues in it
    /// (EOVERFLOW).
    fn prepare() -> Result<(), CallError> {
        let _ = unshare(UnshareFlags::NEWIPC);
        Ok(())
    }

    fn channel(place: &ChannelPlace) -> Result<(Self, Self), CallError> {
        posix_queue(place.room)
    }
}

/// Returns a random name in `folder`, which may be writable for everybody: nobody can take the name
/// beforehand.
fn unused_name(folder: &Path, end: &str) -> Result<CString, Errno> {
    let path = folder.join(format!("switchcost-{:016x}{end}", random_number()?));
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever could foresee it could have the name taken.
    #[test]
    fn no_name_in_the_temporary_folder_can_be_foreseen() {
        let name = || unused_name(Path::new("/tmp"), ".fifo").unwrap().into_string().unwrap();
        let (one, other) = (name(), name());
        assert!(one.starts_with("/tmp/switchcost-") && one != other, "{one}");
        let random = one["/tmp/switchcost-".len()..].strip_suffix(".fifo").unwrap();
        assert_eq!(random.len(), 16, "64 bits of the kernel's");
    }
}
