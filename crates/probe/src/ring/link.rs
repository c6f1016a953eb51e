//! What carries the token from one member to the next. One file a link; this is what each provides.

use rustix::io::Errno;

/// Why a token did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The other side is gone.
    Closed,
    /// The kernel refused.
    Kernel(Errno),
}

impl From<Errno> for LinkError {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

/// The end that sends.
pub trait Send: std::marker::Send + 'static {
    /// Passes the token on. In the timed loop: nothing that the link does not need.
    fn send(&mut self, token: u8) -> Result<(), LinkError>;
}

/// The end that receives.
pub trait Receive: std::marker::Send + 'static {
    /// Waits for the token. In the timed loop: nothing that the link does not need.
    fn receive(&mut self) -> Result<u8, LinkError>;
}

/// A kind of link. Joints are made one at a time, before the member behind them exists; an end that
/// a process does not use is dropped in it, so that what is held stays constant in the ring's size.
pub trait Link: 'static {
    /// Its name on the command line.
    const NAME: &'static str;
    /// What it is, in a few words.
    const SUMMARY: &'static str;
    /// What it needs of the kernel.
    const NEEDS: &'static str;
    /// The call that makes a joint, for error messages.
    const CALL: &'static str;
    /// The end of the member that passes the token on.
    type Sender: Send;
    /// The end of the member that waits for it.
    type Receiver: Receive;

    /// Makes the joint between two neighbours.
    fn joint() -> Result<(Self::Sender, Self::Receiver), Errno>;
}
