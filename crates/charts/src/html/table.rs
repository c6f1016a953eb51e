//! The numbers of a chart, for those who cannot see it and for those who want to read them.

use crate::figure::{Axis, Body, Figure, Map, Point, Role};
use crate::legend::Entry;
use crate::text::escape;
use crate::ticks::written;

/// Longer lists are no table to read.
const MOST_ROWS: usize = 400;

/// All points, a row each; laws and single samples are left to the chart and to exports, as `unlisted` says.
pub(super) fn html(figure: &Figure, entries: &[Entry], unlisted: &str) -> String {
    let (head, rows) = match &figure.body {
        Body::Series(_) => of_series(figure, entries),
        Body::Map(map) => of_map(figure, map),
    };
    if rows.is_empty() || rows.len() > MOST_ROWS {
        return format!("<p class=\"note\">{}</p>", escape(unlisted));
    }
    let title = escape(&figure.title);
    let head: String = head.iter().map(|name| cell("th scope=\"col\"", name)).collect();
    let row = |cells: &Vec<String>| {
        let values: String = cells[1..].iter().map(|value| cell("td", value)).collect();
        format!("<tr>{}{values}</tr>", cell("th scope=\"row\"", &cells[0]))
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<details><summary>Table: {title}</summary>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: {title}\">\
         <table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )
}

fn cell(tag: &str, text: &str) -> String {
    let name = tag.split(' ').next().unwrap_or(tag);
    format!("<{tag}>{}</{name}>", escape(text))
}

/// A number of an axis in words.
fn told(value: f64, axis: &Axis) -> String {
    match axis.names.get(value as usize) {
        Some(name) => name.clone(),
        None => written(axis.unit, value),
    }
}

fn of_series(figure: &Figure, entries: &[Entry]) -> (Vec<String>, Vec<Vec<String>>) {
    let place = if figure.x.label.is_empty() { "of" } else { &figure.x.label };
    let head = ["series", place, &figure.y.label, "interval"].map(String::from).to_vec();
    let listed = entries.iter().filter(|e| !matches!(e.series.role, Role::Raw | Role::Law));
    let interval = |point: &Point| match (point.low, point.high) {
        (Some(low), Some(high)) => {
            format!("{} to {}", told(low, &figure.y), told(high, &figure.y))
        }
        _ => "-".to_string(),
    };
    let row = |entry: &Entry, point: &Point| {
        let (x, y) = (told(point.x, &figure.x), told(point.y, &figure.y));
        vec![entry.name.clone(), x, y, interval(point)]
    };
    let rows = listed.flat_map(|entry| entry.series.points.iter().map(move |p| row(entry, p)));
    (head, rows.collect())
}

fn of_map(figure: &Figure, map: &Map) -> (Vec<String>, Vec<Vec<String>>) {
    let columns = map.xs.iter().map(|x| told(*x, &figure.x));
    let head = std::iter::once(figure.y.label.clone()).chain(columns).collect();
    let row = |(y, values): (&f64, &Vec<Option<f64>>)| {
        let told = |value: &Option<f64>| value.map_or("-".into(), |value| written(map.unit, value));
        std::iter::once(written(figure.y.unit, *y)).chain(values.iter().map(told)).collect()
    };
    (head, map.ys.iter().zip(&map.values).map(row).collect())
}
