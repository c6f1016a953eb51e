//! Series over their axes, each drawn as what it is.

use anyhow::Result;
use model::figure::{Point, Role, Scale};
use plotters::style::{Color, RGBColor};

use super::axes::Axes;
use super::paint::{At, Line, Paint};
use super::palette;
use crate::report::drawing::{Entry, Frame, end_of_last};

/// The series of a figure on the page.
pub(super) struct Drawing<'a, 'b> {
    pub(super) paint: &'a Paint<'a, 'b>,
    pub(super) axes: &'a Axes<'a>,
    pub(super) frame: &'a Frame,
    /// How many series have bars, so that they stand side by side.
    pub(super) bars: usize,
}

impl Drawing<'_, '_> {
    /// Bands first, so that no line is under one.
    pub(super) fn all(&self, entries: &[Entry]) -> Result<()> {
        for entry in entries.iter().filter(|entry| entry.series.role == Role::Measured) {
            self.band(entry)?;
        }
        let mut bars = 0;
        for entry in entries {
            match entry.series.role {
                Role::Bars => {
                    self.bars(entry, bars)?;
                    bars += 1;
                }
                Role::Steps => self.steps(entry)?,
                _ => self.line(entry)?,
            }
        }
        Ok(())
    }

    fn drawn<'e>(&self, entry: &'e Entry) -> Vec<&'e Point> {
        let can = |point: &&Point| self.frame.x.draws(point.x) && self.frame.y.draws(point.y);
        entry.series.points.iter().filter(can).collect()
    }

    /// Both ends of a point's interval. One below a logarithmic axis is at its lower end.
    fn interval(&self, point: &Point) -> Option<(At, At)> {
        let (low, high) = (point.low?, point.high?);
        let sane = low <= high && self.frame.y.draws(high) && low.is_finite();
        sane.then(|| (self.axes.at(point.x, low), self.axes.at(point.x, high)))
    }

    fn band(&self, entry: &Entry) -> Result<()> {
        let colour = palette::colour(entry.series.role, entry.colour);
        let ends: Vec<Option<(At, At)>> =
            self.drawn(entry).into_iter().map(|point| self.interval(point)).collect();
        for stretch in ends.split(Option::is_none) {
            let known: Vec<(At, At)> = stretch.iter().flatten().copied().collect();
            match known.as_slice() {
                [] => {}
                [only] => self.whisker(*only, colour)?,
                _ if self.axes.turned => {
                    known.iter().try_for_each(|ends| self.whisker(*ends, colour))?
                }
                _ => {
                    let above = known.iter().map(|(_, high)| *high);
                    let outline: Vec<At> =
                        above.chain(known.iter().rev().map(|(low, _)| *low)).collect();
                    self.paint.area(&outline, colour.mix(0.2))?;
                }
            }
        }
        Ok(())
    }

    fn whisker(&self, (low, high): (At, At), colour: RGBColor) -> Result<()> {
        self.paint.line(&[low, high], Line::Solid, 1.2, colour.to_rgba())?;
        for (x, y) in [low, high] {
            let cap = match self.axes.turned {
                true => [(x, y - 3.0), (x, y + 3.0)],
                false => [(x - 3.0, y), (x + 3.0, y)],
            };
            self.paint.line(&cap, Line::Solid, 1.2, colour.to_rgba())?;
        }
        Ok(())
    }

    fn line(&self, entry: &Entry) -> Result<()> {
        let colour = palette::colour(entry.series.role, entry.colour);
        let points = self.drawn(entry);
        let places: Vec<At> = points.iter().map(|point| self.axes.at(point.x, point.y)).collect();
        let (line, wide, strength) = match entry.series.role {
            // A law of the same colour may lie over it.
            Role::Measured => (Line::Solid, 1.0, 0.6),
            Role::Law => (Line::Solid, 2.2, 1.0),
            Role::Projected => (Line::Dashed, 1.6, 1.0),
            Role::Published => (Line::of(entry.colour), 1.0, 1.0),
            Role::Raw | Role::Steps | Role::Bars => return self.specks(&places, colour),
        };
        if !self.axes.turned {
            self.paint.line(&places, line, wide, colour.mix(strength))?;
        }
        match entry.series.role {
            Role::Measured | Role::Published => places
                .iter()
                .try_for_each(|at| self.paint.symbol(*at, entry.colour, colour.to_rgba())),
            _ => Ok(()),
        }
    }

    fn specks(&self, places: &[At], colour: RGBColor) -> Result<()> {
        places.iter().try_for_each(|at| self.paint.circle(*at, 1.7, colour.mix(0.55)))
    }

    fn steps(&self, entry: &Entry) -> Result<()> {
        let colour = palette::colour(entry.series.role, entry.colour);
        let all = &entry.series.points;
        let base = |x: f64| self.axes.at(x, self.floor());
        let mut outline: Vec<At> = Vec::new();
        for (place, point) in
            all.iter().enumerate().filter(|(_, point)| self.frame.x.draws(point.x))
        {
            let end = match all.get(place + 1) {
                Some(next) => Some(next.x),
                None => end_of_last(entry.series, self.frame.x.scale),
            };
            let end = end.unwrap_or(self.frame.x.high);
            let height = if self.frame.y.draws(point.y) { point.y } else { self.floor() };
            if outline.is_empty() {
                outline.push(base(point.x));
            }
            outline.extend([self.axes.at(point.x, height), self.axes.at(end, height)]);
            if place + 1 == all.len() {
                outline.push(base(end));
            }
        }
        if outline.len() > 2 {
            self.paint.area(&outline, colour.mix(0.22))?;
        }
        self.paint.line(&outline, Line::Solid, 1.4, colour.to_rgba())
    }

    /// Where bars stand: on zero, or on the lower end of an axis that has none.
    fn floor(&self) -> f64 {
        match self.frame.y.scale {
            Scale::Linear => 0.0,
            Scale::Log => self.frame.y.low,
        }
    }

    fn bars(&self, entry: &Entry, number: usize) -> Result<()> {
        let colour = palette::colour(entry.series.role, entry.colour);
        let wide = 0.72 / self.bars.max(1) as f64;
        for point in self.drawn(entry) {
            let start = point.x - 0.36 + wide * number as f64;
            let middle = Point { x: start + wide / 2.0, ..*point };
            match self.frame.y.scale {
                Scale::Linear => {
                    let foot = self.axes.at(start + wide * 0.04, self.floor());
                    let top = self.axes.at(start + wide * 0.96, point.y);
                    self.paint.block(foot, top, colour.mix(0.55))?;
                }
                // Lengths on a logarithmic axis would say nothing.
                Scale::Log => {
                    let at = self.axes.at(middle.x, point.y);
                    self.paint.symbol(at, entry.colour, colour.to_rgba())?;
                }
            }
            if let Some(ends) = self.interval(&middle) {
                self.whisker(ends, palette::INK)?;
            }
        }
        Ok(())
    }
}
