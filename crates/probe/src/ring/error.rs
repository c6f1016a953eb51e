//! What can go wrong with a link, with a lap, with a whole ring.

use rustix::io::Errno;

use crate::counters::CountError;
use crate::limits::Limits;

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
pub trait By<T> {
    /// As a failure of `call`.
    fn by(self, call: &'static str) -> Result<T, CallError>;
}

impl<T> By<T> for Result<T, Errno> {
    fn by(self, call: &'static str) -> Result<T, CallError> {
        self.map_err(|errno| (call, errno))
    }
}

/// Why a ring could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// No ring of this case can be made anywhere: why, and what to do.
    #[error("{0}")]
    Unsuited(String),
    /// The machine does not let the link be used.
    #[error("--link {link} cannot be used here: {why}")]
    Unavailable {
        /// The link.
        link: &'static str,
        /// Why, and what helps.
        why: String,
    },
    /// A call that the link cannot do without was refused, whatever the ring's size.
    #[error("{}: {}", .0.0, .0.1)]
    Call(CallError),
    /// The kernel did not grant a policy or a CPU.
    #[error("{0}")]
    Denied(String),
    /// The machine ran out of something while the ring was set up.
    #[error(
        "a ring of {wanted} members could not be set up: {} failed at member {made} with {}. {limits}",
        .call.0, .call.1
    )]
    Refused {
        /// Ring size.
        wanted: u32,
        /// Members that there were.
        made: u32,
        /// The call that failed.
        call: CallError,
        /// Which limit it was.
        limits: Box<Limits>,
    },
    /// The members' memory cannot be allocated.
    #[error("{0}")]
    Memory(String),
    /// A member ended before it was told to.
    #[error("member {member} ended early: {how}")]
    Member {
        /// Which one, the leader being 0.
        member: u32,
        /// How.
        how: String,
    },
    /// The token was lost.
    #[error("the token was lost: {0}")]
    Lost(#[from] LinkError),
    /// The token came back without having been changed by every member.
    #[error("the token came back as {found} instead of {expected}: not every member passed it on")]
    Token {
        /// What every member's change makes of it.
        expected: u8,
        /// What came.
        found: u8,
    },
    /// A member made other hops than it was told.
    #[error("member {member} made {found} hops instead of {expected}")]
    Hops {
        /// Which one, the leader being 0.
        member: usize,
        /// Hops that it was told to make.
        expected: u64,
        /// Hops that it made.
        found: u64,
    },
    /// A counter could not be read.
    #[error(transparent)]
    Count(#[from] CountError),
}

impl RingError {
    /// The call that failed when a ring of so many had so many members, and the limits behind it. These are read
    /// while all members still live: only then do their counts tell.
    pub(super) fn refused(wanted: u32, made: u32, call: CallError) -> Self {
        let limits = Box::new(Limits::behind(call.0, call.1));
        Self::Refused { wanted, made, call, limits }
    }

    /// Whether the machine ran out of something, so that a larger ring would fail too.
    pub fn is_exhaustion(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Memory(_))
    }
}
