//! Signals: a queued real-time signal that is waited for, never handled (sigqueue(3),
//! sigwaitinfo(2)), and one caught by a handler: the memorandum's kill and pause (VENIX 1984,
//! twosig), without the race in which the signal comes between the test and the pause. That one is
//! blocked but within sigsuspend(2), which lets it in and waits in one.

use rustix::io::Errno;

use crate::ring::link::{CallContext, CallError, ChannelPlace, Link, LinkEnd, LinkError};
use crate::sys::{CaughtSignal, QueuedSignal, SharedValue, TaskId, TokenSlot, catch};

/// The token travels as the value of the signal, which is blocked all the time. It is sent to one
/// thread by its id.
pub struct SignalLink {
    place: ChannelPlace,
    signal: QueuedSignal,
}

impl Link for SignalLink {
    type End = Self;

    fn prepare() -> Result<(), CallError> {
        QueuedSignal::block();
        Ok(())
    }

    fn channel(place: &ChannelPlace) -> Result<(Self, Self), CallError> {
        let end = || Self { place: place.clone(), signal: QueuedSignal::new() };
        Ok((end(), end()))
    }
}

impl LinkEnd for SignalLink {
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
pub struct HandlerSignalLink {
    place: ChannelPlace,
    aim: TaskId,
    signal: CaughtSignal,
    slot: SharedValue<TokenSlot>,
}

impl Link for HandlerSignalLink {
    type End = Self;

    fn channel(place: &ChannelPlace) -> Result<(Self, Self), CallError> {
        // The mask that is waited under is the same for every channel made after the first.
        let signal = catch().in_call("sigaction")?;
        let slot = SharedValue::<TokenSlot>::new().in_call("mmap")?;
        let end = Self { place: place.clone(), aim: TaskId::default(), signal, slot };
        Ok((end.clone(), end))
    }
}

impl LinkEnd for HandlerSignalLink {
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
