//! `switchcost report`: runs as charts in one HTML file that needs nothing else, and as pictures.

pub(crate) mod drawn;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use charts::{Figure, Page, escape, png, svg, together};
use clap::Args;
use model::subject::published;

use crate::base::failure::usage;
use crate::base::values::Destination;
use crate::present::figures::published::with_published;
use crate::present::output::{check_place, print_text, put};
use crate::present::terminal::sentence;
use drawn::Drawn;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// What to draw: a run (name, start of a name, `last`, `last~1`, or a file), or history:MACHINE
    ///
    /// Several are drawn over each other in the same axes, in the order given.
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
}

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    // Before runs are read and intervals computed: that takes seconds.
    check(&args.output)?;
    let drawn: Vec<Drawn> = args
        .runs
        .iter()
        .enumerate()
        .map(|(index, name)| Drawn::find(name, index))
        .collect::<Result<_>>()?;
    let pictures = write_pictures(&drawn, [("svg", &args.svg), ("png", &args.png)])?;
    write(drawn, None, &args.output)?;
    if let Destination::File(path) = &args.output {
        let pictures = pictures.iter().map(|path| format!("picture: {}\n", path.display()));
        let text = format!("report: {}\n{}", path.display(), pictures.collect::<String>());
        print_text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// By this a report is known for one.
const GENERATOR: &str = "<meta name=\"generator\" content=\"switchcost";

/// Bytes of a file within which the generator stands, if it is a report.
const HEAD: u64 = 1024;

/// Refuses to write over a file that is no report: a run file, most likely, that was to be drawn.
pub(crate) fn check(to: &Destination) -> Result<()> {
    check_place("--output", to)?;
    let Destination::File(path) = to else { return Ok(()) };
    if !path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0) {
        return Ok(());
    }
    let cannot = || format!("cannot read {}", path.display());
    let mut head = Vec::new();
    let file = File::open(path).with_context(cannot)?;
    file.take(HEAD).read_to_end(&mut head).with_context(cannot)?;
    if String::from_utf8_lossy(&head).contains(GENERATOR) {
        return Ok(());
    }
    Err(usage(format!(
        "{}: a file that is no report of switchcost is there already: remove it, or name another \
         (-o FILE)",
        path.display()
    )))
}

/// Writes the report of these runs, in this order; `lead` is what they say together.
pub(crate) fn write(runs: Vec<Drawn>, lead: Option<&str>, to: &Destination) -> Result<()> {
    check(to)?;
    put(page(&runs, lead)?.as_bytes(), to)
}

/// A letter for each run, A to Z and then numbers from 27 on, and the figures of all together.
fn lettered(runs: &[Drawn]) -> (Vec<String>, Vec<Figure>) {
    let letters =
        ('A'..='Z').map(String::from).chain((27..).map(|number: usize| number.to_string()));
    let names: Vec<String> = letters.take(runs.len()).collect();
    let of_runs = runs.iter().map(|run| run.figures.clone());
    let figures = together(names.iter().cloned().zip(of_runs).collect());
    (names, figures)
}

/// Writes the charts of these runs as pictures into the folders that are named, by format; gives
/// the files. Published figures are drawn if they were asked for: on paper nobody switches them
/// off.
fn write_pictures(runs: &[Drawn], folders: [(&str, &Option<PathBuf>); 2]) -> Result<Vec<PathBuf>> {
    let (names, figures) = lettered(runs);
    let caption = |(name, run): (&String, &Drawn)| match runs.len() {
        1 => format!("{}.", run.caption),
        _ => format!("{name}: {}.", run.caption),
    };
    let text = names.iter().zip(runs).map(caption).collect::<Vec<String>>().join(" ");
    let mut written = Vec::new();
    for (format, folder) in folders {
        let Some(folder) = folder else { continue };
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {} (--{format})", folder.display()))?;
        for figure in &figures {
            let file = picture_file(folder, figure, format);
            let drawn = match format {
                "svg" => Ok(svg(figure, &names, &text).into()),
                _ => png(figure, &names, &text),
            };
            let bytes = drawn.with_context(|| format!("cannot draw {}", file.display()))?;
            put(&bytes, &Destination::File(file.clone()))?;
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

/// The whole file.
fn page(runs: &[Drawn], lead: Option<&str>) -> Result<String> {
    let (names, figures) = lettered(runs);
    let all = published().context("the published figures")?;
    let (title, titles) = match runs {
        [only] => (format!("switchcost: {}", only.title), vec!["this run".to_string()]),
        many => {
            let titles = names.iter().zip(many).map(|(name, run)| format!("{name}, {}", run.title));
            (format!("switchcost: {} runs", many.len()), titles.collect())
        }
    };
    let page = Page {
        title: &title,
        generator: concat!("switchcost ", env!("CARGO_PKG_VERSION")),
        style: include_str!("report.css"),
        header: &header(runs, &names, lead),
        footer: FOOTER,
        runs: &names,
        figures: &with_published(figures, &all, &titles),
        own: "relative to a ring of two",
        published: "machines of 1984 to 2007",
        unlisted: "Single samples are not listed: switchcost runs export --format csv",
    };
    Ok(page.html())
}

const FOOTER: &str = "<footer><p>A switch is one that the kernel counted; its cost is what a hop \
     of the ring costs above the ring of one, taken within rounds. Bands and bars show intervals \
     over rounds. Published figures are as printed (1984 to 2007) and have none.</p></footer>\n";

/// `lead` is what the runs say together; by their `names` the charts tell runs apart.
fn header(runs: &[Drawn], names: &[String], lead: Option<&str>) -> String {
    let is_one = runs.len() == 1;
    let section = |(name, run): (&String, &Drawn)| {
        let letter = format!("<b class=\"letter\">{name}</b> ");
        let letter = if is_one { "" } else { &letter };
        section(run, letter, if is_one { " open" } else { "" })
    };
    format!(
        "<header>\n<h1>What a context switch costs</h1>\n{}<div class=\"runs\">\n{}</div>\n\
         </header>\n",
        lead.map_or(String::new(), |lead| paragraph("lead", lead)),
        names.iter().zip(runs).map(section).collect::<String>()
    )
}

/// What a run says, on what it was measured, and all that is known of that below: `open` where one
/// run is all.
fn section(run: &Drawn, letter: &str, open: &str) -> String {
    // The first chart is of what matters most.
    let first = run.figures.first().filter(|_| run.text.is_some());
    let headline = first.map(|of| paragraph("headline", &sentence(run.unfinished, &of.in_words)));
    let noise = run.noise.as_ref().map(|verdict| {
        let words = format!("Machine: {}.", verdict.in_words());
        paragraph(&format!("noise {}", verdict.level), &words)
    });
    let fact = |(what, is): &(&str, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(what), escape(is))
    };
    let report = run.text.as_ref().map(|report| {
        format!(
            "<details><summary>All that the run says, as on the terminal</summary><pre \
             tabindex=\"0\">{}</pre></details>\n",
            escape(report)
        )
    });
    format!(
        "<section class=\"run\">\n<h2>{letter}{}</h2>\n{}{}<p>Measured on {}.</p>\n\
         <details{open}><summary>How it was measured</summary><dl>{}</dl></details>\n{}\
         </section>\n",
        escape(&run.title),
        headline.unwrap_or_default(),
        noise.unwrap_or_default(),
        escape(&run.setting()),
        run.facts.iter().map(fact).collect::<String>(),
        report.unwrap_or_default()
    )
}

fn paragraph(class: &str, words: &str) -> String {
    format!("<p class=\"{class}\">{}</p>\n", escape(words))
}

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
