//! One end of a channel that carries the token, and how it can fail.

use rustix::io::Errno;

/// One end of a channel between two members, used either to send or to receive.
pub trait LinkEnd {
    /// Whether a member waits for the token awake. Such members sleep at a gate between batches
    /// (`SharedArea::wait_at_gate`): the counters of a running member cannot be read.
    const POLLS: bool = false;

    /// Whether a signal ends the wait. If not, only the end of the worker ends it after a loss of
    /// the token (`sys::wait_uninterruptible`).
    const INTERRUPTIBLE: bool = true;

    /// Passes the token on. Runs in the timed loop: it does only what the link needs.
    fn send(&mut self, token: u8) -> Result<(), LinkError>;

    /// Waits for the token. Runs in the timed loop: it does only what the link needs.
    fn receive(&mut self) -> Result<u8, LinkError>;

    /// Passes on what the member's sending end has only queued. Called on the receiving end after
    /// each send outside of the timed loop; within the loop the next [`receive`](Self::receive)
    /// does it.
    fn flush(&mut self) -> Result<(), LinkError> {
        Ok(())
    }

    /// Prepares the end for a batch. Called before the send of every control lap, when all members
    /// exist; never in the timed loop.
    fn settle(&mut self) -> Result<(), LinkError> {
        Ok(())
    }
}

/// Reason why a token did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The other side is gone.
    #[error("the other end is closed")]
    Closed,
    /// A call of the kernel failed.
    #[error("{0}")]
    Kernel(#[from] Errno),
}

/// Name of a call that failed while a ring was built, and its errno.
pub type CallError = (&'static str, Errno);

/// Adds the name of the failed call to an errno.
pub trait CallContext<T> {
    /// Turns an errno into a [`CallError`] of `call`.
    fn in_call(self, call: &'static str) -> Result<T, CallError>;
}

impl<T> CallContext<T> for Result<T, Errno> {
    fn in_call(self, call: &'static str) -> Result<T, CallError> {
        self.map_err(|errno| (call, errno))
    }
}
