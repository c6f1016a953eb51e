//! The message queue of System V (msgop(2)).

use rustix::io::Errno;

use super::sysv_sem::{NAMESPACE_NEEDS, namespace_hint};
use crate::ring::link::{By, Carrier, Link, LinkError, Place, Receive, Refusal, Send};
use crate::sys::{SysvQueue, own_ipc_namespace};

/// A message of one byte through a queue of its own.
pub struct SysvMsg;

impl Carrier for SysvMsg {
    const NAME: &'static str = "sysv-msg";
    const SUMMARY: &'static str = "a message of one byte through a System V message queue";
    const NEEDS: &'static str = NAMESPACE_NEEDS;

    fn hint(errno: Errno) -> Option<String> {
        namespace_hint(errno)
    }
}

impl Link for SysvMsg {
    type Sender = SysvQueue;
    type Receiver = SysvQueue;

    fn prepare() -> Result<(), Refusal> {
        own_ipc_namespace().by("unshare")
    }

    fn joint(_: &Place) -> Result<(SysvQueue, SysvQueue), Refusal> {
        let queue = SysvQueue::new().by("msgget")?;
        Ok((queue, queue))
    }
}

impl Send for SysvQueue {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        Ok(SysvQueue::send(*self, token)?)
    }
}

impl Receive for SysvQueue {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        Ok(SysvQueue::receive(*self)?)
    }
}
