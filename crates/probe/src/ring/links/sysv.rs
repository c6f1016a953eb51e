//! The semaphore and the message queue of System V (semop(2), msgop(2)).
//!
//! Objects of System V stay until somebody removes them, and removing one destroys it at once, also
//! for those who use it. A worker that is killed with -9 cannot remove anything, so the ring lives
//! in an IPC namespace of its own: the kernel takes that away with all that is in it when the last
//! member has ended.

use rustix::io::Errno;

use crate::ring::link::{By, CallError, End, Link, LinkError, Place};
use crate::sys::{Shared, Slot, SysvQueue, SysvSemaphore, own_ipc_namespace};

/// Of both links.
pub const NEEDS: &str = "System V IPC in a namespace of the ring's own: \
     CAP_SYS_ADMIN, or user namespaces without privilege";

/// What helps against the refusal of a namespace.
pub fn namespace_hint(errno: Errno) -> Option<String> {
    matches!(errno, Errno::PERM | Errno::ACCESS | Errno::NOSPC).then(|| {
        "an object of System V would outlive a killed ring, so it is only made in an IPC namespace \
         of the ring's own: run as root (in a container with CAP_SYS_ADMIN), or allow user \
         namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
         kernel.apparmor_restrict_unprivileged_userns)"
            .to_string()
    })
}

/// One up, one down; a semaphore has no room for a token, which lies in shared memory beside it.
#[derive(Clone)]
pub struct SysvSem {
    semaphore: SysvSemaphore,
    slot: Shared<Slot>,
}

impl Link for SysvSem {
    type End = Self;

    fn prepare() -> Result<(), CallError> {
        own_ipc_namespace().by("unshare")
    }

    fn channel(_: &Place) -> Result<(Self, Self), CallError> {
        let semaphore = SysvSemaphore::new().by("semget")?;
        let end = Self { semaphore, slot: Shared::new().by("mmap")? };
        Ok((end.clone(), end))
    }
}

impl End for SysvSem {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.slot.put(token);
        Ok(self.semaphore.up()?)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        self.semaphore.down()?;
        self.slot.take().ok_or(LinkError::Closed)
    }
}

/// A message of one byte through a queue of its own.
impl Link for SysvQueue {
    type End = Self;

    fn prepare() -> Result<(), CallError> {
        own_ipc_namespace().by("unshare")
    }

    fn channel(_: &Place) -> Result<(Self, Self), CallError> {
        let queue = Self::new().by("msgget")?;
        Ok((queue, queue))
    }
}

impl End for SysvQueue {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        Ok(Self::send(*self, token)?)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        Ok(Self::receive(*self)?)
    }
}
