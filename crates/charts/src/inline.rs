//! Charts as SVG for pages of others: text stays text, a class stands for each colour, and values
//! are told where the pointer rests. There is no script.
//!
//! A page sets the colours by CSS, for light and dark: `.s0 { color: #56b4e9 }` for the first
//! series, `.grid`, `.black` and `.soft` for lines and text. Without any CSS the colours are those
//! of a paper.

use unicode_width::UnicodeWidthStr;

use crate::figure::{AxisMark, Figure, Point, Role};
use crate::layout::layout;
use crate::page::{PageMedium, PlacedChart, PlacedText, TextAnchor};
use crate::paper::{attributes, hex_colour, rounded};
use crate::picture::{
    ElementSource, Ink, PAPER, PictureElement, elements, shape_element, text_ink, with_micro_sign,
};
use crate::shapes::{PlotShape, ShapePart};
use crate::text::{clean, escape};

/// Pixels of the letters, of all kinds of text.
const LETTERS: f64 = 11.0;

/// Pixels from one letter to the next, of most fonts of browsers a little less.
const ADVANCE: f64 = 0.58 * LETTERS;

/// Pixels from the middle of a text to its baseline.
const TO_BASELINE: f64 = 0.36 * LETTERS;

/// A chart by itself, in pixels at which its text is as large as that of the page around it.
const WHOLE: PageMedium = PageMedium {
    width: 640.0,
    margin: 6.0,
    plot: 160.0,
    name: (16.0, 12.0),
    rows: 3,
    bare: true,
    has_names_at_ends: true,
    measure: |text, _| ADVANCE * text.width() as f64,
    ..PAPER
};

/// One of several charts side by side.
const PANEL: PageMedium = PageMedium { width: 320.0, plot: 110.0, ticks: 5, rows: 2, ..WHOLE };

/// Room of a chart on its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineSize {
    /// 640 pixels and more.
    Whole,
    /// 320 pixels and more.
    Panel,
}

/// Draws a figure as one line of SVG. Its title and legend are left to the page.
pub fn inline_svg(figure: &Figure, size: InlineSize) -> String {
    let medium = match size {
        InlineSize::Whole => &WHOLE,
        InlineSize::Panel => &PANEL,
    };
    let chart = layout(figure, &[], "", medium);
    let mut description = clean(&figure.in_words);
    if let Some(left_out) = &chart.left_out {
        description += &format!(" {left_out}");
    }
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" \
         aria-label=\"{}\" font-family=\"system-ui, sans-serif\" font-size=\"{LETTERS}\">\
         <desc>{}</desc>",
        medium.width,
        rounded(chart.height),
        escape(&with_micro_sign(&clean(&figure.title))),
        escape(&with_micro_sign(description.trim())),
    );
    // Marks are shapes in the order of the figure's.
    let mut marks = figure.marks.iter().filter(|mark| mark.x.is_finite());
    for element in elements(&chart) {
        svg += &match element.source {
            ElementSource::Shape(shape, _) if shape.part == ShapePart::Mark => {
                let words = marks.next().map(|mark| mark_in_words(&chart, mark));
                path_tag(&element, words.as_deref())
            }
            ElementSource::Shape(shape, _) if has_values(shape.part) => value_tags(&chart, shape),
            ElementSource::Cell(cell) => path_tag(&element, Some(&cell.words)),
            ElementSource::Shape(..) | ElementSource::Frame(_) | ElementSource::Other => {
                path_tag(&element, None)
            }
        };
    }
    for text in &chart.texts {
        svg += &text_tag(text);
    }
    svg + "</svg>"
}

/// Returns whether each path of a shape is a value: of symbols and of bars.
fn has_values(part: ShapePart) -> bool {
    matches!(part, ShapePart::Points | ShapePart::Hollow | ShapePart::Bar)
}

/// Writes the symbols or bars of a shape one by one, each with its value.
fn value_tags(chart: &PlacedChart, shape: &PlotShape) -> String {
    let mut tags = String::new();
    for path in &shape.paths {
        let paths = vec![path.clone()];
        let one = PlotShape { part: shape.part, series: shape.series, paths };
        let words = value_in_words(chart, shape, path);
        tags += &path_tag(&shape_element(chart, &one), Some(&words));
    }
    tags
}

fn mark_in_words(chart: &PlacedChart, mark: &AxisMark) -> String {
    format!("{}, {}", mark.label, chart.axes.x.format_value(mark.x))
}

/// Writes `2026-11-24: +4 %` for a symbol, and `+1 % to +2 %: 3` for a bar of a histogram.
fn value_in_words(chart: &PlacedChart, shape: &PlotShape, path: &[Point]) -> String {
    let (x, y) = (&chart.axes.x, &chart.axes.y);
    let series = chart.entry(shape).map(|entry| entry.series);
    match path {
        [point] => {
            let value = format!("{}: {}", x.format_value(point.x), y.format_with_interval(point));
            match series {
                // One of several series is named.
                Some(series) if chart.entries.len() > 1 => {
                    format!("{} {value}", clean(&series.name)).trim().to_string()
                }
                _ => value,
            }
        }
        [from, top, to, ..] if series.is_some_and(|series| series.role == Role::Histogram) => {
            let (from, to) = (x.format_value(from.x), x.format_value(to.x));
            format!("{from} to {to}: {}", y.format_value(top.y))
        }
        [_, top, ..] => format!("{}: {}", x.format_value(top.x), y.format_value(top.y)),
        [] => String::new(),
    }
}

/// Writes the path of an element, which shows `words` where the pointer rests; nothing if the
/// element draws nothing.
fn path_tag(element: &PictureElement, words: Option<&str>) -> String {
    if element.path.is_none() {
        return String::new();
    }
    let colour = hex_colour(element.ink);
    let path = match ink_class(element.ink) {
        Some(class) => {
            let attributes = attributes(element, "currentColor");
            format!("<path class=\"{class}\" color=\"{colour}\" {attributes}")
        }
        None => format!("<path {}", attributes(element, &colour)),
    };
    match words {
        Some(words) => {
            let title = escape(&with_micro_sign(&clean(words)));
            format!("{path}><title>{title}</title></path>")
        }
        None => format!("{path}/>"),
    }
}

/// Returns the class of a colour; none for one that does not differ between pages.
fn ink_class(ink: Ink) -> Option<String> {
    match ink {
        Ink::Series(number) => Some(format!("s{}", number % 7)),
        Ink::Black => Some("black".to_string()),
        Ink::Soft => Some("soft".to_string()),
        Ink::Grid => Some("grid".to_string()),
        Ink::Paper => Some("paper".to_string()),
        Ink::Cell(_) | Ink::OnCell(_) => None,
    }
}

fn text_tag(text: &PlacedText) -> String {
    let anchor = match text.anchor {
        TextAnchor::Left => "start",
        TextAnchor::Middle => "middle",
        TextAnchor::Right => "end",
    };
    let ink = text_ink(text.kind);
    let class = match ink_class(ink) {
        Some(class) => format!("class=\"{class}\" "),
        None => String::new(),
    };
    format!(
        "<text {class}color=\"{}\" fill=\"currentColor\" x=\"{}\" y=\"{}\" \
         text-anchor=\"{anchor}\">{}</text>",
        hex_colour(ink),
        rounded(text.at.0),
        rounded(text.at.1 + TO_BASELINE),
        escape(&with_micro_sign(&text.words)),
    )
}
