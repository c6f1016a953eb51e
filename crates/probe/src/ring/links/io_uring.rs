//! A pipe written and read by io_uring(7): each end has a ring of its own, one operation in flight.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::descriptors::Pipe;
use crate::ring::link::{By, CallError, Carrier, Link, LinkError, Place, Receive, Send};
use crate::sys::Uring;

/// One byte through a pipe: one io_uring_enter(2) to write it, one to read it.
pub struct IoUring;

const SWITCH: &str = "/proc/sys/kernel/io_uring_disabled";

impl Carrier for IoUring {
    const NAME: &'static str = "io-uring";
    const SUMMARY: &'static str = "one byte through a pipe, written and read by io_uring";
    const NEEDS: &'static str = "io_uring_setup(2), allowed by kernel.io_uring_disabled";

    fn hint(errno: Errno) -> Option<String> {
        let forbidden = matches!(errno, Errno::PERM | Errno::ACCESS);
        let switch = fs::read_to_string(SWITCH).unwrap_or_default();
        match (forbidden, switch.trim()) {
            (true, "1" | "2") => Some(format!(
                "kernel.io_uring_disabled is {}: root may set it to 0 (sysctl)",
                switch.trim()
            )),
            (true, _) => Some(
                "a filter of system calls forbids it here, as containers do by default".to_string(),
            ),
            _ => None,
        }
    }
}

/// Either end.
pub struct End {
    pipe: OwnedFd,
    ring: Uring,
}

impl Link for IoUring {
    type Sender = End;
    type Receiver = End;

    fn channel(place: &Place) -> Result<(End, End), CallError> {
        let (sender, receiver) = Pipe::channel(place)?;
        let sender = End { pipe: sender, ring: Uring::new().by("io_uring_setup")? };
        Ok((sender, End { pipe: receiver, ring: Uring::new().by("io_uring_setup")? }))
    }
}

impl Send for End {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        Ok(self.ring.write(self.pipe.as_fd(), token)?)
    }
}

impl Receive for End {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        self.ring.read(self.pipe.as_fd())?.ok_or(LinkError::Closed)
    }
}
