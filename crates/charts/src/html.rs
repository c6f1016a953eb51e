//! Charts in one HTML file that needs nothing else.
//!
//! Each chart is SVG that a browser shows without any script. Its shapes carry their places in the figure's
//! own units (`data-d`), so that `charts.js` can draw them again between other ends or on other axes.

use std::fmt::Write;

use crate::combine::Base;
use crate::figure::{Axis, Body, Figure, Map, Point, Role, Scale, Series, Unit};
use crate::layout::layout;
use crate::page::{Anchor, At, Chart, Item, Kind, Medium, Text};
use crate::paper::{attributes, hex, number};
use crate::picture::{Element, Ink, PAPER, Source, elements, ink_of, letters, micro, sample};
use crate::shapes::{Part, Shape};
use crate::text::escape;
use crate::ticks::written;

const STYLE: &str = include_str!("html/charts.css");
const SCRIPT: &str = include_str!("html/charts.js");

/// Longer lists are no table to read.
const MOST_ROWS: usize = 400;

/// Forbids whatever would leave the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";

/// The page of a chart: title, legend and notes are HTML around it. The script takes letters to be as wide.
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
            table = table(figure, &chart, self.unlisted),
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
            match chart.cells.is_empty() {
                _ if axes.turned => "names",
                true => "curves",
                false => "map",
            },
            axis("x", &figure.x, figure.x.scale),
            axis("y", &figure.y, axes.y.scale),
            lines(&mut chart.entries.iter().map(|entry| &entry.name)),
            published.join(" "),
        );
        let (frame, plot): (Vec<Element>, Vec<Element>) = elements(chart)
            .into_iter()
            .partition(|element| matches!(element.source, Source::Frame(_)));
        frame.iter().for_each(|element| write_element(&mut svg, element));
        let (w, h) = (number(axes.right - axes.left), number(axes.bottom - axes.top));
        let (x, y) = (number(axes.left), number(axes.top));
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<svg class=\"plot\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"{x} {y} {w} {h}\"><g data-base=\"absolute\">",
        );
        plot.iter().for_each(|element| write_element(&mut svg, element));
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
            let shapes = elements(&relative).into_iter();
            for mut element in shapes.filter(|of| matches!(of.source, Source::Shape(..))) {
                element.path.clear();
                write_element(&mut svg, &element);
            }
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>\n");
        svg.extend(chart.texts.iter().map(text));
        svg + "</svg>"
    }
}

/// The name of a variant in lower case.
fn lower(variant: impl std::fmt::Debug) -> String {
    format!("{variant:?}").to_lowercase()
}

/// What an axis is, for the script.
fn axis(name: &str, axis: &Axis, scale: Scale) -> String {
    let [scale, unit] = [lower(scale), lower(axis.unit)];
    format!("data-{name}=\"{scale} {unit}\" data-{name}-label=\"{}\"", escape(&axis.label))
}

/// The legend: each entry switches its series.
fn legend(items: &[Item]) -> String {
    let entry = |item: &Item| {
        let mut svg = "<svg width=\"22\" height=\"12\" aria-hidden=\"true\">".to_string();
        let placed = Item { at: (0.0, 6.0), ..item.clone() };
        sample(&placed).iter().for_each(|element| write_element(&mut svg, element));
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

fn write_element(svg: &mut String, element: &Element) {
    let (ink, class) = match element.ink {
        Ink::Cell(_) => (hex(element.ink.colour()), String::new()),
        Ink::Series(number) => ("currentColor".to_string(), format!("s{}", number % 7)),
        ink => ("currentColor".to_string(), lower(ink)),
    };
    let (frame, of) = match element.source {
        Source::Frame(name) => (name, String::new()),
        Source::Shape(shape, corners) => ("", places(shape, corners)),
        Source::Cell(cell) => ("", format!("data-said=\"{}\"", escape(&micro(&cell.said)))),
        Source::Other => ("", String::new()),
    };
    let class = format!("{frame} {class}");
    let look = attributes(element, &ink);
    // Writing to a String cannot fail.
    let _ = writeln!(svg, "<path class=\"{}\" {of} {look}/>", class.trim());
}

/// Where a shape is in the figure's own units, for the script.
fn places(shape: &Shape, corners: &[At]) -> String {
    let list = |numbers: &[f64]| numbers.iter().map(|n| exact(*n)).collect::<Vec<_>>().join(",");
    let place = |point: &Point| match point.interval() {
        Some((low, high)) => list(&[point.x, point.y, low, high]),
        None => list(&[point.x, point.y]),
    };
    let path = |path: &Vec<Point>| path.iter().map(place).collect::<Vec<_>>().join(" ");
    let d: Vec<String> = shape.paths.iter().map(path).collect();
    let around: Vec<String> = corners.iter().map(|(x, y)| format!("{x},{y}")).collect();
    let series = shape.series.map_or(String::new(), |of| format!(" data-series=\"{of}\""));
    let part = lower(shape.part);
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
fn text(text: &Text) -> String {
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
        Kind::Cell(_) => format!(" fill=\"{}\"", hex(ink_of(text.kind).colour())),
        _ => String::new(),
    };
    let class = lower(text.kind);
    format!(
        "<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\"{of}{fill}>{}</text>\n",
        // Of a cell only its name, not its position on the colour scale.
        class.split('(').next().unwrap_or_default(),
        number(x),
        number(text.at.1 + 0.36 * letters(text.kind)),
        escape(&micro(&text.words))
    )
}

/// All points, a row each; laws and single samples are left to the chart and to exports, as `unlisted` says.
fn table(figure: &Figure, chart: &Chart, unlisted: &str) -> String {
    let (head, rows) = match &figure.body {
        Body::Series(_) => of_series(figure, chart),
        Body::Map(map) => of_map(figure, chart, map),
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

fn of_series(figure: &Figure, chart: &Chart) -> (Vec<String>, Vec<Vec<String>>) {
    let place = if figure.x.label.is_empty() { "of" } else { &figure.x.label };
    let head = ["series", place, &figure.y.label, "interval"].map(String::from).to_vec();
    let (x, y) = (&chart.axes.x, &chart.axes.y);
    let mut rows = Vec::new();
    for entry in &chart.entries {
        if matches!(entry.series.role, Role::Raw | Role::Law) {
            continue;
        }
        for point in &entry.series.points {
            let ends = point.low.zip(point.high);
            let interval = ends.map(|(low, high)| format!("{} to {}", y.say(low), y.say(high)));
            let interval = interval.unwrap_or("-".to_string());
            rows.push(vec![entry.name.clone(), x.say(point.x), y.say(point.y), interval]);
        }
    }
    (head, rows)
}

fn of_map(figure: &Figure, chart: &Chart, map: &Map) -> (Vec<String>, Vec<Vec<String>>) {
    let columns = map.xs.iter().map(|x| chart.axes.x.say(*x));
    let head = std::iter::once(figure.y.label.clone()).chain(columns).collect();
    let row = |(y, values): (&f64, &Vec<Option<f64>>)| {
        let told = |value: &Option<f64>| value.map_or("-".into(), |value| written(map.unit, value));
        std::iter::once(chart.axes.y.say(*y)).chain(values.iter().map(told)).collect()
    };
    (head, map.ys.iter().zip(&map.values).map(row).collect())
}
