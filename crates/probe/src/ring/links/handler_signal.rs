//! A signal caught by a handler: the memorandum's kill and pause (VENIX 1984, twosig), without the
//! race in which the signal comes between the test and the pause. The signal is blocked but within
//! sigsuspend(2), which lets it in and waits in one.

use rustix::io::Errno;

use crate::ring::link::{Address, By, Carrier, Link, LinkError, Place, Receive, Refusal, Send};
use crate::sys::{Aim, CaughtSignal, Shared, Slot, catch};

/// A signal has no room for a token: that lies in shared memory beside it.
pub struct HandlerSignal;

impl Carrier for HandlerSignal {
    const NAME: &'static str = "handler-signal";
    const SUMMARY: &'static str = "a signal caught by a handler, waited for by sigsuspend";
    const NEEDS: &'static str = "tgkill(2), sigsuspend(2)";
}

/// The end that sends, to one thread by its id.
pub struct Sender {
    address: Address,
    aim: Aim,
    signal: CaughtSignal,
    slot: Shared<Slot>,
}

/// The end that lets the signal in.
pub struct Receiver {
    signal: CaughtSignal,
    slot: Shared<Slot>,
}

impl Link for HandlerSignal {
    type Sender = Sender;
    type Receiver = Receiver;

    fn joint(place: &Place) -> Result<(Sender, Receiver), Refusal> {
        // The mask that is waited under is the same for every joint made after the first.
        let signal = catch().by("sigaction")?;
        let slot = Shared::<Slot>::new().by("mmap")?;
        let receiver = Receiver { signal, slot: slot.clone() };
        let (address, aim) = (place.address(), Aim::default());
        Ok((Sender { address, aim, signal, slot }, receiver))
    }
}

impl Send for Sender {
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

impl Receive for Receiver {
    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        // The signal is taken even if the token is there already: it is what is measured.
        self.signal.wait();
        // Another signal's handler ran: this one is still to come.
        self.slot.take().ok_or(LinkError::Kernel(Errno::INTR))
    }
}
