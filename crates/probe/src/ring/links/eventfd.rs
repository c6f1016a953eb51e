//! The event counter (eventfd(2)): the token travels as the count.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::fcntl_dupfd_cloexec;

use crate::ring::link::{By, CallError, Carrier, Link, LinkError, Place, Receive, Send};

/// A count through an eventfd: one write(2), one read(2), no buffer.
pub struct Eventfd;

impl Carrier for Eventfd {
    const NAME: &'static str = "eventfd";
    const SUMMARY: &'static str = "a count through an eventfd";
    const NEEDS: &'static str = "eventfd(2)";
}

/// The end that adds to the count.
pub struct Adder(OwnedFd);

/// The end that takes the count.
pub struct Taker(OwnedFd);

impl Link for Eventfd {
    type Sender = Adder;
    type Receiver = Taker;

    fn channel(_: &Place) -> Result<(Adder, Taker), CallError> {
        let counter = eventfd(0, EventfdFlags::CLOEXEC).by("eventfd")?;
        let other = fcntl_dupfd_cloexec(&counter, 0).by("fcntl")?;
        Ok((Adder(counter), Taker(other)))
    }
}

impl Send for Adder {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        // A count of zero would wake nobody.
        let count = u64::from(token) + 1;
        rustix::io::write(&self.0, &count.to_ne_bytes())?;
        Ok(())
    }
}

impl Receive for Taker {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let mut count = [0; 8];
        rustix::io::read(&self.0, &mut count)?;
        Ok((u64::from_ne_bytes(count) - 1) as u8)
    }
}
