//! Links whose two ends are descriptors that are written to and read from: the pipe, Sloan's link and the one
//! that others are compared with (pipe(2)); the FIFO, a pipe with a name (fifo(7)), which is removed as soon as
//! both ends are open; pairs of connected sockets (socketpair(2)).

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::ring::link::{By, CallError, Carrier, Link, LinkError, Place, Receive, Send};
use crate::sys::fifo_unlinked;

/// One byte through a pipe: one write(2), one read(2).
pub struct Pipe;

impl Carrier for Pipe {
    const NAME: &'static str = "pipe";
    const SUMMARY: &'static str = "one byte through a pipe";
    const NEEDS: &'static str = "pipe(2)";
}

impl Link for Pipe {
    type Sender = OwnedFd;
    type Receiver = OwnedFd;

    fn channel(_: &Place) -> Result<(OwnedFd, OwnedFd), CallError> {
        let (receiver, sender) = pipe_with(PipeFlags::CLOEXEC).by("pipe")?;
        Ok((sender, receiver))
    }
}

impl Send for OwnedFd {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        // A blocking write of one byte writes it or fails.
        rustix::io::write(&*self, &[token])?;
        Ok(())
    }
}

impl Receive for OwnedFd {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let mut token = [0];
        match rustix::io::read(&*self, &mut token)? {
            0 => Err(LinkError::Closed),
            _ => Ok(token[0]),
        }
    }
}

/// One byte through a FIFO: one write(2), one read(2).
pub struct Fifo;

impl Carrier for Fifo {
    const NAME: &'static str = "fifo";
    const SUMMARY: &'static str = "one byte through a named pipe";
    const NEEDS: &'static str = "mkfifo(3), a writable folder for temporary files (TMPDIR)";
}

impl Link for Fifo {
    type Sender = OwnedFd;
    type Receiver = OwnedFd;

    fn channel(_: &Place) -> Result<(OwnedFd, OwnedFd), CallError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("switchcost-{}-{number}.fifo", std::process::id());
        let path = std::env::temp_dir().join(name);
        let path =
            CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL).by("mkfifo")?;
        fifo_unlinked(&path).map_err(|(call, errno)| CallError { call, errno })
    }
}

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

macro_rules! socket_link {
    ($link:ty, $kind:expr) => {
        impl Link for $link {
            type Sender = OwnedFd;
            type Receiver = OwnedFd;

            fn channel(_: &Place) -> Result<(OwnedFd, OwnedFd), CallError> {
                socketpair(AddressFamily::UNIX, $kind, SocketFlags::CLOEXEC, None).by("socketpair")
            }
        }
    };
}

socket_link!(Stream, SocketType::STREAM);
socket_link!(Datagram, SocketType::DGRAM);
