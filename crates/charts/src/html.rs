//! Charts in one HTML file that needs nothing else.
//!
//! Each chart is SVG that a browser shows without any script. What `charts.js` needs to draw it
//! again between other ends or on other axes stands beside it (`script_data`).

mod script_data;

use crate::combine::RatioBase;
use crate::figure::{Axis, Figure, FigureBody, Role, Scale, Series, Unit};
use crate::layout::{MOST, layout};
use crate::page::{
    LegendItem, LegendSample, PageMedium, PlacedChart, PlacedText, TextAnchor, TextKind,
};
use crate::paper::{attributes, hex, number};
use crate::picture::{
    ElementSource, Ink, PAPER, PictureElement, elements, ink_of, letters, sample, with_micro_sign,
};
use crate::shapes::SeriesEntry;
use crate::text::escape;
use crate::ticks::written;
use script_data::{RulerList, joined, lower};

const STYLE: &str = include_str!("html/charts.css");
const SCRIPT: &str = include_str!("html/charts.js");

/// Longer tables, with their head, are not written: nobody reads them.
const MOST_ROWS: usize = 401;

/// Forbids whatever would leave the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";

/// The page of a chart: title, legend and notes are HTML around it. The script takes letters to be
/// as wide.
const BARE: PageMedium = PageMedium {
    margin: 6.0,
    plot: 250.0,
    name: (20.0, 12.0),
    rows: 3,
    bare: true,
    measure: |text, kind| 0.6 * letters(kind) * text.chars().count() as f64,
    ..PAPER
};

/// The same of the first: it is seen with the answer above it.
const FIRST: PageMedium = PageMedium { plot: 205.0, longest: 330.0, ..BARE };

/// The same of one of two that stand side by side.
const PANEL: PageMedium = PageMedium { width: 480.0, plot: 205.0, longest: 140.0, rows: 2, ..BARE };

/// A page with charts. What is HTML is marked so; all else is text.
pub struct HtmlPage<'a> {
    /// The title of the window.
    pub title: &'a str,
    /// The program that made it.
    pub generator: &'a str,
    /// CSS of header and footer.
    pub style: &'a str,
    /// HTML before the charts.
    pub header: &'a str,
    /// HTML behind them, of the same matter.
    pub behind: &'a str,
    /// What of that the contents list too: its id and its name.
    pub contents: &'a [(&'a str, &'a str)],
    /// HTML at the end.
    pub footer: &'a str,
    /// Names of the runs that series are of.
    pub runs: &'a [String],
    /// The charts.
    pub figures: &'a [Figure],
    /// The heading of a chart: what it answers.
    pub heading: &'a dyn Fn(&Figure) -> String,
    /// How many of the charts are first, before the controls: side by side if there are several.
    pub first: usize,
    /// Whether published series are shown at once: else a reader has to ask for them.
    pub has_published: bool,
    /// Charts that are there for their published series, by id.
    pub only_published: &'a [&'a str],
    /// What it is to be relative to a figure's base: "relative to the first point that holds".
    pub own: &'a str,
    /// What published series are called together.
    pub published: &'a str,
    /// Said of a chart whose points are too many for a table.
    pub unlisted: &'a str,
}

impl HtmlPage<'_> {
    /// The whole file.
    pub fn html(&self) -> String {
        let (first, others) = self.figures.split_at(self.first.min(self.figures.len()));
        let (medium, side_by_side) = match first.len() {
            0 | 1 => (&FIRST, ""),
            _ => (&PANEL, " beside"),
        };
        let sections = |figures: &[Figure], medium| {
            figures.iter().map(|figure| self.section(figure, medium)).collect::<String>()
        };
        let letter = (BARE.measure)("0", TextKind::Tick);
        let sizes = [BARE.margin, BARE.gap, letter, BARE.ticks as f64, MOST as f64];
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
            first = sections(first, medium),
            others = sections(others, &BARE),
            nav = self.nav(),
            behind = self.behind,
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
    fn bases(&self) -> Vec<(String, RatioBase, String)> {
        let runs = self.runs.iter().enumerate().filter(|_| self.runs.len() > 1);
        let of_run = |(run, name): (usize, &String)| {
            (format!("run-{run}"), RatioBase::Run(run), format!("relative to run {name}"))
        };
        let own = ("own".to_string(), RatioBase::Own, self.own.to_string());
        std::iter::once(own).chain(runs.map(of_run)).collect()
    }

    fn controls(&self) -> String {
        let option = |(name, base, what): (String, RatioBase, String)| {
            let applies = self.figures.iter().any(|figure| relative(figure, base).is_some());
            applies.then(|| format!("<option value=\"{name}\">{}</option>", escape(&what)))
        };
        let bases: String = self.bases().into_iter().filter_map(option).collect();
        let published = format!(
            "<label><input type=\"checkbox\" id=\"published\"{}> {}</label>\n",
            if self.has_published { " checked" } else { "" },
            escape(self.published)
        );
        let is_there = self.figures.iter().flat_map(Figure::series).any(is_published);
        // The script asks for the base, however little there is to choose.
        let values = match bases.as_str() {
            "" => "<input type=\"hidden\" id=\"base\" value=\"absolute\">\n".to_string(),
            _ => format!(
                "<label>Values <select id=\"base\"><option value=\"absolute\">as \
                 measured</option>{bases}</select></label>\n"
            ),
        };
        format!(
            "<form id=\"controls\" aria-label=\"How the charts are drawn\">\n\
             {values}\
             <label>PlotAxes <select id=\"axes\"><option value=\"fitting\">as suits each chart</option>\
             <option value=\"linear\">linear</option><option value=\"log\">logarithmic</option></select></label>\n\
             {published}\
             <noscript>These need JavaScript: without it charts are pictures.</noscript>\n\
             </form>\n",
            published = if is_there { published } else { String::new() },
        )
    }

    fn is_only_published(&self, figure: &Figure) -> bool {
        self.only_published.contains(&figure.id.as_str())
    }

    /// Links to all charts and to what is behind them.
    fn nav(&self) -> String {
        let mut links: Vec<(&str, String, &str)> = Vec::new();
        for figure in self.figures {
            let class = if self.is_only_published(figure) { PUBLISHED } else { "" };
            // Charts that ask the same of several runs follow each other.
            let heading = (self.heading)(figure);
            let name = heading.split_once(" (").map_or(&*heading, |(name, _)| name).to_string();
            if links.iter().all(|(_, known, _)| *known != name) {
                links.push((&figure.id, name, class));
            }
        }
        links.extend(self.contents.iter().map(|(id, name)| (*id, name.to_string(), "")));
        let link = |(id, name, class): &(&str, String, &str)| {
            format!("<li{class}><a href=\"#{}\">{}</a></li>", escape(id), escape(name))
        };
        let links: String = links.iter().map(link).collect();
        format!("<nav aria-label=\"Contents\"><ul>{links}</ul></nav>\n")
    }

    fn section(&self, figure: &Figure, medium: &PageMedium) -> String {
        let (id, heading) = (escape(&figure.id), escape(&(self.heading)(figure)));
        let words = figure
            .in_words
            .lines()
            .map(|line| format!("<p>{}</p>", escape(&with_micro_sign(line))));
        // Runs are named only where there are several.
        let mut runs = figure.series().iter().filter_map(|series| series.run);
        let first = runs.next();
        let names = if runs.any(|run| Some(run) != first) { self.runs } else { &[] };
        let is_only_published = self.is_only_published(figure);
        let shown = match self.has_published || is_only_published {
            true => figure.clone(),
            false => own(figure),
        };
        let whole = layout(figure, names, "", medium);
        let chart = layout(&shown, names, "", medium);
        // Published lines have their names at their ends.
        let is_listed = |item: &&LegendItem| {
            !matches!(item.sample, LegendSample::Series(Role::Published, _)) || chart.axes.turned
        };
        let items = chart.items.iter().filter(is_listed);
        let items: String = items.map(|of| item(of, &chart)).collect();
        let button = |class: &str, what: &str, hidden: &str| {
            format!("<button class=\"{class}\" type=\"button\"{hidden}>{what}</button>")
        };
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
            svg = self.svg(figure, names, (&chart, &whole), medium),
            whole = button("whole", "Whole chart", " hidden"),
            as_svg = button("save svg", "Save as SVG", " hidden"),
            as_csv = button("save csv", "Save data as CSV", " hidden"),
            note = escape(chart.left_out.as_deref().unwrap_or_default()),
            words = words.collect::<String>(),
            table = table(figure, &whole, self.unlisted),
        )
    }

    /// `chart` is what is drawn, `whole` the same with all that may be.
    fn svg(
        &self,
        figure: &Figure,
        names: &[String],
        (chart, whole): (&PlacedChart, &PlacedChart),
        medium: &PageMedium,
    ) -> String {
        let axes = &chart.axes;
        let [left, top, right, bottom] = [axes.left, axes.top, axes.right, axes.bottom].map(number);
        let (wide, high) = (number(right - left), number(bottom - top));
        let entries = whole.entries.iter().enumerate();
        let published: Vec<usize> =
            entries.filter(|(_, of)| is_published(of.series)).map(|(index, _)| index).collect();
        let named = whole.entries.iter().enumerate();
        let named =
            named.filter(|(_, of)| of.series.role == Role::Published).map(|(index, _)| index);
        let kind = match chart.cells.is_empty() {
            _ if axes.turned => "names",
            true => "curves",
            false => "map",
        };
        let mut rulers = RulerList::default();
        let is_frame = |element: &PictureElement| matches!(element.source, ElementSource::Frame(_));
        // What is not drawn at first has no path.
        let of = |chart: &PlacedChart,
                  is_told: &dyn Fn(&PictureElement) -> bool,
                  is_drawn: bool| {
            let told = elements(chart).into_iter().filter(|of| !is_frame(of) && is_told(of));
            let told = told.map(|of| PictureElement { path: of.path.filter(|_| is_drawn), ..of });
            told.map(|element| path(&element, chart)).collect::<String>()
        };
        let is_drawn = |element: &PictureElement| match element.source {
            ElementSource::Shape(shape, _) => {
                shape.series.is_none_or(|at| at < chart.entries.len())
            }
            _ => true,
        };
        let group =
            |name: &str, rulers: &mut RulerList, figure: &Figure, whole: &PlacedChart, paths| {
                let views = views(rulers, figure, whole);
                format!("<g data-base=\"{name}\" {views}>\n{paths}</g>\n")
            };
        let paths = of(whole, &|element| !is_drawn(element), false) + &of(chart, &|_| true, true);
        let as_measured = group("absolute", &mut rulers, figure, whole, paths);
        let divided = |(name, base, what): (String, RatioBase, String)| {
            let divided = relative(figure, base)?;
            let label = format!("{}, {what}{}", figure.y.label, without_base(figure, &divided));
            let y = Axis::new(&label, Unit::Ratio, Scale::Linear);
            let body = FigureBody::Series(divided);
            let figure = Figure { body, y, ..figure.clone() }.with_fitting_scale();
            let whole = layout(&figure, names, "", medium);
            let paths = of(&whole, &|_| true, false);
            Some(group(&name, &mut rulers, &figure, &whole, paths))
        };
        let frame = elements(chart).into_iter().filter(is_frame);
        let frame: String = frame.map(|element| path(&element, chart)).collect();
        let relative: String = self.bases().into_iter().filter_map(divided).collect();
        let columns = |axis: &Axis| escape(&with_micro_sign(&with_unit(axis)));
        format!(
            "<svg viewBox=\"0 0 {} {}\" tabindex=\"0\" role=\"img\" aria-label=\"{title}\" \
             aria-describedby=\"{id}-words\" data-plot=\"{left} {top} {right} {bottom}\" \
             data-kind=\"{kind}\" data-names=\"{}\" data-published=\"{}\" data-named=\"{}\" data-x=\"{x}\" \
             data-y=\"{y}\">\n{}{}\
             <svg class=\"plot\" x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" \
             viewBox=\"{left} {top} {wide} {high}\">{as_measured}{relative}</svg>\n{}</svg>",
            medium.width,
            number(chart.height),
            joined(whole.entries.iter().map(|entry| escape(&entry.name)), "\n"),
            joined(published.iter(), " "),
            joined(named, " "),
            rulers.0.concat(),
            frame,
            chart.texts.iter().map(text).collect::<String>(),
            title = escape(&figure.title),
            id = escape(&figure.id),
            x = columns(&figure.x),
            y = columns(&figure.y),
        )
    }
}

/// The series divided by a base. A run is one only beside another run: what was published stands in
/// the chart itself.
fn relative(figure: &Figure, base: RatioBase) -> Option<Vec<Series>> {
    let runs = || figure.series().iter().filter_map(|series| series.run.map(RatioBase::Run));
    let is_one = matches!(base, RatioBase::Run(_)) && runs().all(|run| run == base);
    if is_one { None } else { figure.relative_to(base) }
}

/// Names the measured series that have no point that holds to be divided by.
fn without_base(figure: &Figure, divided: &[Series]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (series, divided) in figure.series().iter().zip(divided) {
        let is_measured = matches!(series.role, Role::Measured | Role::Bars);
        if is_measured && divided.points.is_empty() && !series.points.is_empty() {
            names.push(&series.name);
        }
    }
    match names.is_empty() {
        true => String::new(),
        false => format!(" (no base that holds: {})", names.join(", ")),
    }
}

/// Marks what is hidden unless published series are shown.
const PUBLISHED: &str = " class=\"published\"";

/// The label of an axis with the unit of the numbers that the script has.
fn with_unit(axis: &Axis) -> String {
    let unit = match axis.unit {
        Unit::Nanoseconds => " (ns)",
        Unit::Bytes => " (bytes)",
        Unit::Percent => " (%)",
        Unit::Count | Unit::Ratio | Unit::Names => "",
    };
    let label = if axis.label.is_empty() { "of" } else { &axis.label };
    format!("{label}{unit}")
}

/// The figure without published series: these may be far off, and without them another scale may be
/// better.
fn own(figure: &Figure) -> Figure {
    if !figure.series().iter().any(is_published) {
        return figure.clone();
    }
    let own = figure.series().iter().filter(|series| !is_published(series)).cloned();
    let own: Vec<Series> = own.collect();
    // Names that only they have are at the end.
    let places = own.iter().flat_map(|series| &series.points).map(|point| point.x as usize);
    let mut x = figure.x.clone();
    x.names.truncate(places.max().map_or(0, |last| last.saturating_add(1)));
    let y = Axis { scale: Scale::Linear, ..figure.y.clone() };
    Figure { body: FigureBody::Series(own), x, y, ..figure.clone() }.with_fitting_scale()
}

/// Whether the control for published series switches it; those of a run were asked for.
fn is_published(series: &Series) -> bool {
    series.role == Role::Published && series.run.is_none()
}

/// What is seen of a chart with published series and without them, where it has any.
fn views(rulers: &mut RulerList, figure: &Figure, chart: &PlacedChart) -> String {
    let on = format!("data-on=\"{}\"", rulers.views(figure, chart, |_| true));
    if !figure.series().iter().any(is_published) {
        return on;
    }
    let off = rulers.views(&own(figure), chart, |series| !is_published(series));
    format!("{on} data-off=\"{off}\"")
}

/// An item of the legend: a button that switches its series.
fn item(item: &LegendItem, chart: &PlacedChart) -> String {
    let placed = LegendItem { at: (0.0, 6.0), ..item.clone() };
    let sample: String = sample(&placed).iter().map(|element| path(element, chart)).collect();
    let svg = format!("<svg width=\"22\" height=\"12\" aria-hidden=\"true\">{sample}</svg>");
    let name = svg + &escape(&with_micro_sign(&item.name));
    let series = joined(item.series.iter(), " ");
    match series.as_str() {
        "" => format!("<span>{name}</span>"),
        _ => format!(
            "<button type=\"button\" aria-pressed=\"true\" data-series=\"{series}\">{name}</button>"
        ),
    }
}

/// An element of a chart, with what the script is told of it.
fn path(element: &PictureElement, chart: &PlacedChart) -> String {
    let (ink, class) = match element.ink {
        Ink::Cell(_) => (hex(element.ink), String::new()),
        Ink::Series(number) => ("currentColor".to_string(), format!("s{}", number % 7)),
        ink => ("currentColor".to_string(), lower(ink)),
    };
    let (frame, told) = match element.source {
        ElementSource::Frame(name) => (name, String::new()),
        ElementSource::Shape(shape, corners) => ("", script_data::shape(chart, shape, corners)),
        ElementSource::Cell(cell) => {
            ("", format!("data-said=\"{}\"", escape(&with_micro_sign(&cell.said))))
        }
        ElementSource::Other => ("", String::new()),
    };
    let class = format!("{frame} {class}");
    format!("<path class=\"{}\" {told} {}/>\n", class.trim(), attributes(element, &ink))
}

/// A text of the page. Labels are centred, as the browser's letters may have another width.
fn text(text: &PlacedText) -> String {
    let half = (BARE.measure)(&text.words, text.kind) / 2.0;
    let (x, anchor) = match text.anchor {
        TextAnchor::Left if text.of.is_some() => (text.at.0 + half, "middle"),
        TextAnchor::Left => (text.at.0, "start"),
        TextAnchor::Middle => (text.at.0, "middle"),
        TextAnchor::Right => (text.at.0, "end"),
    };
    let of = text.of.map(|of| format!("data-x=\"{}\"", script_data::stretch(of)));
    let (class, fill) = match text.kind {
        TextKind::Cell(_) => ("cell".to_string(), format!("fill=\"{}\"", hex(ink_of(text.kind)))),
        kind => (lower(kind), String::new()),
    };
    format!(
        "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" {}{fill}>{}</text>\n",
        number(x),
        number(text.at.1 + 0.36 * letters(text.kind)),
        of.unwrap_or_default(),
        escape(&with_micro_sign(&text.words))
    )
}

/// All points, a row each, published ones at the end; laws, distributions and single samples are
/// left to the chart and to exports, as `unlisted` says.
fn table(figure: &Figure, chart: &PlacedChart, unlisted: &str) -> String {
    let (x, y) = (&chart.axes.x, &chart.axes.y);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut published = 0;
    match &figure.body {
        FigureBody::Series(_) => {
            let place = if figure.x.label.is_empty() { "of" } else { &figure.x.label };
            rows.push(["series", place, &figure.y.label, "interval"].map(String::from).to_vec());
            let is_listed = |role| !matches!(role, Role::Raw | Role::Law | Role::Distribution);
            let mut listed: Vec<_> =
                chart.entries.iter().filter(|entry| is_listed(entry.series.role)).collect();
            listed.sort_by_key(|entry| is_published(entry.series));
            let points =
                |of: &&SeriesEntry| is_published(of.series).then_some(of.series.points.len());
            published = listed.iter().filter_map(points).sum();
            for entry in listed {
                rows.extend(entry.series.points.iter().map(|point| {
                    let interval = y.format_interval(point).unwrap_or("-".to_string());
                    vec![
                        entry.name.clone(),
                        x.format_value(point.x),
                        y.format_point(point),
                        interval,
                    ]
                }));
            }
        }
        FigureBody::Map(map) => {
            // The axes of a map have a number for each column and row.
            let columns = (0..map.xs.len()).map(|column| x.format_value(column as f64));
            rows.push([figure.y.label.clone()].into_iter().chain(columns).collect());
            for (row, values) in map.values.iter().enumerate() {
                let said = |value: &Option<f64>| value.map(|value| written(map.unit, value));
                let values = values.iter().map(|value| said(value).unwrap_or("-".to_string()));
                rows.push([y.format_value(row as f64)].into_iter().chain(values).collect());
            }
        }
    }
    if !(2..=MOST_ROWS).contains(&rows.len()) {
        return format!("<p class=\"note\">{}</p>", escape(unlisted));
    }
    let last_own = rows.len() - published;
    let row = |(place, cells): (usize, &Vec<String>)| {
        let class = if place < last_own { "" } else { PUBLISHED };
        let cell = |(column, text): (usize, &String)| {
            let text = escape(&with_micro_sign(text));
            match (place, column) {
                (0, _) => format!("<th scope=\"col\">{text}</th>"),
                (_, 0) => format!("<th scope=\"row\">{text}</th>"),
                _ => format!("<td>{text}</td>"),
            }
        };
        format!("<tr{class}>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: Vec<String> = rows.iter().enumerate().map(row).collect();
    let (title, head, rows) = (escape(&figure.title), &rows[0], rows[1..].concat());
    format!(
        "<details><summary>Table: {title}</summary>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: {title}\">\
         <table><caption>{title}</caption><thead>{head}</thead><tbody>{rows}</tbody></table></div></details>"
    )
}
