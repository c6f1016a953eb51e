//! The numbers of a chart, for those who cannot see it and for those who want to read them.

use std::fmt::Write;

use model::figure::{Axis, Body, Figure, Map, Point, Role, Series, Unit};
use model::words;

use super::page::{Page, escape};

/// Longer lists are no table to read.
const MOST_ROWS: usize = 400;

/// A number of an axis in words.
fn told(value: f64, axis: &Axis) -> String {
    number(value, axis.unit, &axis.names)
}

fn number(value: f64, unit: Unit, names: &[String]) -> String {
    match unit {
        Unit::Nanoseconds => words::time(value),
        Unit::Seconds => words::time(value * 1e9),
        Unit::Bytes => words::bytes(value.max(0.0) as u64),
        Unit::Names => names.get(value as usize).cloned().unwrap_or_default(),
        Unit::Count | Unit::Ratio | Unit::Ticks if value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Count | Unit::Ratio | Unit::Ticks => format!("{value:.3}"),
    }
}

/// All points, a row each; law and single samples are left to the chart and to exports.
pub(super) fn html(page: &Page, figure: &Figure) -> String {
    let table = match &figure.body {
        Body::Series(series) => of_series(page, figure, series),
        Body::Map(map) => of_map(figure, map),
    };
    if table.is_empty() {
        return "<p class=\"note\">Single samples are not listed: switchcost runs export --format csv</p>".to_string();
    }
    format!(
        "<details><summary>Table: {}</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: {}\">{table}</div></details>",
        escape(&figure.title),
        escape(&figure.title)
    )
}

fn is_listed(series: &Series) -> bool {
    !matches!(series.role, Role::Raw | Role::Law)
}

fn of_series(page: &Page, figure: &Figure, all: &[Series]) -> String {
    let rows: usize = all.iter().filter(|of| is_listed(of)).map(|of| of.points.len()).sum();
    if rows == 0 || rows > MOST_ROWS {
        return String::new();
    }
    let (x, y) = (escape(&axis_name(&figure.x)), escape(&figure.y.label));
    let mut text = format!(
        "<table><caption>{}</caption><thead><tr><th scope=\"col\">series</th><th scope=\"col\">{x}</th><th scope=\"col\">{y}</th><th scope=\"col\">interval</th></tr></thead><tbody>",
        escape(&figure.title)
    );
    for series in all.iter().filter(|of| is_listed(of)) {
        let name = escape(&page.name_of(figure, series));
        for point in &series.points {
            let (x, y) = (told(point.x, &figure.x), told(point.y, &figure.y));
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "<tr><th scope=\"row\">{name}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&x),
                escape(&y),
                escape(&interval(point, &figure.y))
            );
        }
    }
    text.push_str("</tbody></table>");
    text
}

fn axis_name(axis: &Axis) -> String {
    if axis.label.is_empty() { "of".to_string() } else { axis.label.clone() }
}

fn interval(point: &Point, axis: &Axis) -> String {
    match (point.low, point.high) {
        (Some(low), Some(high)) => format!("{} to {}", told(low, axis), told(high, axis)),
        _ => "-".to_string(),
    }
}

fn of_map(figure: &Figure, map: &Map) -> String {
    let cells = |values: &[f64], axis: &Axis, scope: &str| -> String {
        let cell =
            |value: &f64| format!("<th scope=\"{scope}\">{}</th>", escape(&told(*value, axis)));
        values.iter().map(cell).collect()
    };
    let mut text = format!(
        "<table><caption>{}</caption><thead><tr><th scope=\"col\">{}</th>{}</tr></thead><tbody>",
        escape(&figure.title),
        escape(&figure.y.label),
        cells(&map.xs, &figure.x, "col")
    );
    for (y, row) in map.ys.iter().zip(&map.values) {
        let value = |value: &Option<f64>| {
            let value = value.map_or("-".to_string(), |value| number(value, map.unit, &[]));
            format!("<td>{}</td>", escape(&value))
        };
        let row: String = row.iter().map(value).collect();
        let _ = write!(text, "<tr>{}{row}</tr>", cells(&[*y], &figure.y, "row"));
    }
    text.push_str("</tbody></table>");
    text
}
