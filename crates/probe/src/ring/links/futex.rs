//! The futex (futex(2)): a word in shared memory, and the kernel only to sleep and to wake.

use model::case::Kind;
use rustix::io::Errno;
use rustix::thread::futex;

use crate::ring::link::{By, CallError, Carrier, Link, LinkError, Place, Receive, Send};
use crate::sys::{Shared, Slot};

/// The token lies in the word that is waited on. The sender always wakes; who finds the token there
/// already does not wait, so that a ring of one makes one call a hop, and a larger one two.
pub struct Futex;

impl Carrier for Futex {
    const NAME: &'static str = "futex";
    const SUMMARY: &'static str = "a word in shared memory, slept on by futex";
    const NEEDS: &'static str = "futex(2)";
}

/// Either end.
#[derive(Clone)]
pub struct End {
    slot: Shared<Slot>,
    flags: futex::Flags,
}

impl Link for Futex {
    type Sender = End;
    type Receiver = End;

    fn channel(place: &Place) -> Result<(End, End), CallError> {
        // Threads use it as threads would: found by its address, not by the page behind it.
        let flags = match place.kind {
            Kind::Process => futex::Flags::empty(),
            Kind::Thread => futex::Flags::PRIVATE,
        };
        let end = End { slot: Shared::new().by("mmap")?, flags };
        Ok((end.clone(), end))
    }
}

impl Send for End {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.slot.put(token);
        futex::wake(self.slot.word(), self.flags, 1)?;
        Ok(())
    }
}

impl Receive for End {
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
