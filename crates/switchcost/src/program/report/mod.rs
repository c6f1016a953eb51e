//! `switchcost report`: runs as charts in one HTML file that needs nothing else, and as pictures.

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
use difference::Difference;
use drawn::Drawn;
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
    // Before runs are read and intervals computed: that takes seconds.
    page::check("--output", &args.output)?;
    if let Some(path) = records::named(&args.runs)? {
        return record_page(args, path);
    }
    let mut found: Vec<(Drawn, Option<Record>)> = Vec::new();
    let mut named: Vec<(PathBuf, &String)> = Vec::new();
    for name in &args.runs {
        if let Some(machine) = name.strip_prefix(PUBLISHED_PREFIX) {
            let machine = find_published(machine)?;
            found.push((Drawn::of_published(&machine, found.len()), None));
            continue;
        }
        for entry in find_all(name)? {
            let (drawn, records) = Drawn::of_file(&entry.path, found.len())?;
            add_once(&mut named, entry.path, name)?;
            found.extend(drawn.into_iter().zip(records.into_iter().map(Some)));
        }
    }
    let (drawn, records): (Vec<Drawn>, Vec<Option<Record>>) = found.into_iter().unzip();
    let report = Report {
        lead: lead(&drawn, &records),
        difference: difference(&drawn, &named)?,
        runs: drawn,
        has_published: args.history,
    };
    let (names, figures) = lettered(&report.runs);
    let pictures = write_pictures(args, &names, &figures, &caption(&names, &report.runs))?;
    report.write(&args.output)?;
    say_where(args, &pictures)
}

/// Writes the page of a record in JSON.
fn record_page(args: &ReportArgs, path: &Path) -> Result<ExitCode> {
    let page = records::page(path)?;
    let names = std::slice::from_ref(&page.details.subject);
    let pictures = write_pictures(args, names, &page.figures, &page.setting)?;
    write_output(page.html().as_bytes(), &args.output)?;
    say_where(args, &pictures)
}

/// Says where the report and the pictures are.
fn say_where(args: &ReportArgs, pictures: &[PathBuf]) -> Result<ExitCode> {
    if let Destination::File(path) = &args.output {
        let pictures = pictures.iter().map(|path| format!("picture: {}\n", path.display()));
        let text = format!("report: {}\n{}", path.display(), pictures.collect::<String>());
        print_text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds a run, unless it was named before: it differs from itself by nothing.
fn add_once<'a>(
    named: &mut Vec<(PathBuf, &'a String)>,
    path: PathBuf,
    name: &'a String,
) -> Result<()> {
    if let Some((_, before)) = named.iter().find(|(known, _)| *known == path) {
        let path = path.display();
        return Err(usage(format!("{before} and {name} are the same run ({path})")));
    }
    named.push((path, name));
    Ok(())
}

/// Writes the report of the experiments of one run, in this order; `lead` is what they say
/// together.
pub(crate) fn write(runs: Vec<Drawn>, lead: &str, to: &Destination) -> Result<()> {
    let lead = Some(lead.to_string());
    Report { runs, lead, difference: None, has_published: false }.write(to)
}

/// Writes the report of what is compared with the first: what differs stands first. `sides` are
/// of these runs, in their order.
pub(crate) fn compared(
    runs: Vec<Drawn>,
    sides: &[Results],
    terms: ComparisonTerms,
    to: &Destination,
) -> Result<()> {
    let first = letters(&runs).into_iter().enumerate().filter(|(index, _)| runs[*index].part == 0);
    let named = first.zip(sides);
    let named: Vec<_> = named.map(|((index, name), of)| (index, name, of)).collect();
    let difference = difference::of(&named, terms);
    Report { runs, lead: None, difference, has_published: false }.write(to)
}

/// What a page is made of.
struct Report {
    runs: Vec<Drawn>,
    /// What runs of several experiments say together.
    lead: Option<String>,
    difference: Option<Difference>,
    has_published: bool,
}

/// Whether each is a run of another experiment, and all of one machine and kernel: then they are
/// told as one.
fn are_parts(runs: &[Drawn]) -> bool {
    let is_other = |(place, run): (usize, &Drawn)| {
        let before = &runs[..place];
        run.is_of_machine_of(&runs[0]) && before.iter().all(|of| of.experiment != run.experiment)
    };
    runs.len() > 1 && runs.iter().enumerate().all(is_other)
}

fn lead(runs: &[Drawn], records: &[Option<Record>]) -> Option<String> {
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

/// What differs between the runs of the experiment that the first run is of; of runs of several
/// experiments in all of them.
fn difference(runs: &[Drawn], typed: &[(PathBuf, &String)]) -> Result<Option<Difference>> {
    let experiment = runs.iter().find_map(|run| run.of_run);
    let is_alike = |run: &Drawn| run.of_run == experiment && run.part == 0;
    let alike = runs.iter().zip(letters(runs)).enumerate().filter(|(_, (run, _))| is_alike(run));
    let alike: Vec<(usize, String, &Path)> = alike
        .filter_map(|(index, (run, name))| Some((index, name, run.path.as_deref()?)))
        .collect();
    if alike.len() < 2 {
        return Ok(None);
    }
    let paths: Vec<&Path> = alike.iter().map(|(.., path)| *path).collect();
    let mut sides = results_of_files(&paths).into_iter().collect::<Result<Vec<Results>>>()?;
    for (path, results) in paths.iter().zip(&mut sides) {
        let typed = typed.iter().find(|(known, _)| known == path);
        results.side.label = typed.map_or_else(String::new, |(_, typed)| label(typed));
    }
    let named = alike.into_iter().zip(&sides);
    let named: Vec<_> = named.map(|((index, name, _), results)| (index, name, results)).collect();
    let terms = ComparisonTerms {
        limit: LIMIT,
        confidence: CONFIDENCE,
        wanted: WantedCost::Switch,
        across: None,
    };
    Ok(difference::of(&named, terms))
}

/// What a side is called: as it was typed, of a file its name alone.
pub(crate) fn label(typed: &str) -> String {
    let bare = typed.strip_prefix(PUBLISHED_PREFIX).unwrap_or(typed);
    if bare.contains(',') {
        return bare.to_string();
    }
    let name =
        Path::new(bare).file_name().filter(|_| bare == typed).map(|name| name.to_string_lossy());
    let name = name.map_or(bare.to_string(), |name| without_ending(&name));
    if name.is_empty() { typed.to_string() } else { name }
}

/// Returns the name of a file without the ending of a run or a record.
fn without_ending(name: &str) -> String {
    let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json"));
    stem.unwrap_or(name).to_string()
}

/// A letter for each run, A to Z and then numbers from 27 on; the experiments of one run have the
/// same.
fn letters(runs: &[Drawn]) -> Vec<String> {
    let mut letters = Vec::new();
    let mut count = 0_usize;
    for run in runs {
        count += usize::from(run.part == 0);
        let place = u8::try_from(count.saturating_sub(1)).ok().filter(|place| *place < 26);
        letters.push(match place {
            Some(place) => char::from(b'A' + place).to_string(),
            None => count.to_string(),
        });
    }
    letters
}

/// A name for each run, and the figures of all together: its letter, and its experiment where
/// several have the letter; runs of different experiments have the names of these.
fn lettered(runs: &[Drawn]) -> (Vec<String>, Vec<Figure>) {
    let is_by_experiment = are_parts(runs);
    let name = |(run, letter): (&Drawn, String)| match run.experiment {
        Some(experiment) if is_by_experiment => experiment.name().to_string(),
        Some(experiment) if run.experiment != run.of_run => format!("{letter} {experiment}"),
        _ => letter,
    };
    let names: Vec<String> = runs.iter().zip(letters(runs)).map(name).collect();
    let of_runs = runs.iter().map(|run| run.figures.clone());
    let figures = overlay_runs(names.iter().cloned().zip(of_runs).collect());
    (names, figures)
}

/// Number of runs, whatever their parts.
fn count_runs(runs: &[Drawn]) -> usize {
    runs.iter().filter(|run| run.part == 0).count()
}

/// What stands below the pictures: where each run was measured and how.
fn caption(names: &[String], runs: &[Drawn]) -> String {
    let caption = |(name, run): (&String, &Drawn)| match runs.len() {
        1 => format!("{}.", run.caption),
        _ => format!("{name}: {}.", run.caption),
    };
    names.iter().zip(runs).map(caption).collect::<Vec<String>>().join(" ")
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

/// `ID.FORMAT` in a folder, whatever the id is.
fn picture_file(folder: &Path, figure: &Figure, format: &str) -> PathBuf {
    let usable = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-';
    let name: String = figure.id.chars().filter(usable).collect();
    folder.join(format!("{name}.{format}"))
}

impl Report {
    fn write(&self, to: &Destination) -> Result<()> {
        write_output(self.page()?.as_bytes(), to)
    }

    /// The whole file.
    fn page(&self) -> Result<String> {
        let (names, mut figures) = lettered(&self.runs);
        figures.retain(|figure| !is_one_published_figure(figure));
        let all = published_machines().context("the published figures")?;
        let (title, titles) = match &self.runs[..] {
            [only] => (format!("switchcost: {}", only.title), vec!["this run".to_string()]),
            many => {
                let titles =
                    names.iter().zip(many).map(|(name, run)| format!("{name}, {}", run.title));
                let title = match count_runs(many) {
                    1 => "switchcost measure".to_string(),
                    count => format!("switchcost: {count} runs"),
                };
                (title, titles.collect())
            }
        };
        let own = self.difference.iter().filter_map(|of| of.figure.clone());
        let mut figures: Vec<Figure> = own.chain(with_published(figures, &all, &titles)).collect();
        figures.sort_by_key(questions::rank);
        let page = HtmlPage {
            title: &title,
            generator: page::GENERATOR,
            style: page::STYLE,
            header: &header::header(self, &names),
            behind: &header::details(&self.runs, &names),
            contents: &[(DETAILS, header::TITLE)],
            footer: FOOTER,
            runs: &names,
            first: first(&figures, are_parts(&self.runs)),
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
}

/// How many charts are first: of a machine that was measured as a whole two, by members and by
/// working set.
fn first(figures: &[Figure], is_whole: bool) -> usize {
    let ids: Vec<&str> = figures.iter().take(2).map(|figure| figure.id.as_str()).collect();
    if is_whole && ids == [RING_COST, COST_BY_ARRAY] { 2 } else { 1 }
}

const FOOTER: &str = "<footer><p>A switch is one that the kernel counted; its cost is what a hop \
     of the ring costs above the ring of one, taken within rounds. Bands and bars show intervals \
     over rounds. PublishedMachine figures are as printed; those of 1984 to 2007 have none.</p></footer>\n";

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
