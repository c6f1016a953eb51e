//! The parts of a page around its charts: before them the answer in a sentence and in tiles, behind
//! them how it was measured and all that the runs say.

use analysis::noise::{NoiseLevel, NoiseVerdict};
use charts::{escape, with_micro_sign};

use super::ReportPage;
use super::drawn::DrawnRun;
use crate::report::page::{self, DetailsSection, MAX_TILES, paragraph, tile};
use crate::report::terminal::{counted, sentence};
use crate::report::tiles::Tile;

/// Writes what stands before the charts. The charts tell runs apart by `names`.
pub(super) fn header(report: &ReportPage, names: &[String]) -> String {
    let runs = &report.runs;
    let lead = match (&report.lead, &report.difference, &runs[..]) {
        (Some(lead), ..) => lead.clone(),
        (_, Some(difference), _) => difference.in_words.clone(),
        (.., [only]) => sentence(only.unfinished, &only.headline).into(),
        (.., several) => answers(several, names),
    };
    let setting = match &runs[..] {
        [only] => paragraph("setting", &format!("Measured on {}.", only.setting())),
        several if report.lead.is_some() => {
            paragraph("setting", &format!("Measured on {}.", several[0].place()))
        }
        several => settings(several, names),
    };
    let mut html: String = tiles(report, names).iter().map(tile).collect();
    html.extend(noise_tile(runs));
    page::header("What a context switch costs", &lead, &setting, &html)
}

/// Returns the tiles of the difference, or of all runs in turn. Where runs are not told as one, a
/// tile names its run.
fn tiles(report: &ReportPage, names: &[String]) -> Vec<Tile> {
    if let Some(difference) = &report.difference {
        return difference.tiles.iter().take(MAX_TILES).cloned().collect();
    }
    let are_named = report.runs.len() > 1 && report.lead.is_none();
    let mut tiles = Vec::new();
    for (run, name) in report.runs.iter().zip(names) {
        let mut tiles_of_run = Vec::new();
        for tile in &run.tiles {
            let name = if are_named { format!("{name}: {}", tile.name) } else { tile.name.clone() };
            tiles_of_run.push(tile.clone().with_name(name));
        }
        tiles.push(tiles_of_run);
    }
    Tile::in_turn(&tiles, MAX_TILES)
}

/// Most runs whose answers are told one by one.
const MAX_ANSWERS: usize = 3;

/// Writes the answer of each of several runs, a line each.
fn answers(runs: &[DrawnRun], names: &[String]) -> String {
    let mut lines = Vec::new();
    for (name, run) in names.iter().zip(runs).take(MAX_ANSWERS) {
        lines.push(format!("{name}: {}", sentence(run.unfinished, &run.headline)));
    }
    if let Some(more @ 1..) = runs.len().checked_sub(MAX_ANSWERS) {
        lines.push(format!("And {} below.", counted(more, "more run")));
    }
    lines.join("\n")
}

/// Runs that were measured in the same place and way.
struct SharedSetting {
    setting: String,
    /// The letters of the runs, in HTML.
    letters: String,
}

/// Writes where and how runs were measured, a line for those that were measured alike.
fn settings(runs: &[DrawnRun], names: &[String]) -> String {
    let mut shared: Vec<SharedSetting> = Vec::new();
    for (name, run) in names.iter().zip(runs) {
        let (letters, setting) = (letter_html(name), run.setting());
        match shared.iter_mut().find(|known| known.setting == setting) {
            Some(known) => known.letters += &letters,
            None => shared.push(SharedSetting { setting, letters }),
        }
    }
    let mut lines = String::new();
    for SharedSetting { setting, letters } in &shared {
        lines += &format!("<li>{letters}{}</li>", escape(&with_micro_sign(setting)));
    }
    format!("<ul class=\"setting\">{lines}</ul>\n")
}

fn letter_html(name: &str) -> String {
    format!("<b class=\"letter\">{}</b> ", escape(name))
}

/// Writes the worst of the verdicts on the machine; `None` without any.
fn noise_tile(runs: &[DrawnRun]) -> Option<String> {
    let mut verdicts = Vec::new();
    for run in runs {
        verdicts.extend(run.noise.clone().map(|verdict| ("", verdict)));
    }
    if verdicts.is_empty() {
        return None;
    }
    let together = NoiseVerdict::together(verdicts, &[]);
    let level = together.level;
    let why = match (level, together.clean_share) {
        (NoiseLevel::Unknown, _) => "too few rounds to tell".to_string(),
        (_, Some(share)) => format!("{:.0} % of the time undisturbed", 100.0 * share),
        (_, None) => format!("{:.0} % of samples disturbed", 100.0 * together.disturbed_share),
    };
    Some(format!(
        "<li class=\"tile noise {level}\"><span class=\"of\">the machine was</span>\
         <span class=\"figure\">{}</span><span class=\"range\">{}</span></li>\n",
        level.in_words(),
        escape(&why)
    ))
}

/// Title of what is behind the charts.
pub(super) const TITLE: &str = "How it was measured";

/// Writes how each run was measured, and all that it says.
pub(super) fn details(runs: &[DrawnRun], names: &[String]) -> String {
    let mut sections = String::new();
    for (name, run) in names.iter().zip(runs) {
        let letter = if runs.len() == 1 { String::new() } else { letter_html(name) };
        sections += &section(run, name, &letter);
    }
    page::details(TITLE, &sections)
}

fn section(run: &DrawnRun, name: &str, letter: &str) -> String {
    let noise = run.noise.as_ref().map(NoiseVerdict::in_words);
    let mut facts = Vec::new();
    for (fact, value) in &run.facts {
        facts.push((*fact, value.as_str()));
    }
    facts.extend(noise.as_ref().map(|words| ("noise", words.as_str())));
    let section = DetailsSection {
        heading: &format!("{letter}{}", escape(&run.title)),
        facts_title: "Machine, setting and command",
        facts: &facts,
        text_title: "All that the run says",
        name,
        text: run.text.as_deref(),
    };
    section.html()
}
