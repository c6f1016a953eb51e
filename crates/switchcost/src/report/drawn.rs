//! One run, or one published machine, as the report takes it.

use std::path::Path;

use anyhow::Result;
use charts::{Figure, clean};
use model::noise::NoiseVerdict;
use model::run::Run;
use model::subject::{Origin, PREFIX, Published, Subject};

use crate::experiments::Record;
use crate::figures::published::of_published;
use crate::history::find_published;
use crate::store::{Folder, read};

/// What is told of a run before its charts.
pub(crate) struct Drawn {
    /// What was measured, or the published machine's name.
    pub(crate) title: String,
    /// What it says, a sentence each, the most important first.
    pub(crate) headline: Vec<String>,
    /// What it was measured on and how, in a few words.
    pub(crate) setting: String,
    /// The same in full: a name and what is there.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// The verdict on the machine's noise; none for published figures.
    pub(crate) noise: Option<NoiseVerdict>,
    /// All that the terminal would show; none for published figures.
    pub(crate) text: Option<String>,
    /// What stands below its pictures.
    pub(crate) caption: String,
    /// Its charts.
    pub(crate) figures: Vec<Figure>,
}

impl Drawn {
    /// The run or the published machine of that name, the `index`th of the report.
    pub(crate) fn find(name: &str, index: usize) -> Result<Self> {
        if let Some(machine) = name.strip_prefix(PREFIX) {
            return Ok(Self::of_published(&find_published(machine)?, index));
        }
        let path = Folder::of_user()?.find(name)?.path;
        let run = read(&path)?;
        Ok(Self::of_run(&run, &Record::of(&run), Some(&path), index))
    }

    /// A run with its record, the `index`th of the report; `path` is where it is stored.
    pub(crate) fn of_run(run: &Run, record: &Record, path: Option<&Path>, index: usize) -> Self {
        let subject = Subject::of_run(run);
        let figures = record.figures(run, index);
        let mut headline = record.headline();
        if headline.is_empty() {
            headline.extend(figures.first().map(|figure| figure.in_words.clone()));
        }
        let facts = facts(&subject, &run.header.invocation);
        Self {
            title: format!("{}, {}", subject.experiment, day(&run.header.started)),
            headline,
            setting: setting(&facts),
            facts,
            noise: subject.noise,
            text: Some(record.table(run, path)),
            caption: caption(run),
            figures,
        }
    }

    fn of_published(machine: &Published, index: usize) -> Self {
        let mut facts = vec![
            ("machine", machine.machine.clone()),
            ("system", machine.system.clone()),
            ("source", format!("{} ({})", machine.source, machine.year)),
        ];
        facts.extend(machine.notes.iter().map(|note| ("note", note.clone())));
        Self {
            title: format!("{}, {}", machine.machine, machine.year),
            headline: Vec::new(),
            setting: format!("{}, {}", machine.machine, machine.system),
            facts,
            noise: None,
            text: None,
            caption: format!("{} ({}), {}", machine.machine, machine.year, machine.source),
            figures: of_published(machine, index),
        }
    }
}

/// The date of a moment as RFC 3339 has it.
fn day(moment: &str) -> &str {
    moment.split('T').next().unwrap_or(moment)
}

/// `AMD EPYC, Linux 6.18, policy other, placement same, CPU 1`.
fn setting(facts: &[(&'static str, String)]) -> String {
    let told = |(what, is): &(&'static str, String)| match *what {
        "machine" | "kernel" => Some(is.clone()),
        "policy" | "placement" => Some(format!("{what} {is}")),
        "CPUs" => Some(format!("CPU {is}")),
        _ => None,
    };
    facts.iter().filter_map(told).collect::<Vec<String>>().join(", ")
}

fn facts(subject: &Subject, invocation: &[String]) -> Vec<(&'static str, String)> {
    let machine = &subject.machine;
    let cpu = machine.cpu.models.known().and_then(|models| models.first()?.name.known());
    let kernel = machine.kernel.release.known();
    let mut facts = vec![
        ("machine", cpu.map_or("unknown CPU".to_string(), Clone::clone)),
        ("kernel", kernel.map_or("unknown".to_string(), |release| format!("Linux {release}"))),
        ("policy", labels(subject, "policy")),
        ("placement", labels(subject, "placement")),
        ("CPUs", cpus(subject)),
    ];
    if let Origin::Run { started, build, .. } = &subject.origin {
        facts.push(("measured", started.clone()));
        facts.push(("by", format!("switchcost {} ({} build)", build.version, build.profile)));
    }
    facts.push(("command", invocation.join(" ")));
    facts.push(("run", subject.name.clone()));
    facts.retain(|(_, what)| !what.is_empty());
    facts
}

/// What a label stands at in all cases, each once.
fn labels(subject: &Subject, name: &str) -> String {
    each(subject.cases.iter().filter_map(|case| case.label(name)).map(str::to_string))
}

fn cpus(subject: &Subject) -> String {
    let of_case = |case: &model::subject::Subcase| {
        case.details.iter().find(|(name, _)| name == "CPU").map(|(_, cpus)| cpus.clone())
    };
    each(subject.cases.iter().filter_map(of_case))
}

fn each(all: impl Iterator<Item = String>) -> String {
    let mut found: Vec<String> = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found.join(", ")
}

/// `AMD EPYC, Linux 6.1, 2026-11-22; ring: 7 cases, 12 rounds, seed 1992`.
fn caption(run: &Run) -> String {
    let header = &run.header;
    let machine = &header.machine;
    let cpu = machine.cpu.models.known().and_then(|models| models.first()?.name.known());
    let kernel = machine.kernel.release.known();
    let day = header.started.split('T').next().unwrap_or(&header.started);
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    };
    clean(&format!(
        "{}, {}, {day}; {}: {}, {}, seed {}",
        cpu.map_or("unknown CPU", String::as_str),
        kernel.map_or("unknown kernel".to_string(), |release| format!("Linux {release}")),
        header.plan.experiment,
        count(header.plan.cases.len(), "case"),
        count(run.rounds() as usize, "round"),
        header.plan.seed,
    ))
}
