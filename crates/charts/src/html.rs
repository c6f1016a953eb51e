//! Charts in one HTML file that needs nothing else.
//!
//! Each chart is SVG that a browser shows without any script. The data with which `charts.js` draws
//! it again between other ends or on other axes stands beside it (`script_data`).

mod script_data;

use crate::combine::RatioBase;
use crate::figure::{Axis, Figure, FigureBody, HeatMap, Role, Scale, Series, Unit};
use crate::layout::{MAX_TICKS, layout};
use crate::page::{
    LegendItem, LegendSample, PageMedium, PlacedChart, PlacedText, TextAnchor, TextKind,
};
use crate::paper::{attributes, hex_colour, rounded};
use crate::picture::{
    ElementSource, Ink, PAPER, PictureElement, baseline, elements, letter_size, sample_elements,
    text_ink, with_micro_sign,
};
use crate::text::escape;
use crate::ticks::written;
use script_data::{RulerList, join, lower_case, shape_data, stretch_ends};

const STYLE: &str = include_str!("html/charts.css");
const SCRIPT: &str = include_str!("html/charts.js");

/// Most rows of a table, with its head: nobody reads a longer one.
const MAX_ROWS: usize = 401;

/// Forbids whatever would leave the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";

/// Page of a chart: title, legend and notes are HTML around it. The script takes letters to be as
/// wide.
const BARE: PageMedium = PageMedium {
    margin: 6.0,
    plot: 250.0,
    name: (20.0, 12.0),
    rows: 3,
    bare: true,
    measure: |text, kind| 0.6 * letter_size(kind) * text.chars().count() as f64,
    ..PAPER
};

/// Page of the first chart, which is seen with the answer above it.
const FIRST: PageMedium = PageMedium { plot: 205.0, longest: 330.0, ..BARE };

/// Page of one of two charts that stand side by side.
const PANEL: PageMedium = PageMedium { width: 480.0, plot: 205.0, longest: 140.0, rows: 2, ..BARE };

/// A page with charts. Fields that are HTML are marked so; all else is text.
pub struct HtmlPage<'a> {
    /// Title of the window.
    pub title: &'a str,
    /// Program that made it.
    pub generator: &'a str,
    /// CSS of header and footer.
    pub style: &'a str,
    /// HTML before the charts.
    pub header: &'a str,
    /// HTML behind the charts, about the same subject.
    pub behind: &'a str,
    /// Ids and names of the parts of `behind` that the contents list too.
    pub contents: &'a [(&'a str, &'a str)],
    /// HTML at the end.
    pub footer: &'a str,
    /// Names of the runs that the series belong to, by index.
    pub runs: &'a [String],
    /// Charts.
    pub figures: &'a [Figure],
    /// Returns the heading of a chart: the question that it answers.
    pub heading: &'a dyn Fn(&Figure) -> String,
    /// Number of charts that come first, before the controls: side by side if there are several.
    pub first: usize,
    /// Whether published series are shown at once: else a reader has to ask for them.
    pub has_published: bool,
    /// Ids of the charts that are there for their published series.
    pub only_published: &'a [&'a str],
    /// Name of values relative to a figure's base: "relative to the first point that holds".
    pub own: &'a str,
    /// Name of all published series together.
    pub published: &'a str,
    /// Sentence below a chart whose points are too many for a table.
    pub unlisted: &'a str,
}

/// A base that a reader may divide values by.
struct BaseChoice {
    /// Name for the script.
    id: String,
    base: RatioBase,
    /// Name for the reader.
    label: String,
}

impl HtmlPage<'_> {
    /// Writes the whole file.
    pub fn html(&self) -> String {
        let (first, others) = self.figures.split_at(self.first.min(self.figures.len()));
        let (medium, side_by_side) = match first.len() {
            0 | 1 => (&FIRST, ""),
            _ => (&PANEL, " beside"),
        };
        let letter = (BARE.measure)("0", TextKind::Tick);
        let sizes = [BARE.margin, BARE.gap, letter, BARE.ticks as f64, MAX_TICKS as f64];
        format!(
            "<!doctype html>\n<html lang=\"en\"{published}>\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"generator\" content=\"{generator}\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#charts\">To the charts</a>\n\
             {header}{nav}<main id=\"charts\" tabindex=\"-1\" data-page=\"{page}\">\n\
             <div class=\"first{side_by_side}\">\n{first}</div>\n{controls}{others}{behind}\
             <div id=\"tip\" role=\"status\" hidden></div>\n</main>\n{footer}\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            published = if self.has_published { " data-published=\"yes\"" } else { "" },
            first = self.sections(first, medium),
            others = self.sections(others, &BARE),
            nav = self.nav(),
            behind = self.behind,
            generator = escape(self.generator),
            title = escape(self.title),
            style = self.style,
            header = self.header,
            controls = self.controls(),
            page = join(sizes, " "),
            footer = self.footer,
        )
    }

    /// Returns the bases that a reader may divide values by.
    fn bases(&self) -> Vec<BaseChoice> {
        let (id, label) = ("own".to_string(), self.own.to_string());
        let mut bases = vec![BaseChoice { id, base: RatioBase::Own, label }];
        if self.runs.len() > 1 {
            for (run, name) in self.runs.iter().enumerate() {
                let (id, label) = (format!("run-{run}"), format!("relative to run {name}"));
                bases.push(BaseChoice { id, base: RatioBase::Run(run), label });
            }
        }
        bases
    }

    fn controls(&self) -> String {
        let mut options = String::new();
        for BaseChoice { id, base, label } in self.bases() {
            if self.figures.iter().any(|figure| divided_series(figure, base).is_some()) {
                options += &format!("<option value=\"{id}\">{}</option>", escape(&label));
            }
        }
        // The script asks for the base, however little there is to choose.
        let values = if options.is_empty() {
            "<input type=\"hidden\" id=\"base\" value=\"absolute\">\n".to_string()
        } else {
            format!(
                "<label>Values <select id=\"base\"><option value=\"absolute\">as \
                 measured</option>{options}</select></label>\n"
            )
        };
        let mut published = String::new();
        if self.figures.iter().flat_map(Figure::series).any(is_published) {
            published = format!(
                "<label><input type=\"checkbox\" id=\"published\"{}> {}</label>\n",
                if self.has_published { " checked" } else { "" },
                escape(self.published)
            );
        }
        format!(
            "<form id=\"controls\" aria-label=\"How the charts are drawn\">\n\
             {values}\
             <label>Axes <select id=\"axes\"><option value=\"fitting\">as suits each chart</option>\
             <option value=\"linear\">linear</option><option value=\"log\">logarithmic</option></select></label>\n\
             {published}\
             <noscript>These need JavaScript: without it charts are pictures.</noscript>\n\
             </form>\n",
        )
    }

    fn is_only_published(&self, figure: &Figure) -> bool {
        self.only_published.contains(&figure.id.as_str())
    }

    /// Writes links to all charts and to the parts behind them.
    fn nav(&self) -> String {
        let mut links = String::new();
        let mut names: Vec<String> = Vec::new();
        for figure in self.figures {
            let class = if self.is_only_published(figure) { PUBLISHED } else { "" };
            // Charts that ask the same of several runs follow each other.
            let heading = (self.heading)(figure);
            let name = heading.split_once(" (").map_or(&*heading, |(name, _)| name).to_string();
            if !names.contains(&name) {
                links += &link(&figure.id, &name, class);
                names.push(name);
            }
        }
        for (id, name) in self.contents {
            links += &link(id, name, "");
        }
        format!("<nav aria-label=\"Contents\"><ul>{links}</ul></nav>\n")
    }

    fn sections(&self, figures: &[Figure], medium: &PageMedium) -> String {
        figures.iter().map(|figure| self.section(figure, medium)).collect()
    }

    fn section(&self, figure: &Figure, medium: &PageMedium) -> String {
        let figure = &without_roots(figure);
        let (id, heading) = (escape(&figure.id), escape(&(self.heading)(figure)));
        let mut words = String::new();
        for line in figure.in_words.lines() {
            words += &format!("<p>{}</p>", escape(&with_micro_sign(line)));
        }
        let names = if has_several_runs(figure) { self.runs } else { &[] };
        let is_only_published = self.is_only_published(figure);
        let shown = if self.has_published || is_only_published {
            figure.clone()
        } else {
            without_published(figure)
        };
        let whole = layout(figure, names, "", medium);
        let chart = layout(&shown, names, "", medium);
        let items = legend_items(&chart);
        format!(
            "<figure id=\"{id}\"{class} aria-labelledby=\"{id}-title\">\n\
             <h2 id=\"{id}-title\">{heading}</h2>\n\
             <div class=\"words\" id=\"{id}-words\">{words}</div>\n{legend}\
             <div class=\"chart\">{svg}</div>\n<div class=\"tools\">{whole}{as_svg}{as_csv}</div>\n\
             <p class=\"note\" aria-live=\"polite\">{note}</p>\n{table}\n</figure>\n",
            class = if is_only_published { PUBLISHED } else { "" },
            legend = match items.as_str() {
                "" => String::new(),
                _ => format!("<div class=\"legend\">{items}</div>\n"),
            },
            svg =
                ChartSvg { page: self, figure, names, medium, chart: &chart, whole: &whole }.svg(),
            whole = hidden_button("whole", "Whole chart"),
            as_svg = hidden_button("save svg", "Save as SVG"),
            as_csv = hidden_button("save csv", "Save data as CSV"),
            note = escape(chart.left_out.as_deref().unwrap_or_default()),
            table = table(figure, &whole, self.unlisted),
        )
    }
}

fn link(id: &str, name: &str, class: &str) -> String {
    format!("<li{class}><a href=\"#{}\">{}</a></li>", escape(id), escape(name))
}

/// Returns whether series belong to several runs, so that their names must say which.
fn has_several_runs(figure: &Figure) -> bool {
    let mut first = None;
    for run in figure.series().iter().filter_map(|series| series.run) {
        if *first.get_or_insert(run) != run {
            return true;
        }
    }
    false
}

/// Writes a button that the script shows where it has something to do.
fn hidden_button(class: &str, label: &str) -> String {
    format!("<button class=\"{class}\" type=\"button\" hidden>{label}</button>")
}

/// The SVG of a chart with the data for its script.
struct ChartSvg<'a> {
    page: &'a HtmlPage<'a>,
    figure: &'a Figure,
    /// Names of the runs, if the figure shows several.
    names: &'a [String],
    medium: &'a PageMedium,
    /// The chart as it is drawn at first.
    chart: &'a PlacedChart<'a>,
    /// The chart with all series that may be drawn.
    whole: &'a PlacedChart<'a>,
}

impl ChartSvg<'_> {
    fn svg(&self) -> String {
        let (figure, chart, whole) = (self.figure, self.chart, self.whole);
        let axes = &chart.axes;
        let [left, top, right, bottom] =
            [axes.left, axes.top, axes.right, axes.bottom].map(rounded);
        let (width, height) = (rounded(right - left), rounded(bottom - top));
        let (mut published, mut named) = (Vec::new(), Vec::new());
        for (index, entry) in whole.entries.iter().enumerate() {
            if is_published(entry.series) {
                published.push(index);
            }
            if entry.series.role == Role::Published {
                named.push(index);
            }
        }
        let kind = if axes.turned {
            "names"
        } else if chart.cells.is_empty() {
            "curves"
        } else {
            "map"
        };
        let mut rulers = RulerList::default();
        let as_measured =
            group("absolute", views(&mut rulers, figure, whole), &self.measured_paths());
        let relative = self.relative_groups(&mut rulers);
        let frame: String = elements(chart)
            .iter()
            .filter(|element| is_frame(element))
            .map(|element| path(element, chart))
            .collect();
        format!(
            "<svg viewBox=\"0 0 {} {}\" tabindex=\"0\" role=\"img\" aria-label=\"{title}\" \
             aria-describedby=\"{id}-words\" data-plot=\"{left} {top} {right} {bottom}\" \
             data-kind=\"{kind}\" data-names=\"{}\" data-published=\"{}\" data-named=\"{}\" data-x=\"{x}\" \
             data-y=\"{y}\">\n{}{}\
             <svg class=\"plot\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{left} {top} {width} {height}\">{as_measured}{relative}</svg>\n{}</svg>",
            self.medium.width,
            rounded(chart.height),
            join(whole.entries.iter().map(|entry| escape(&entry.name)), "\n"),
            join(published, " "),
            join(named, " "),
            rulers.elements.concat(),
            frame,
            chart.texts.iter().map(text).collect::<String>(),
            title = escape(&figure.title),
            id = escape(&figure.id),
            x = data_column(&figure.x),
            y = data_column(&figure.y),
        )
    }

    /// Writes the paths of the series that are not drawn at first, without a path, then of those
    /// that are.
    fn measured_paths(&self) -> String {
        let mut paths = String::new();
        for element in elements(self.whole) {
            // Series that are not drawn at first have the last indices.
            let is_later = match element.source {
                ElementSource::Shape(shape, _) => {
                    shape.series.is_some_and(|index| index >= self.chart.entries.len())
                }
                _ => false,
            };
            if is_later && !is_frame(&element) {
                paths += &path(&PictureElement { path: None, ..element }, self.whole);
            }
        }
        for element in elements(self.chart) {
            if !is_frame(&element) {
                paths += &path(&element, self.chart);
            }
        }
        paths
    }

    /// Writes a group for each base that the values may be divided by; nothing of it is drawn at
    /// first.
    fn relative_groups(&self, rulers: &mut RulerList) -> String {
        let mut groups = String::new();
        for BaseChoice { id, base, label } in self.page.bases() {
            let Some(divided) = divided_series(self.figure, base) else { continue };
            let missing = without_base(self.figure, &divided);
            let label = format!("{}, {label}{missing}", self.figure.y.label);
            let y = Axis::new(&label, Unit::Ratio, Scale::Linear);
            let body = FigureBody::Series(divided);
            let figure = Figure { body, y, ..self.figure.clone() }.with_fitting_scale();
            let whole = layout(&figure, self.names, "", self.medium);
            let mut paths = String::new();
            for element in elements(&whole) {
                if !is_frame(&element) {
                    paths += &path(&PictureElement { path: None, ..element }, &whole);
                }
            }
            groups += &group(&id, views(rulers, &figure, &whole), &paths);
        }
        groups
    }
}

fn group(name: &str, views: String, paths: &str) -> String {
    format!("<g data-base=\"{name}\" {views}>\n{paths}</g>\n")
}

fn is_frame(element: &PictureElement) -> bool {
    matches!(element.source, ElementSource::Frame(_))
}

/// Returns the series divided by a base. A run is a base only beside another run: published figures
/// stand in the chart itself.
fn divided_series(figure: &Figure, base: RatioBase) -> Option<Vec<Series>> {
    if let RatioBase::Run(base_run) = base {
        let mut runs = figure.series().iter().filter_map(|series| series.run);
        if runs.all(|run| run == base_run) {
            return None;
        }
    }
    figure.relative_to(base)
}

/// Names the measured series that have no sure point to be divided by.
fn without_base(figure: &Figure, divided: &[Series]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (series, divided) in figure.series().iter().zip(divided) {
        let is_measured = matches!(series.role, Role::Measured | Role::Bars);
        if is_measured && divided.points.is_empty() && !series.points.is_empty() {
            names.push(&series.name);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    format!(" (no base that holds: {})", names.join(", "))
}

/// Returns the figure with linear axes in place of square roots, which the script does not have.
fn without_roots(figure: &Figure) -> Figure {
    let mut figure = figure.clone();
    for axis in [&mut figure.x, &mut figure.y] {
        if axis.scale == Scale::Root {
            axis.scale = Scale::Linear;
        }
    }
    figure
}

/// Marks elements that are hidden unless published series are shown.
const PUBLISHED: &str = " class=\"published\"";

/// Returns the heading of a column of the numbers that the script has: the axis with their unit.
fn data_column(axis: &Axis) -> String {
    let unit = match axis.unit {
        Unit::Nanoseconds => " (ns)",
        Unit::Bytes => " (bytes)",
        Unit::Percent | Unit::Change => " (%)",
        Unit::Count | Unit::Ratio | Unit::Names | Unit::Day => "",
    };
    escape(&with_micro_sign(&format!("{}{unit}", heading(axis))))
}

/// Returns the label of an axis; a word in its place if it has none.
fn heading(axis: &Axis) -> &str {
    if axis.label.is_empty() { "of" } else { &axis.label }
}

/// Removes published series: these may be far off, and without them another scale may be better.
fn without_published(figure: &Figure) -> Figure {
    if !figure.series().iter().any(is_published) {
        return figure.clone();
    }
    let mut series = figure.series().to_vec();
    series.retain(|series| !is_published(series));
    // Names that only published series have are at the end.
    let mut names = 0;
    for point in series.iter().flat_map(|series| &series.points) {
        names = names.max((point.x as usize).saturating_add(1));
    }
    let mut x = figure.x.clone();
    x.names.truncate(names);
    let y = Axis { scale: Scale::Linear, ..figure.y.clone() };
    let body = FigureBody::Series(series);
    Figure { body, x, y, ..figure.clone() }.with_fitting_scale()
}

/// Returns whether the control for published series switches it; those of a run were asked for.
fn is_published(series: &Series) -> bool {
    series.role == Role::Published && series.run.is_none()
}

/// Writes the views of a chart with published series and, where it has any, without them.
fn views(rulers: &mut RulerList, figure: &Figure, chart: &PlacedChart) -> String {
    let on = format!("data-on=\"{}\"", rulers.views(figure, chart, |_| true));
    if !figure.series().iter().any(is_published) {
        return on;
    }
    let off = rulers.views(&without_published(figure), chart, |series| !is_published(series));
    format!("{on} data-off=\"{off}\"")
}

/// Writes the legend, without the published lines, which have their names at their ends.
fn legend_items(chart: &PlacedChart) -> String {
    let mut items = String::new();
    for item in &chart.items {
        let is_published = matches!(item.sample, LegendSample::Series(Role::Published, _));
        if !is_published || chart.axes.turned {
            items += &legend_item(item, chart);
        }
    }
    items
}

/// Writes an item of the legend: a button that switches its series.
fn legend_item(item: &LegendItem, chart: &PlacedChart) -> String {
    let placed = LegendItem { at: (0.0, 6.0), ..item.clone() };
    let sample: String =
        sample_elements(&placed).iter().map(|element| path(element, chart)).collect();
    let svg = format!("<svg width=\"22\" height=\"12\" aria-hidden=\"true\">{sample}</svg>");
    let name = svg + &escape(&with_micro_sign(&item.name));
    if item.series.is_empty() {
        return format!("<span>{name}</span>");
    }
    let series = join(&item.series, " ");
    format!(
        "<button type=\"button\" aria-pressed=\"true\" data-series=\"{series}\">{name}</button>"
    )
}

/// Writes an element of a chart with its data for the script.
fn path(element: &PictureElement, chart: &PlacedChart) -> String {
    let (ink, class) = match element.ink {
        Ink::Cell(_) => (hex_colour(element.ink), String::new()),
        Ink::Series(number) => ("currentColor".to_string(), format!("s{}", number % 7)),
        ink => ("currentColor".to_string(), lower_case(ink)),
    };
    let (frame, data) = match element.source {
        ElementSource::Frame(name) => (name, String::new()),
        ElementSource::Shape(shape, corners) => ("", shape_data(chart, shape, corners)),
        ElementSource::Cell(cell) => {
            ("", format!("data-said=\"{}\"", escape(&with_micro_sign(&cell.words))))
        }
        ElementSource::Other => ("", String::new()),
    };
    let class = format!("{frame} {class}");
    format!("<path class=\"{}\" {data} {}/>\n", class.trim(), attributes(element, &ink))
}

/// Writes a text of the page. Labels are centred, as the browser's letters may have another width.
fn text(text: &PlacedText) -> String {
    let half = (BARE.measure)(&text.words, text.kind) / 2.0;
    let (x, anchor) = match text.anchor {
        TextAnchor::Left if text.stretch.is_some() => (text.at.0 + half, "middle"),
        TextAnchor::Left => (text.at.0, "start"),
        TextAnchor::Middle => (text.at.0, "middle"),
        TextAnchor::Right => (text.at.0, "end"),
    };
    let stretch = match text.stretch {
        Some((from, to)) => format!("data-x=\"{}\"", stretch_ends(from, to)),
        None => String::new(),
    };
    let (class, fill) = match text.kind {
        TextKind::Cell(_) => {
            ("cell".to_string(), format!("fill=\"{}\"", hex_colour(text_ink(text.kind))))
        }
        kind => (lower_case(kind), String::new()),
    };
    format!(
        "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" {stretch}{fill}>{}</text>\n",
        rounded(x),
        rounded(baseline(text)),
        escape(&with_micro_sign(&text.words))
    )
}

/// The rows of a table, the head first, and the number of published ones at the end.
struct TableRows {
    rows: Vec<Vec<String>>,
    published: usize,
}

/// Writes all points as a table, a row each, published ones at the end; laws, distributions and
/// single samples are left to the chart and to exports, as `unlisted` says.
fn table(figure: &Figure, chart: &PlacedChart, unlisted: &str) -> String {
    let TableRows { rows, published } = match &figure.body {
        FigureBody::Series(_) => series_rows(figure, chart),
        FigureBody::Map(map) => map_rows(figure, map, chart),
    };
    if !(2..=MAX_ROWS).contains(&rows.len()) {
        return format!("<p class=\"note\">{}</p>", escape(unlisted));
    }
    let title = escape(&figure.title);
    let head = table_row(&rows[0], true, "");
    let mut body = String::new();
    for (number, row) in rows.iter().enumerate().skip(1) {
        let class = if number < rows.len() - published { "" } else { PUBLISHED };
        body += &table_row(row, false, class);
    }
    format!(
        "<details><summary>Table: {title}</summary>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: {title}\">\
         <table><caption>{title}</caption><thead>{head}</thead><tbody>{body}</tbody></table></div></details>"
    )
}

fn table_row(cells: &[String], is_head: bool, class: &str) -> String {
    let mut row = format!("<tr{class}>");
    for (column, text) in cells.iter().enumerate() {
        let text = escape(&with_micro_sign(text));
        row += &match (is_head, column) {
            (true, _) => format!("<th scope=\"col\">{text}</th>"),
            (false, 0) => format!("<th scope=\"row\">{text}</th>"),
            (false, _) => format!("<td>{text}</td>"),
        };
    }
    row + "</tr>"
}

fn series_rows(figure: &Figure, chart: &PlacedChart) -> TableRows {
    let (x, y) = (&chart.axes.x, &chart.axes.y);
    let head = ["series", heading(&figure.x), &figure.y.label, "interval"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let mut listed: Vec<_> = chart.entries.iter().collect();
    listed.retain(|entry| !matches!(entry.series.role, Role::Raw | Role::Law | Role::Distribution));
    listed.sort_by_key(|entry| is_published(entry.series));
    let mut published = 0;
    for entry in listed {
        for point in &entry.series.points {
            published += usize::from(is_published(entry.series));
            let interval = y.format_interval(point).unwrap_or("-".to_string());
            let place = x.format_value(point.x);
            rows.push(vec![entry.name.clone(), place, y.format_point(point), interval]);
        }
    }
    TableRows { rows, published }
}

fn map_rows(figure: &Figure, map: &HeatMap, chart: &PlacedChart) -> TableRows {
    // The axes of a map have a number for each column and row.
    let mut head = vec![figure.y.label.clone()];
    for column in 0..map.xs.len() {
        head.push(chart.axes.x.format_value(column as f64));
    }
    let mut rows = vec![head];
    for (number, values) in map.values.iter().enumerate() {
        let mut row = vec![chart.axes.y.format_value(number as f64)];
        for value in values {
            row.push(value.map_or("-".to_string(), |value| written(map.unit, value)));
        }
        rows.push(row);
    }
    TableRows { rows, published: 0 }
}
