//! Links whose token lies in shared memory:
//!
//! - the futex (futex(2)): the kernel only puts to sleep and wakes, also by futex_waitv(2);
//! - the mutex and the condition variable of the C library (pthread_cond_wait(3));
//! - sched_yield(2): members do not sleep but look for the token, and offer their CPU to the next
//!   while it is elsewhere. Only the counted switches show what the scheduler does;
//! - the semaphore and the message queue of System V (semop(2), msgop(2)).

use rundata::ring::MemberKind;
use rustix::io::Errno;
use rustix::thread::{UnshareFlags, futex, sched_yield};

use crate::ring::link::{CallContext, CallError, ChannelPlace, Link, LinkEnd, LinkError};
use crate::sys::{
    SharedValue, SysvItemSemaphore, SysvQueue, SysvSemaphore, TokenCondvar, TokenSlot, member_lost,
    own_namespace,
};

/// The token lies in the word that is waited on. The sender always wakes. A receiver that finds the
/// token does not wait: a ring of one makes one call per hop, a larger one two.
#[derive(Clone)]
pub struct FutexLink {
    slot: SharedValue<TokenSlot>,
    flags: futex::Flags,
}

impl Link for FutexLink {
    type End = Self;

    fn channel(place: &ChannelPlace) -> Result<(Self, Self), CallError> {
        // Threads use a private futex, as programs do: the kernel finds it by its address.
        let flags = match place.kind {
            MemberKind::Process => futex::Flags::empty(),
            MemberKind::Thread => futex::Flags::PRIVATE,
        };
        let end = Self { slot: SharedValue::new().in_call("mmap")?, flags };
        Ok((end.clone(), end))
    }
}

impl LinkEnd for FutexLink {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.slot.put(token);
        futex::wake(self.slot.word(), self.flags, 1)?;
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        loop {
            if let Some(token) = self.slot.take() {
                return Ok(token);
            }
            match futex::wait(self.slot.word(), self.flags, TokenSlot::EMPTY, None) {
                // The token came before the wait.
                Ok(()) | Err(Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// A futex whose receiver waits by futex_waitv(2), the call that can wait for several words. Here it
/// waits for one.
#[derive(Clone)]
pub struct FutexVectorLink {
    futex: FutexLink,
    flags: futex::WaitFlags,
}

impl Link for FutexVectorLink {
    type End = Self;

    /// Waits for no word, which the call refuses where it is known.
    fn prepare() -> Result<(), CallError> {
        match futex::waitv(&[], futex::WaitvFlags::empty(), None, futex::ClockId::Monotonic) {
            Ok(_) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(("futex_waitv", errno)),
        }
    }

    fn channel(place: &ChannelPlace) -> Result<(Self, Self), CallError> {
        let (futex, _) = FutexLink::channel(place)?;
        let end = Self { futex, flags: word_flags(place.kind) };
        Ok((end.clone(), end))
    }
}

impl LinkEnd for FutexVectorLink {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.futex.send(token)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        let slot = &self.futex.slot;
        loop {
            if let Some(token) = slot.take() {
                return Ok(token);
            }
            let mut word = futex::Wait::new();
            word.val = TokenSlot::EMPTY.into();
            word.uaddr = futex::WaitPtr::new(slot.word().as_ptr().cast());
            word.flags = self.flags;
            let (flags, clock) = (futex::WaitvFlags::empty(), futex::ClockId::Monotonic);
            match futex::waitv(&[word], flags, None, clock) {
                // The token came before the wait.
                Ok(_) | Err(Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Returns the flags of a word of 32 bits. Threads use a private one, as programs do.
pub(super) fn word_flags(kind: MemberKind) -> futex::WaitFlags {
    match kind {
        MemberKind::Process => futex::WaitFlags::SIZE_U32,
        MemberKind::Thread => futex::WaitFlags::SIZE_U32 | futex::WaitFlags::PRIVATE,
    }
}

/// The token lies under a mutex; a condition variable announces it.
impl Link for TokenCondvar {
    type End = SharedValue<Self>;

    fn channel(place: &ChannelPlace) -> Result<(Self::End, Self::End), CallError> {
        let end = Self::new(place.kind == MemberKind::Process)?;
        Ok((end.clone(), end))
    }
}

/// The token lies in a word that the receiver polls.
#[derive(Clone)]
pub struct YieldLink(SharedValue<TokenSlot>);

impl Link for YieldLink {
    type End = Self;

    fn channel(_: &ChannelPlace) -> Result<(Self, Self), CallError> {
        let end = Self(SharedValue::new().in_call("mmap")?);
        Ok((end.clone(), end))
    }
}

impl LinkEnd for YieldLink {
    const POLLS: bool = true;

    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.0.put(token);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        loop {
            if let Some(token) = self.0.take() {
                return Ok(token);
            }
            sched_yield();
            // No signal can interrupt this wait: a member's death must be looked for.
            if member_lost() {
                return Err(LinkError::Closed);
            }
        }
    }
}

// Objects of System V exist until they are removed, and removing one destroys it at once, also for
// its users. A worker that is killed with -9 cannot remove anything. The ring therefore lives in an
// IPC namespace of its own: the kernel removes it and all its objects when the last member has
// ended.

/// Requirements of both links of System V.
pub const NEEDS: &str = "System V IPC in a namespace of the ring's own: \
     CAP_SYS_ADMIN, or user namespaces without privilege";

/// Explains an errno that means that a namespace was refused, and what helps.
pub fn namespace_hint(errno: Errno) -> Option<String> {
    if !matches!(errno, Errno::PERM | Errno::ACCESS | Errno::NOSPC) {
        return None;
    }
    Some(
        "System V objects would outlive a killed ring, so they need an IPC namespace of the \
            ring's own. Run as root (in a container with CAP_SYS_ADMIN), or allow user \
            namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
            kernel.apparmor_restrict_unprivileged_userns)"
            .to_string(),
    )
}

impl Link for SysvSemaphore {
    type End = Self;

    fn prepare() -> Result<(), CallError> {
        own_namespace(UnshareFlags::NEWIPC).in_call("unshare")
    }

    fn channel(_: &ChannelPlace) -> Result<(Self, Self), CallError> {
        let end = Self::new()?;
        Ok((end.clone(), end))
    }
}

impl Link for SysvItemSemaphore {
    type End = Self;

    fn prepare() -> Result<(), CallError> {
        own_namespace(UnshareFlags::NEWIPC).in_call("unshare")
    }

    fn channel(place: &ChannelPlace) -> Result<(Self, Self), CallError> {
        let end = Self::new(place.room)?;
        Ok((end.clone(), end))
    }
}

impl Link for SysvQueue {
    type End = Self;

    fn prepare() -> Result<(), CallError> {
        own_namespace(UnshareFlags::NEWIPC).in_call("unshare")
    }

    fn channel(_: &ChannelPlace) -> Result<(Self, Self), CallError> {
        let queue = Self::new().in_call("msgget")?;
        Ok((queue, queue))
    }
}
