//! Charts: a [`Figure`] says what is on which axis, one layout puts it on a page, and that page is
//! written as SVG, PNG, HTML or text.
//!
//! Nothing here knows what was measured. [`together`] lays the figures of several runs over each
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

pub use combine::{Base, together};
pub use figure::{Axis, Body, Figure, Known, Map, Mark, Point, Region, Role, Scale, Series, Unit};
pub use html::Page;
pub use paper::{png, svg};
pub use picture::micro;
pub use terminal::{Look, terminal};
#[cfg(test)]
use tests as samples;
pub use text::{clean, escape, is_obeyed, printable};
