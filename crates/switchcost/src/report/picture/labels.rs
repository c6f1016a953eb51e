//! Marks and regions of the x axis: their labels in rows above the plot, their lines and shades in it.

use anyhow::Result;
use model::figure::Figure;
use plotters::style::Color;

use super::axes::{Axes, Plot};
use super::letters::{fit, width};
use super::paint::{Line, Paint, Writing};
use super::palette::{INK, SHADE, SOFT};
use crate::report::drawing::{Placed, Ruler, clean, rows, used};

const SIZE: f64 = 9.5;
/// Height of a row.
const ROW: f64 = 13.0;
/// Rows of marks, and of regions.
const MOST: usize = 8;

struct Label {
    text: String,
    middle: f64,
    ends: Option<(f64, f64)>,
    placed: Option<Placed>,
}

/// All labels above a plot.
pub(super) struct Labels {
    marks: Vec<Label>,
    regions: Vec<Label>,
}

impl Labels {
    /// Those of what lies between the ends of the axis, for a plot of this width.
    pub(super) fn new(figure: &Figure, x: &Ruler, room: f64) -> Self {
        let across = |value: f64| x.position(value) * room;
        let inside = |low: f64, high: f64| {
            low < high && x.draws(low) && x.draws(high) && low < x.high && high > x.low
        };
        let seen = figure.marks.iter().filter(|mark| x.holds(mark.x));
        let marks = seen.map(|mark| Label {
            text: fit(&clean(&mark.label), SIZE, 240.0),
            middle: across(mark.x),
            ends: mark
                .between
                .filter(|(low, high)| inside(*low, *high))
                .map(|(low, high)| (across(low), across(high))),
            placed: None,
        });
        let seen = figure.regions.iter().filter(|region| inside(region.from, region.to));
        let regions = seen.map(|region| {
            let ends = (across(region.from), across(region.to));
            let text = fit(&clean(&region.label), SIZE, 240.0);
            Label { text, middle: (ends.0 + ends.1) / 2.0, ends: Some(ends), placed: None }
        });
        Self { marks: in_rows(marks.collect(), room), regions: in_rows(regions.collect(), room) }
    }

    /// For a plot whose names leave no place for marks.
    pub(super) fn none() -> Self {
        Self { marks: Vec::new(), regions: Vec::new() }
    }

    /// The room that they take above the plot.
    pub(super) fn height(&self) -> f64 {
        let rows = self.rows_of(&self.marks) + self.rows_of(&self.regions);
        if rows == 0 { 0.0 } else { ROW * rows as f64 + 4.0 }
    }

    fn rows_of(&self, labels: &[Label]) -> usize {
        used(&labels.iter().map(|label| label.placed).collect::<Vec<_>>())
    }

    /// Shades, behind everything.
    pub(super) fn shades(&self, paint: &Paint, axes: &Axes) -> Result<()> {
        let Plot { left, top, bottom, .. } = axes.plot;
        for (number, region) in self.regions.iter().enumerate() {
            let Some((from, to)) = region.ends else { continue };
            let shade = SHADE.mix(if number % 2 == 0 { 0.06 } else { 0.14 });
            paint.block((left + from, top), (left + to, bottom), shade)?;
        }
        for mark in &self.marks {
            let Some((from, to)) = mark.ends else { continue };
            paint.block((left + from, top), (left + to, bottom), SHADE.mix(0.16))?;
        }
        Ok(())
    }

    /// Lines and words. A line passes behind the labels of lower rows.
    pub(super) fn draw(&self, paint: &Paint, axes: &Axes) -> Result<()> {
        let Plot { left, top, bottom, .. } = axes.plot;
        let first_row = self.rows_of(&self.regions);
        let height = |row: usize| top - 4.0 - ROW * (row as f64 + 0.5);
        for mark in &self.marks {
            let above = mark.placed.map_or(top, |placed| height(first_row + placed.row) + 5.0);
            let x = left + mark.middle;
            paint.line(&[(x, above), (x, bottom)], Line::Dashed, 0.8, INK.mix(0.75))?;
        }
        let regions = self.regions.iter().map(|label| (label, 0, SOFT));
        let marks = self.marks.iter().map(|label| (label, first_row, INK));
        for (label, first, colour) in regions.chain(marks) {
            let Some(placed) = label.placed else { continue };
            let (x, y) = (left + placed.start, height(first + placed.row));
            let end = (x + width(&label.text, SIZE) + 1.0, y + 5.5);
            paint.block((x - 1.0, y - 5.5), end, plotters::style::WHITE.to_rgba())?;
            paint.text(&label.text, (x, y), Writing::new(SIZE, colour))?;
        }
        Ok(())
    }
}

fn in_rows(mut labels: Vec<Label>, room: f64) -> Vec<Label> {
    labels.sort_by(|one, other| one.middle.total_cmp(&other.middle));
    let spans: Vec<(f64, f64)> =
        labels.iter().map(|label| (label.middle, width(&label.text, SIZE))).collect();
    for (label, placed) in labels.iter_mut().zip(rows(&spans, room, 6.0, MOST)) {
        label.placed = placed;
    }
    labels
}
