//! One run, or one published machine, as the report takes it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use analysis::noise::NoiseVerdict;
use analysis::results::{CaseResults, Origin, PublishedCase, PublishedMachine, Results};
use anyhow::Result;
use charts::{Figure, clean};
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::plan::Plan;
use rundata::run::Run;

use crate::base::lines::Layout;
use crate::engine::store::read;
use crate::program::history::costs;
use crate::registry::Record;
use crate::report::figures::published::published_figures;
use crate::report::page;
use crate::report::terminal::{View, counted};
use crate::report::tiles::Tile;

/// What is told of a run before its charts.
pub(crate) struct Drawn {
    /// What was measured, or the published machine's name.
    pub(crate) title: String,
    /// What it was measured on and how: a name and what is there.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// The verdict on the machine's noise; none for published figures.
    pub(crate) noise: Option<NoiseVerdict>,
    /// The host and the machine that it was measured on; none for published figures.
    machine: Option<(Option<String>, Machine)>,
    /// The experiment; none for published figures.
    pub(crate) experiment: Option<Experiment>,
    /// The experiment of the run that it is a part of; its own of a run of one experiment.
    pub(crate) of_run: Option<Experiment>,
    /// Which part of its run it is, from 0.
    pub(crate) part: usize,
    /// Where it is stored, if it is.
    pub(crate) path: Option<PathBuf>,
    /// What it says, in a sentence or two.
    pub(crate) headline: String,
    /// Figures that stand for it.
    pub(crate) tiles: Vec<Tile>,
    /// All that the terminal would show; none for published figures.
    pub(crate) text: Option<String>,
    /// What stands below its pictures.
    pub(crate) caption: String,
    /// What a sentence on it begins with where the run did not end.
    pub(crate) unfinished: Option<&'static str>,
    /// Its charts.
    pub(crate) figures: Vec<Figure>,
}

impl Drawn {
    /// The run of that file with its record, the `index`th of the report; of a run of several
    /// experiments each of these.
    pub(crate) fn of_file(path: &Path, index: usize) -> Result<(Vec<Self>, Vec<Record>)> {
        let run = read(path)?;
        let records = match Record::from_run(&run) {
            Record::Measure(whole) => whole.parts,
            record => vec![record],
        };
        Ok((Self::of_parts(&run, &records, Some(path), index), records))
    }

    /// The experiments of a run with their records, from the `index`th of the report on.
    pub(crate) fn of_parts(
        run: &Run,
        records: &[Record],
        path: Option<&Path>,
        index: usize,
    ) -> Vec<Self> {
        let of_run = Some(run.header.plan.experiment);
        let mut drawn = Vec::new();
        for (part, (run, record)) in analysis::parts::part_runs(run).iter().zip(records).enumerate()
        {
            drawn.push(Self { of_run, part, ..Self::of_run(run, record, path, index + part) });
        }
        drawn
    }

    /// A run with its record, the `index`th of the report; `path` is where it is stored.
    pub(crate) fn of_run(run: &Run, record: &Record, path: Option<&Path>, index: usize) -> Self {
        let results = Results::from_run(run);
        let figures = record.figures(run, index);
        let header = &run.header;
        let day = header.started.split('T').next().unwrap_or(&header.started);
        let facts = facts(&results, &header.invocation);
        let Plan { experiment, cases, seed, .. } = &header.plan;
        let machine = known(&facts, &["machine", "kernel"]);
        let (cases, rounds) =
            (counted(cases.len(), "case"), counted(run.rounds() as usize, "round"));
        let caption = format!("{machine}, {day}; {experiment}: {cases}, {rounds}, seed {seed}");
        Self {
            title: format!("{}, {day}", results.side.experiment),
            experiment: Some(*experiment),
            of_run: Some(*experiment),
            part: 0,
            machine: Some((header.host.clone(), header.machine.clone())),
            path: path.map(Path::to_path_buf),
            headline: record.headline().into(),
            tiles: record.tiles(),
            noise: results.noise,
            text: Some(record.text(run, path, View::ALL).text(Layout::UNBROKEN).into()),
            caption: clean(&caption),
            unfinished: run.unfinished(),
            facts,
            figures,
        }
    }

    pub(crate) fn of_published(machine: &PublishedMachine, index: usize) -> Self {
        let PublishedMachine { machine: name, system, year, source, notes, .. } = machine;
        let mut facts = vec![("machine", name.clone()), ("system", system.clone())];
        facts.push(("source", format!("{source} ({year})")));
        facts.extend(notes.iter().map(|note| ("note", note.clone())));
        let figures = published_figures(machine, index);
        Self {
            title: format!("{name}, {year}"),
            headline: format!("{name}: {}, as published by {source} ({year}).", costs(machine)),
            experiment: None,
            of_run: None,
            part: 0,
            machine: None,
            path: None,
            tiles: machine.cases.iter().filter_map(published_tile).collect(),
            facts,
            noise: None,
            text: None,
            caption: format!("{name} ({year}), {source}"),
            unfinished: None,
            figures,
        }
    }

    /// Whether another was measured on the same host, CPU and kernel.
    pub(crate) fn is_of_machine_of(&self, other: &Self) -> bool {
        let Some(((host, machine), (there, its))) =
            self.machine.as_ref().zip(other.machine.as_ref())
        else {
            return false;
        };
        host == there && machine.kernel == its.kernel && machine.cpu.models == its.cpu.models
    }

    /// `AMD EPYC, Linux 6.18`.
    pub(crate) fn place(&self) -> String {
        known(&self.facts, &["machine", "system", "kernel"])
    }

    /// `AMD EPYC, Linux 6.18, policy other, placement same, CPU 1`.
    pub(crate) fn setting(&self) -> String {
        known(&self.facts, &["machine", "system", "kernel", "policy", "placement", "CPU"])
    }
}

/// The figure of a published case that comes first.
fn published_tile(case: &PublishedCase) -> Option<Tile> {
    let (quantity, ns) = case.figures.first_key_value()?;
    let name = format!("{}, {}", quantity.in_words(), case.title);
    Some(Tile::published(name, *ns, case.intervals.get(quantity).copied()))
}

/// Facts of these names on a line; the names of a machine and its system go without saying.
fn known(facts: &[(&'static str, String)], names: &[&str]) -> String {
    let fact = |(name, is): &&(&str, String)| match *name {
        "policy" | "placement" | "CPU" => format!("{name} {is}"),
        _ => is.clone(),
    };
    let facts: Vec<_> = facts.iter().filter(|(name, _)| names.contains(name)).collect();
    facts.iter().map(fact).collect::<Vec<String>>().join(", ")
}

fn facts(results: &Results, invocation: &[String]) -> Vec<(&'static str, String)> {
    let machine = &results.machine;
    let kernel = machine.kernel.release.known().map_or("unknown", String::as_str);
    // What stands at all cases, each once.
    let each = |name: &str| {
        let of = |case: &CaseResults| {
            let mut all = case.labels.iter().chain(&case.details);
            all.find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let all: BTreeSet<String> = results.cases.iter().filter_map(of).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    };
    let cpu = machine.cpu_name().map_or("unknown CPU".to_string(), Clone::clone);
    let mut facts = vec![("machine", cpu), ("kernel", format!("Linux {kernel}"))];
    facts.extend(["policy", "placement", "CPU"].map(|name| (name, each(name))));
    if let Origin::Run { started, build, .. } = &results.side.origin {
        facts.push(("measured", started.clone()));
        facts.push(("by", page::build_words(build)));
    }
    facts.push(("command", invocation.join(" ")));
    facts.push(("run", results.side.name.clone()));
    facts.retain(|(_, what)| !what.is_empty());
    facts
}
