//! The report: one HTML file that needs nothing else, with charts that are drawn when it is opened, and
//! pictures of them until they are.
//!
//! The charts are figures of [`model::figure`] as JSON; `report.js` draws them with plotly, whose script
//! comes with its crate. Whatever is read from a run file is escaped; the page forbids itself the network.

mod drawn;
mod page;
mod table;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::figure::{together, with_published};
use model::subject::published;

pub(crate) use drawn::Drawn;

use super::picture::{self, Caption};
use super::put;
use crate::cli::Destination;
use crate::failure::usage;

/// By this a report is known for one.
const GENERATOR: &str = "<meta name=\"generator\" content=\"switchcost";

/// Bytes of a file within which the generator stands, if it is a report.
const HEAD: u64 = 1024;

/// Refuses to write over a file that is no report: a run file, most likely, that was to be drawn.
pub(crate) fn check(to: &Destination) -> Result<()> {
    let Destination::File(path) = to else { return Ok(()) };
    let is_taken = path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0);
    match is_taken && !is_report(path)? {
        true => Err(usage(format!(
            "{}: a file that is no report of switchcost is there already: remove it, or name another (-o FILE)",
            path.display()
        ))),
        false => Ok(()),
    }
}

fn is_report(path: &Path) -> Result<bool> {
    let cannot = || format!("cannot read {}", path.display());
    let mut head = Vec::new();
    File::open(path)
        .with_context(cannot)?
        .take(HEAD)
        .read_to_end(&mut head)
        .with_context(cannot)?;
    Ok(String::from_utf8_lossy(&head).contains(GENERATOR))
}

/// Writes the report of these runs, in this order; `lead` is what they say together.
pub(crate) fn write(runs: Vec<Drawn>, lead: Option<&str>, to: &Destination) -> Result<()> {
    check(to)?;
    put(page(runs, lead)?.as_bytes(), to)
}

/// Writes the charts of these runs as pictures into the folders that are named; gives the files. Published
/// figures are drawn if they were asked for: on paper nobody switches them off.
pub(crate) fn write_pictures(
    runs: &[Drawn],
    svg: Option<&Path>,
    png: Option<&Path>,
) -> Result<Vec<PathBuf>> {
    let names: Vec<String> = (0..runs.len()).map(letter).collect();
    let of_runs = runs.iter().map(|run| run.figures.clone());
    let figures = together(names.iter().cloned().zip(of_runs).collect());
    let caption = |(name, run): (&String, &Drawn)| match runs.len() {
        1 => format!("{}.", run.caption),
        _ => format!("{name}: {}.", run.caption),
    };
    let text: Vec<String> = names.iter().zip(runs).map(caption).collect();
    let caption = Caption { runs: &names, text: &text.join(" ") };
    let mut written = Vec::new();
    if let Some(dir) = svg {
        written.extend(picture::write_svg(&figures, &caption, dir)?);
    }
    if let Some(dir) = png {
        written.extend(picture::write_png(&figures, &caption, dir)?);
    }
    Ok(written)
}

/// The whole file.
fn page(mut runs: Vec<Drawn>, lead: Option<&str>) -> Result<String> {
    let names: Vec<String> = (0..runs.len()).map(letter).collect();
    let of_runs = runs.iter_mut().map(|run| std::mem::take(&mut run.figures));
    let figures = together(names.iter().cloned().zip(of_runs).collect());
    let all = published().context("the published figures")?;
    let titles: Vec<String> =
        names
            .iter()
            .zip(&runs)
            .map(|(name, run)| {
                if runs.len() > 1 {
                    format!("{name}, {}", run.title)
                } else {
                    "this run".to_string()
                }
            })
            .collect();
    let figures = with_published(figures, &all, &titles);
    page::html(&page::Page { lead, runs: &runs, names: &names, figures: &figures })
}

/// A, B, ... Z, then 27, 28, ...
fn letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(place) if place < 26 => char::from(b'A' + place).to_string(),
        _ => (index + 1).to_string(),
    }
}
