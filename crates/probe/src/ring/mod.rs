//! The ring: members that pass a one-byte token round, and what the kernel counts meanwhile.
//!
//! - `link` defines a link; `links` has a file for each family and lists them in [`LINKS`].
//! - `build` creates the members, `others` explains how they ended.
//! - `member` has the timed loops and the leader's counts, `session` takes one worker's samples.
//! - `slices` cuts a batch into slices and waits for an idle core; `meters` are read around each
//!   slice.
//! - `pieces` cuts the hops of large working sets further.
//! - `burden` and `groups` make each switch dearer on purpose.

mod build;
mod burden;
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
mod slices;

use std::path::Path;

use rundata::ring::{RingCase, RingSample};

pub use build::check_state;
pub use burden::check as check_burden;
pub use groups::sweep as sweep_groups;
pub use link::RingError;
pub use links::{LINKS, RegisteredLink, find_link};
pub(crate) use meters::{MemberClocks, SliceMeters};
pub use session::{
    Assignment, check_events, check_policy, max_prescribed_time, max_walk_time, run_by_clock,
};
pub(crate) use slices::in_slices;

use crate::limits;
use crate::sys::monotonic_raw_ns;

/// Runs one assignment in the calling process, which must be single-threaded and serve no other
/// purpose: it forks, changes its policy and its CPUs, and sets itself a deadline. Each sample goes
/// to `sink` as soon as every member has proven that it made its hops.
pub fn run(assignment: &Assignment, sink: &mut dyn FnMut(RingSample)) -> Result<(), RingError> {
    check_room(&assignment.case)?;
    run_by_clock(assignment, &mut monotonic_raw_ns, sink)
}

/// Smallest ring whose limits are checked before its first member is created: a larger one that
/// fails at a limit would leave no process to anybody else meanwhile.
const MANY_MEMBERS: u32 = 256;

/// Checks that the machine has room for all members of a large ring.
fn check_room(case: &RingCase) -> Result<(), RingError> {
    if case.members < MANY_MEMBERS || case.link == "coroutine" {
        return Ok(());
    }
    let machine = crate::machine::read(Path::new("/"));
    let room = limits::check_tasks(&machine, case.members.into());
    room.map_err(|limits| RingError::TooMany { wanted: case.members, limits })
}
