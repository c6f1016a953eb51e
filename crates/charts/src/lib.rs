//! Charts: a [`Figure`] says what is on which axis, one layout puts it on a page, and that page is
//! written as SVG, PNG, HTML or text.
//!
//! Nothing here knows what was measured. [`overlay_runs`] lays the figures of several runs over each
//! other, and [`Figure::relative_to`] makes multiples of their values.
#![forbid(unsafe_code)]

mod combine;
mod figure;
mod html;
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
    Axis, AxisMark, AxisRegion, Figure, FigureBody, HeatMap, Point, PointCertainty, Role, Scale,
    Series, Unit,
};
pub use html::HtmlPage;
pub use paper::{render_png, render_svg};
pub use picture::with_micro_sign;
pub use terminal::{PlotStyle, render_text};
#[cfg(test)]
use tests as samples;
pub use text::{clean, escape, is_obeyed, printable};
