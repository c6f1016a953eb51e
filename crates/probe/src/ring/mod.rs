//! The ring: members that pass a one-byte token round, and what the kernel counts meanwhile.
//!
//! `link` says what a link is, one file each implements one, and [`LINKS`] lists them. `member` has
//! the timed loops, `build` makes the members, `session` takes the samples of one worker.

mod build;
mod error;
mod link;
mod member;
mod others;
mod pipe;
mod session;
mod work;

use model::sample::Sample;

pub use error::RingError;
use link::Link;
pub use session::check_policy;

use crate::assignment::Assignment;

/// Takes the samples of an assignment and gives each to the sink as soon as it is proven.
type Run = fn(&Assignment, &mut dyn FnMut(Sample)) -> Result<(), RingError>;

/// A link as the registry knows it.
pub struct Registered {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// What it needs of the kernel.
    pub needs: &'static str,
    run: Run,
}

const fn register<L: Link>() -> Registered {
    Registered { name: L::NAME, summary: L::SUMMARY, needs: L::NEEDS, run: session::run::<L> }
}

/// Every link there is. A new one is a file that implements `link::Link` and a line here.
pub const LINKS: &[Registered] = &[register::<pipe::Pipe>()];

/// The link of that name.
pub fn link(name: &str) -> Option<&'static Registered> {
    LINKS.iter().find(|link| link.name == name)
}

/// Runs one assignment in the calling process, which must be single-threaded and for this alone:
/// it forks, changes its policy and its CPUs, and sets itself a deadline. Samples go to `sink` as
/// soon as every member has proven its part in them.
pub fn run(assignment: &Assignment, sink: &mut dyn FnMut(Sample)) -> Result<(), RingError> {
    let name = &assignment.case.link;
    let link = link(name).ok_or_else(|| RingError::UnknownLink { name: name.clone() })?;
    (link.run)(assignment, sink)
}
