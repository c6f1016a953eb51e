//! Charts in one HTML file that needs nothing else.
//!
//! Each chart is SVG that a browser shows without any script. Its shapes carry their places in the figure's
//! own units (`data-d`), so that `charts.js` can draw them again between other ends or on other axes.

mod table;

use std::fmt::Write;

use crate::figure::{Axis, Body, Figure, Role, Scale, Series, Unit};
use crate::layout::{Anchor, At, Chart, Item, Kind, Medium, Text, layout};
use crate::picture::{Element, Ink, PAPER, elements, letters, micro, sample, texts};
use crate::relative::Base;
use crate::shapes::{Form, Part, Shape};
use crate::svg::{attributes, hex, number};
use crate::text::escape;
use crate::ticks::written;

const STYLE: &str = include_str!("charts.css");
const SCRIPT: &str = include_str!("charts.js");

/// Forbids whatever would leave the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";

/// The page of a chart: title, legend and notes are HTML around it. The script takes letters to be as wide.
const BARE: Medium = Medium {
    margin: 6.0,
    bare: true,
    measure: |text, kind| 0.6 * letters(kind).0 * text.chars().count() as f64,
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
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"generator\" content=\"{generator}\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n\
             {header}{controls}<main>\n{figures}</main>\n{footer}\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            generator = escape(self.generator),
            title = escape(self.title),
            style = self.style,
            header = self.header,
            controls = self.controls(),
            footer = self.footer,
        )
    }

    /// What a reader may divide values by: its name for the script, what it is, what it is called.
    fn bases(&self) -> Vec<(String, Base, String)> {
        let mut bases = vec![("own".to_string(), Base::Own, self.own.to_string())];
        let runs = self.runs.iter().enumerate().filter(|_| self.runs.len() > 1);
        bases.extend(runs.map(|(run, name)| {
            (format!("run-{run}"), Base::Run(run), format!("relative to run {name}"))
        }));
        bases
    }

    fn controls(&self) -> String {
        let serves = |base| self.figures.iter().any(|figure| figure.relative_to(base).is_some());
        let bases = self.bases().into_iter().filter(|(_, base, _)| serves(*base));
        let option = |(name, _, told): (String, Base, String)| {
            format!("<option value=\"{name}\">{}</option>", escape(&told))
        };
        let bases: String = bases.map(option).collect();
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

    /// The names that a chart needs: none if all in it is of one run.
    fn names_in(&self, figure: &Figure) -> &[String] {
        let mut runs = figure.series().iter().filter_map(|series| series.run);
        let first = runs.next();
        if runs.any(|run| Some(run) != first) { self.runs } else { &[] }
    }

    fn section(&self, figure: &Figure) -> String {
        let id = escape(&figure.id);
        let words: String =
            figure.in_words.lines().map(|line| format!("<p>{}</p>", escape(line))).collect();
        let chart = layout(figure, self.names_in(figure), "", &BARE);
        format!(
            "<figure id=\"{id}\">\n<h2 id=\"{id}-title\">{title}</h2>\n{legend}\
             <div class=\"chart\" role=\"img\" aria-labelledby=\"{id}-title\" aria-describedby=\"{id}-words\">\
             {svg}</div>\n<p class=\"note\" aria-live=\"polite\">{note}</p>\n\
             <figcaption id=\"{id}-words\">{words}</figcaption>\n{table}\n</figure>\n",
            title = escape(&figure.title),
            legend = legend(&chart.items),
            svg = self.svg(figure, &chart),
            note = escape(chart.left_out.as_deref().unwrap_or_default()),
            table = table::html(figure, &chart.entries, self.unlisted),
        )
    }

    fn svg(&self, figure: &Figure, chart: &Chart) -> String {
        let axes = &chart.axes;
        let lines = |names: &mut dyn Iterator<Item = &String>| {
            escape(&names.map(String::as_str).collect::<Vec<&str>>().join("\n"))
        };
        let is_published = |series: &Series| series.role == Role::Published && series.run.is_none();
        let published = chart.entries.iter().enumerate().filter(|(_, e)| is_published(e.series));
        let published: Vec<String> = published.map(|(index, _)| index.to_string()).collect();
        let mut svg = format!(
            "<svg viewBox=\"0 0 {} {}\" tabindex=\"0\" data-plot=\"{} {} {} {}\" data-kind=\"{}\" {} {} \
             data-names=\"{}\" data-published=\"{}\">\n",
            BARE.width,
            number(chart.height),
            number(axes.left),
            number(axes.top),
            number(axes.right),
            number(axes.bottom),
            if axes.turned {
                "names"
            } else if chart.cells.is_empty() {
                "curves"
            } else {
                "map"
            },
            axis("x", &figure.x, figure.x.scale),
            axis("y", &figure.y, axes.y.scale),
            lines(&mut chart.entries.iter().map(|entry| &entry.name)),
            published.join(" "),
        );
        let all = elements(chart);
        let (frame, plot): (Vec<&Element>, Vec<&Element>) =
            all.iter().partition(|element| !element.class.is_empty());
        // The style sheet puts something behind labels, which the script may move.
        let frame = frame.iter().filter(|element| element.ink != Ink::Paper);
        frame.for_each(|element| write_element(&mut svg, element, None));
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<svg class=\"plot\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"{x} {y} {w} {h}\"><g data-base=\"absolute\">",
            x = number(axes.left),
            y = number(axes.top),
            w = number(axes.right - axes.left),
            h = number(axes.bottom - axes.top),
        );
        let said = said(figure);
        for (place, element) in plot.iter().enumerate() {
            write_element(&mut svg, element, said.get(place).map(String::as_str));
        }
        for shape in chart.shapes.iter().filter(|shape| shape.part == Part::Hidden) {
            let _ = writeln!(svg, "<path {}/>", places(shape, &[]));
        }
        svg.push_str("</g>\n");
        for (name, base, told) in self.bases() {
            let Some(series) = figure.relative_to(base) else { continue };
            let label = format!("{}, {told}", figure.y.label);
            let y = Axis::new(&label, Unit::Ratio, Scale::Linear);
            let _ = writeln!(svg, "<g data-base=\"{name}\" {}>", axis("y", &y, y.scale));
            let relative = Figure { body: Body::Series(series), y, ..figure.clone() };
            let relative = layout(&relative, self.names_in(figure), "", &BARE);
            for mut element in elements(&relative) {
                element.paths.clear();
                if element.of.is_some() {
                    write_element(&mut svg, &element, None);
                }
            }
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>\n");
        for (text, colour) in texts(chart) {
            svg.push_str(&self::text(&text, colour));
        }
        svg.push_str("</svg>");
        svg
    }
}

/// What an axis is, for the script.
fn axis(name: &str, axis: &Axis, scale: Scale) -> String {
    let scale = if scale == Scale::Log { "log" } else { "linear" };
    let unit = match axis.unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::Ratio => "ratio",
        Unit::Names => "names",
    };
    format!("data-{name}=\"{scale} {unit}\" data-{name}-label=\"{}\"", escape(&axis.label))
}

/// The legend: each entry switches its series.
fn legend(items: &[Item]) -> String {
    let entry = |item: &Item| {
        let mut svg = "<svg width=\"22\" height=\"12\" aria-hidden=\"true\">".to_string();
        let placed = Item { at: (0.0, 6.0), ..item.clone() };
        sample(&placed).iter().for_each(|element| write_element(&mut svg, element, None));
        let name = format!("{svg}</svg>{}", escape(&micro(&item.name)));
        let series: Vec<String> = item.series.iter().map(usize::to_string).collect();
        match series.is_empty() {
            true => format!("<span>{name}</span>"),
            false => format!(
                "<button type=\"button\" aria-pressed=\"true\" data-series=\"{}\">{name}</button>",
                series.join(" ")
            ),
        }
    };
    match items.is_empty() {
        true => String::new(),
        false => {
            format!("<div class=\"legend\">{}</div>\n", items.iter().map(entry).collect::<String>())
        }
    }
}

/// The cells of a map in words, in the order in which they are drawn.
fn said(figure: &Figure) -> Vec<String> {
    let Body::Map(map) = &figure.body else { return Vec::new() };
    let told = |y: f64, x: f64, value: Option<f64>| {
        let value = value.map_or("not resolved".to_string(), |value| written(map.unit, value));
        micro(&format!("{}, {}: {value}", written(figure.y.unit, y), written(figure.x.unit, x)))
    };
    let rows = map.ys.iter().zip(&map.values);
    rows.flat_map(|(y, row)| map.xs.iter().zip(row).map(move |(x, value)| told(*y, *x, *value)))
        .collect()
}

fn write_element(svg: &mut String, element: &Element, said: Option<&str>) {
    let (ink, class) = match element.ink {
        Ink::Cell(_) => (hex(element.ink.colour()), String::new()),
        Ink::Series(number) => ("currentColor".to_string(), format!("s{}", number % 7)),
        ink => ("currentColor".to_string(), format!("{ink:?}").to_lowercase()),
    };
    let class = format!("{} {class}", element.class);
    let of = element.of.map_or(String::new(), |(shape, corners)| places(shape, corners));
    let said = said.map_or(String::new(), |said| format!(" data-said=\"{}\"", escape(said)));
    let look = attributes(element, &ink);
    // Writing to a String cannot fail.
    let _ = writeln!(svg, "<path class=\"{}\" {of}{said} {look}/>", class.trim());
}

/// Where a shape is in the figure's own units, for the script.
fn places(shape: &Shape, corners: &[At]) -> String {
    let list = |numbers: &[f64]| numbers.iter().map(|n| exact(*n)).collect::<Vec<_>>().join(",");
    let stamp = |point: &crate::figure::Point| match point.interval() {
        Some((low, high)) => list(&[point.x, point.y, low, high]),
        None => list(&[point.x, point.y]),
    };
    let path = |path: &Vec<(f64, f64)>| {
        path.iter().map(|(x, y)| list(&[*x, *y])).collect::<Vec<_>>().join(" ")
    };
    let d: Vec<String> = match &shape.form {
        Form::Stamps(points) => points.iter().map(stamp).collect(),
        Form::Paths(paths) => paths.iter().map(path).collect(),
    };
    let around: Vec<String> = corners.iter().map(|(x, y)| format!("{x},{y}")).collect();
    let series = shape.series.map_or(String::new(), |of| format!(" data-series=\"{of}\""));
    let part = format!("{:?}", shape.part).to_lowercase();
    format!(
        "data-part=\"{part}\"{series} data-corners=\"{}\" data-d=\"{}\"",
        around.join(" "),
        d.join(";")
    )
}

/// A number to six digits, as JavaScript reads it.
fn exact(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    match rounded {
        infinite if infinite.is_infinite() && infinite > 0.0 => "Infinity".to_string(),
        infinite if infinite.is_infinite() => "-Infinity".to_string(),
        long if long != 0.0 && !(1e-5..1e15).contains(&long.abs()) => format!("{long:e}"),
        short => short.to_string(),
    }
}

/// A text of the page. The browser's letters are not those that its place was made for: labels are centred.
fn text(text: &Text, colour: [u8; 3]) -> String {
    let wide = (BARE.measure)(&text.words, text.kind);
    let (x, anchor) = match text.anchor {
        Anchor::Left if text.of.is_some() => (text.at.0 + wide / 2.0, "middle"),
        Anchor::Left => (text.at.0, "start"),
        Anchor::Middle => (text.at.0, "middle"),
        Anchor::Right => (text.at.0, "end"),
    };
    let of = text
        .of
        .map_or(String::new(), |(from, to)| format!(" data-x=\"{},{}\"", exact(from), exact(to)));
    let fill = match text.kind {
        Kind::Cell => format!(" fill=\"{}\"", hex(colour)),
        _ => String::new(),
    };
    format!(
        "<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\"{of}{fill}>{}</text>\n",
        format!("{:?}", text.kind).to_lowercase(),
        number(x),
        number(text.at.1 + 0.36 * letters(text.kind).0),
        escape(&micro(&text.words))
    )
}
