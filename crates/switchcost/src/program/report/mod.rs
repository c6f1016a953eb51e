//! `switchcost report`: runs as charts in one HTML file that needs nothing else, and as pictures.
//!
//! ```text
//! drawn.rs       a run or a published machine --> DrawnRun: facts, tiles, figures, text
//! difference.rs  several runs of one experiment --> their ratios, which stand first
//! header.rs      what stands before and behind the charts
//! questions.rs   the order of the charts and their headings
//! records.rs     records of run, profile and trend, which have pages of their own
//! ```
//!
//! Several runs are drawn in the same axes and told apart by letters. A run of `measure` is drawn as
//! a run of each of its experiments, which share its letter.

mod difference;
pub(crate) mod drawn;
mod header;
mod questions;
pub(crate) mod records;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::comparison::{ComparisonTerms, LIMIT, WantedCost};
use analysis::results::{PUBLISHED_PREFIX, Results, published_machines};
use anyhow::{Context, Result};
use charts::{Figure, HtmlPage, overlay_runs, render_png, render_svg};
use clap::Args;

use crate::base::failure::usage;
use crate::base::values::Destination;
use crate::engine::effort::CONFIDENCE;
use crate::engine::store::find_all;
use crate::engine::store::speed::results_of_files;
use crate::program::history::find_published;
use crate::registry::{NamedRecord, Record, joint_answer};
use crate::report::figures::published::{is_one_published_figure, with_published};
use crate::report::figures::{COST_BY_ARRAY, RING_COST};
use crate::report::output::{print_text, write_output};
use crate::report::page::{self, DETAILS};
use difference::{ComparedSide, RunDifference};
use drawn::{DrawnFile, DrawnRun};
use questions::HISTORY;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// What to draw: a run (name, start of a name, `last`, `last~1`, or a file), or history:MACHINE
    ///
    /// Several are drawn over each other in the same axes, in the order given. What differs between
    /// those of one experiment stands first. A record that `run`, `profile` or `trend` wrote
    /// (--json FILE.json) is drawn alone.
    #[arg(required = true)]
    pub(crate) runs: Vec<String>,

    /// Where the report goes, or - for standard output
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(short, long, value_name = "FILE|-", default_value_t = Destination::File(PathBuf::from("report.html")))]
    pub(crate) output: Destination,

    /// Write each chart as an SVG file into this folder too, its text as outlines
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,

    /// Write each chart as a PNG file into this folder too, 300 pixels to the inch on a page's
    /// width
    #[arg(long, value_name = "DIR")]
    pub(crate) png: Option<PathBuf>,

    /// Show machines of 1984 to today beside the runs at once
    ///
    /// Without it they are there when the page's reader asks for them.
    #[arg(long)]
    pub(crate) history: bool,
}

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    // Checked before runs are read and intervals computed, which takes seconds.
    page::check("--output", &args.output)?;
    if let Some(path) = records::only_record(&args.runs)? {
        return write_record_page(args, path);
    }
    let (mut runs, mut records) = (Vec::new(), Vec::new());
    let mut files: Vec<NamedFile> = Vec::new();
    for name in &args.runs {
        if let Some(machine) = name.strip_prefix(PUBLISHED_PREFIX) {
            let machine = find_published(machine)?;
            runs.push(DrawnRun::from_published(&machine, runs.len()));
            records.push(None);
            continue;
        }
        for entry in find_all(name)? {
            let file = DrawnFile::read(&entry.path, runs.len())?;
            add_once(&mut files, NamedFile { path: entry.path, name })?;
            runs.extend(file.parts);
            records.extend(file.records.into_iter().map(Some));
        }
    }
    let report = ReportPage {
        lead: joint_lead(&runs, &records),
        difference: difference(&runs, &files)?,
        runs,
        has_published: args.history,
    };
    let (names, figures) = name_and_overlay(&report.runs);
    let pictures = write_pictures(args, &names, &figures, &caption(&names, &report.runs))?;
    report.write(&args.output)?;
    print_places(args, &pictures)
}

/// Writes the page of a record in JSON.
fn write_record_page(args: &ReportArgs, path: &Path) -> Result<ExitCode> {
    let page = records::page(path)?;
    let names = std::slice::from_ref(&page.details.subject);
    let pictures = write_pictures(args, names, &page.figures, &page.setting)?;
    write_output(page.html().as_bytes(), &args.output)?;
    print_places(args, &pictures)
}

/// Prints where the report and the pictures are.
fn print_places(args: &ReportArgs, pictures: &[PathBuf]) -> Result<ExitCode> {
    if let Destination::File(path) = &args.output {
        let mut text = format!("report: {}\n", path.display());
        for picture in pictures {
            text += &format!("picture: {}\n", picture.display());
        }
        print_text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file of a run, and the name by which it was asked for.
struct NamedFile<'a> {
    path: PathBuf,
    name: &'a str,
}

/// Adds a run, unless it was named before: it differs from itself by nothing.
fn add_once<'a>(files: &mut Vec<NamedFile<'a>>, file: NamedFile<'a>) -> Result<()> {
    if let Some(known) = files.iter().find(|known| known.path == file.path) {
        let (path, first, second) = (file.path.display(), known.name, file.name);
        return Err(usage(format!("{first} and {second} are the same run ({path})")));
    }
    files.push(file);
    Ok(())
}

/// Writes the report of the experiments of one run, in this order; `lead` is what they say
/// together.
pub(crate) fn write(runs: Vec<DrawnRun>, lead: &str, to: &Destination) -> Result<()> {
    let lead = Some(lead.to_string());
    ReportPage { runs, lead, difference: None, has_published: false }.write(to)
}

/// Writes the report of runs that are compared with the first: what differs stands first. `results`
/// are those of the runs, in their order.
pub(crate) fn compared(
    runs: Vec<DrawnRun>,
    results: &[Results],
    terms: ComparisonTerms,
    to: &Destination,
) -> Result<()> {
    let mut results = results.iter();
    let mut sides = Vec::new();
    for (index, name) in letters(&runs).into_iter().enumerate() {
        if runs[index].part == 0 {
            sides.extend(results.next().map(|results| ComparedSide { run: index, name, results }));
        }
    }
    let difference = RunDifference::between(&sides, terms);
    ReportPage { runs, lead: None, difference, has_published: false }.write(to)
}

/// The parts that a page is made of.
struct ReportPage {
    runs: Vec<DrawnRun>,
    /// The answer of several experiments in one sentence.
    lead: Option<String>,
    difference: Option<RunDifference>,
    has_published: bool,
}

/// Returns whether each is a run of another experiment, and all are of one machine and kernel: then
/// they are told as one.
fn are_parts(runs: &[DrawnRun]) -> bool {
    for (index, run) in runs.iter().enumerate() {
        let is_repeated = runs[..index].iter().any(|known| known.experiment == run.experiment);
        if is_repeated || !run.has_machine_of(&runs[0]) {
            return false;
        }
    }
    runs.len() > 1
}

/// Returns the answer of all runs in one sentence, if they are told as one.
fn joint_lead(runs: &[DrawnRun], records: &[Option<Record>]) -> Option<String> {
    if !are_parts(runs) {
        return None;
    }
    let mut parts = Vec::new();
    for (run, record) in runs.iter().zip(records) {
        if let (Some(experiment), Some(record)) = (run.experiment, record) {
            let (name, unfinished) = (experiment.name(), run.unfinished);
            parts.push(NamedRecord { name, record, unfinished });
        }
    }
    Some(format!("{}.", joint_answer(&parts)))
}

/// Returns what differs between the runs of the experiment that the first run is of; of runs of
/// several experiments in all of them. `None` with fewer than two such runs.
fn difference(runs: &[DrawnRun], files: &[NamedFile]) -> Result<Option<RunDifference>> {
    let experiment = runs.iter().find_map(|run| run.run_experiment);
    let (mut indices, mut names, mut paths) = (Vec::new(), Vec::new(), Vec::new());
    for (index, name) in letters(runs).into_iter().enumerate() {
        let run = &runs[index];
        if run.run_experiment == experiment && run.part == 0 {
            if let Some(path) = &run.path {
                indices.push(index);
                names.push(name);
                paths.push(path.as_path());
            }
        }
    }
    if paths.len() < 2 {
        return Ok(None);
    }
    let mut results = results_of_files(&paths).into_iter().collect::<Result<Vec<Results>>>()?;
    for (path, results) in paths.iter().zip(&mut results) {
        let file = files.iter().find(|file| file.path == **path);
        results.side.label = file.map_or(String::new(), |file| label(file.name));
    }
    let mut sides = Vec::new();
    for ((run, name), results) in indices.into_iter().zip(names).zip(&results) {
        sides.push(ComparedSide { run, name, results });
    }
    let terms = ComparisonTerms {
        limit: LIMIT,
        confidence: CONFIDENCE,
        wanted: WantedCost::Switch,
        across: None,
    };
    Ok(RunDifference::between(&sides, terms))
}

/// Returns what a side is called: as it was typed; a file by its name alone.
pub(crate) fn label(typed: &str) -> String {
    if let Some(machine) = typed.strip_prefix(PUBLISHED_PREFIX) {
        return if machine.is_empty() { typed.to_string() } else { machine.to_string() };
    }
    if typed.contains(',') {
        return typed.to_string();
    }
    let name = match Path::new(typed).file_name() {
        Some(name) => without_ending(&name.to_string_lossy()),
        None => String::new(),
    };
    if name.is_empty() { typed.to_string() } else { name }
}

/// Returns the name of a file without the ending of a run or a record.
fn without_ending(name: &str) -> String {
    let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json"));
    stem.unwrap_or(name).to_string()
}

/// Returns a letter for each run, A to Z and then numbers from 27 on; the experiments of one run have
/// the same.
fn letters(runs: &[DrawnRun]) -> Vec<String> {
    let mut letters = Vec::new();
    let mut count = 0_usize;
    for run in runs {
        count += usize::from(run.part == 0);
        letters.push(match u8::try_from(count.saturating_sub(1)) {
            Ok(place @ 0..26) => char::from(b'A' + place).to_string(),
            _ => count.to_string(),
        });
    }
    letters
}

/// Returns a name for each run, and the figures of all, drawn in the same axes. A run is named by its
/// letter, and its experiment where several have the letter; runs of different experiments by these.
fn name_and_overlay(runs: &[DrawnRun]) -> (Vec<String>, Vec<Figure>) {
    let is_by_experiment = are_parts(runs);
    let (mut names, mut named_figures) = (Vec::new(), Vec::new());
    for (run, letter) in runs.iter().zip(letters(runs)) {
        let name = match run.experiment {
            Some(experiment) if is_by_experiment => experiment.name().to_string(),
            Some(experiment) if run.experiment != run.run_experiment => {
                format!("{letter} {experiment}")
            }
            _ => letter,
        };
        named_figures.push((name.clone(), run.figures.clone()));
        names.push(name);
    }
    (names, overlay_runs(named_figures))
}

/// Counts the runs, each once whatever its parts.
fn count_runs(runs: &[DrawnRun]) -> usize {
    runs.iter().filter(|run| run.part == 0).count()
}

/// Returns the text below the pictures: where each run was measured and how.
fn caption(names: &[String], runs: &[DrawnRun]) -> String {
    let mut captions = Vec::new();
    for (name, run) in names.iter().zip(runs) {
        captions.push(if runs.len() == 1 {
            format!("{}.", run.caption)
        } else {
            format!("{name}: {}.", run.caption)
        });
    }
    captions.join(" ")
}

/// Writes these charts as pictures into the folders that were named, by format; returns the files.
/// Published figures are drawn if they were asked for: on paper nobody switches them off.
fn write_pictures(
    args: &ReportArgs,
    names: &[String],
    figures: &[Figure],
    caption: &str,
) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (format, folder) in [("svg", &args.svg), ("png", &args.png)] {
        let Some(folder) = folder else { continue };
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {} (--{format})", folder.display()))?;
        for figure in figures {
            let file = picture_file(folder, figure, format);
            let drawn = match format {
                "svg" => Ok(render_svg(figure, names, caption).into()),
                _ => render_png(figure, names, caption),
            };
            let bytes = drawn.with_context(|| format!("cannot draw {}", file.display()))?;
            write_output(&bytes, &Destination::File(file.clone()))?;
            written.push(file);
        }
    }
    Ok(written)
}

/// Returns `ID.FORMAT` in a folder, whatever the id is.
fn picture_file(folder: &Path, figure: &Figure, format: &str) -> PathBuf {
    let mut name = figure.id.clone();
    name.retain(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    folder.join(format!("{name}.{format}"))
}

impl ReportPage {
    fn write(&self, to: &Destination) -> Result<()> {
        write_output(self.html()?.as_bytes(), to)
    }

    fn html(&self) -> Result<String> {
        let (names, mut figures) = name_and_overlay(&self.runs);
        figures.retain(|figure| !is_one_published_figure(figure));
        let machines = published_machines().context("the published figures")?;
        let run_titles = self.run_titles(&names);
        let mut figures = with_published(figures, &machines, &run_titles);
        if let Some(difference) = &self.difference {
            figures.extend(difference.figures.iter().cloned());
        }
        figures.sort_by_key(questions::rank);
        let page = HtmlPage {
            title: &self.title(),
            generator: page::GENERATOR,
            style: page::STYLE,
            header: &header::header(self, &names),
            behind: &header::details(&self.runs, &names),
            contents: &[(DETAILS, header::TITLE)],
            footer: FOOTER,
            runs: &names,
            first: count_first_charts(&figures, are_parts(&self.runs)),
            figures: &figures,
            heading: &questions::heading,
            has_published: self.has_published,
            only_published: &[HISTORY],
            own: "relative to the first point that holds",
            published: "Show machines of 1984 to today",
            unlisted: "Single samples are not listed: switchcost runs export --format csv",
        };
        Ok(page.html())
    }

    fn title(&self) -> String {
        if let [only] = &self.runs[..] {
            return format!("switchcost: {}", only.title);
        }
        match count_runs(&self.runs) {
            1 => "switchcost measure".to_string(),
            count => format!("switchcost: {count} runs"),
        }
    }

    /// Returns what the runs are called beside published machines.
    fn run_titles(&self, names: &[String]) -> Vec<String> {
        if self.runs.len() == 1 {
            return vec!["this run".to_string()];
        }
        let titles = names.iter().zip(&self.runs);
        titles.map(|(name, run)| format!("{name}, {}", run.title)).collect()
    }
}

/// Returns how many charts are first: two, by members and by working set, of a machine that was
/// measured as a whole.
fn count_first_charts(figures: &[Figure], is_whole: bool) -> usize {
    match figures {
        [first, second, ..] if is_whole && first.id == RING_COST && second.id == COST_BY_ARRAY => 2,
        _ => 1,
    }
}

const FOOTER: &str = "<footer><p>A switch is one that the kernel counted; its cost is what a hop \
     of the ring costs above the ring of one, taken within rounds. Bands and bars show intervals \
     over rounds. Published figures are as printed; those of 1984 to 2007 have none.</p></footer>\n";

#[cfg(test)]
mod tests {
    use charts::{Axis, Scale, Unit};

    use super::*;

    #[test]
    fn names_of_files_stay_in_the_folder() {
        let axis = || Axis::new("", Unit::Count, Scale::Linear);
        let figures =
            ["../../etc/passwd", "ring-cost"].map(|id| Figure::new(id, "", axis(), axis()));
        let files = figures.map(|figure| picture_file(Path::new("to"), &figure, "svg"));
        assert_eq!(files, ["to/etcpasswd.svg", "to/ring-cost.svg"].map(PathBuf::from));
    }
}
