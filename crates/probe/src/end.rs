//! One end of what carries the token, and what can go wrong with it.

use rustix::io::Errno;

/// One end of a channel between two members: one uses it to send, or to receive.
pub trait LinkEnd {
    /// A member waits for the token awake. Such members sleep at a gate between the laps, or their
    /// counters could not be read (`SharedArea::wait_at_gate`).
    const POLLS: bool = false;

    /// A signal ends the wait. Where none does, only the end of the worker does when the token is
    /// lost (`sys::wait_uninterruptible`).
    const INTERRUPTIBLE: bool = true;

    /// Passes the token on. In the timed loop: nothing that the link does not need.
    fn send(&mut self, token: u8) -> Result<(), LinkError>;

    /// Waits for the token. In the timed loop: nothing that the link does not need.
    fn receive(&mut self) -> Result<u8, LinkError>;

    /// Called in every control lap before the send, when all members have been made: for what can
    /// only be known then. Not in the timed loop.
    fn settle(&mut self) -> Result<(), LinkError> {
        Ok(())
    }
}

/// Why a token did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The other side is gone.
    #[error("the other end is closed")]
    Closed,
    /// A call of the kernel failed.
    #[error("{0}")]
    Kernel(#[from] Errno),
}

/// A call that failed while a ring was made, and its errno.
pub type CallError = (&'static str, Errno);

/// Says of a failure which call it was.
pub trait CallContext<T> {
    /// As a failure of `call`.
    fn in_call(self, call: &'static str) -> Result<T, CallError>;
}

impl<T> CallContext<T> for Result<T, Errno> {
    fn in_call(self, call: &'static str) -> Result<T, CallError> {
        self.map_err(|errno| (call, errno))
    }
}
