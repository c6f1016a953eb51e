//! Links whose token lies in shared memory: the futex (futex(2)), where the kernel only puts to sleep and wakes;
//! the mutex and the condition variable of the C library (pthread_cond_wait(3)); sched_yield(2), where no member
//! sleeps and none is woken: every member looks for the token and, while it is elsewhere, offers its CPU to the
//! next. Only the counted switches show what the scheduler does.

use model::ring::Kind;
use rustix::io::Errno;
use rustix::thread::{futex, sched_yield};

use crate::ring::link::{By, CallError, End, Link, LinkError, Place};
use crate::sys::{Shared, Slot, TokenCondvar, member_lost};

/// The token lies in the word that is waited on. The sender always wakes; who finds the token there
/// already does not wait, so that a ring of one makes one call a hop, and a larger one two.
#[derive(Clone)]
pub struct Futex {
    slot: Shared<Slot>,
    flags: futex::Flags,
}

impl Link for Futex {
    type End = Self;

    fn channel(place: &Place) -> Result<(Self, Self), CallError> {
        // Threads use it as threads would: found by its address, not by the page behind it.
        let flags = match place.kind {
            Kind::Process => futex::Flags::empty(),
            Kind::Thread => futex::Flags::PRIVATE,
        };
        let end = Self { slot: Shared::new().by("mmap")?, flags };
        Ok((end.clone(), end))
    }
}

impl End for Futex {
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
            match futex::wait(self.slot.word(), self.flags, Slot::EMPTY, None) {
                // The token came before the wait.
                Ok(()) | Err(Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// The token lies under a mutex, and a condition says that it is there.
#[derive(Clone)]
pub struct Condvar(Shared<TokenCondvar>);

impl Link for Condvar {
    type End = Self;

    fn channel(place: &Place) -> Result<(Self, Self), CallError> {
        let end = Self(TokenCondvar::new(place.kind == Kind::Process)?);
        Ok((end.clone(), end))
    }
}

impl End for Condvar {
    const INTERRUPTIBLE: bool = false;

    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        Ok(self.0.put(token)?)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        Ok(self.0.take()?)
    }
}

/// There is nothing else to the link than the token.
#[derive(Clone)]
pub struct Yield(Shared<Slot>);

impl Link for Yield {
    type End = Self;

    fn channel(_: &Place) -> Result<(Self, Self), CallError> {
        let end = Self(Shared::new().by("mmap")?);
        Ok((end.clone(), end))
    }
}

impl End for Yield {
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
