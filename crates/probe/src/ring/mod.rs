//! The ring: members that pass a one-byte token round, and what the kernel counts meanwhile.
//!
//! `link` says what a link is, `links` has a file for each family and lists them in [`LINKS`]. `member`
//! has the timed loops, `build` makes the members, `session` takes the samples of one worker.

mod build;
mod error;
mod link;
mod links;
mod member;
mod others;
mod session;
mod unshared;
mod work;

use model::ring::Sample;

pub use build::check_state;
pub use error::RingError;
pub use links::{LINKS, Registered};
pub use session::{Assignment, check_policy, slowest};
pub(crate) use unshared::in_slices;

use crate::sys::monotonic_raw_ns;

/// The link of that name.
pub fn link(name: &str) -> Option<&'static Registered> {
    LINKS.iter().find(|link| link.name == name)
}

/// Runs one assignment in the calling process, which must be single-threaded and for this alone:
/// it forks, changes its policy and its CPUs, and sets itself a deadline. Samples go to `sink` as
/// soon as every member has proven its part in them.
pub fn run(assignment: &Assignment, sink: &mut dyn FnMut(Sample)) -> Result<(), RingError> {
    run_by_clock(assignment, &mut monotonic_raw_ns, sink)
}

/// The same by a clock of the caller's, in nanoseconds: it is read before and after each batch, the last
/// two times around that of the sample that comes next. What else it does, it does within the sample.
pub fn run_by_clock(
    assignment: &Assignment,
    clock: &mut dyn FnMut() -> u64,
    sink: &mut dyn FnMut(Sample),
) -> Result<(), RingError> {
    let name = &assignment.case.link;
    let unknown = || RingError::Unsuited(format!("no link is called '{name}'"));
    let link = link(name).ok_or_else(unknown)?;
    link.suits(&assignment.case)?;
    session::run(link, assignment, clock, sink)
}
