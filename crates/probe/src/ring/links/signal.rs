//! Signals: a queued real-time signal that is waited for, never handled (sigqueue(3), sigwaitinfo(2)), and one
//! caught by a handler: the memorandum's kill and pause (VENIX 1984, twosig), without the race in which the
//! signal comes between the test and the pause. That one is blocked but within sigsuspend(2), which lets it in
//! and waits in one.

use rustix::io::Errno;

use crate::ring::link::{Address, By, CallError, Carrier, Link, LinkError, Place, Receive, Send};
use crate::sys::{self, Aim, CaughtSignal, QueuedSignal, QueuedSignals, Shared, Slot, catch};

/// The token travels as the value of the signal, which is blocked all the time.
pub struct Signal;

impl Carrier for Signal {
    const NAME: &'static str = "signal";
    const SUMMARY: &'static str = "a queued real-time signal, waited for by sigwaitinfo";
    const NEEDS: &'static str = "rt_tgsigqueueinfo(2)";
}

/// The end that sends, to one thread by its id.
pub struct QueuedSender {
    address: Address,
    signal: QueuedSignal,
}

impl Link for Signal {
    type Sender = QueuedSender;
    type Receiver = QueuedSignals;

    fn prepare() -> Result<(), CallError> {
        sys::block_queued();
        Ok(())
    }

    fn channel(place: &Place) -> Result<(QueuedSender, QueuedSignals), CallError> {
        let sender = QueuedSender { address: place.address(), signal: QueuedSignal::new() };
        Ok((sender, QueuedSignals::new()))
    }
}

impl Send for QueuedSender {
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

/// A signal has no room for a token: that lies in shared memory beside it.
pub struct HandlerSignal;

impl Carrier for HandlerSignal {
    const NAME: &'static str = "handler-signal";
    const SUMMARY: &'static str = "a signal caught by a handler, waited for by sigsuspend";
    const NEEDS: &'static str = "tgkill(2), sigsuspend(2)";
}

/// The end that sends, to one thread by its id.
pub struct CaughtSender {
    address: Address,
    aim: Aim,
    signal: CaughtSignal,
    slot: Shared<Slot>,
}

/// The end that lets the signal in.
pub struct CaughtReceiver {
    signal: CaughtSignal,
    slot: Shared<Slot>,
}

impl Link for HandlerSignal {
    type Sender = CaughtSender;
    type Receiver = CaughtReceiver;

    fn channel(place: &Place) -> Result<(CaughtSender, CaughtReceiver), CallError> {
        // The mask that is waited under is the same for every channel made after the first.
        let signal = catch().by("sigaction")?;
        let slot = Shared::<Slot>::new().by("mmap")?;
        let receiver = CaughtReceiver { signal, slot: slot.clone() };
        let (address, aim) = (place.address(), Aim::default());
        Ok((CaughtSender { address, aim, signal, slot }, receiver))
    }
}

impl Send for CaughtSender {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        self.slot.put(token);
        Ok(self.signal.send(self.aim)?)
    }

    fn settle(&mut self) -> Result<(), LinkError> {
        self.aim = self.address.find()?;
        Ok(())
    }
}

impl Receive for CaughtReceiver {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        // The signal is taken even if the token is there already: it is what is measured.
        self.signal.wait();
        // Another signal's handler ran: this one is still to come.
        self.slot.take().ok_or(LinkError::Kernel(Errno::INTR))
    }
}
