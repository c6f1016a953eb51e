//! The ring, on which the cost of a switch rests: members that pass a token round.

mod batching;
mod case;
mod sample;

pub use batching::{Batching, SLICE_NS};
pub use case::{Case, ELEMENT_BYTES, Kind, LINE_BYTES, Op, Walk, Work, WorkError};
pub use sample::{Counters, Disturbance, OTHER_WORK_LIMIT, Sample};

pub use crate::placement::Placement;
pub use crate::policy::Policy;
