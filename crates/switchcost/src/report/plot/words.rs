//! What is said around a plot: the legend above it, what is missing below it.

use model::figure::{Role, Series};
use ratatui::style::Color;

use super::ink::{self, Signs};
use super::page::{Page, fit, width};
use crate::report::drawing::{Entry, Frame, followers};

/// The legend, in as many lines as it needs. One series alone needs none.
pub(super) fn legend(page: &mut Page, entries: &[Entry], signs: &Signs) {
    let named = entries.iter().filter(|entry| !entry.follows);
    let mut items: Vec<(String, Color)> = named
        .map(|entry| {
            let sign = sign(entry.series.role, entry.colour, signs);
            (format!("{sign} {}", entry.name), ink::colour(entry.colour))
        })
        .collect();
    if items.len() < 2 && entries.len() < 2 {
        items.clear();
    }
    let lines = followers(entries).into_iter();
    items.extend(lines.map(|(role, name)| (format!("{} {name}", sign(role, 0, signs)), ink::SOFT)));
    let has_interval = |series: &Series| series.points.iter().any(|point| point.low.is_some());
    if entries.iter().any(|entry| entry.series.role != Role::Bars && has_interval(entry.series)) {
        items.push((format!("{} interval", signs.upright), ink::SOFT));
    }
    let room = usize::from(page.columns);
    let mut column = 0;
    for (item, colour) in &items {
        let item = fit(item, room);
        if column > 0 && column + width(&item) > room {
            page.end_line();
            column = 0;
        }
        page.put(column, &item, *colour);
        column += width(&item) + 3;
    }
    if column > 0 {
        page.end_line();
    }
}

fn sign(role: Role, number: usize, signs: &Signs) -> String {
    let across = signs.across;
    match role {
        Role::Law => format!("{across}{across}"),
        Role::Projected => format!("{across} {across}"),
        Role::Published => "...".to_string(),
        Role::Steps | Role::Bars => signs.block.to_string(),
        Role::Measured | Role::Raw => signs.point(number).to_string(),
    }
}

/// What was left out.
pub(super) fn missing(page: &mut Page, frame: &Frame) {
    if let Some(words) = frame.left_out_in_words() {
        page.words(&words, ink::SOFT, 3);
    }
}

/// In place of a plot.
pub(super) fn nothing(page: &mut Page, why: &str) {
    page.words(&format!("nothing to draw: {why}"), ink::SOFT, 3);
}
