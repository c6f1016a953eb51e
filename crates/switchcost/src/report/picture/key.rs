//! The legend: samples of lines and their names, above the plot.

use anyhow::Result;
use model::figure::Role;
use plotters::style::{Color, RGBColor};

use super::letters::{fit, width};
use super::paint::{At, Line, Paint, Writing};
use super::palette::{self, INK};
use crate::report::drawing::{Entry, followers};

const SIZE: f64 = 10.0;
/// Height of a row.
const ROW: f64 = 16.0;
/// Width of a sample, with the room after it.
const SAMPLE: f64 = 28.0;
/// Room between two of a row.
const GAP: f64 = 16.0;

struct Item {
    name: String,
    role: Role,
    number: usize,
    colour: RGBColor,
    at: At,
}

/// The legend of a figure.
pub(super) struct Key(Vec<Item>);

impl Key {
    /// For a page of this width. One series alone needs none: the axis says what it is.
    pub(super) fn new(entries: &[Entry], left: f64, right: f64) -> Self {
        let named = entries.iter().filter(|entry| !entry.follows);
        let mut items: Vec<Item> = named
            .map(|entry| Item {
                name: fit(&entry.name, SIZE, right - left - SAMPLE),
                role: entry.series.role,
                number: entry.colour,
                colour: palette::colour(entry.series.role, entry.colour),
                at: (0.0, 0.0),
            })
            .collect();
        let lines = followers(entries).into_iter();
        items.extend(lines.map(|(role, name)| {
            let (name, colour) = (name.to_string(), palette::SOFT);
            Item { name, role, number: 0, colour, at: (0.0, 0.0) }
        }));
        if items.len() < 2 {
            items.clear();
        }
        let (mut x, mut y) = (left, 0.0);
        for item in &mut items {
            let wide = SAMPLE + width(&item.name, SIZE);
            if x > left && x + wide > right {
                (x, y) = (left, y + ROW);
            }
            item.at = (x, y);
            x += wide + GAP;
        }
        Self(items)
    }

    pub(super) fn height(&self) -> f64 {
        self.0.last().map_or(0.0, |item| item.at.1 + ROW + 4.0)
    }

    pub(super) fn draw(&self, paint: &Paint, top: f64) -> Result<()> {
        for item in &self.0 {
            let (x, y) = (item.at.0, top + item.at.1 + ROW / 2.0);
            sample(paint, item, (x, y))?;
            paint.text(&item.name, (x + SAMPLE, y), Writing::new(SIZE, INK))?;
        }
        Ok(())
    }
}

fn sample(paint: &Paint, item: &Item, (x, y): At) -> Result<()> {
    let colour = item.colour.to_rgba();
    let (ends, middle) = ([(x, y), (x + 22.0, y)], (x + 11.0, y));
    match item.role {
        Role::Measured => {
            paint.block((x, y - 4.0), (x + 22.0, y + 4.0), item.colour.mix(0.2))?;
            paint.line(&ends, Line::Solid, 1.0, item.colour.mix(0.6))?;
            paint.symbol(middle, item.number, colour)
        }
        Role::Raw => paint.circle(middle, 2.0, colour),
        Role::Law => paint.line(&ends, Line::Solid, 2.2, colour),
        Role::Projected => paint.line(&ends, Line::Dashed, 1.6, colour),
        Role::Published => {
            paint.line(&ends, Line::of(item.number), 1.0, colour)?;
            paint.symbol(middle, item.number, colour)
        }
        Role::Steps => paint.block((x, y - 4.0), (x + 22.0, y + 4.0), item.colour.mix(0.35)),
        Role::Bars => paint.block((x, y - 4.0), (x + 22.0, y + 4.0), item.colour.mix(0.55)),
    }
}
