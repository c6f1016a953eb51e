//! The machine's costs from stored runs.

use model::instrument::Instrument;
use model::program_cost::{Surface, points_of};
use model::reading::Reading;
use model::ring::Ring;

use crate::store::{Entry, Folder, experiment, read};

/// Experiments that measure costs of rings with work, the better one first.
const EXPERIMENTS: [&str; 2] = ["cost", "ring"];

/// Differences of machines that are named one by one.
const MOST_DIFFERENCES: usize = 3;

/// The costs of the newest stored run that has any, and a word where it is of another machine.
pub(super) fn stored(notices: &mut Vec<String>) -> Reading<Surface> {
    let entries = match Folder::of_user().and_then(|folder| folder.entries()) {
        Ok(entries) => entries,
        Err(error) => return Reading::unknown(format!("{error:#}")),
    };
    let found = EXPERIMENTS.iter().find_map(|wanted| {
        entries.iter().rev().find_map(|entry| surface_of(entry, wanted, notices))
    });
    found.ok_or("no stored surface: run `switchcost cost` first").into()
}

/// A file that cannot be read is no surface.
fn surface_of(entry: &Entry, wanted: &str, notices: &mut Vec<String>) -> Option<Surface> {
    if experiment(&entry.path).ok()? != wanted {
        return None;
    }
    let run = read::<Ring>(&entry.path).ok()?;
    let points = points_of(&Ring::record(&run));
    if points.is_empty() {
        return None;
    }
    let now = probe::machine::read(std::path::Path::new("/"));
    let differences = run.header.machine.differences(&now);
    let fields: Vec<&str> =
        differences.iter().take(MOST_DIFFERENCES).map(|difference| &*difference.field).collect();
    if !fields.is_empty() {
        notices.push(format!(
            "the surface ({}) was measured on a machine that differs in {} fields: {}{}",
            entry.name,
            differences.len(),
            fields.join(", "),
            if differences.len() > MOST_DIFFERENCES { ", ..." } else { "" }
        ));
    }
    Some(Surface { run: entry.name.clone(), points })
}
