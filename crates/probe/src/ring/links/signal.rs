//! A queued real-time signal that is waited for, never handled (sigqueue(3), sigwaitinfo(2)).

use crate::ring::link::{Address, Carrier, Link, LinkError, Place, Receive, Refusal, Send};
use crate::sys::{self, QueuedSignal, QueuedSignals};

/// The token travels as the value of the signal, which is blocked all the time.
pub struct Signal;

impl Carrier for Signal {
    const NAME: &'static str = "signal";
    const SUMMARY: &'static str = "a queued real-time signal, waited for by sigwaitinfo";
    const NEEDS: &'static str = "rt_tgsigqueueinfo(2)";
}

/// The end that sends, to one thread by its id.
pub struct Sender {
    address: Address,
    signal: QueuedSignal,
}

impl Link for Signal {
    type Sender = Sender;
    type Receiver = QueuedSignals;

    fn prepare() -> Result<(), Refusal> {
        sys::block_queued();
        Ok(())
    }

    fn joint(place: &Place) -> Result<(Sender, QueuedSignals), Refusal> {
        let sender = Sender { address: place.address(), signal: QueuedSignal::new() };
        Ok((sender, QueuedSignals::new()))
    }
}

impl Send for Sender {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        Ok(self.signal.send(token)?)
    }

    fn settle(&mut self) -> Result<(), LinkError> {
        self.signal.aim(self.address.find()?);
        Ok(())
    }
}

impl Receive for QueuedSignals {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        Ok(self.wait()?)
    }
}
