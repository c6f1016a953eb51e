//! Links by signals: a queued real-time signal that is waited for and never handled (sigqueue(3),
//! sigwaitinfo(2)), and a signal that a handler catches, like kill and pause of the memorandum
//! (VENIX 1984, twosig). There a signal could arrive between the test and the pause; here it is
//! blocked except within sigsuspend(2), which unblocks it and waits in one call.

use rustix::io::Errno;

use crate::ring::link::{CallContext, CallError, ChannelPlace, Link, LinkEnd, LinkError};
use crate::sys::{CaughtSignal, QueuedSignal, SharedValue, TaskId, TokenSlot, catch};

/// The token is the value of a signal, which is always blocked. It is sent to one thread by its id.
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
        let sender = Self { place: place.clone(), signal: QueuedSignal::new() };
        let receiver = Self { place: place.clone(), signal: QueuedSignal::new() };
        Ok((sender, receiver))
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

/// The token lies in shared memory, as this signal carries no value.
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
        // After the first channel the mask to wait under is always the same.
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
        // Waits for the signal even if the token is there: the signal is what is measured.
        self.signal.wait();
        // If there is no token, another signal's handler ran: this signal is still to come.
        self.slot.take().ok_or(LinkError::Kernel(Errno::INTR))
    }

    fn settle(&mut self) -> Result<(), LinkError> {
        self.aim = self.place.find()?;
        Ok(())
    }
}
