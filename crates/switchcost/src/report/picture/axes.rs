//! The frame of a plot: where a value lies on the page, grid, ticks, titles.

use anyhow::Result;
use plotters::style::Color;
use plotters::style::text_anchor::VPos;

use super::letters::{fit, width};
use super::paint::{At, Line, Paint, Writing};
use super::palette::{GRID, INK, SOFT};
use crate::report::drawing::{Ruler, Tick};

/// Pixels of the letters at ticks, and of titles.
pub(super) const TICK: f64 = 10.0;
const TITLE: f64 = 11.5;
/// Room below the plot for ticks and title.
pub(super) const BELOW: f64 = 40.0;
/// Names along an axis take no more than this.
const LONGEST_NAME: f64 = 210.0;

/// A rectangle on the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Both rulers on the page.
pub(super) struct Axes<'a> {
    pub(super) plot: Plot,
    x: &'a Ruler,
    y: &'a Ruler,
    /// Names of x stand one below the other, so that they can be read.
    pub(super) turned: bool,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
}

impl<'a> Axes<'a> {
    /// Axes between the left edge of the page and `plot.right`: the plot begins where the ticks' labels
    /// end.
    pub(super) fn new(x: &'a Ruler, y: &'a Ruler, turned: bool, plot: Plot) -> Self {
        let upright = if turned { x } else { y };
        let across = if turned { y } else { x };
        let room = (plot.bottom - plot.top) / 32.0;
        let mut up_ticks = upright.ticks((room as usize).clamp(3, 9));
        up_ticks.iter_mut().for_each(|tick| tick.label = fit(&tick.label, TICK, LONGEST_NAME));
        let widest = up_ticks.iter().map(|tick| width(&tick.label, TICK)).fold(0.0, f64::max);
        let title = if upright.title.is_empty() { 0.0 } else { 18.0 };
        let plot = Plot { left: plot.left + title + widest + 8.0, ..plot };
        let across_ticks = that_do_not_touch(across, plot.right - plot.left);
        let (x_ticks, y_ticks) =
            if turned { (up_ticks, across_ticks) } else { (across_ticks, up_ticks) };
        Self { plot, x, y, turned, x_ticks, y_ticks }
    }

    /// Where a point of the figure lies.
    pub(super) fn at(&self, x: f64, y: f64) -> At {
        let Plot { left, right, top, bottom } = self.plot;
        let (x, y) = (self.x.position(x), self.y.position(y));
        match self.turned {
            true => (left + y * (right - left), top + x * (bottom - top)),
            false => (left + x * (right - left), bottom - y * (bottom - top)),
        }
    }

    /// What lies behind all that is drawn. Names have no grid.
    pub(super) fn grid(&self, paint: &Paint) -> Result<()> {
        let Plot { left, right, top, bottom } = self.plot;
        for tick in &self.y_ticks {
            let (across, up) = self.at(self.x.low, tick.at);
            let line = match self.turned {
                true => [(across, top), (across, bottom)],
                false => [(left, up), (right, up)],
            };
            paint.line(&line, Line::Solid, 0.6, GRID.to_rgba())?;
        }
        if !self.turned {
            for tick in &self.x_ticks {
                let (across, _) = self.at(tick.at, self.y.low);
                let line = [(across, top), (across, bottom)];
                paint.line(&line, Line::Solid, 0.6, GRID.to_rgba())?;
            }
        }
        Ok(())
    }

    /// Lines, ticks, numbers and titles, over what is drawn.
    pub(super) fn frame(&self, paint: &Paint) -> Result<()> {
        let Plot { left, right, top, bottom } = self.plot;
        let ink = INK.to_rgba();
        paint.line(&[(left, top), (left, bottom), (right, bottom)], Line::Solid, 1.0, ink)?;
        let (across, up) = match self.turned {
            true => (&self.y_ticks, &self.x_ticks),
            false => (&self.x_ticks, &self.y_ticks),
        };
        let place = |tick: &Tick, is_x: bool| match is_x {
            true => self.at(tick.at, self.y.low),
            false => self.at(self.x.low, tick.at),
        };
        let text = Writing::new(TICK, INK);
        for tick in across {
            let (x, _) = place(tick, !self.turned);
            paint.line(&[(x, bottom), (x, bottom + 4.0)], Line::Solid, 0.8, ink)?;
            let below = Writing { up: VPos::Top, ..text.centred() };
            paint.text(&tick.label, (x, bottom + 6.0), below)?;
        }
        for tick in up {
            let (_, y) = place(tick, self.turned);
            paint.line(&[(left - 4.0, y), (left, y)], Line::Solid, 0.8, ink)?;
            paint.text(&tick.label, (left - 6.0, y), text.to_the_right())?;
        }
        self.titles(paint)
    }

    fn titles(&self, paint: &Paint) -> Result<()> {
        let Plot { left, right, top, bottom } = self.plot;
        let (across, upright) = if self.turned { (self.y, self.x) } else { (self.x, self.y) };
        let text = Writing { up: VPos::Top, ..Writing::new(TITLE, SOFT).centred() };
        let title = fit(&across.title, TITLE, right - left);
        paint.text(&title, ((left + right) / 2.0, bottom + 22.0), text)?;
        let title = fit(&upright.title, TITLE, bottom - top);
        let upwards = Writing { upwards: true, up: VPos::Top, ..text };
        paint.text(&title, (10.0, (top + bottom) / 2.0), upwards)
    }
}

/// As many ticks as have room side by side.
pub(super) fn that_do_not_touch(ruler: &Ruler, room: f64) -> Vec<Tick> {
    let touch = |ticks: &[Tick]| {
        let half = |tick: &Tick| width(&tick.label, TICK) / 2.0;
        ticks.windows(2).any(|two| {
            let apart = (ruler.position(two[1].at) - ruler.position(two[0].at)) * room;
            apart < half(&two[0]) + half(&two[1]) + 8.0
        })
    };
    let mut ticks = Vec::new();
    for most in (1..=11).rev() {
        ticks = ruler.ticks(most);
        if !touch(&ticks) {
            return ticks;
        }
    }
    // Names: all of them, each as long as its place is wide.
    let place = room / ticks.len().max(1) as f64 - 6.0;
    ticks.iter_mut().for_each(|tick| tick.label = fit(&tick.label, TICK, place));
    ticks
}
