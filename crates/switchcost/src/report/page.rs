//! A page of charts: what the reports of runs and of traces share beside the charts themselves.

use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result};
use charts::{Figure, HtmlPage, escape, with_micro_sign};
use clap::Args;
use rundata::run::ProgramBuild;

use crate::base::failure::usage;
use crate::base::values::Destination;
use crate::report::output::{check_destination, write_output};
use crate::report::tiles::Tile;

/// CSS of all but the charts.
pub(crate) const STYLE: &str = include_str!("page.css");

/// The program that made it.
pub(crate) const GENERATOR: &str = concat!("switchcost ", env!("CARGO_PKG_VERSION"));

/// The id of what is behind the charts.
pub(crate) const DETAILS: &str = "how";

/// Tiles of figures.
pub(crate) const MOST_TILES: usize = 7;

/// By this a report is known for one.
const KNOWN_BY: &str = "<meta name=\"generator\" content=\"switchcost";

/// Bytes of a file within which the generator stands, if it is a report.
const HEAD: u64 = 1024;

/// Refuses a place that cannot be written to, and to write over a file that is no report: a run
/// file, most likely, that was to be drawn.
pub(crate) fn check(flag: &str, to: &Destination) -> Result<()> {
    check_destination(flag, to)?;
    let Destination::File(path) = to else { return Ok(()) };
    if !path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0) {
        return Ok(());
    }
    let cannot = || format!("cannot read {}", path.display());
    let mut head = Vec::new();
    let file = File::open(path).with_context(cannot)?;
    file.take(HEAD).read_to_end(&mut head).with_context(cannot)?;
    if String::from_utf8_lossy(&head).contains(KNOWN_BY) {
        return Ok(());
    }
    Err(usage(format!(
        "{}: a file that is no report of switchcost is there already: remove it, or name another \
         ({flag} FILE)",
        path.display()
    )))
}

/// Names the build of the program that measured.
pub(crate) fn build_words(build: &ProgramBuild) -> String {
    format!("switchcost {} ({} build)", build.version, build.profile)
}

/// What stands before the charts: a line for each of the answer, what it is of (HTML), tiles (HTML).
pub(crate) fn header(title: &str, lead: &str, setting: &str, tiles: &str) -> String {
    let lead: String = lead.lines().map(|line| paragraph("lead", line)).collect();
    let tiles = match tiles {
        "" => String::new(),
        tiles => format!("<ul class=\"tiles\">{tiles}</ul>\n"),
    };
    format!("<header>\n<h1>{}</h1>\n{lead}{setting}{tiles}</header>\n", escape(title))
}

/// In it what may be typed stays on a line.
pub(crate) fn paragraph(class: &str, words: &str) -> String {
    let word = |word: &str| match word.trim_start_matches('(').starts_with("--") {
        true => format!("<span class=\"typed\">{}</span>", escape(word)),
        false => escape(word).to_string(),
    };
    let words = with_micro_sign(words);
    let words: Vec<String> = words.split(' ').map(word).collect();
    format!("<p class=\"{class}\">{}</p>\n", words.join(" "))
}

/// A figure, its unit, and its interval as a bar; what was counted has none.
pub(crate) fn tile(tile: &Tile) -> String {
    let [from, to, at] = tile.bar().map(|share| 100.0 * share);
    let interval = format!(
        "<span class=\"bar\"><span>0</span><svg class=\"interval\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <path class=\"whole\" d=\"M0,4H100\"/><path class=\"ends\" d=\"M{from:.2},4H{to:.2}\"/>\
         <path class=\"at\" d=\"M{at:.2},0V8\"/></svg><span>{}</span></span>\
         <span class=\"range\">{}</span>",
        tile.scale(),
        escape(&tile.interval())
    );
    let without = tile.without_interval.map(|what| format!("<span class=\"range\">{what}</span>"));
    format!(
        "<li class=\"tile\"><span class=\"of\">{}</span><span class=\"figure\">{} <span \
         class=\"unit\">{}</span></span>{}</li>\n",
        escape(&tile.name),
        tile.figure(),
        tile.unit.replace("us", "µs"),
        without.unwrap_or(interval)
    )
}

/// What stands behind the charts: sections in HTML, below a heading.
pub(crate) fn details(title: &str, sections: &str) -> String {
    format!(
        "<section id=\"{DETAILS}\" aria-labelledby=\"{DETAILS}-title\">\n\
         <h2 id=\"{DETAILS}-title\">{}</h2>\n<div class=\"runs\">\n{sections}</div>\n</section>\n",
        escape(title)
    )
}

/// One of these: a heading (HTML), facts by name, and what the terminal says. `name` tells it from
/// the others.
pub(crate) fn section(
    heading: &str,
    (facts_of, facts): (&str, &[(&str, &str)]),
    (text_of, name): (&str, &str),
    text: Option<&str>,
) -> String {
    let fact = |(what, is): &(&str, &str)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(what), escape(is))
    };
    let text = text.map(|text| {
        format!(
            "<details><summary>{text_of}, as on the terminal</summary><pre tabindex=\"0\" \
             role=\"region\" aria-label=\"{text_of}: {}\">{}</pre></details>\n",
            escape(name),
            escape(text)
        )
    });
    format!(
        "<section class=\"run\">\n<h3>{heading}</h3>\n\
         <details class=\"facts\"><summary>{facts_of}</summary><dl>{}</dl></details>\n{}</section>\n",
        facts.iter().map(fact).collect::<String>(),
        text.unwrap_or_default()
    )
}

/// Where a page of charts goes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReportOutput {
    /// Write a report with charts in HTML to a file, or - for standard output
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(long, short = 'o', value_name = "FILE|-")]
    pub(crate) report: Option<Destination>,
}

impl ReportOutput {
    /// Checks that the page can be written, and to another place than these outputs.
    pub(crate) fn check(&self, others: &[(&str, Option<&Destination>)]) -> Result<()> {
        let Some(to) = &self.report else { return Ok(()) };
        check("--report", to)?;
        for (flag, other) in others {
            if other.is_some_and(|other| other.is_same_place(to)) {
                return Err(usage(format!("--report {to}: {flag} is written there")));
            }
        }
        Ok(())
    }

    /// Returns whether standard output has the page.
    pub(crate) fn is_stdout(&self) -> bool {
        self.report == Some(Destination::Stdout)
    }

    /// Writes the page if one was asked for; returns a line for people that says where it is.
    pub(crate) fn write(&self, page: impl FnOnce() -> FindingsPage) -> Result<String> {
        let Some(to) = &self.report else { return Ok(String::new()) };
        write_output(page().html().as_bytes(), to).context("the report is not written")?;
        Ok(match to {
            Destination::File(path) => format!("report: {}\n", path.display()),
            Destination::Stdout => String::new(),
        })
    }
}

/// A page of findings that are no stored run: of commands, of calls, of a trend, of a trace.
pub(crate) struct FindingsPage {
    /// The title of the window, behind the program's name.
    pub(crate) title: String,
    /// The heading.
    pub(crate) heading: &'static str,
    /// The answer, a paragraph for each line.
    pub(crate) answer: String,
    /// What was measured and how often, in a sentence.
    pub(crate) setting: String,
    /// The figures that stand for it, the most important first.
    pub(crate) tiles: Vec<Tile>,
    /// The charts, the most important first.
    pub(crate) figures: Vec<Figure>,
    /// The question that each chart answers, by the chart's id.
    pub(crate) questions: &'static [(&'static str, &'static str)],
    /// What is behind the charts.
    pub(crate) details: FindingsDetails,
    /// A paragraph at the end: how to read the figures.
    pub(crate) footer: &'static str,
}

/// What stands behind the charts of such a page.
pub(crate) struct FindingsDetails {
    /// The title of the section.
    pub(crate) title: &'static str,
    /// What was measured.
    pub(crate) subject: String,
    /// The title of the facts.
    pub(crate) facts_title: &'static str,
    /// Facts of the measurement by name.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// The title of the text.
    pub(crate) text_title: &'static str,
    /// All that the terminal shows.
    pub(crate) text: String,
    /// Why a chart with many points has no table.
    pub(crate) unlisted: &'static str,
}

impl FindingsPage {
    /// The whole file.
    pub(crate) fn html(&self) -> String {
        let details = &self.details;
        let tiles: String = self.tiles.iter().take(MOST_TILES).map(tile).collect();
        let facts: Vec<(&str, &str)> =
            details.facts.iter().map(|(name, fact)| (*name, fact.as_str())).collect();
        let section = section(
            &escape(&details.subject),
            (details.facts_title, &facts),
            (details.text_title, &details.subject),
            Some(&details.text),
        );
        let question = |figure: &Figure| {
            let known = self.questions.iter().find(|(id, _)| *id == figure.id);
            known.map_or(figure.title.clone(), |(_, question)| question.to_string())
        };
        HtmlPage {
            title: &format!("switchcost: {}", self.title),
            generator: GENERATOR,
            style: STYLE,
            header: &header(
                self.heading,
                &self.answer,
                &paragraph("setting", &self.setting),
                &tiles,
            ),
            behind: &self::details(details.title, &section),
            contents: &[(DETAILS, details.title)],
            footer: &format!("<footer><p>{}</p></footer>\n", escape(self.footer)),
            runs: std::slice::from_ref(&details.subject),
            first: 1,
            figures: &self.figures,
            heading: &question,
            has_published: false,
            only_published: &[],
            own: "",
            published: "",
            unlisted: details.unlisted,
        }
        .html()
    }
}
