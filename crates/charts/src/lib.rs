//! Charts: a [`Figure`] says what is on which axis, one layout puts it on a page, and that page is
//! written as SVG (for papers, or for pages of others), PNG, HTML or text.
//!
//! The crate does not know what was measured. [`overlay_runs`] lays the figures of several runs over
//! each other, and [`Figure::relative_to`] makes multiples of their values.
//!
//! A figure passes through these stages, each a module:
//!
//! ```text
//! figure ──> shapes ──> layout ──> picture ──> paper   (SVG, PNG)
//!  axes,      lines,     places on    paths,  ├─> html  (SVG in a page, data for its script)
//!  series     bars       a page       inks    └─> inline (SVG for pages of others)
//!                          └────────────────────> terminal (text)
//! ```
//!
//! `figure` and `shapes` are in units of the axes (bytes, nanoseconds), the later stages in units
//! of the page: pixels, or columns and lines of a terminal. `ruler` maps one to the other.
#![forbid(unsafe_code)]

mod combine;
mod figure;
mod html;
mod inline;
mod layout;
mod page;
mod paper;
mod picture;
mod ruler;
mod shapes;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod ticks;

pub use combine::{RatioBase, overlay_runs};
pub use figure::{
    Axis, AxisMark, AxisRegion, Figure, FigureBody, HeatMap, MapContrast, Point, PointCertainty,
    Role, Scale, Series, Unit,
};
pub use html::HtmlPage;
pub use inline::{InlineSize, inline_svg};
pub use paper::{render_png, render_svg};
pub use picture::with_micro_sign;
pub use terminal::{PlotStyle, render_text};
#[cfg(test)]
use tests as samples;
pub use text::{clean, escape, is_obeyed, printable};
