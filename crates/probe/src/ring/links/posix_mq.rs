//! The POSIX message queue (mq_overview(7)), whose name is taken away as soon as it is open.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::ring::link::{By, CallError, Carrier, Link, LinkError, Place, Receive, Send};
use crate::sys::{mq_open_unlinked, mq_receive, mq_send, privileged_ipc_namespace};

/// A message of one byte through a queue that holds one.
pub struct PosixMq;

impl Carrier for PosixMq {
    const NAME: &'static str = "posix-mq";
    const SUMMARY: &'static str = "a message of one byte through a POSIX message queue";
    const NEEDS: &'static str = "mq_open(3): a kernel with CONFIG_POSIX_MQUEUE";
}

/// The end that sends.
pub struct Sender(OwnedFd);

/// The end that receives.
pub struct Receiver(OwnedFd);

impl Link for PosixMq {
    type Sender = Sender;
    type Receiver = Receiver;

    /// A namespace takes the queues with it, whatever kills the ring. Where it is refused, the
    /// vfork helper keeps their names from staying behind.
    fn prepare() -> Result<(), CallError> {
        let _ = privileged_ipc_namespace();
        Ok(())
    }

    fn channel(_: &Place) -> Result<(Sender, Receiver), CallError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("/switchcost-{}-{number}", std::process::id());
        let name = CString::new(name).map_err(|_| Errno::INVAL).by("mq_open")?;
        let queue = mq_open_unlinked(&name).map_err(|(call, errno)| CallError { call, errno })?;
        let other = fcntl_dupfd_cloexec(&queue, 0).by("fcntl")?;
        Ok((Sender(queue), Receiver(other)))
    }
}

impl Send for Sender {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        Ok(mq_send(self.0.as_fd(), token)?)
    }
}

impl Receive for Receiver {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        Ok(mq_receive(self.0.as_fd())?)
    }
}
