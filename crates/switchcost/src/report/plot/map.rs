//! Heat maps: a line for each row, its cells shaded, with their values where there is room.

use model::figure::{Figure, Map};
use ratatui::style::Color;

use super::Look;
use super::ink::{self, SOFT, Signs};
use super::page::{Page, fit, width};
use super::words;
use crate::report::drawing::{MapFrame, Ruler};

/// The narrowest cell.
const NARROW: usize = 3;
/// More rows than this are no picture.
const MOST: usize = 100;

pub(super) fn draw(page: &mut Page, figure: &Figure, map: &Map, look: &Look) {
    let Some(frame) = MapFrame::of(figure, map) else {
        words::nothing(page, "the map has no cells");
        return;
    };
    let signs = Signs::of(look);
    let room = usize::from(page.columns);
    let rows: Vec<String> = map.ys.iter().map(|y| frame.y.say(*y)).collect();
    let names = rows.iter().map(|name| width(name)).max().unwrap_or(0).min(room / 4);
    let left = names + 1;
    let wide = ((room - left) / map.xs.len()).clamp(NARROW, 10);
    let columns = ((room - left) / wide).min(map.xs.len());
    page.put(0, &fit(&frame.y.title, room), SOFT);
    page.end_line();
    for (name, values) in rows.iter().zip(&map.values).rev().take(MOST) {
        page.put(names - width(&fit(name, names)), &fit(name, names), Color::Reset);
        for (place, value) in values.iter().take(columns).enumerate() {
            let value = value.filter(|value| frame.values.draws(*value));
            let text = cell(value, &frame.values, signs, wide);
            page.put(left + place * wide, &text, Color::Reset);
        }
        page.end_line();
    }
    below(page, map, &frame, (left, wide, columns));
    key(page, &frame.values, signs);
    let hidden = map.xs.len() - columns;
    if hidden > 0 {
        page.words(&format!("The last {hidden} columns have no room."), SOFT, 1);
    }
}

fn cell(value: Option<f64>, values: &Ruler, signs: &Signs, wide: usize) -> String {
    let inner = wide - 1;
    let Some(value) = value else {
        return format!("{:^inner$}", signs.unknown);
    };
    let most = signs.shades.len() - 1;
    let shade = signs.shades[(values.position(value) * most as f64).round() as usize];
    let words = values.say(value);
    match inner.checked_sub(width(&words)) {
        Some(spare) if spare >= 2 => {
            let around = |number: usize| shade.to_string().repeat(number);
            format!("{}{words}{}", around(spare / 2), around(spare - spare / 2))
        }
        _ => shade.to_string().repeat(inner),
    }
}

/// The columns' places, as many as can be read.
fn below(
    page: &mut Page,
    map: &Map,
    frame: &MapFrame,
    (left, wide, columns): (usize, usize, usize),
) {
    let mut free = 0;
    for (place, x) in map.xs.iter().take(columns).enumerate() {
        let label = frame.x.say(*x);
        let label = label.trim();
        let column = left + place * wide;
        if column >= free && column + width(label) <= usize::from(page.columns) {
            page.put(column, label, Color::Reset);
            free = column + width(label) + 1;
        }
    }
    page.end_line();
    page.put(left, &fit(&frame.x.title, usize::from(page.columns) - left), SOFT);
    page.end_line();
}

fn key(page: &mut Page, values: &Ruler, signs: &Signs) {
    let shades: String = signs.shades.iter().collect();
    let words = format!(
        "{}: {} {shades} {}; {} not measured or not resolved",
        values.title,
        values.say(values.low),
        values.say(values.high),
        signs.unknown
    );
    page.words(&words, ink::SOFT, 2);
}
