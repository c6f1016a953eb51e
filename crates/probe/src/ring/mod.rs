//! The ring: members that pass a one-byte token round, and what the kernel counts meanwhile.
//!
//! - `link` defines a link; `links` has a file for each family and lists them in [`LINKS`].
//! - `build` creates the members, `others` explains how they ended.
//! - `member` has the timed loops and the leader's counts, `session` takes one worker's samples.
//! - `slices` cuts a batch into slices and waits for an idle core; `meters` are read around each
//!   slice.
//! - `several` runs several rings at the same time, each in a process of its own.
//! - `pieces` cuts the hops of large working sets further.
//! - `flight` says which links carry several items at once, and how many.
//! - `burden` and `groups` make each switch dearer on purpose.

mod build;
mod burden;
mod flight;
mod groups;
mod link;
mod links;
mod member;
mod meters;
mod others;
mod pieces;
#[cfg(test)]
mod register_tests;
mod session;
mod several;
mod slices;

pub use build::check_state;
pub use burden::check as check_burden;
pub use flight::{FlightAbility, FlightRefusal};
pub use groups::sweep as sweep_groups;
pub use link::RingError;
pub use links::{LINKS, RegisteredLink, find_link};
pub(crate) use meters::{MemberClocks, SliceMeters};
pub use session::{
    Assignment, check_events, check_policy, max_prescribed_time, max_walk_time, run, run_by_clock,
};
pub(crate) use slices::in_slices;
