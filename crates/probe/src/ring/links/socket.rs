//! Pairs of connected sockets, as streams and as datagrams (socketpair(2)).

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::ring::link::{By, Carrier, Link, Place, Refusal};

/// One byte through a stream.
pub struct Stream;

/// One byte as a datagram. The end that reads is not told when the other one is gone.
pub struct Datagram;

impl Carrier for Stream {
    const NAME: &'static str = "socket-stream";
    const SUMMARY: &'static str = "one byte through a pair of local stream sockets";
    const NEEDS: &'static str = "socketpair(2), AF_UNIX";
}

impl Carrier for Datagram {
    const NAME: &'static str = "socket-dgram";
    const SUMMARY: &'static str = "a datagram of one byte through a pair of local sockets";
    const NEEDS: &'static str = "socketpair(2), AF_UNIX";
}

impl Link for Stream {
    type Sender = OwnedFd;
    type Receiver = OwnedFd;

    fn joint(_: &Place) -> Result<(OwnedFd, OwnedFd), Refusal> {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .by("socketpair")
    }
}

impl Link for Datagram {
    type Sender = OwnedFd;
    type Receiver = OwnedFd;

    fn joint(_: &Place) -> Result<(OwnedFd, OwnedFd), Refusal> {
        socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .by("socketpair")
    }
}
