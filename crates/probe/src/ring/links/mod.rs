//! One file a link, and the list of them.

mod condvar;
mod coroutine;
mod eventfd;
mod fifo;
mod futex;
mod handler_signal;
mod io_uring;
mod pipe;
mod posix_mq;
mod sched_yield;
mod signal;
mod socket;
mod sysv_msg;
mod sysv_sem;

use model::ring::{Case, Sample};

use super::available;
use super::error::RingError;
use super::link::Make;
use super::{Assignment, session};

#[cfg(test)]
pub(super) use pipe::Pipe;

/// Takes the samples of an assignment by a clock and gives each to the sink as soon as it is proven.
type Run =
    fn(&Assignment, &mut dyn FnMut() -> u64, &mut dyn FnMut(Sample)) -> Result<(), RingError>;

/// A link as the registry knows it.
pub struct Registered {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// What it needs of the kernel.
    pub needs: &'static str,
    suits: fn(&Case) -> Result<(), String>,
    try_out: fn() -> Result<(), String>,
    pub(super) run: Run,
}

impl Registered {
    /// Whether it can carry the token of such a ring.
    pub fn suits(&self, case: &Case) -> Result<(), RingError> {
        (self.suits)(case).map_err(|why| RingError::Unsuited { link: self.name, why })
    }

    /// Whether this machine has it: tried in a process of its own, which passes a token by it. If
    /// not, why. The calling process must be single-threaded.
    pub fn available(&self) -> Result<(), String> {
        (self.try_out)()
    }
}

const fn register<M: Make>() -> Registered {
    Registered {
        name: M::NAME,
        summary: M::SUMMARY,
        needs: M::NEEDS,
        suits: M::suits,
        try_out: available::try_out::<M>,
        run: session::run::<M>,
    }
}

/// Every link there is. A new one is a file beside this one that implements `Link` and a line here.
pub const LINKS: &[Registered] = &[
    register::<pipe::Pipe>(),
    register::<fifo::Fifo>(),
    register::<socket::Stream>(),
    register::<socket::Datagram>(),
    register::<eventfd::Eventfd>(),
    register::<signal::Signal>(),
    register::<handler_signal::HandlerSignal>(),
    register::<posix_mq::PosixMq>(),
    register::<sysv_msg::SysvMsg>(),
    register::<sysv_sem::SysvSem>(),
    register::<futex::Futex>(),
    register::<condvar::Condvar>(),
    register::<io_uring::IoUring>(),
    register::<sched_yield::Yield>(),
    register::<coroutine::Coroutines>(),
];
