//! The page around the charts.

use std::fmt::Write;

use anyhow::{Context, Result};
use model::figure::{Base, Body, Figure, Series};
use model::noise::NoiseLevel;
use plotly::Plot;
use serde::Serialize;

use super::{Drawn, GENERATOR, table};
use crate::report::picture;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// Forbids whatever would leave the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'; base-uri 'none'";

/// What is put on it.
pub(super) struct Page<'a> {
    /// What the runs say together, if they were made for that.
    pub(super) lead: Option<&'a str>,
    pub(super) runs: &'a [Drawn],
    /// By these letters the charts tell runs apart.
    pub(super) names: &'a [String],
    pub(super) figures: &'a [Figure],
}

impl Page<'_> {
    /// The letters that a chart needs: none if all in it is of one run.
    fn names_in(&self, figure: &Figure) -> &[String] {
        let mut runs = figure.series().iter().filter_map(|series| series.run);
        let first = runs.next();
        if runs.any(|run| Some(run) != first) { self.names } else { &[] }
    }

    /// A series as it is called where several runs may be in a chart.
    pub(super) fn name_of(&self, figure: &Figure, series: &Series) -> String {
        match series.run.and_then(|run| self.names_in(figure).get(run)) {
            Some(name) => format!("{name}: {}", series.name),
            None => series.name.clone(),
        }
    }
}

/// Text between tags or in an attribute with quotation marks.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // A terminal's colours and the like have no meaning here.
            control if control.is_control() && !matches!(control, '\n' | '\t') => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// The whole file.
pub(super) fn html(page: &Page) -> Result<String> {
    let title = match page.runs {
        [only] => format!("switchcost: {}", only.title),
        many => format!("switchcost: {} runs", many.len()),
    };
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         {GENERATOR} {version}\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         {header}{controls}<main>\n{figures}</main>\n{footer}\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script type=\"text/plain\" id=\"plotly\">{plotly}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        version = env!("CARGO_PKG_VERSION"),
        title = escape(&title),
        header = header(page),
        controls = controls(page),
        figures =
            page.figures.iter().map(|figure| section(page, figure)).collect::<Result<String>>()?,
        footer = FOOTER,
        data = data(page)?,
        plotly = plotly(),
    ))
}

const FOOTER: &str = "<footer><p>A switch is one that the kernel counted; its cost is what a hop of the ring costs above \
the ring of one, taken within rounds. Bands and bars show intervals over rounds. \
Published figures are as printed (1984 to 2007) and have none.</p></footer>\n";

/// plotly's own script. The crate gives it together with one for formulas, which would make the file
/// half as large again and which no label here needs. The page runs it once the rest is there to be
/// read (report.js).
fn plotly() -> String {
    let sources = Plot::offline_js_sources();
    let script = sources.split_once("</script>").map_or(&*sources, |(first, _)| first);
    let script = script.split_once('>').map_or(script, |(_tag, script)| script);
    at_top_level(script).unwrap_or_else(|| script.to_owned())
}

/// The script without the function that module loaders call: within one a browser parses all of it
/// twice. Nothing where it does not look as it did.
fn at_top_level(script: &str) -> Option<String> {
    let (licence, rest) = script.split_once("(\n function(root, factory) {")?;
    let (_, body) = rest.split_once("() => {\n")?;
    let (body, _) = body.rsplit_once("window.Plotly = Plotly;\nreturn Plotly;\n}));")?;
    Some(format!("{licence}{body}"))
}

fn header(page: &Page) -> String {
    let lead =
        page.lead.map_or(String::new(), |lead| format!("<p class=\"lead\">{}</p>\n", escape(lead)));
    let mut text =
        format!("<header>\n<h1>What a context switch costs</h1>\n{lead}<div class=\"runs\">\n");
    for (name, run) in page.names.iter().zip(page.runs) {
        let name = if page.runs.len() > 1 {
            format!("<b class=\"letter\">{name}</b> ")
        } else {
            String::new()
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "<section class=\"run\">\n<h2>{name}{}</h2>\n", escape(&run.title));
        for (place, sentence) in run.headline.iter().enumerate() {
            let class = if place == 0 { " class=\"headline\"" } else { "" };
            let _ = writeln!(text, "<p{class}>{}</p>", escape(sentence));
        }
        text.push_str(&noise(run));
        text.push_str(&facts(run, page.runs.len() == 1));
        if let Some(told) = &run.text {
            let _ = writeln!(
                text,
                "<details><summary>All that the run says, as on the terminal</summary><pre tabindex=\"0\">{}</pre></details>",
                escape(told)
            );
        }
        text.push_str("</section>\n");
    }
    text.push_str("</div>\n</header>\n");
    text
}

/// What it was measured on in a line, and all that is known of that below: open where one run is all.
fn facts(run: &Drawn, open: bool) -> String {
    let mut text = format!("<p>Measured on {}.</p>\n", escape(&run.setting));
    text.push_str(if open { "<details open>" } else { "<details>" });
    text.push_str("<summary>How it was measured</summary><dl>");
    for (what, is) in &run.facts {
        // Writing to a String cannot fail.
        let _ = write!(text, "<div><dt>{}</dt><dd>{}</dd></div>", escape(what), escape(is));
    }
    text.push_str("</dl></details>\n");
    text
}

fn noise(run: &Drawn) -> String {
    let Some(verdict) = &run.noise else { return String::new() };
    let class = match verdict.level {
        NoiseLevel::Quiet => "quiet",
        NoiseLevel::Noisy => "noisy",
        NoiseLevel::Unusable => "unusable",
        NoiseLevel::Unknown => "unknown",
    };
    format!("<p class=\"noise {class}\">Machine: {}.</p>\n", escape(&verdict.in_words()))
}

fn controls(page: &Page) -> String {
    let mut bases = "<option value=\"absolute\">as measured</option>".to_string();
    if page.figures.iter().any(|figure| figure.relative_to(Base::Two).is_some()) {
        bases.push_str("<option value=\"two\">relative to a ring of two</option>");
    }
    for (run, name) in page.names.iter().enumerate() {
        let serves = |figure: &Figure| figure.relative_to(Base::Run(run)).is_some();
        if page.names.len() > 1 && page.figures.iter().any(serves) {
            let _ = write!(
                bases,
                "<option value=\"run-{run}\">relative to run {}</option>",
                escape(name)
            );
        }
    }
    let links: String = page
        .figures
        .iter()
        .map(|figure| {
            format!("<li><a href=\"#{}\">{}</a></li>", escape(&figure.id), escape(&figure.title))
        })
        .collect();
    format!(
        "<form id=\"controls\" aria-label=\"How the charts are drawn\">\n\
         <label>Values <select id=\"base\">{bases}</select></label>\n\
         <label>Axes <select id=\"axes\"><option value=\"fitting\">as suits each chart</option>\
         <option value=\"linear\">linear</option><option value=\"log\">logarithmic</option></select></label>\n\
         <label><input type=\"checkbox\" id=\"published\" checked> machines of 1984 to 2007</label>\n\
         <noscript>These need JavaScript: without it charts are pictures.</noscript>\n\
         </form>\n<nav aria-label=\"Charts\"><ul>{links}</ul></nav>\n"
    )
}

fn section(page: &Page, figure: &Figure) -> Result<String> {
    let id = escape(&figure.id);
    let words: String =
        figure.in_words.lines().map(|line| format!("<p>{}</p>", escape(line))).collect();
    let picture = picture::within_a_page(figure, page.names_in(figure))
        .with_context(|| format!("cannot draw {}", figure.id))?;
    Ok(format!(
        "<figure id=\"{id}\">\n<h2 id=\"{id}-title\">{title}</h2>\n\
         <div class=\"chart\" role=\"img\" aria-labelledby=\"{id}-title\" aria-describedby=\"{id}-words\">\
         <div class=\"picture{kind}\">{picture}</div></div>\n\
         <p class=\"note\" aria-live=\"polite\"></p>\n\
         <figcaption id=\"{id}-words\">{words}</figcaption>\n{table}\n</figure>\n",
        kind = if matches!(figure.body, Body::Map(_)) { " map" } else { "" },
        title = escape(&figure.title),
        table = table::html(page, figure),
    ))
}

/// What the script draws.
#[derive(Serialize)]
struct Data<'a> {
    names: &'a [String],
    figures: Vec<Chart<'a>>,
}

#[derive(Serialize)]
struct Chart<'a> {
    #[serde(flatten)]
    figure: &'a Figure,
    /// The series as multiples, by what the reader may choose; where there are none they are absent.
    relative: std::collections::BTreeMap<String, Vec<Series>>,
}

fn data(page: &Page) -> Result<String> {
    let chart = |figure: &'_ Figure| {
        let several = if page.names.len() > 1 { page.names.len() } else { 0 };
        let runs = (0..several).map(|run| (format!("run-{run}"), Base::Run(run)));
        let bases = runs.chain([("two".to_string(), Base::Two)]);
        bases.filter_map(|(name, base)| Some((name, figure.relative_to(base)?))).collect()
    };
    let figures =
        page.figures.iter().map(|figure| Chart { figure, relative: chart(figure) }).collect();
    let data = Data { names: page.names, figures };
    let json = serde_json::to_string(&data).context("cannot write the charts as JSON")?;
    // A script ends at the first "</", whatever it stands in.
    Ok(json.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plotly_is_a_plain_script_with_its_licence() {
        let script = plotly();
        assert!(script.trim_start().starts_with("/**\n* plotly.js v"), "{:.80}", script);
        assert!(script.contains("Licensed under the MIT license"));
        assert!(
            script.contains("\"use strict\";var Plotly=("),
            "the crate's script looks different"
        );
        assert!(
            !script.contains("typeof module ===") || !script.contains("function(root, factory)")
        );
    }
}
