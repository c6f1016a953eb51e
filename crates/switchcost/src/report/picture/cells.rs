//! Heat maps.

use anyhow::Result;
use model::figure::Map;
use plotters::style::colors::colormaps::{ColorMap, ViridisRGB};
use plotters::style::{Color, RGBColor, WHITE};

use super::axes::{Axes, Plot, TICK, that_do_not_touch};
use super::letters::width;
use super::paint::{Line, Paint, Writing};
use super::palette::{EMPTY, INK, SOFT, readable_on};
use crate::report::drawing::{MapFrame, Ruler};

/// Room to the right for the scale of colours.
pub(super) const SCALE_ROOM: f64 = 92.0;
const SMALL: f64 = 8.5;

/// Draws the cells, each with its value if that has room.
pub(super) fn cells(paint: &Paint, axes: &Axes, map: &Map, frame: &MapFrame) -> Result<()> {
    for (row, up) in map.values.iter().zip(frame.y_edges.windows(2)) {
        for (value, across) in row.iter().zip(frame.x_edges.windows(2)) {
            let (low, high) = (axes.at(across[0], up[0]), axes.at(across[1], up[1]));
            let value = value.filter(|value| frame.values.draws(*value));
            let colour = value.map_or(EMPTY, |value| shade(&frame.values, value));
            paint.block(low, high, colour.to_rgba())?;
            let edge = [low, (high.0, low.1), high, (low.0, high.1), low];
            paint.line(&edge, Line::Solid, 0.5, WHITE.to_rgba())?;
            let words = value.map_or("–".to_string(), |value| frame.values.say(value));
            let fits = width(&words, SMALL) < (high.0 - low.0).abs() - 4.0
                && (low.1 - high.1).abs() > SMALL + 3.0;
            if fits {
                let middle = ((low.0 + high.0) / 2.0, (low.1 + high.1) / 2.0);
                paint.text(&words, middle, Writing::new(SMALL, readable_on(colour)).centred())?;
            }
        }
    }
    Ok(())
}

/// The scale of colours beside the plot.
pub(super) fn scale(paint: &Paint, plot: Plot, values: &Ruler) -> Result<()> {
    const PIECES: usize = 64;
    let (left, right) = (plot.right + 18.0, plot.right + 32.0);
    let height = plot.bottom - plot.top;
    let at = |share: f64| plot.bottom - height * share;
    for piece in 0..PIECES {
        let (from, to) = (piece as f64 / PIECES as f64, (piece + 1) as f64 / PIECES as f64);
        let colour = viridis((from + to) / 2.0);
        // Without a gap where two meet.
        paint.block((left, at(from)), (right, (at(to) - 0.3).max(plot.top)), colour.to_rgba())?;
    }
    for tick in that_do_not_touch(values, height).iter().filter(|tick| values.holds(tick.at)) {
        let y = at(values.position(tick.at));
        paint.line(&[(right, y), (right + 3.0, y)], Line::Solid, 0.8, INK.to_rgba())?;
        paint.text(&tick.label, (right + 5.0, y), Writing::new(TICK, INK))?;
    }
    let title = super::letters::fit(&values.title, TICK, height);
    let upwards = Writing { upwards: true, ..Writing::new(TICK, SOFT).centred() };
    paint.text(&title, (plot.right + 9.0, (plot.top + plot.bottom) / 2.0), upwards)
}

fn shade(values: &Ruler, value: f64) -> RGBColor {
    viridis(values.position(value))
}

fn viridis(share: f64) -> RGBColor {
    ViridisRGB.get_color(share.clamp(0.0, 1.0))
}
