//! The pipe: Sloan's link, and the one that others are compared with (pipe(2)).

use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::ring::link::{By, Carrier, Link, LinkError, Place, Receive, Refusal, Send};

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

    fn joint(_: &Place) -> Result<(OwnedFd, OwnedFd), Refusal> {
        let (receiver, sender) = pipe_with(PipeFlags::CLOEXEC).by("pipe")?;
        Ok((sender, receiver))
    }
}

/// Also of FIFOs and sockets.
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
