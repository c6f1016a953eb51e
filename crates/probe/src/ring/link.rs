//! A link: the mechanism that carries the token from one member to the next. The families of
//! links are in `links/`; each implements [`Link`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rundata::ring::MemberKind;

pub use crate::end::{CallContext, CallError, LinkEnd, LinkError};
use crate::limits;
use crate::procfs::UnreadableFile;
use crate::sys::{SharedArea, TaskId, member_lost};

/// A kind of link. Channels are created one at a time, before the member that receives exists.
/// Each process drops the ends that it does not use, so that it holds the same number of them in a
/// ring of any size.
pub trait Link: 'static {
    /// Type of both ends.
    type End: LinkEnd + Send + 'static;

    /// Prepares the leader before the first channel is created. The members inherit the result.
    fn prepare() -> Result<(), CallError> {
        Ok(())
    }

    /// Creates the channel between two neighbours; returns the sending and the receiving end.
    fn channel(place: &ChannelPlace) -> Result<(Self::End, Self::End), CallError>;

    /// Joins the two ends that a member uses, which are of two channels. Called in its process or
    /// thread, before either is used.
    fn join(_sender: &mut Self::End, _receiver: &mut Self::End) -> Result<(), CallError> {
        Ok(())
    }
}

/// Position of a channel in the ring.
#[derive(Clone)]
pub struct ChannelPlace {
    /// Memory that all members share.
    pub area: Arc<SharedArea>,
    /// Whether members are processes or threads.
    pub kind: MemberKind,
    /// Number of the receiving member, which need not exist yet; the leader is 0.
    pub to: u32,
    /// Items that the channel has to hold at once.
    pub room: u32,
}

impl ChannelPlace {
    /// Returns the receiver's process and thread ids. Waits for a thread, which stores its own id
    /// once it runs.
    pub fn find(&self) -> Result<TaskId, LinkError> {
        let cell = &self.area.cells()[self.to as usize];
        loop {
            match cell.tid.load(Ordering::Acquire) as i32 {
                0 if member_lost() => return Err(LinkError::Closed),
                0 => thread::sleep(Duration::from_micros(50)),
                tid if self.kind == MemberKind::Process => return Ok(TaskId { pid: tid, tid }),
                tid => return Ok(TaskId { pid: std::process::id() as i32, tid }),
            }
        }
    }
}

/// Reason why a ring could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The case is impossible, the machine refuses the link, the policy or the CPU, or a member
    /// ended too early or did not make its hops. The text says why, and what to do.
    #[error("{0}")]
    Other(String),
    /// A call that the link needs was refused; the ring's size does not matter.
    #[error("{}: {}", .0.0, .0.1)]
    Call(CallError),
    /// The machine ran out of a resource while the ring was set up.
    #[error(
        "a ring of {wanted} members could not be set up: {} failed at member {made} with {}. \
         {limits}",
        .call.0, .call.1
    )]
    Refused {
        /// Members of the ring.
        wanted: u32,
        /// Members that existed.
        made: u32,
        /// The call that failed.
        call: CallError,
        /// Description of the limit that was reached.
        limits: String,
    },
    /// The machine has no room for so many members; none was created.
    #[error("{wanted} members cannot be made: {limits}")]
    TooMany {
        /// Members of the ring.
        wanted: u32,
        /// Description of the limit that forbids it.
        limits: String,
    },
    /// The machine has no room for so many rings at the same time; none was created.
    #[error("{wanted} rings at the same time cannot be made: {limits}")]
    TooManyRings {
        /// Rings that were asked for.
        wanted: u32,
        /// Description of the limit that forbids it.
        limits: String,
    },
    /// One of several rings failed, and all were ended.
    #[error("ring {} of {rings}: {message}", .ring + 1)]
    InRing {
        /// Number of the ring, from 0.
        ring: u32,
        /// Number of rings.
        rings: u32,
        /// Description of its failure.
        message: String,
        /// Whether the machine ran out of a resource.
        exhausted: bool,
    },
    /// The members' memory cannot be allocated.
    #[error("{0}")]
    Memory(String),
    /// The token was lost.
    #[error("the token was lost: {0}")]
    Lost(#[from] LinkError),
    /// A counter could not be read.
    #[error(transparent)]
    Count(#[from] UnreadableFile),
}

impl RingError {
    /// Describes a call that failed when a ring of `wanted` members had `made` of them. The limits
    /// behind it are read now, while all members live: later their counts would not include them.
    pub(super) fn refused(wanted: u32, made: u32, call: CallError) -> Self {
        let limits = limits::behind(call.0, call.1);
        Self::Refused { wanted, made, call, limits }
    }

    /// Returns whether the machine ran out of a resource: then a larger ring would fail too.
    pub fn is_exhaustion(&self) -> bool {
        match self {
            Self::InRing { exhausted, .. } => *exhausted,
            Self::Refused { .. }
            | Self::TooMany { .. }
            | Self::TooManyRings { .. }
            | Self::Memory(_) => true,
            Self::Other(_) | Self::Call(_) | Self::Lost(_) | Self::Count(_) => false,
        }
    }
}
