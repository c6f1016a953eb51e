//! One point of the grid: what ring, carried by what, doing what, where and under which policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named::named;
use crate::state::State;
use crate::words;

pub use crate::placement::Placement;

/// What the members of the ring are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Each member is a process of its own: a switch changes the address space.
    Process,
    /// All members are threads of one process.
    Thread,
}

/// How a member touches its working set.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Load each element.
    Read,
    /// Store each element.
    Write,
    /// Load, add and store each element.
    Rmw,
}

/// Which elements of its working set a member touches in a hop.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Walk {
    /// All: each stride-th from the first, then each stride-th from the second, and so on.
    #[default]
    Whole,
    /// Every line of 64 bytes once, in one random cycle: each line holds the place of the next, so that the
    /// machine can fetch none ahead and waits for each. The stride is the line.
    Chase,
    /// One in every stride, each a cache line further into its stride than the one before, so that they
    /// do not all fall into one set of the cache: with a stride of a page, one line a page.
    Sparse,
}

/// Bytes of one element of the working set: the double of Li, Ding and Shen (2007).
pub const ELEMENT_BYTES: u64 = 8;

/// Bytes by which walks over lines go: no smaller cache line is built any more, and a larger one only
/// makes neighbours share it.
pub const LINE_BYTES: u64 = 64;

/// The memory that a member touches in every hop, private to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// Size of the array in bytes, a multiple of [`ELEMENT_BYTES`].
    pub bytes: u64,
    /// Distance between successive accesses in bytes, a multiple of [`ELEMENT_BYTES`].
    pub stride_bytes: u64,
    /// What is done to each element.
    pub op: Op,
    /// Which elements are touched; all of them in runs that do not say.
    #[serde(default)]
    pub walk: Walk,
    /// Whether the array asks for transparent huge pages (madvise(2)); else it refuses them. Runs that
    /// do not say did neither.
    #[serde(default)]
    pub huge_pages: bool,
}

/// A working set that cannot be walked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The array is empty or not made of whole elements.
    #[error(
        "--work {0}: the array must be a multiple of {ELEMENT_BYTES} bytes and not empty (0 is no work)"
    )]
    Bytes(u64),
    /// The stride is zero or not made of whole elements.
    #[error("--stride {0}: the stride must be a multiple of {ELEMENT_BYTES} bytes and above 0")]
    Stride(u64),
    /// The stride steps over the whole array at once.
    #[error("--stride {stride_bytes}: larger than the array of {bytes} bytes (--work)")]
    StrideBeyondArray {
        /// The stride asked for.
        stride_bytes: u64,
        /// The size of the array.
        bytes: u64,
    },
}

impl Work {
    /// A working set that can be walked, or which of its figures forbids it.
    pub fn new(bytes: u64, stride_bytes: u64, op: Op) -> Result<Self, WorkError> {
        if bytes == 0 || !bytes.is_multiple_of(ELEMENT_BYTES) {
            return Err(WorkError::Bytes(bytes));
        }
        Self::check_stride(stride_bytes)?;
        if stride_bytes > bytes {
            return Err(WorkError::StrideBeyondArray { stride_bytes, bytes });
        }
        Ok(Self { bytes, stride_bytes, op, walk: Walk::Whole, huge_pages: false })
    }

    /// `rmw of 256 KiB by 128 B`, for progress and failures.
    pub fn in_words(&self) -> String {
        let (bytes, stride) = (words::bytes(self.bytes), words::bytes(self.stride_bytes));
        let sparse = match self.walk {
            Walk::Whole => "",
            Walk::Chase => ", line by line at random",
            Walk::Sparse => ", one line each",
        };
        let huge = if self.huge_pages { ", huge pages" } else { "" };
        format!("{} of {bytes} by {stride}{sparse}{huge}", self.op)
    }

    /// Elements touched in a hop.
    pub fn touches(&self) -> u64 {
        match self.walk {
            Walk::Whole => self.bytes / ELEMENT_BYTES,
            Walk::Chase => self.bytes / LINE_BYTES,
            Walk::Sparse => self.bytes / self.stride_bytes,
        }
    }

    /// Bytes of the lines that a hop touches: what has to fit into a cache.
    pub fn fetched_bytes(&self) -> u64 {
        match self.walk {
            Walk::Whole | Walk::Chase => self.bytes,
            Walk::Sparse => self.touches() * LINE_BYTES,
        }
    }

    /// Whether any array could be walked by this stride.
    pub fn check_stride(stride_bytes: u64) -> Result<(), WorkError> {
        match stride_bytes > 0 && stride_bytes.is_multiple_of(ELEMENT_BYTES) {
            true => Ok(()),
            false => Err(WorkError::Stride(stride_bytes)),
        }
    }
}

/// The scheduling policy of every member (sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// SCHED_OTHER, the normal policy.
    Other,
    /// SCHED_BATCH: normal, without wake-up preemption.
    Batch,
    /// SCHED_FIFO at the lowest real-time priority, which already outranks all normal tasks.
    Fifo,
    /// SCHED_RR at the lowest real-time priority.
    Rr,
}

impl Policy {
    /// The real-time priority asked of the kernel; 0 for the normal policies.
    pub fn priority(self) -> i32 {
        match self {
            Self::Other | Self::Batch => 0,
            Self::Fifo | Self::Rr => 1,
        }
    }

    /// Whether the kernel asks for a privilege before it grants the policy.
    pub fn is_realtime(self) -> bool {
        self.priority() > 0
    }
}

named!(Kind, "kind of member", Process => "process", Thread => "thread");
named!(Op, "kind of access", Read => "read", Write => "write", Rmw => "rmw");
named!(Walk, "walk", Whole => "whole", Chase => "chase", Sparse => "sparse");
named!(Policy, "policy", Other => "other", Fifo => "fifo", Rr => "rr", Batch => "batch");

/// One point of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// Ring size; 1 is the solo ring, a member that passes the token to itself.
    pub members: u32,
    /// Processes or threads.
    pub kind: Kind,
    /// What carries the token, by its name in the registry of links.
    pub link: String,
    /// What each member touches per hop; nothing when absent.
    pub work: Option<Work>,
    /// Where the members run.
    pub placement: Placement,
    /// Under which scheduling policy.
    pub policy: Policy,
    /// The real-time priority, where it is not the policy's own (the lowest).
    #[serde(default)]
    pub priority: Option<u32>,
    /// Which registers each member writes in every hop; none are touched on purpose when absent.
    #[serde(default)]
    pub state: Option<State>,
}

impl Case {
    /// The real-time priority asked of the kernel; 0 for the normal policies.
    pub fn priority(&self) -> i32 {
        let own = self.priority.filter(|_| self.policy.is_realtime());
        own.and_then(|priority| i32::try_from(priority).ok()).unwrap_or(self.policy.priority())
    }

    /// The ring of one that this ring is compared with: of a sweep's pair of CPUs, on the first.
    pub fn solo(&self) -> Case {
        Case { members: 1, placement: self.placement.of_solo(), ..self.clone() }
    }

    /// Whether `self` is the ring of one that `other` is compared with.
    pub fn is_solo_of(&self, other: &Case) -> bool {
        *self == other.solo()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(members: u32) -> Case {
        Case {
            members,
            kind: Kind::Process,
            link: "pipe".into(),
            work: None,
            placement: Placement::Pinned { cpus: vec![3, 1], relation: None },
            policy: Policy::Other,
            priority: None,
            state: None,
        }
    }

    #[test]
    fn solo_differs_in_nothing_but_its_size() {
        assert!(case(1).is_solo_of(&case(8)));
        assert!(!case(2).is_solo_of(&case(8)));
        let other_policy = Case { policy: Policy::Batch, ..case(1) };
        assert!(!other_policy.is_solo_of(&case(8)));
        let other_state = Case { state: Some(State::Sse), ..case(1) };
        assert!(!other_state.is_solo_of(&case(8)));
    }

    #[test]
    fn the_solo_of_a_pair_of_a_sweep_is_alone_on_its_first_cpu() {
        let relation = Some(crate::machine::Relation::Smt);
        let placement = Placement::Pinned { cpus: vec![3, 1], relation };
        let ring = Case { placement, ..case(4) };
        let alone = Case { placement: Placement::Same { cpu: 3 }, ..case(1) };
        assert!(alone.is_solo_of(&ring));
        assert!(!Case { members: 1, ..ring.clone() }.is_solo_of(&ring));
    }

    #[test]
    fn impossible_walks_are_refused_by_name() {
        assert!(Work::new(64, 8, Op::Read).is_ok());
        assert_eq!(Work::new(0, 8, Op::Read), Err(WorkError::Bytes(0)));
        assert_eq!(Work::new(12, 8, Op::Read), Err(WorkError::Bytes(12)));
        assert_eq!(Work::new(64, 0, Op::Read), Err(WorkError::Stride(0)));
        assert_eq!(Work::new(64, 7, Op::Read), Err(WorkError::Stride(7)));
        let beyond = Work::new(64, 128, Op::Rmw).unwrap_err().to_string();
        assert!(beyond.contains("128") && beyond.contains("64"), "{beyond}");
    }

    #[test]
    fn names_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(*policy));
        }
        let error = "realtime".parse::<Policy>().unwrap_err();
        assert!(error.contains("realtime") && error.contains("fifo"), "{error}");
    }
}
