//! What carries the token from one member to the next, and what can go wrong with it. One file a
//! family of links in `links/`; this is what each provides.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use model::ring::Kind;

pub use crate::end::{CallContext, CallError, LinkEnd, LinkError};
use crate::limits;
use crate::procfs::UnreadableFile;
use crate::sys::{SharedArea, TaskId, member_lost};

/// A kind of link. Channels are made one at a time, before the member behind them exists; an end
/// that a process does not use is dropped in it, so that what is held stays constant in the ring's
/// size.
pub trait Link: 'static {
    /// Either end.
    type End: LinkEnd + Send + 'static;

    /// Done once in the leader before the first channel is made: what the members inherit.
    fn prepare() -> Result<(), CallError> {
        Ok(())
    }

    /// Makes the channel between two neighbours: the end that sends, and the one that receives.
    fn channel(place: &ChannelPlace) -> Result<(Self::End, Self::End), CallError>;
}

/// Where in the ring a channel is.
#[derive(Clone)]
pub struct ChannelPlace {
    /// What the ring shares.
    pub area: Arc<SharedArea>,
    /// What the members are.
    pub kind: Kind,
    /// The member that receives, who need not exist yet; the leader is 0.
    pub to: u32,
}

impl ChannelPlace {
    /// The receiver's process and thread ids, waited for: a thread stores its own once it runs.
    pub fn find(&self) -> Result<TaskId, LinkError> {
        let cell = &self.area.cells()[self.to as usize];
        loop {
            match cell.tid.load(Ordering::Acquire) as i32 {
                0 if member_lost() => return Err(LinkError::Closed),
                0 => thread::sleep(Duration::from_micros(50)),
                tid if self.kind == Kind::Process => return Ok(TaskId { pid: tid, tid }),
                tid => return Ok(TaskId { pid: std::process::id() as i32, tid }),
            }
        }
    }
}

/// Why a ring could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// No ring of this case can be made, the machine does not let the link, a policy or a CPU be
    /// used, or a member ended too early or did not make its hops: why, and what to do.
    #[error("{0}")]
    Other(String),
    /// A call that the link cannot do without was refused, whatever the ring's size.
    #[error("{}: {}", .0.0, .0.1)]
    Call(CallError),
    /// The machine ran out of something while the ring was set up.
    #[error(
        "a ring of {wanted} members could not be set up: {} failed at member {made} with {}. \
         {limits}",
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
        limits: String,
    },
    /// So many members cannot be made: none was.
    #[error("{wanted} members cannot be made: {limits}")]
    TooMany {
        /// Members of the ring.
        wanted: u32,
        /// Which limit it is.
        limits: String,
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
    /// The call that failed when a ring of so many had so many members, and the limits behind it.
    /// These are read while all members still live: only then do their counts include them.
    pub(super) fn refused(wanted: u32, made: u32, call: CallError) -> Self {
        let limits = limits::behind(call.0, call.1);
        Self::Refused { wanted, made, call, limits }
    }

    /// Whether the machine ran out of something, so that a larger ring would fail too.
    pub fn is_exhaustion(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::TooMany { .. } | Self::Memory(_))
    }
}
