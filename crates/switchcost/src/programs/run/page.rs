//! The page of charts of `switchcost run`.

use super::answer::headline;
use super::figures::{RATIOS, ROUNDS, TIMES, draw_figures};
use super::findings::{CommandSummary, ComparedTime, SwitchOverhead};
use super::hyperfine::TableChoices;
use super::record::CommandUseRecord;
use super::table;
use crate::base::lines::Layout;
use crate::report::machine_line::cpu_and_kernel;
use crate::report::page::{FindingsDetails, FindingsPage, build_words};
use crate::report::terminal::counted;
use crate::report::tiles::Tile;

/// Charts of several commands by id, each with the question that it answers.
const QUESTIONS: [(&str, &str); 3] = [
    (TIMES, "How long does each take?"),
    (RATIOS, "Compared with the first"),
    (ROUNDS, "Did it drift?"),
];

/// Charts of one command by id, each with the question that it answers.
const SINGLE_QUESTIONS: [(&str, &str); 2] = [(TIMES, "Where does the time go?"), QUESTIONS[2]];

/// Most ratios that have a tile: there is room for times beside them.
const MAX_RATIO_TILES: usize = 3;

/// Builds the page of a record.
pub(crate) fn build_page(record: &CommandUseRecord) -> FindingsPage {
    let (subject, heading, questions) = match &record.commands[..] {
        [summary] => {
            let label = record.plan.label(summary.number);
            (label, "What a command takes", &SINGLE_QUESTIONS[..])
        }
        summaries => {
            (counted(summaries.len(), "command"), "Which command is faster", &QUESTIONS[..])
        }
    };
    let mut answer = headline(record);
    if let Some(gate) = &record.gate {
        answer.push(format!("\n{}", gate.in_words));
    }
    FindingsPage {
        title: subject.clone(),
        heading,
        answer: answer.into(),
        setting: describe_setting(record),
        tiles: build_tiles(record),
        figures: draw_figures(record),
        questions,
        details: FindingsDetails {
            title: "How it was measured",
            subject,
            facts_title: "Machine, commands and runs",
            facts: list_facts(record),
            text_title: "Full report",
            text: table::text(record, true, TableChoices::default()).text(Layout::PAGE).into(),
            unlisted: "Single runs are not listed: switchcost run --csv FILE",
        },
        footer: "Each command runs once in every round, in shuffled order. Times are those of the \
                 command and of all children that it waited for. Ratios are taken within rounds.",
    }
}

fn describe_setting(record: &CommandUseRecord) -> String {
    let runs = record.commands.iter().map(|summary| summary.runs).max().unwrap_or(0);
    let runs = counted(runs as usize, "run");
    let of_each = if record.commands.len() > 1 { " of each command" } else { "" };
    format!("{runs}{of_each} on {}.", cpu_and_kernel(&record.machine))
}

/// Builds the tiles: the first ratios, then the times of each command; the figures of a single
/// command.
fn build_tiles(record: &CommandUseRecord) -> Vec<Tile> {
    let plan = &record.plan;
    let mut tiles = Vec::new();
    let real_ratios = record.ratios.iter().filter(|ratio| ratio.is_of(ComparedTime::Real));
    for ratio in real_ratios.take(MAX_RATIO_TILES) {
        if let Some(ends) = ratio.estimate.interval() {
            let name = format!("{} / {}", plan.label(ratio.command), plan.label(0));
            tiles.push(Tile::ratio(name, [ratio.estimate.value, ends.low, ends.high]));
        }
    }
    if let [summary] = &record.commands[..] {
        tiles.extend(single_command_tiles(summary));
        return tiles;
    }
    for time in ComparedTime::ALL {
        for summary in &record.commands {
            let name = format!("{}: {}", plan.label(summary.number), time.title());
            tiles.extend(time_tile(summary, time.name(), name));
        }
    }
    tiles
}

fn single_command_tiles(summary: &CommandSummary) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for time in ComparedTime::ALL {
        tiles.extend(time_tile(summary, time.name(), time.title().to_string()));
    }
    if let Some(count) = summary.switches() {
        tiles.push(Tile::counted("switches", count, "a run"));
    }
    let overhead = summary.switching.as_ref();
    if let Some(share) = overhead.and_then(SwitchOverhead::useful_share) {
        let percents = [100.0 * share.low, 100.0 * share.high];
        tiles.push(Tile::at_most("cost of the switches, at most", percents, "%"));
    }
    if let Some(count) = summary.median("involuntary") {
        tiles.push(Tile::counted("preemptions", count, "a run"));
    }
    tiles.extend(time_tile(summary, "run_delay_ns", "waiting for a CPU".to_string()));
    tiles
}

/// Builds the tile of a time, with the interval of its median or a note that there are few runs.
fn time_tile(summary: &CommandSummary, figure: &str, name: String) -> Option<Tile> {
    let tile = Tile::cost(name, Some(summary.figure(figure)?.estimate))?;
    let runs = match summary.runs {
        1 => "one run",
        _ => "in few runs",
    };
    Some(Tile { without_interval: tile.without_interval.map(|_| runs), ..tile })
}

fn list_facts(record: &CommandUseRecord) -> Vec<(&'static str, String)> {
    let plan = &record.plan;
    let mut facts =
        vec![("machine", cpu_and_kernel(&record.machine)), ("measured", record.started.clone())];
    for number in 0..plan.commands.len() {
        facts.push(("command", shell_words::join(&plan.commands[number])));
    }
    if let Some(shell) = &plan.shell {
        facts.push(("shell", shell.clone()));
    }
    facts.push(("seed", plan.seed.to_string()));
    if plan.warmup > 0 {
        facts.push(("warm-up", counted(plan.warmup as usize, "run")));
    }
    facts.push(("by", build_words(&record.build)));
    facts
}
