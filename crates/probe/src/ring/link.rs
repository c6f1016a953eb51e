//! What carries the token from one member to the next. One file a family of links in `links/`; this is what
//! each provides.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use model::ring::Kind;

pub use super::error::{By, CallError, LinkError};
use crate::sys::{SharedArea, Task, member_lost};

/// One end of a channel between two members: one uses it to send, or to receive.
pub trait End {
    /// A member waits for the token awake. Such members sleep at a gate between the laps, or their
    /// counters could not be read (`SharedArea::wait_at_gate`).
    const POLLS: bool = false;

    /// A signal ends the wait. Where none does, only the end of the worker does when the token is
    /// lost (`sys::wait_uninterruptible`).
    const INTERRUPTIBLE: bool = true;

    /// Passes the token on. In the timed loop: nothing that the link does not need.
    fn send(&mut self, token: u8) -> Result<(), LinkError>;

    /// Waits for the token. In the timed loop: nothing that the link does not need.
    fn receive(&mut self) -> Result<u8, LinkError>;

    /// Called in every control lap before the send, when all members have been made: for what can
    /// only be known then. Not in the timed loop.
    fn settle(&mut self) -> Result<(), LinkError> {
        Ok(())
    }
}

/// A kind of link. Channels are made one at a time, before the member behind them exists; an end that
/// a process does not use is dropped in it, so that what is held stays constant in the ring's size.
pub trait Link: 'static {
    /// Either end.
    type End: End + Send + 'static;

    /// Done once in the leader before the first channel is made: what the members inherit.
    fn prepare() -> Result<(), CallError> {
        Ok(())
    }

    /// Makes the channel between two neighbours: the end that sends, and the one that receives.
    fn channel(place: &Place) -> Result<(Self::End, Self::End), CallError>;
}

/// Where in the ring a channel is.
#[derive(Clone)]
pub struct Place {
    /// What the ring shares.
    pub area: Arc<SharedArea>,
    /// What the members are.
    pub kind: Kind,
    /// The member that receives, who need not exist yet; the leader is 0.
    pub to: u32,
}

impl Place {
    /// The receiver's process and thread ids, waited for: a thread tells its own once it runs.
    pub fn find(&self) -> Result<Task, LinkError> {
        let cell = &self.area.cells()[self.to as usize];
        loop {
            match cell.tid.load(Ordering::Acquire) as i32 {
                0 if member_lost() => return Err(LinkError::Closed),
                0 => thread::sleep(Duration::from_micros(50)),
                tid if self.kind == Kind::Process => return Ok(Task { pid: tid, tid }),
                tid => return Ok(Task { pid: std::process::id() as i32, tid }),
            }
        }
    }
}
