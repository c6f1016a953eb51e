//! What pictures and terminal plots share: rulers, numbers on axes, who has which colour.

mod clean;
mod frame;
mod legend;
mod notation;
mod rows;
mod ruler;
#[cfg(test)]
pub(crate) mod samples;
mod ticks;

pub(crate) use clean::{clean, printable};
pub(crate) use frame::{Frame, MapFrame, end_of_last};
pub(crate) use legend::{Entry, entries, followers};
pub(crate) use rows::{Placed, rows, used};
pub(crate) use ruler::{Ruler, Tick};
