//! A run, or a published machine, as a page shows it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use analysis::noise::NoiseVerdict;
use analysis::parts::part_runs;
use analysis::results::{Origin, PublishedCase, PublishedMachine, Results};
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

/// A run of one experiment, or a published machine, with all that a page shows of it.
pub(crate) struct DrawnRun {
    /// The experiment and its day, or the published machine's name.
    pub(crate) title: String,
    /// Facts on the machine and the setting, each with its name.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// The verdict on the machine's noise; none for published figures.
    pub(crate) noise: Option<NoiseVerdict>,
    /// The machine that it was measured on; none for published figures.
    machine: Option<MeasuredMachine>,
    /// The experiment; none for published figures.
    pub(crate) experiment: Option<Experiment>,
    /// The experiment of the run that it is a part of; the same where that is no `measure`.
    pub(crate) run_experiment: Option<Experiment>,
    /// Number of the part in its run, from 0.
    pub(crate) part: usize,
    /// File of the run, if it is stored.
    pub(crate) path: Option<PathBuf>,
    /// The answer in a sentence or two.
    pub(crate) headline: String,
    /// Figures that stand for it.
    pub(crate) tiles: Vec<Tile>,
    /// The whole report for a terminal; none for published figures.
    pub(crate) text: Option<String>,
    /// The text below its pictures.
    pub(crate) caption: String,
    /// Beginning of a sentence on the run, if it did not end.
    pub(crate) unfinished: Option<&'static str>,
    /// The charts.
    pub(crate) figures: Vec<Figure>,
}

/// A machine and the name of its host, which `--anonymous` leaves out.
struct MeasuredMachine {
    host: Option<String>,
    machine: Machine,
}

/// The experiments of a run file, with their records.
pub(crate) struct DrawnFile {
    pub(crate) parts: Vec<DrawnRun>,
    pub(crate) records: Vec<Record>,
}

impl DrawnFile {
    /// Reads a run file. Its parts are drawn from the `index`th place of a report on.
    pub(crate) fn read(path: &Path, index: usize) -> Result<Self> {
        let run = read(path)?;
        let records = match Record::from_run(&run) {
            Record::Measure(whole) => whole.parts,
            record => vec![record],
        };
        Ok(Self { parts: DrawnRun::from_parts(&run, &records, Some(path), index), records })
    }
}

impl DrawnRun {
    /// Draws the experiments of a run with their records, from the `index`th place of a report on.
    /// `path` is where the run is stored.
    pub(crate) fn from_parts(
        run: &Run,
        records: &[Record],
        path: Option<&Path>,
        index: usize,
    ) -> Vec<Self> {
        let run_experiment = Some(run.header.plan.experiment);
        let mut parts = Vec::new();
        for (part, (run, record)) in part_runs(run).iter().zip(records).enumerate() {
            let drawn = Self::from_run(run, record, path, index + part);
            parts.push(Self { run_experiment, part, ..drawn });
        }
        parts
    }

    /// Draws a run with its record, in the `index`th place of a report; `path` is where it is stored.
    pub(crate) fn from_run(run: &Run, record: &Record, path: Option<&Path>, index: usize) -> Self {
        let results = Results::from_run(run);
        let figures = record.figures(run, index);
        let header = &run.header;
        let day = header.started.split('T').next().unwrap_or(&header.started);
        let facts = facts(&results, &header.invocation);
        let Plan { experiment, cases, seed, .. } = &header.plan;
        let machine = facts_line(&facts, &["machine", "kernel"]);
        let (cases, rounds) =
            (counted(cases.len(), "case"), counted(run.rounds() as usize, "round"));
        let caption = format!("{machine}, {day}; {experiment}: {cases}, {rounds}, seed {seed}");
        let (host, measured_machine) = (header.host.clone(), header.machine.clone());
        Self {
            title: format!("{}, {day}", results.side.experiment),
            experiment: Some(*experiment),
            run_experiment: Some(*experiment),
            part: 0,
            machine: Some(MeasuredMachine { host, machine: measured_machine }),
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

    /// Draws a published machine, in the `index`th place of a report.
    pub(crate) fn from_published(machine: &PublishedMachine, index: usize) -> Self {
        let PublishedMachine { machine: name, system, year, source, notes, .. } = machine;
        let mut facts = vec![("machine", name.clone()), ("system", system.clone())];
        facts.push(("source", format!("{source} ({year})")));
        facts.extend(notes.iter().map(|note| ("note", note.clone())));
        let figures = published_figures(machine, index);
        Self {
            title: format!("{name}, {year}"),
            headline: format!("{name}: {}, as published by {source} ({year}).", costs(machine)),
            experiment: None,
            run_experiment: None,
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

    /// Returns whether both were measured on the same host, CPU and kernel.
    pub(crate) fn has_machine_of(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (&self.machine, &other.machine) else { return false };
        let (machine, other_machine) = (&one.machine, &other.machine);
        one.host == other.host
            && machine.kernel == other_machine.kernel
            && machine.cpu.models == other_machine.cpu.models
    }

    /// Returns `AMD EPYC, Linux 6.18`.
    pub(crate) fn place(&self) -> String {
        facts_line(&self.facts, &["machine", "system", "kernel"])
    }

    /// Returns `AMD EPYC, Linux 6.18, policy other, placement same, CPU 1`.
    pub(crate) fn setting(&self) -> String {
        facts_line(&self.facts, &["machine", "system", "kernel", "policy", "placement", "CPU"])
    }
}

/// Returns the first figure of a published case.
fn published_tile(case: &PublishedCase) -> Option<Tile> {
    let (quantity, ns) = case.figures.first_key_value()?;
    let name = format!("{}, {}", quantity.in_words(), case.title);
    Some(Tile::published(name, *ns, case.intervals.get(quantity).copied()))
}

/// Writes the facts of these names on a line; a machine and its system need no name.
fn facts_line(facts: &[(&'static str, String)], names: &[&str]) -> String {
    let mut words = Vec::new();
    for (name, value) in facts {
        if names.contains(name) {
            words.push(match *name {
                "policy" | "placement" | "CPU" => format!("{name} {value}"),
                _ => value.clone(),
            });
        }
    }
    words.join(", ")
}

/// Returns the facts on a run that are known.
fn facts(results: &Results, invocation: &[String]) -> Vec<(&'static str, String)> {
    let machine = &results.machine;
    let kernel = machine.kernel.release.known().map_or("unknown", String::as_str);
    let cpu = machine.cpu_name().map_or("unknown CPU", String::as_str);
    let mut facts = vec![("machine", cpu.to_string()), ("kernel", format!("Linux {kernel}"))];
    for name in ["policy", "placement", "CPU"] {
        facts.push((name, values_of_cases(results, name)));
    }
    if let Origin::Run { started, build, .. } = &results.side.origin {
        facts.push(("measured", started.clone()));
        facts.push(("by", page::build_words(build)));
    }
    facts.push(("command", invocation.join(" ")));
    facts.push(("run", results.side.name.clone()));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// Returns the values that all cases have of a label or detail, each once.
fn values_of_cases(results: &Results, name: &str) -> String {
    let mut values: BTreeSet<&str> = BTreeSet::new();
    for case in &results.cases {
        let mut labels = case.labels.iter().chain(&case.details);
        if let Some((_, value)) = labels.find(|(known, _)| *known == name) {
            values.insert(value);
        }
    }
    Vec::from_iter(values).join(", ")
}
