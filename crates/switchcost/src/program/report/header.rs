//! What stands before the charts, the answer in a sentence and in tiles, and behind them: how it was
//! measured and all that the runs say.

use analysis::noise::{NoiseLevel, NoiseVerdict};
use charts::{escape, with_micro_sign};

use super::Report;
use super::drawn::Drawn;
use crate::report::page::{self, DetailsSection, MAX_TILES, paragraph, tile};
use crate::report::terminal::{counted, sentence};
use crate::report::tiles::Tile;

/// By their `names` the charts tell runs apart.
pub(super) fn header(report: &Report, names: &[String]) -> String {
    let runs = &report.runs;
    let lead = match (&report.lead, &report.difference, &runs[..]) {
        (Some(lead), ..) => lead.clone(),
        (_, Some(difference), _) => difference.in_words.clone(),
        (.., [only]) => sentence(only.unfinished, &only.headline).into(),
        (.., many) => side_by_side(many, names),
    };
    let setting: String = match &runs[..] {
        [only] => paragraph("setting", &format!("Measured on {}.", only.setting())),
        many if report.lead.is_some() => {
            paragraph("setting", &format!("Measured on {}.", many[0].place()))
        }
        many => settings(many, names),
    };
    let tiles = match &report.difference {
        Some(difference) => difference.tiles.iter().take(MAX_TILES).cloned().collect(),
        None => {
            // What is not told as one says whose it is.
            let is_apart = runs.len() > 1 && report.lead.is_none();
            let named = |name: &str, tile: &Tile| match is_apart {
                true => tile.clone().with_name(format!("{name}: {}", tile.name)),
                false => tile.clone(),
            };
            let of_run = |(run, name): (&Drawn, &String)| {
                run.tiles.iter().map(|tile| named(name, tile)).collect()
            };
            let all: Vec<Vec<Tile>> = runs.iter().zip(names).map(of_run).collect();
            Tile::in_turn(&all, MAX_TILES)
        }
    };
    let tiles: String = tiles.iter().map(tile).chain(verdict(runs)).collect();
    page::header("What a context switch costs", &lead, &setting, &tiles)
}

/// Runs whose answers are told one by one.
const MOST_ANSWERS: usize = 3;

/// The answer of each of several runs, a line each.
fn side_by_side(runs: &[Drawn], names: &[String]) -> String {
    let answer = |(name, run): (&String, &Drawn)| {
        format!("{name}: {}", sentence(run.unfinished, &run.headline))
    };
    let mut lines: Vec<String> = names.iter().zip(runs).take(MOST_ANSWERS).map(answer).collect();
    if let Some(more @ 1..) = runs.len().checked_sub(MOST_ANSWERS) {
        lines.push(format!("And {} below.", counted(more, "more run")));
    }
    lines.join("\n")
}

/// Where and how runs were measured, a line for those that were measured alike.
fn settings(runs: &[Drawn], names: &[String]) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (name, run) in names.iter().zip(runs) {
        let letter = format!("<b class=\"letter\">{}</b> ", escape(name));
        let setting = run.setting();
        match lines.iter_mut().find(|(_, known)| *known == setting) {
            Some((letters, _)) => letters.push_str(&letter),
            None => lines.push((letter, setting)),
        }
    }
    let line = |(letters, setting): (String, String)| {
        format!("<li>{letters}{}</li>", escape(&with_micro_sign(&setting)))
    };
    let lines: String = lines.into_iter().map(line).collect();
    format!("<ul class=\"setting\">{lines}</ul>\n")
}

/// The worst of the verdicts on the machine.
fn verdict(runs: &[Drawn]) -> Option<String> {
    let all: Vec<&NoiseVerdict> = runs.iter().filter_map(|run| run.noise.as_ref()).collect();
    let together = NoiseVerdict::together(all.iter().map(|of| ("", (*of).clone())), &[]);
    let level = (!all.is_empty()).then_some(together.level)?;
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

/// How each run was measured, and all that it says.
pub(super) fn details(runs: &[Drawn], names: &[String]) -> String {
    let is_one = runs.len() == 1;
    let section = |(name, run): (&String, &Drawn)| {
        let letter = format!("<b class=\"letter\">{}</b> ", escape(name));
        section(run, name, if is_one { "" } else { &letter })
    };
    page::details(TITLE, &names.iter().zip(runs).map(section).collect::<String>())
}

/// The title of what is behind the charts.
pub(super) const TITLE: &str = "How it was measured";

fn section(run: &Drawn, name: &str, letter: &str) -> String {
    let noise = run.noise.as_ref().map(NoiseVerdict::in_words);
    let noise = noise.as_ref().map(|words| ("noise", words.as_str()));
    let facts = run.facts.iter().map(|(what, is)| (*what, is.as_str())).chain(noise);
    let facts: Vec<(&str, &str)> = facts.collect();
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
