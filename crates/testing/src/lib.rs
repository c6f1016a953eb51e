//! Helpers for the tests of all crates: skips that are counted, waits for events, the nightly tier.
//!
//! A dev-dependency by path alone, so that crates which use it can be published without it.

mod skips;
mod tier;
mod waits;

pub use skips::{Need, has, is_root, lacks, skip};
pub use tier::{is_nightly, repeats};
pub use waits::{PATIENCE, wait_for};
