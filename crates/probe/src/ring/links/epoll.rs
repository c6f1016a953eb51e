//! Links whose receiver waits by epoll(7), as event loops do, before it reads from its descriptor.
//! With several items under way it reads until nothing is left, and only then waits: EPOLLET reports
//! several arrivals once (epoll(7)).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::descriptors::{EventfdLink, SemaphoreEventfd};
use crate::ring::link::{CallContext, CallError, ChannelPlace, Link, LinkEnd, LinkError};

/// An end that waits until its descriptor is readable. The descriptor never blocks; epoll reports
/// each arrival once (EPOLLET).
pub struct EpollEnd<E> {
    inner: E,
    /// Set of the descriptor that is read, in the receiving end.
    set: Option<OwnedFd>,
}

impl<E: AsFd> EpollEnd<E> {
    /// Builds both ends from those of a channel that does not block.
    fn pair(sender: E, receiver: E) -> Result<(Self, Self), CallError> {
        let set = epoll::create(CreateFlags::CLOEXEC).in_call("epoll_create1")?;
        let events = EventFlags::IN | EventFlags::ET;
        epoll::add(&set, &receiver, EventData::new_u64(0), events).in_call("epoll_ctl")?;
        let receiver = Self { inner: receiver, set: Some(set) };
        Ok((Self { inner: sender, set: None }, receiver))
    }
}

impl<E: LinkEnd> LinkEnd for EpollEnd<E> {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.inner.send(token)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let set = self.set.as_ref().ok_or(LinkError::Closed)?;
        loop {
            let mut events = [MaybeUninit::<Event>::uninit()];
            epoll::wait(set, &mut events, None)?;
            match self.inner.receive() {
                Err(LinkError::Kernel(Errno::AGAIN)) => {}
                received => return received,
            }
        }
    }
}

/// An end of a link with several items under way: it waits only if there is nothing to read.
pub struct EpollItemEnd<E>(EpollEnd<E>);

impl<E: AsFd> EpollItemEnd<E> {
    /// Builds both ends from those of a channel that does not block.
    fn pair(sender: E, receiver: E) -> Result<(Self, Self), CallError> {
        let (sender, receiver) = EpollEnd::pair(sender, receiver)?;
        Ok((Self(sender), Self(receiver)))
    }
}

impl<E: LinkEnd> LinkEnd for EpollItemEnd<E> {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.0.inner.send(token)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let set = self.0.set.as_ref().ok_or(LinkError::Closed)?;
        loop {
            match self.0.inner.receive() {
                Err(LinkError::Kernel(Errno::AGAIN)) => {}
                received => return received,
            }
            let mut events = [MaybeUninit::<Event>::uninit()];
            epoll::wait(set, &mut events, None)?;
        }
    }
}

/// Checks that epoll_pwait(2) is allowed here.
fn check_wait() -> Result<(), CallError> {
    let set = epoll::create(CreateFlags::CLOEXEC).in_call("epoll_create1")?;
    let mut events = [MaybeUninit::<Event>::uninit()];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    epoll::wait(&set, &mut events, Some(&at_once)).in_call("epoll_pwait")?;
    Ok(())
}

/// The token is the count of an eventfd behind epoll.
pub struct EpollEventfdLink;

impl Link for EpollEventfdLink {
    type End = EpollEnd<EventfdLink>;

    fn prepare() -> Result<(), CallError> {
        check_wait()
    }

    fn channel(_: &ChannelPlace) -> Result<(Self::End, Self::End), CallError> {
        let (sender, receiver) = EventfdLink::pair(EventfdFlags::NONBLOCK)?;
        EpollEnd::pair(sender, receiver)
    }
}

/// Tokens are counted by an eventfd in semaphore mode behind epoll.
pub struct EpollEventfdItems;

impl Link for EpollEventfdItems {
    type End = EpollItemEnd<SemaphoreEventfd>;

    fn prepare() -> Result<(), CallError> {
        check_wait()
    }

    fn channel(place: &ChannelPlace) -> Result<(Self::End, Self::End), CallError> {
        let (sender, receiver) = SemaphoreEventfd::pair(EventfdFlags::NONBLOCK, place.room)?;
        EpollItemEnd::pair(sender, receiver)
    }
}

/// Creates a pair of local stream sockets that do not block.
fn socket_pair() -> Result<(OwnedFd, OwnedFd), CallError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).in_call("socketpair")
}

/// The token is a byte in a pair of local stream sockets behind epoll.
pub struct EpollSocketLink;

impl Link for EpollSocketLink {
    type End = EpollEnd<OwnedFd>;

    fn prepare() -> Result<(), CallError> {
        check_wait()
    }

    fn channel(_: &ChannelPlace) -> Result<(Self::End, Self::End), CallError> {
        let (sender, receiver) = socket_pair()?;
        EpollEnd::pair(sender, receiver)
    }
}

/// Tokens are bytes in a pair of local stream sockets behind epoll.
pub struct EpollSocketItems;

impl Link for EpollSocketItems {
    type End = EpollItemEnd<OwnedFd>;

    fn prepare() -> Result<(), CallError> {
        check_wait()
    }

    fn channel(_: &ChannelPlace) -> Result<(Self::End, Self::End), CallError> {
        let (sender, receiver) = socket_pair()?;
        EpollItemEnd::pair(sender, receiver)
    }
}

#[cfg(test)]
mod tests {
    use rundata::ring::MemberKind;

    use super::*;
    use crate::ring::build::shared_area;

    fn ends<L: Link>() -> (L::End, L::End) {
        let area = shared_area(1, false).unwrap();
        L::channel(&ChannelPlace { area, kind: MemberKind::Thread, to: 0, room: 8 }).unwrap()
    }

    fn pass_every_token<L: Link>() {
        let (mut sender, mut receiver) = ends::<L>();
        for token in [0, 1, 254, 255] {
            sender.send(token).unwrap();
            assert_eq!(receiver.receive(), Ok(token));
        }
    }

    #[test]
    fn each_link_passes_every_token() {
        pass_every_token::<EpollEventfdLink>();
        pass_every_token::<EpollSocketLink>();
        pass_every_token::<EpollEventfdItems>();
        pass_every_token::<EpollSocketItems>();
    }

    /// EPOLLET reports three arrivals once.
    fn pass_several<L: Link>() {
        let (mut sender, mut receiver) = ends::<L>();
        for first in [0, 3, 6] {
            for token in first..first + 3 {
                sender.send(token).unwrap();
            }
            for token in first..first + 3 {
                assert_eq!(receiver.receive(), Ok(token));
            }
        }
    }

    #[test]
    fn several_tokens_arrive_in_order() {
        pass_several::<EpollEventfdItems>();
        pass_several::<EpollSocketItems>();
    }

    /// Not this wait may block but that of epoll, after an event that came too early.
    #[test]
    fn a_read_without_a_token_does_not_block() {
        let (_sender, mut receiver) = ends::<EpollEventfdLink>();
        assert_eq!(receiver.inner.receive(), Err(LinkError::Kernel(Errno::AGAIN)));
        let (_sender, mut receiver) = ends::<EpollSocketLink>();
        assert_eq!(receiver.inner.receive(), Err(LinkError::Kernel(Errno::AGAIN)));
    }

    #[test]
    fn an_end_whose_neighbour_is_gone_is_closed() {
        let (sender, mut receiver) = ends::<EpollSocketLink>();
        drop(sender);
        assert_eq!(receiver.receive(), Err(LinkError::Closed));
    }
}
