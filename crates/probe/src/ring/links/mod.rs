//! One file a kind of link, and the list of all.

mod condvar;
mod coroutine;
mod descriptors;
mod eventfd;
mod futex;
mod io_uring;
mod posix_mq;
mod sched_yield;
mod signal;
mod sysv;

use model::ring::{Case, Sample};

use super::available;
use super::build::Make;
use super::error::RingError;
use super::{Assignment, session};

#[cfg(test)]
pub(super) use descriptors::Pipe;

/// Takes the samples of an assignment by a clock and gives each to the sink as soon as it is proven.
type Run =
    fn(&Assignment, &mut dyn FnMut() -> u64, &mut dyn FnMut(Sample)) -> Result<(), RingError>;

/// A link as the registry knows it.
pub struct Registered {
    /// Its name on the command line.
    pub name: &'static str,
    /// What carries the token, for lists of links.
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
    register::<descriptors::Pipe>(),
    register::<descriptors::Fifo>(),
    register::<descriptors::Stream>(),
    register::<descriptors::Datagram>(),
    register::<eventfd::Eventfd>(),
    register::<signal::Signal>(),
    register::<signal::HandlerSignal>(),
    register::<posix_mq::PosixMq>(),
    register::<sysv::SysvMsg>(),
    register::<sysv::SysvSem>(),
    register::<futex::Futex>(),
    register::<condvar::Condvar>(),
    register::<io_uring::IoUring>(),
    register::<sched_yield::Yield>(),
    register::<coroutine::Coroutines>(),
];
