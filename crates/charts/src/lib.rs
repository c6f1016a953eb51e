//! Charts: a [`Figure`] says what is on which axis; one layout puts it on a page; SVG, PNG, HTML and
//! terminals write that page down.
//!
//! Nothing here knows what was measured. [`together`] lays the figures of several runs over each other, and
//! [`Figure::relative_to`] makes multiples of their values.
#![forbid(unsafe_code)]

mod figure;
mod font;
mod html;
mod layout;
mod legend;
mod map;
mod overlay;
mod picture;
mod png;
mod relative;
mod rows;
mod ruler;
mod shapes;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod ticks;

pub use figure::{Axis, Body, Figure, Map, Mark, Point, Region, Role, Scale, Series, Unit};
pub use html::Page;
pub use overlay::together;
pub use png::png;
pub use relative::Base;
pub use svg::svg;
pub use terminal::{Look, terminal};
#[cfg(test)]
use tests::samples;
pub use text::{clean, escape, printable};
