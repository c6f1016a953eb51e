//! Charts in one HTML file that needs nothing else.
//!
//! Each chart is SVG that a browser shows without any script. What `charts.js` needs to draw it
//! again between other ends or on other axes stands beside it (`told`).

mod told;

use crate::combine::Base;
use crate::figure::{Axis, Body, Figure, Role, Scale, Series, Unit};
use crate::layout::{MOST, layout};
use crate::page::{Anchor, Chart, Item, Kind, Medium, Text};
use crate::paper::{attributes, hex, number};
use crate::picture::{Element, Ink, PAPER, Source, elements, ink_of, letters, micro, sample};
use crate::text::escape;
use crate::ticks::written;
use told::{Rulers, joined, lower};

const STYLE: &str = include_str!("html/charts.css");
const SCRIPT: &str = include_str!("html/charts.js");

/// Longer tables, with their head, are not written: nobody reads them.
const MOST_ROWS: usize = 401;

/// Forbids whatever would leave the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";

/// The page of a chart: title, legend and notes are HTML around it. The script takes letters to be
/// as wide.
const BARE: Medium = Medium {
    margin: 6.0,
    bare: true,
    measure: |text, kind| 0.6 * letters(kind) * text.chars().count() as f64,
    ..PAPER
};

/// A page with charts. What is HTML is marked so; all else is text.
pub struct Page<'a> {
    /// The title of the window.
    pub title: &'a str,
    /// The program that made it.
    pub generator: &'a str,
    /// CSS of header and footer.
    pub style: &'a str,
    /// HTML before the charts.
    pub header: &'a str,
    /// HTML behind them.
    pub footer: &'a str,
    /// Names of the runs that series are of.
    pub runs: &'a [String],
    /// The charts.
    pub figures: &'a [Figure],
    /// What it is to be relative to a figure's base: "relative to a ring of two".
    pub own: &'a str,
    /// What published series are called together.
    pub published: &'a str,
    /// Said of a chart whose points are too many for a table.
    pub unlisted: &'a str,
}

impl Page<'_> {
    /// The whole file.
    pub fn html(&self) -> String {
        let figures: String = self.figures.iter().map(|figure| self.section(figure)).collect();
        let letter = (BARE.measure)("0", Kind::Tick);
        let sizes = [BARE.width, BARE.margin, BARE.gap, letter, BARE.ticks as f64, MOST as f64];
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"generator\" content=\"{generator}\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n\
             {header}{controls}<main data-page=\"{page}\">\n{figures}</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n{footer}\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            generator = escape(self.generator),
            title = escape(self.title),
            style = self.style,
            header = self.header,
            controls = self.controls(),
            page = joined(sizes.iter(), " "),
            footer = self.footer,
        )
    }

    /// What a reader may divide values by: its name for the script, what it is, what it is called.
    fn bases(&self) -> Vec<(String, Base, String)> {
        let runs = self.runs.iter().enumerate().filter(|_| self.runs.len() > 1);
        let of_run = |(run, name): (usize, &String)| {
            (format!("run-{run}"), Base::Run(run), format!("relative to run {name}"))
        };
        let own = ("own".to_string(), Base::Own, self.own.to_string());
        std::iter::once(own).chain(runs.map(of_run)).collect()
    }

    fn controls(&self) -> String {
        let option = |(name, base, what): (String, Base, String)| {
            let applies = self.figures.iter().any(|figure| figure.relative_to(base).is_some());
            applies.then(|| format!("<option value=\"{name}\">{}</option>", escape(&what)))
        };
        let bases: String = self.bases().into_iter().filter_map(option).collect();
        let link = |figure: &Figure| {
            format!("<li><a href=\"#{}\">{}</a></li>", escape(&figure.id), escape(&figure.title))
        };
        let links: String = self.figures.iter().map(link).collect();
        format!(
            "<form id=\"controls\" aria-label=\"How the charts are drawn\">\n\
             <label>Values <select id=\"base\"><option value=\"absolute\">as measured</option>{bases}</select></label>\n\
             <label>Axes <select id=\"axes\"><option value=\"fitting\">as suits each chart</option>\
             <option value=\"linear\">linear</option><option value=\"log\">logarithmic</option></select></label>\n\
             <label><input type=\"checkbox\" id=\"published\" checked> {}</label>\n\
             <noscript>These need JavaScript: without it charts are pictures.</noscript>\n\
             </form>\n<nav aria-label=\"Charts\"><ul>{links}</ul></nav>\n",
            escape(self.published)
        )
    }

    fn section(&self, figure: &Figure) -> String {
        let (id, title) = (escape(&figure.id), escape(&figure.title));
        let words = figure.in_words.lines().map(|line| format!("<p>{}</p>", escape(line)));
        // Runs are named only where there are several.
        let mut runs = figure.series().iter().filter_map(|series| series.run);
        let first = runs.next();
        let names = if runs.any(|run| Some(run) != first) { self.runs } else { &[] };
        let chart = layout(figure, names, "", &BARE);
        let items: String = chart.items.iter().map(|of| item(of, &chart)).collect();
        format!(
            "<figure id=\"{id}\">\n<h2 id=\"{id}-title\">{title}</h2>\n{legend}\
             <div class=\"chart\" role=\"img\" aria-labelledby=\"{id}-title\" aria-describedby=\"{id}-words\">\
             {svg}<button class=\"whole\" type=\"button\" hidden>Whole chart</button></div>\n<p class=\"note\" aria-live=\"polite\">{note}</p>\n\
             <figcaption id=\"{id}-words\">{words}</figcaption>\n{table}\n</figure>\n",
            legend = match items.as_str() {
                "" => String::new(),
                _ => format!("<div class=\"legend\">{items}</div>\n"),
            },
            svg = self.svg(figure, names, &chart),
            note = escape(chart.left_out.as_deref().unwrap_or_default()),
            words = words.collect::<String>(),
            table = table(figure, &chart, self.unlisted),
        )
    }

    fn svg(&self, figure: &Figure, names: &[String], chart: &Chart) -> String {
        let axes = &chart.axes;
        let [left, top, right, bottom] = [axes.left, axes.top, axes.right, axes.bottom].map(number);
        let (wide, high) = (number(right - left), number(bottom - top));
        let entries = chart.entries.iter().enumerate();
        let published = entries.filter(|(_, entry)| is_published(entry.series));
        let kind = match chart.cells.is_empty() {
            _ if axes.turned => "names",
            true => "curves",
            false => "map",
        };
        let mut rulers = Rulers::default();
        let is_frame = |element: &Element| matches!(element.source, Source::Frame(_));
        let mut group = |name: &str, figure: &Figure, chart: &Chart, is_first: bool| {
            let views = views(&mut rulers, figure, chart);
            let drawn = elements(chart).into_iter().filter(|element| !is_frame(element));
            let drawn = drawn.map(|of| Element { path: of.path.filter(|_| is_first), ..of });
            let drawn: String = drawn.map(|element| path(&element, chart)).collect();
            format!("<g data-base=\"{name}\" {views}>\n{drawn}</g>\n")
        };
        let as_measured = group("absolute", figure, chart, true);
        let relative = |(name, base, what): (String, Base, String)| {
            let y = Axis::new(&format!("{}, {what}", figure.y.label), Unit::Ratio, Scale::Linear);
            let body = Body::Series(figure.relative_to(base)?);
            let figure = Figure { body, y, ..figure.clone() }.with_fitting_scale();
            Some(group(&name, &figure, &layout(&figure, names, "", &BARE), false))
        };
        let frame = elements(chart).into_iter().filter(is_frame);
        let frame: String = frame.map(|element| path(&element, chart)).collect();
        let relative: String = self.bases().into_iter().filter_map(relative).collect();
        format!(
            "<svg viewBox=\"0 0 {} {}\" tabindex=\"0\" data-plot=\"{left} {top} {right} {bottom}\" \
             data-kind=\"{kind}\" data-names=\"{}\" data-published=\"{}\">\n{}{}\
             <svg class=\"plot\" x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" \
             viewBox=\"{left} {top} {wide} {high}\">{as_measured}{relative}</svg>\n{}</svg>",
            BARE.width,
            number(chart.height),
            joined(chart.entries.iter().map(|entry| escape(&entry.name)), "\n"),
            joined(published.map(|(index, _)| index), " "),
            rulers.0.concat(),
            frame,
            chart.texts.iter().map(text).collect::<String>(),
        )
    }
}

/// Whether the control for published series switches it; those of a run were asked for.
fn is_published(series: &Series) -> bool {
    series.role == Role::Published && series.run.is_none()
}

/// What is seen of a chart with published series and without them, where it has any.
fn views(rulers: &mut Rulers, figure: &Figure, chart: &Chart) -> String {
    let on = format!("data-on=\"{}\"", rulers.views(figure, chart, |_| true));
    if !figure.series().iter().any(is_published) {
        return on;
    }
    // They may be far off: without them another scale may be better.
    let own = figure.series().iter().filter(|series| !is_published(series)).cloned();
    let y = Axis { scale: Scale::Linear, ..figure.y.clone() };
    let own = Figure { body: Body::Series(own.collect()), y, ..figure.clone() };
    let own = own.with_fitting_scale();
    format!("{on} data-off=\"{}\"", rulers.views(&own, chart, |series| !is_published(series)))
}

/// An item of the legend: a button that switches its series.
fn item(item: &Item, chart: &Chart) -> String {
    let placed = Item { at: (0.0, 6.0), ..item.clone() };
    let sample: String = sample(&placed).iter().map(|element| path(element, chart)).collect();
    let svg = format!("<svg width=\"22\" height=\"12\" aria-hidden=\"true\">{sample}</svg>");
    let name = svg + &escape(&micro(&item.name));
    let series = joined(item.series.iter(), " ");
    match series.as_str() {
        "" => format!("<span>{name}</span>"),
        _ => format!(
            "<button type=\"button\" aria-pressed=\"true\" data-series=\"{series}\">{name}</button>"
        ),
    }
}

/// An element of a chart, with what the script is told of it.
fn path(element: &Element, chart: &Chart) -> String {
    let (ink, class) = match element.ink {
        Ink::Cell(_) => (hex(element.ink), String::new()),
        Ink::Series(number) => ("currentColor".to_string(), format!("s{}", number % 7)),
        ink => ("currentColor".to_string(), lower(ink)),
    };
    let (frame, told) = match element.source {
        Source::Frame(name) => (name, String::new()),
        Source::Shape(shape, corners) => ("", told::shape(chart, shape, corners)),
        Source::Cell(cell) => ("", format!("data-said=\"{}\"", escape(&micro(&cell.said)))),
        Source::Other => ("", String::new()),
    };
    let class = format!("{frame} {class}");
    format!("<path class=\"{}\" {told} {}/>\n", class.trim(), attributes(element, &ink))
}

/// A text of the page. Labels are centred, as the browser's letters may have another width.
fn text(text: &Text) -> String {
    let half = (BARE.measure)(&text.words, text.kind) / 2.0;
    let (x, anchor) = match text.anchor {
        Anchor::Left if text.of.is_some() => (text.at.0 + half, "middle"),
        Anchor::Left => (text.at.0, "start"),
        Anchor::Middle => (text.at.0, "middle"),
        Anchor::Right => (text.at.0, "end"),
    };
    let of = text.of.map(|of| format!("data-x=\"{}\"", told::stretch(of)));
    let (class, fill) = match text.kind {
        Kind::Cell(_) => ("cell".to_string(), format!("fill=\"{}\"", hex(ink_of(text.kind)))),
        kind => (lower(kind), String::new()),
    };
    format!(
        "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" {}{fill}>{}</text>\n",
        number(x),
        number(text.at.1 + 0.36 * letters(text.kind)),
        of.unwrap_or_default(),
        escape(&micro(&text.words))
    )
}

/// All points, a row each; laws and single samples are left to the chart and to exports, as
/// `unlisted` says.
fn table(figure: &Figure, chart: &Chart, unlisted: &str) -> String {
    let (x, y) = (&chart.axes.x, &chart.axes.y);
    let mut rows: Vec<Vec<String>> = Vec::new();
    match &figure.body {
        Body::Series(_) => {
            let place = if figure.x.label.is_empty() { "of" } else { &figure.x.label };
            rows.push(["series", place, &figure.y.label, "interval"].map(String::from).to_vec());
            let is_listed = |role| !matches!(role, Role::Raw | Role::Law);
            for entry in chart.entries.iter().filter(|entry| is_listed(entry.series.role)) {
                rows.extend(entry.series.points.iter().map(|point| {
                    let interval = y.say_interval(point).unwrap_or("-".to_string());
                    vec![entry.name.clone(), x.say(point.x), y.say(point.y), interval]
                }));
            }
        }
        Body::Map(map) => {
            // The axes of a map have a number for each column and row.
            let columns = (0..map.xs.len()).map(|column| x.say(column as f64));
            rows.push([figure.y.label.clone()].into_iter().chain(columns).collect());
            for (row, values) in map.values.iter().enumerate() {
                let said = |value: &Option<f64>| value.map(|value| written(map.unit, value));
                let values = values.iter().map(|value| said(value).unwrap_or("-".to_string()));
                rows.push([y.say(row as f64)].into_iter().chain(values).collect());
            }
        }
    }
    if !(2..=MOST_ROWS).contains(&rows.len()) {
        return format!("<p class=\"note\">{}</p>", escape(unlisted));
    }
    let row = |(place, cells): (usize, &Vec<String>)| {
        let cell = |(column, text): (usize, &String)| match (place, column) {
            (0, _) => format!("<th scope=\"col\">{}</th>", escape(text)),
            (_, 0) => format!("<th scope=\"row\">{}</th>", escape(text)),
            _ => format!("<td>{}</td>", escape(text)),
        };
        format!("<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: Vec<String> = rows.iter().enumerate().map(row).collect();
    let (title, head, rows) = (escape(&figure.title), &rows[0], rows[1..].concat());
    format!(
        "<details><summary>Table: {title}</summary>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: {title}\">\
         <table><caption>{title}</caption><thead>{head}</thead><tbody>{rows}</tbody></table></div></details>"
    )
}
