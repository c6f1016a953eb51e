//! Figures with known drawings, and figures that nobody should make.

mod html;
mod overlay;
mod picture;
pub(crate) mod samples;
mod terminal;
