//! What carries the token from one member to the next. One file a link in `links/`; this is what
//! each provides.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use model::ring::{Case, Kind};
use rustix::io::Errno;

pub use super::error::{By, CallError, LinkError};
use crate::sys::{Aim, SharedArea, member_lost};

/// The end that sends.
pub trait Send {
    /// Passes the token on. In the timed loop: nothing that the link does not need.
    fn send(&mut self, token: u8) -> Result<(), LinkError>;

    /// Called in every control lap before the send, when all members have been made: for what can
    /// only be known then. Not in the timed loop.
    fn settle(&mut self) -> Result<(), LinkError> {
        Ok(())
    }
}

/// The end that receives.
pub trait Receive {
    /// A member waits for the token awake. Such members sleep at a gate between the laps, or their
    /// counters could not be read (`SharedArea::wait_at_gate`).
    const POLLS: bool = false;

    /// A signal ends the wait. Where none does, only the end of the worker does when the token is
    /// lost (`sys::wait_uninterruptible`).
    const INTERRUPTIBLE: bool = true;

    /// Waits for the token. In the timed loop: nothing that the link does not need.
    fn receive(&mut self) -> Result<u8, LinkError>;
}

/// What everything that carries a token says of itself.
pub trait Carrier: 'static {
    /// Its name on the command line.
    const NAME: &'static str;
    /// What carries the token, for lists of links.
    const SUMMARY: &'static str;
    /// What it needs of the kernel.
    const NEEDS: &'static str;
    /// A member that has passed the token on gives up its CPU by sleeping. Where none ever sleeps,
    /// no limit on running without a sleep can be set.
    const SLEEPS: bool = true;

    /// Whether it can carry the token of such a ring: if not, why, and what to do instead.
    fn suits(_case: &Case) -> Result<(), String> {
        Ok(())
    }

    /// What stands behind this refusal of its calls, and what helps, where that is known.
    fn hint(_errno: Errno) -> Option<String> {
        None
    }
}

/// Whether all members of a ring run on one CPU; if not, why they must and what to do.
pub fn on_one_cpu(case: &Case, why: &str) -> Result<(), String> {
    let is_one_cpu = case.placement.is_one_cpu();
    is_one_cpu.then_some(()).ok_or(format!("{why}: use --placement same or a single CPU"))
}

/// A kind of link. Channels are made one at a time, before the member behind them exists; an end that
/// a process does not use is dropped in it, so that what is held stays constant in the ring's size.
pub trait Link: Carrier {
    /// The end of the member that passes the token on.
    type Sender: Send + std::marker::Send + 'static;
    /// The end of the member that waits for it.
    type Receiver: Receive + std::marker::Send + 'static;

    /// Done once in the leader before the first channel is made: what the members inherit.
    fn prepare() -> Result<(), CallError> {
        Ok(())
    }

    /// Makes the channel between two neighbours.
    fn channel(place: &Place) -> Result<(Self::Sender, Self::Receiver), CallError>;
}

/// Where in the ring a channel is.
pub struct Place<'a> {
    /// What the ring shares.
    pub area: &'a Arc<SharedArea>,
    /// What the members are.
    pub kind: Kind,
    /// The member that receives; the leader is 0.
    pub to: u32,
}

impl Place<'_> {
    /// The address of the member that receives, who need not exist yet.
    pub fn address(&self) -> Address {
        Address { area: Arc::clone(self.area), kind: self.kind, member: self.to }
    }
}

/// How a member is found that is addressed by its id.
pub struct Address {
    area: Arc<SharedArea>,
    kind: Kind,
    member: u32,
}

impl Address {
    /// Its process and thread ids, waited for: a thread tells its own once it runs.
    pub fn find(&self) -> Result<Aim, LinkError> {
        let cell = &self.area.cells()[self.member as usize];
        loop {
            match cell.tid.load(Ordering::Acquire) as i32 {
                0 if member_lost() => return Err(LinkError::Closed),
                0 => thread::sleep(Duration::from_micros(50)),
                tid if self.kind == Kind::Process => return Ok(Aim { pid: tid, tid }),
                tid => return Ok(Aim { pid: std::process::id() as i32, tid }),
            }
        }
    }
}
