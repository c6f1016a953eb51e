//! sched_yield(2): nobody sleeps and nobody is woken. Every member looks for the token in shared
//! memory and, while it is elsewhere, offers its CPU to the next. What the scheduler makes of that
//! only the counted switches tell.

use model::ring::Case;

use crate::ring::link::{
    By, CallError, Carrier, Link, LinkError, Place, Receive, Send, on_one_cpu,
};
use crate::sys::{Shared, Slot, member_lost};

/// The token lies in shared memory; there is nothing else to the link.
pub struct Yield;

impl Carrier for Yield {
    const NAME: &'static str = "yield";
    const SUMMARY: &'static str = "a byte in shared memory, polled with sched_yield";
    const NEEDS: &'static str = "sched_yield(2), all members on one CPU (--placement same)";
    const SLEEPS: bool = false;

    fn suits(case: &Case) -> Result<(), String> {
        on_one_cpu(case, "members that poll on CPUs of their own never switch")
    }
}

/// Either end.
#[derive(Clone)]
pub struct End(Shared<Slot>);

impl Link for Yield {
    type Sender = End;
    type Receiver = End;

    fn channel(_: &Place) -> Result<(End, End), CallError> {
        let end = End(Shared::new().by("mmap")?);
        Ok((end.clone(), end))
    }
}

impl Send for End {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.0.put(token);
        Ok(())
    }
}

impl Receive for End {
    const POLLS: bool = true;

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        loop {
            if let Some(token) = self.0.take() {
                return Ok(token);
            }
            rustix::thread::sched_yield();
            // No signal can interrupt this wait: a member's death must be looked for.
            if member_lost() {
                return Err(LinkError::Closed);
            }
        }
    }
}
