//! Figures on a terminal: the shape of a curve at a glance, its numbers being in the table above.
//!
//! ratatui's canvas draws lines with the dots of braille; axes, intervals, marks and names are ours, as no
//! plotting crate has all of them.

mod bars;
mod curves;
mod ink;
mod look;
mod map;
mod page;
mod words;

use model::figure::{Body, Figure, Unit};

pub(crate) use look::Look;
use page::Page;

use super::drawing::clean;

/// Narrower than this, nothing can be seen.
const NARROWEST: usize = 30;

/// A figure as lines of text, none wider than the look has columns.
pub(crate) fn plot(figure: &Figure, runs: &[String], look: &Look) -> String {
    let mut page = Page::new(look);
    page.words(&clean(&figure.title), ratatui::style::Color::Reset, 2);
    if look.columns < NARROWEST {
        let few = format!("no plot: {} columns are too few (30)", look.columns);
        page.words(&few, ink::SOFT, 3);
        return page.text(look);
    }
    match &figure.body {
        Body::Series(all) if figure.x.unit == Unit::Names => {
            bars::draw(&mut page, figure, all, runs, look);
        }
        Body::Series(all) => curves::draw(&mut page, figure, all, runs, look),
        Body::Map(map) => map::draw(&mut page, figure, map, look),
    }
    page.text(look)
}

#[cfg(test)]
mod tests;
