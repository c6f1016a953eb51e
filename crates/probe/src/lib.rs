//! All of switchcost that touches the kernel. A case comes in, samples go out.

pub mod assignment;
pub mod classic;
pub mod command;
pub mod company;
pub mod limits;
pub mod machine;
pub mod placement;
pub mod policy;
pub mod program;
mod random;
mod response;
pub mod ring;
pub mod standing;
pub mod trial;

mod child;
mod counters;
mod procfs;
mod sys;

pub use sys::default_child;

/// Whether standard output was closed when this program began. What has its number since then takes
/// everything, and keeps nothing.
pub fn output_was_closed() -> bool {
    sys::Inherited::own().had_closed(1)
}
