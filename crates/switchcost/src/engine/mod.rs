//! How a run is measured and kept: the schedule, its workers, interrupts, run files, and the
//! arguments that all of them share.

pub(crate) mod effort;
pub(crate) mod execute;
pub(crate) mod interrupt;
pub(crate) mod policies;
pub(crate) mod progress;
pub(crate) mod schedule;
pub(crate) mod setting;
pub(crate) mod store;
pub(crate) mod worker_output;
pub(crate) mod workers;
