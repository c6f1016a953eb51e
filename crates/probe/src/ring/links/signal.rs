//! Signals: a queued real-time signal that is waited for, never handled (sigqueue(3),
//! sigwaitinfo(2)), and one caught by a handler: the memorandum's kill and pause (VENIX 1984,
//! twosig), without the race in which the signal comes between the test and the pause. That one is
//! blocked but within sigsuspend(2), which lets it in and waits in one.

use rustix::io::Errno;

use crate::ring::link::{By, CallError, End, Link, LinkError, Place};
use crate::sys::{CaughtSignal, QueuedSignal, Shared, Slot, Task, catch};

/// The token travels as the value of the signal, which is blocked all the time. It is sent to one
/// thread by its id.
pub struct Signal {
    place: Place,
    signal: QueuedSignal,
}

impl Link for Signal {
    type End = Self;

    fn prepare() -> Result<(), CallError> {
        QueuedSignal::block();
        Ok(())
    }

    fn channel(place: &Place) -> Result<(Self, Self), CallError> {
        let end = || Self { place: place.clone(), signal: QueuedSignal::new() };
        Ok((end(), end()))
    }
}

impl End for Signal {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        Ok(self.signal.send(token)?)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        Ok(self.signal.wait()?)
    }

    fn settle(&mut self) -> Result<(), LinkError> {
        self.signal.aim = self.place.find()?;
        Ok(())
    }
}

/// A signal has no room for a token: that lies in shared memory beside it.
#[derive(Clone)]
pub struct HandlerSignal {
    place: Place,
    aim: Task,
    signal: CaughtSignal,
    slot: Shared<Slot>,
}

impl Link for HandlerSignal {
    type End = Self;

    fn channel(place: &Place) -> Result<(Self, Self), CallError> {
        // The mask that is waited under is the same for every channel made after the first.
        let signal = catch().by("sigaction")?;
        let slot = Shared::<Slot>::new().by("mmap")?;
        let end = Self { place: place.clone(), aim: Task::default(), signal, slot };
        Ok((end.clone(), end))
    }
}

impl End for HandlerSignal {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.slot.put(token);
        Ok(self.signal.send(self.aim)?)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        // The signal is taken even if the token is there already: it is what is measured.
        self.signal.wait();
        // Another signal's handler ran: this one is still to come.
        self.slot.take().ok_or(LinkError::Kernel(Errno::INTR))
    }

    fn settle(&mut self) -> Result<(), LinkError> {
        self.aim = self.place.find()?;
        Ok(())
    }
}
