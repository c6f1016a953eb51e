//! What can go wrong with a link, with a lap, with a whole ring.

use model::case::Policy;
use model::state::State;
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

/// A call that failed while a ring was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The call.
    pub call: &'static str,
    /// Its errno.
    pub errno: Errno,
}

/// Says of a failure which call it was.
pub trait By<T> {
    /// As a failure of `call`.
    fn by(self, call: &'static str) -> Result<T, CallError>;
}

impl<T> By<T> for Result<T, Errno> {
    fn by(self, call: &'static str) -> Result<T, CallError> {
        self.map_err(|errno| CallError { call, errno })
    }
}

/// The ring did not do what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeadError {
    /// The token was lost.
    #[error("the token was lost: {0}")]
    Link(#[from] LinkError),
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
}

/// Why a ring could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// No link of that name is registered.
    #[error("no link is called '{name}'")]
    UnknownLink {
        /// The name.
        name: String,
    },
    /// The link cannot carry the token of such a ring.
    #[error("--link {link}: {why}")]
    Unsuited {
        /// The link.
        link: &'static str,
        /// Why, and what to do.
        why: String,
    },
    /// The machine does not let the link be used.
    #[error("--link {link} cannot be used here: {why}")]
    Unavailable {
        /// The link.
        link: &'static str,
        /// Why, and what helps.
        why: String,
    },
    /// The machine ran out of something while the ring was set up.
    #[error(
        "a ring of {wanted} members could not be set up: {call} failed at member {made} with {errno}. {limits}"
    )]
    Refused {
        /// Ring size.
        wanted: u32,
        /// Members that there were.
        made: u32,
        /// The call that failed.
        call: &'static str,
        /// Its errno.
        errno: Errno,
        /// Which limit it was.
        limits: Box<Limits>,
    },
    /// The kernel did not grant the policy.
    #[error("policy {policy} was refused ({errno}): {needs}")]
    Policy {
        /// The policy.
        policy: Policy,
        /// Why.
        errno: Errno,
        /// What it needs.
        needs: String,
    },
    /// The members cannot have such registers in use.
    #[error("--state {state}: {why}")]
    State {
        /// The state.
        state: State,
        /// Why.
        why: String,
    },
    /// A member could not be put on its CPUs.
    #[error("member {member} could not be put on CPU {cpus:?}: {errno}")]
    Affinity {
        /// Which one, the leader being 0.
        member: u32,
        /// The CPUs.
        cpus: Vec<u32>,
        /// Why.
        errno: Errno,
    },
    /// A working set that no address space holds.
    #[error(
        "a working set of {bytes} bytes cannot be allocated: the limit is {limit} bytes (--work)"
    )]
    Work {
        /// Bytes asked for.
        bytes: u64,
        /// The most that can be asked for.
        limit: u64,
    },
    /// The shared memory could not be allocated.
    #[error("cannot map memory shared by {members} members: {errno}")]
    Memory {
        /// Ring size.
        members: u32,
        /// Why.
        errno: Errno,
    },
    /// A member ended before it was told to.
    #[error("member {member} ended early: {how}")]
    Member {
        /// Which one.
        member: u32,
        /// How.
        how: String,
    },
    /// The ring did not do what it was told.
    #[error(transparent)]
    Lead(#[from] LeadError),
    /// A counter could not be read.
    #[error(transparent)]
    Count(#[from] CountError),
}

impl RingError {
    /// Whether the machine ran out of something, so that a larger ring would fail too.
    pub fn is_exhaustion(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Memory { .. } | Self::Work { .. })
    }
}
