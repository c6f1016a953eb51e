//! The ring: members that pass a one-byte token round, and what the kernel counts meanwhile.
//!
//! `link` says what a link is, `links` has a file for each family and lists them in [`LINKS`].
//! `member` has the timed loops, `build` makes the members, `session` takes the samples of one
//! worker.

mod build;
mod burden;
mod groups;
mod link;
mod links;
mod member;
mod member_clocks;
mod meters;
mod others;
mod pieces;
#[cfg(test)]
mod register_tests;
mod session;
mod slices;

use std::path::Path;

use model::ring::{Case, Sample};

pub use build::check_state;
pub use burden::check as check_burden;
pub use groups::sweep as sweep_groups;
pub use link::RingError;
pub use links::{LINKS, RegisteredLink, find_link};
pub(crate) use member_clocks::MemberClocks;
pub(crate) use meters::SliceMeters;
pub use session::{Assignment, check_events, check_policy, run_by_clock, slowest, slowest_walk};
pub(crate) use slices::in_slices;

use crate::limits;
use crate::sys::monotonic_raw_ns;

/// Runs one assignment in the calling process, which must be single-threaded and for this alone:
/// it forks, changes its policy and its CPUs, and sets itself a deadline. Samples go to `sink` as
/// soon as every member has proven its part in them.
pub fn run(assignment: &Assignment, sink: &mut dyn FnMut(Sample)) -> Result<(), RingError> {
    check_room(&assignment.case)?;
    run_by_clock(assignment, &mut monotonic_raw_ns, sink)
}

/// Members from which on a ring that cannot be made is not begun: up to the limit, it would leave
/// nobody else a process.
const MANY_MEMBERS: u32 = 256;

fn check_room(case: &Case) -> Result<(), RingError> {
    if case.members < MANY_MEMBERS || case.link == "coroutine" {
        return Ok(());
    }
    let machine = crate::machine::read(Path::new("/"));
    let room = limits::check_tasks(&machine, case.members.into());
    room.map_err(|limits| RingError::TooMany { wanted: case.members, limits })
}
