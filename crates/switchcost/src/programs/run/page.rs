//! Commands that were run as a page of charts.

use super::answer::{headline, switches};
use super::figures::{RATIOS, ROUNDS, TIMES, figures};
use super::findings::Summary;
use super::record::Record;
use super::table;
use crate::base::lines::Layout;
use crate::report::machine_line::cpu_and_kernel;
use crate::report::page::{FindingsDetails, FindingsPage, build_words};
use crate::report::terminal::counted;
use crate::report::tiles::Tile;

/// Charts of several commands by id, each with its question.
const QUESTIONS: [(&str, &str); 3] = [
    (TIMES, "How long does each take?"),
    (RATIOS, "How many times the first?"),
    (ROUNDS, "Did it drift?"),
];

/// The same of one command.
const QUESTIONS_OF_ONE: [(&str, &str); 2] = [(TIMES, "Where does the time go?"), QUESTIONS[2]];

/// The page of commands that were run.
pub(crate) fn page(record: &Record) -> FindingsPage {
    let gate = record.gate.as_ref().map(|gate| format!("\n{}", gate.in_words));
    let (subject, heading) = match record.commands.len() {
        1 => (record.plan.label(record.commands[0].number), "What a command takes"),
        count => (counted(count, "command"), "Which command is faster"),
    };
    FindingsPage {
        title: subject.clone(),
        heading,
        answer: (headline(record) + &gate.unwrap_or_default()).into(),
        setting: setting(record),
        tiles: tiles(record),
        figures: figures(record),
        questions: if record.commands.len() == 1 { &QUESTIONS_OF_ONE } else { &QUESTIONS },
        details: FindingsDetails {
            title: "How it was measured",
            subject,
            facts_title: "Machine, commands and runs",
            facts: facts(record),
            text_title: "All that the runs say",
            text: table::text(record, true).text(Layout::PAGE).into(),
            unlisted: "Single runs are not listed: switchcost run --csv FILE",
        },
        footer: "Each command runs once in every round, in shuffled order. Times are those of the \
                 command and of all children that it waited for. Ratios are taken within rounds.",
    }
}

fn setting(record: &Record) -> String {
    let runs = record.commands.iter().map(|summary| summary.runs).max().unwrap_or(0);
    let runs = counted(runs as usize, "run");
    let each = if record.commands.len() > 1 { " of each command" } else { "" };
    format!("{runs}{each} on {}.", cpu_and_kernel(&record.machine))
}

/// Of several commands the ratios and then the times of each; of one its times and its switches.
fn tiles(record: &Record) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for ratio in record.ratios.iter().filter(|ratio| ratio.of == "real_ns").take(MOST_RATIOS) {
        if let Some(ends) = ratio.estimate.interval() {
            let name = format!("{} / {}", record.plan.label(ratio.command), record.plan.label(0));
            tiles.push(Tile::ratio(name, [ratio.estimate.value, ends.low, ends.high]));
        }
    }
    match &record.commands[..] {
        [one] => tiles.extend(tiles_of_one(one)),
        all => {
            for (figure, what) in [("real_ns", "real time"), ("cpu_ns", "CPU time")] {
                let name =
                    |summary: &Summary| format!("{}: {what}", record.plan.label(summary.number));
                tiles.extend(all.iter().filter_map(|one| time(one, figure, name(one))));
            }
        }
    }
    tiles
}

/// Ratios that have a tile: there is room for times beside them.
const MOST_RATIOS: usize = 3;

fn tiles_of_one(summary: &Summary) -> Vec<Tile> {
    let count = |name: &str, value: Option<f64>| Some(Tile::counted(name, value?, "a run"));
    let share = summary.switching.as_ref().and_then(|switching| switching.cost.share());
    let share = share.filter(|share| !share.is_wide());
    let all = [
        time(summary, "real_ns", "real time".to_string()),
        time(summary, "cpu_ns", "CPU time".to_string()),
        count("switches", switches(summary)),
        share.map(|share| {
            Tile::at_most(
                "cost of the switches, at most",
                [share.low, share.high].map(percent),
                "%",
            )
        }),
        count("preemptions", summary.median("involuntary")),
        time(summary, "run_delay_ns", "waiting for a CPU".to_string()),
    ];
    all.into_iter().flatten().collect()
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

/// A time with the interval of its median, or of how many runs it is.
fn time(summary: &Summary, figure: &str, name: String) -> Option<Tile> {
    let tile = Tile::cost(name, Some(summary.figure(figure)?.estimate))?;
    let runs = match summary.runs {
        1 => "one run",
        _ => "in few runs",
    };
    Some(Tile { without_interval: tile.without_interval.map(|_| runs), ..tile })
}

fn facts(record: &Record) -> Vec<(&'static str, String)> {
    let plan = &record.plan;
    let mut facts =
        vec![("machine", cpu_and_kernel(&record.machine)), ("measured", record.started.clone())];
    for number in 0..plan.commands.len() {
        facts.push(("command", shell_words::join(&plan.commands[number])));
    }
    facts.extend(plan.shell.iter().map(|shell| ("shell", shell.clone())));
    facts.push(("seed", plan.seed.to_string()));
    if plan.warmup > 0 {
        facts.push(("warm-up", counted(plan.warmup as usize, "run")));
    }
    facts.push(("by", build_words(&record.build)));
    facts
}
