//! What can go wrong with a ring, in words that help.

use model::case::Policy;
use model::state::State;
use rustix::io::Errno;

use super::member::LeadError;
use crate::counters::CountError;
use crate::limits::Limits;

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
    /// The shared memory could not be had.
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
    #[error("{}", lead_words(.0))]
    Lead(LeadError),
    /// A counter could not be read.
    #[error(transparent)]
    Count(#[from] CountError),
}

impl RingError {
    /// Whether the machine ran out of something, so that a larger ring would fail too.
    pub fn is_exhaustion(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Memory { .. })
    }
}

fn lead_words(error: &LeadError) -> String {
    match error {
        LeadError::Link(error) => format!("the token was lost: {error:?}"),
        LeadError::Token { expected, found } => format!(
            "the token came back as {found} instead of {expected}: not every member passed it on"
        ),
        LeadError::Hops { member, expected, found } => {
            format!("member {member} made {found} hops instead of {expected}")
        }
    }
}
