//! Pages of charts in HTML: the parts that all reports share, and the page of findings that are no
//! stored run.
//!
//! ```text
//! header     heading, the answer, what was measured, tiles
//! charts     crate `charts`
//! details    a section for each run: facts, and the text of the terminal
//! footer     how to read the figures
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};
use charts::{Figure, HtmlPage, escape, with_micro_sign};
use clap::Args;
use rundata::run::ProgramBuild;

use crate::base::failure::usage;
use crate::base::values::Destination;
use crate::report::output::{check_apart, check_destination, write_output};
use crate::report::tiles::Tile;

/// CSS of the page, without that of the charts.
pub(crate) const STYLE: &str = include_str!("page.css");

/// Names the program that wrote the page.
pub(crate) const GENERATOR: &str = concat!("switchcost ", env!("CARGO_PKG_VERSION"));

/// Id of the section behind the charts.
pub(crate) const DETAILS: &str = "how";

/// Most tiles of a page.
pub(crate) const MAX_TILES: usize = 7;

/// Identifies a file as a report of this program.
const REPORT_MARK: &str = "<meta name=\"generator\" content=\"switchcost";

/// Bytes at the beginning of a report that contain its mark.
const MAX_MARK_BYTES: u64 = 1024;

/// Checks that a report can be written. Refuses to replace a file that is no report: most likely it
/// is a run file that was meant to be drawn.
pub(crate) fn check(flag: &str, to: &Destination) -> Result<()> {
    check_destination(flag, to)?;
    let Destination::File(path) = to else { return Ok(()) };
    if !path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0) {
        return Ok(());
    }
    if is_report(path).with_context(|| format!("cannot read {}", path.display()))? {
        return Ok(());
    }
    Err(usage(format!(
        "{}: a file that is no report of switchcost is there already: remove it, or name another \
         ({flag} FILE)",
        path.display()
    )))
}

fn is_report(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(MAX_MARK_BYTES).read_to_end(&mut start)?;
    Ok(String::from_utf8_lossy(&start).contains(REPORT_MARK))
}

/// Names the build of the program that measured.
pub(crate) fn build_words(build: &ProgramBuild) -> String {
    format!("switchcost {} ({} build)", build.version, build.profile)
}

/// Returns the header: the title, a paragraph for each line of the answer, then the setting and the
/// tiles, both HTML.
pub(crate) fn header(title: &str, answer: &str, setting: &str, tiles: &str) -> String {
    let mut text = format!("<header>\n<h1>{}</h1>\n", escape(title));
    for line in answer.lines() {
        text += &paragraph("lead", line);
    }
    text += setting;
    if !tiles.is_empty() {
        text += &format!("<ul class=\"tiles\">{tiles}</ul>\n");
    }
    text + "</header>\n"
}

/// Returns a paragraph, whose options (`--wide`) are not broken at the end of a line.
pub(crate) fn paragraph(class: &str, words: &str) -> String {
    let words = with_micro_sign(words);
    let words: Vec<String> = words.split(' ').map(paragraph_word).collect();
    format!("<p class=\"{class}\">{}</p>\n", words.join(" "))
}

fn paragraph_word(word: &str) -> String {
    if word.trim_start_matches('(').starts_with("--") {
        format!("<span class=\"typed\">{}</span>", escape(word))
    } else {
        escape(word).to_string()
    }
}

/// Returns a tile: the figure, its unit, and its interval as a bar if it has one.
pub(crate) fn tile(tile: &Tile) -> String {
    let interval = match tile.without_interval {
        Some(why) => format!("<span class=\"range\">{why}</span>"),
        None => tile_interval(tile),
    };
    format!(
        "<li class=\"tile\"><span class=\"of\">{}</span><span class=\"figure\">{} <span \
         class=\"unit\">{}</span></span>{}</li>\n",
        escape(&tile.name),
        tile.figure(),
        tile.unit.replace("us", "µs"),
        interval
    )
}

/// Returns the interval of a tile as a bar that begins at 0, and in figures.
fn tile_interval(tile: &Tile) -> String {
    let [from, to, at] = tile.bar().map(|share| 100.0 * share);
    format!(
        "<span class=\"bar\"><span>0</span><svg class=\"interval\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <path class=\"whole\" d=\"M0,4H100\"/><path class=\"ends\" d=\"M{from:.2},4H{to:.2}\"/>\
         <path class=\"at\" d=\"M{at:.2},0V8\"/></svg><span>{}</span></span>\
         <span class=\"range\">{}</span>",
        tile.scale(),
        escape(&tile.interval())
    )
}

/// Returns the part behind the charts: sections, which are HTML, below a heading.
pub(crate) fn details(title: &str, sections: &str) -> String {
    format!(
        "<section id=\"{DETAILS}\" aria-labelledby=\"{DETAILS}-title\">\n\
         <h2 id=\"{DETAILS}-title\">{}</h2>\n<div class=\"runs\">\n{sections}</div>\n</section>\n",
        escape(title)
    )
}

/// A section of the part behind the charts: the facts of a run, and its text.
pub(crate) struct DetailsSection<'a> {
    /// Heading, which is HTML.
    pub(crate) heading: &'a str,
    /// Title of the facts.
    pub(crate) facts_title: &'a str,
    /// Facts by name.
    pub(crate) facts: &'a [(&'a str, &'a str)],
    /// Title of the text.
    pub(crate) text_title: &'a str,
    /// Name of the run, which tells the section from the others for a screen reader.
    pub(crate) name: &'a str,
    /// Text of the run on the terminal, if it is known.
    pub(crate) text: Option<&'a str>,
}

impl DetailsSection<'_> {
    pub(crate) fn html(&self) -> String {
        let mut facts = String::new();
        for (name, fact) in self.facts {
            facts += &format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(fact));
        }
        let title = self.text_title;
        let text = match self.text {
            Some(text) => format!(
                "<details><summary>{title}, as on the terminal</summary><pre tabindex=\"0\" \
                 role=\"region\" aria-label=\"{title}: {}\">{}</pre></details>\n",
                escape(self.name),
                escape(text)
            ),
            None => String::new(),
        };
        format!(
            "<section class=\"run\">\n<h3>{}</h3>\n\
             <details class=\"facts\"><summary>{}</summary><dl>{facts}</dl></details>\n{text}\
             </section>\n",
            self.heading, self.facts_title
        )
    }
}

/// Option of commands that can write a page of charts.
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
    /// Checks that the page can be written, and not to the place of another output. The other outputs
    /// are named by their flags.
    pub(crate) fn check(&self, outputs: &[(&str, Option<&Destination>)]) -> Result<()> {
        let Some(to) = &self.report else { return Ok(()) };
        check("--report", to)?;
        check_apart(&[&[("--report", Some(to))], outputs].concat())
    }

    /// Returns whether standard output has the page.
    pub(crate) fn is_stdout(&self) -> bool {
        self.report == Some(Destination::Stdout)
    }

    /// Writes the page if it was asked for; returns a line that says where, empty if there is none.
    pub(crate) fn write(&self, page: impl FnOnce() -> FindingsPage) -> Result<String> {
        let Some(to) = &self.report else { return Ok(String::new()) };
        write_output(page().html().as_bytes(), to).context("the report is not written")?;
        Ok(match to {
            Destination::File(path) => format!("report: {}\n", path.display()),
            Destination::Stdout => String::new(),
        })
    }
}

/// A page of findings that are no stored run: the findings of `run`, `profile`, `trend` and `trace`.
pub(crate) struct FindingsPage {
    /// Title of the window, behind the program's name.
    pub(crate) title: String,
    pub(crate) heading: &'static str,
    /// Answer, a paragraph for each line.
    pub(crate) answer: String,
    /// Sentence on what was measured, and how often.
    pub(crate) setting: String,
    /// Figures that stand for the findings, the most important first.
    pub(crate) tiles: Vec<Tile>,
    /// Charts, the most important first.
    pub(crate) figures: Vec<Figure>,
    /// Question that each chart answers, by the chart's id.
    pub(crate) questions: &'static [(&'static str, &'static str)],
    pub(crate) details: FindingsDetails,
    /// Paragraph at the end, on how to read the figures.
    pub(crate) footer: &'static str,
}

/// The part behind the charts of a [`FindingsPage`].
pub(crate) struct FindingsDetails {
    /// Title of the part.
    pub(crate) title: &'static str,
    /// Names what was measured.
    pub(crate) subject: String,
    /// Title of the facts.
    pub(crate) facts_title: &'static str,
    /// Facts of the measurement by name.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// Title of the text.
    pub(crate) text_title: &'static str,
    /// Text of the findings on the terminal.
    pub(crate) text: String,
    /// Says why a chart with many points has no table.
    pub(crate) unlisted: &'static str,
}

impl FindingsPage {
    /// Returns the file.
    pub(crate) fn html(&self) -> String {
        let details = &self.details;
        let tiles: String = self.tiles.iter().take(MAX_TILES).map(tile).collect();
        let facts: Vec<(&str, &str)> =
            details.facts.iter().map(|(name, fact)| (*name, fact.as_str())).collect();
        let section = DetailsSection {
            heading: &escape(&details.subject),
            facts_title: details.facts_title,
            facts: &facts,
            text_title: details.text_title,
            name: &details.subject,
            text: Some(&details.text),
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
            behind: &self::details(details.title, &section.html()),
            contents: &[(DETAILS, details.title)],
            footer: &format!("<footer><p>{}</p></footer>\n", escape(self.footer)),
            runs: std::slice::from_ref(&details.subject),
            first: 1,
            figures: &self.figures,
            heading: &|figure: &Figure| self.question(figure),
            has_published: false,
            only_published: &[],
            own: "",
            published: "",
            unlisted: details.unlisted,
        }
        .html()
    }

    /// Returns the question that a chart answers, or its title where none is declared.
    fn question(&self, figure: &Figure) -> String {
        match self.questions.iter().find(|(id, _)| *id == figure.id) {
            Some((_, question)) => question.to_string(),
            None => figure.title.clone(),
        }
    }
}
