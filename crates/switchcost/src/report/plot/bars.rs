//! Values by name: a line each.

use model::figure::{Figure, Point, Role, Scale, Series};
use ratatui::style::Color;

use super::Look;
use super::ink::{self, SOFT, Signs};
use super::page::{Page, fit, width};
use super::words;
use crate::report::drawing::{Entry, Frame, Ruler, clean, entries};

/// More names than this are no picture.
const MOST: usize = 200;

pub(super) fn draw(page: &mut Page, figure: &Figure, all: &[Series], runs: &[String], look: &Look) {
    let frame = Frame::of(figure, all);
    let entries = entries(all, runs);
    let signs = Signs::of(look);
    let lines = lines(figure, &frame, &entries);
    if lines.is_empty() {
        words::nothing(page, "there is no value that can be drawn");
        return;
    }
    words::legend(page, &entries, signs);
    let room = usize::from(page.columns);
    let longest =
        |texts: &mut dyn Iterator<Item = usize>, most: usize| texts.max().unwrap_or(0).min(most);
    let names = longest(&mut lines.iter().map(|line| width(&line.name)), room / 3);
    let figures = longest(&mut lines.iter().map(|line| width(&line.figures)), room * 2 / 5);
    let left = names + 1;
    let bar = Bar { ruler: &frame.y, signs, left, wide: room.saturating_sub(left + figures + 2) };
    page.put(left, &fit(&frame.y.title, room - left), SOFT);
    page.end_line();
    for line in lines.iter().take(MOST) {
        page.put(0, &fit(&line.name, names), Color::Reset);
        bar.draw(page, line);
        page.put(left + bar.wide + 1, &fit(&line.figures, figures), Color::Reset);
        page.end_line();
    }
    words::missing(page, &frame);
    if lines.len() > MOST {
        page.words(&format!("{} more are not shown.", lines.len() - MOST), SOFT, 1);
    }
}

struct Row<'a> {
    name: String,
    figures: String,
    point: &'a Point,
    number: usize,
    role: Role,
}

/// Name by name, each series of it; the name at the first of them.
fn lines<'a>(figure: &Figure, frame: &Frame, entries: &'a [Entry]) -> Vec<Row<'a>> {
    let drawn = |point: &&Point| frame.x.draws(point.x) && frame.y.draws(point.y);
    let mut lines: Vec<Row> = Vec::new();
    for entry in entries {
        for point in entry.series.points.iter().filter(drawn) {
            let value = frame.y.say(point.y);
            let figures = match (point.low, point.high) {
                (Some(low), Some(high)) => {
                    format!("{value} ({} to {})", frame.y.say(low), frame.y.say(high))
                }
                _ => value,
            };
            let name = figure.x.names.get(point.x as usize).map(|name| clean(name));
            let name = name.unwrap_or_default();
            lines.push(Row { name, figures, point, number: entry.colour, role: entry.series.role });
        }
    }
    lines.sort_by(|one, other| one.point.x.total_cmp(&other.point.x));
    for place in (1..lines.len()).rev() {
        if lines[place].point.x == lines[place - 1].point.x {
            lines[place].name.clear();
        }
    }
    lines
}

struct Bar<'a> {
    ruler: &'a Ruler,
    signs: &'static Signs,
    left: usize,
    wide: usize,
}

impl Bar<'_> {
    fn column(&self, value: f64) -> usize {
        self.left
            + (self.ruler.position(value) * self.wide.saturating_sub(1) as f64).round() as usize
    }

    fn draw(&self, page: &mut Page, row: &Row) {
        let colour = ink::colour(row.number);
        let value = self.column(row.point.y);
        // Lengths on a logarithmic axis would say nothing.
        let is_bar =
            matches!(row.role, Role::Bars | Role::Steps) && self.ruler.scale == Scale::Linear;
        if is_bar {
            let zero = self.column(0.0);
            let (from, to) = (zero.min(value), zero.max(value));
            page.put(from, &self.signs.block.to_string().repeat(to - from + 1), colour);
        }
        if let (Some(low), Some(high)) = (row.point.low, row.point.high) {
            let sane = low <= high && low.is_finite() && self.ruler.draws(high);
            let (low, high) = (self.column(low), self.column(high));
            if sane && high > low {
                let across = self.signs.across.to_string().repeat(high - low + 1);
                page.put(low, &across, Color::Reset);
                page.put(low, &self.signs.ends[0].to_string(), Color::Reset);
                page.put(high, &self.signs.ends[1].to_string(), Color::Reset);
            }
        }
        if !is_bar {
            page.put(value, &self.signs.point(row.number).to_string(), colour);
        }
    }
}
