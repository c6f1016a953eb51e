//! What stands before the charts, the answer in a sentence and in tiles, and behind them: how it was
//! measured and all that the runs say.

use charts::escape;
use model::noise::{NoiseLevel, NoiseVerdict};

use super::drawn::Drawn;
use super::{Report, count_runs};
use crate::present::page::{self, MOST_TILES, paragraph, tile};
use crate::present::terminal::sentence;
use crate::present::tiles::Tile;

/// By their `names` the charts tell runs apart.
pub(super) fn header(report: &Report, names: &[String]) -> String {
    let runs = &report.runs;
    let lead = match (&report.lead, &report.difference, &runs[..]) {
        (Some(lead), ..) => lead.clone(),
        (_, Some(difference), _) => difference.in_words.clone(),
        (.., [only]) => sentence(only.unfinished, &only.headline),
        (.., many) if many.iter().all(|run| run.experiment.is_none()) => {
            format!("{} published machines side by side.", many.len())
        }
        (.., many) => format!("{} runs side by side.", count_runs(many)),
    };
    let setting: String = match &runs[..] {
        [only] => paragraph("setting", &format!("Measured on {}.", only.setting())),
        many if report.lead.is_some() => {
            paragraph("setting", &format!("Measured on {}.", many[0].place()))
        }
        many => {
            let run = |(name, run): (&String, &Drawn)| {
                let setting = run.setting();
                let title = run.experiment.map(|_| format!("{}: {setting}", run.title));
                let words = title.unwrap_or(setting);
                format!("<li><b class=\"letter\">{}</b> {}</li>", escape(name), escape(&words))
            };
            format!(
                "<ul class=\"setting\">{}</ul>\n",
                names.iter().zip(many).map(run).collect::<String>()
            )
        }
    };
    let tiles = match &report.difference {
        Some(difference) => difference.tiles.iter().take(MOST_TILES).cloned().collect(),
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
            Tile::in_turn(&all, MOST_TILES)
        }
    };
    let tiles: String = tiles.iter().map(tile).chain(verdict(runs)).collect();
    page::header("What a context switch costs", &lead, &setting, &tiles)
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
         <span class=\"figure\">{level}</span><span class=\"range\">{}</span></li>\n",
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
    page::section(
        &format!("{letter}{}", escape(&run.title)),
        ("Machine, setting and command", &facts),
        ("All that the run says", name),
        run.text.as_deref(),
    )
}
