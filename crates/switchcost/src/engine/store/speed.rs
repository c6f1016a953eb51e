//! What launches have found of this machine's CPUs, and what a run is told of it and adds to it.

use std::io::Read;
use std::path::{Path, PathBuf};

use analysis::results::{Results, known_from_launches, plan_cases};
use analysis::speed::{SpeedFile, cpu_key, levels};
use anyhow::{Context, Result};
use directories::ProjectDirs;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::plan::{Batching, CaseHistory, Plan, Reference};
use rundata::run::Run;
use stats::median;

use super::{RunStore, StoredRun, header};
use crate::base::failure::say;
use crate::report::output::file::{make_private, refuse_others, refuse_others_store, replace};

/// What is known of the CPUs that are measured on. Of several kinds of CPU nothing is: one ratio
/// would be wrong for one of them.
pub(crate) fn known_speed(machine: &Machine, cpus: &[u32]) -> Reference {
    let Some(key) = key(machine, cpus) else { return Reference::default() };
    // A file that cannot be read is as good as none: it is written anew.
    path().and_then(|path| read(&path)).unwrap_or_default().reference(&key)
}

/// What a run knows of its CPUs, and what has come to be known of them since. Only for what is
/// measured next: a stored run is read by what its file says.
pub(crate) fn known_now(run: &Run) -> Reference {
    let mut reference = run.header.plan.reference.clone();
    reference.learn(&known_speed(&run.header.machine, &run.header.plan.cpus()));
    reference
}

/// What a run leaves to others of the same CPU, if one can be named.
pub(crate) struct FoundSpeed {
    key: Option<String>,
    reference: Reference,
}

impl FoundSpeed {
    pub(crate) fn by(run: &Run) -> Self {
        let plan = &run.header.plan;
        let reference = analysis::speed::reference_after(plan, &run.samples);
        Self { key: key(&run.header.machine, &plan.cpus()), reference }
    }

    /// By what this one of `all` runs is read where they are compared; absent where its own level
    /// stands. One that never saw its core unshared would else be held against one that did.
    pub(crate) fn beside(&self, all: &[Self]) -> Option<Reference> {
        let same = all.iter().filter(|other| self.key.is_some() && other.key == self.key);
        self.reference.clone().beside(&Reference::join(same.map(|other| other.reference.clone())))
    }
}

/// Runs that are held against each other, each as its figures.
pub(crate) fn results_of(runs: &[&Run]) -> Vec<Results> {
    let left: Vec<FoundSpeed> = runs.iter().map(|run| FoundSpeed::by(run)).collect();
    let results = |(run, own): (&&Run, &FoundSpeed)| match own.beside(&left) {
        None => Results::from_run(run),
        Some(reference) => Results::from_run(&read_by((*run).clone(), reference)),
    };
    runs.iter().zip(&left).map(results).collect()
}

/// The same of files. One that another level decides is read again: all at once may not fit into
/// the memory.
pub(crate) fn results_of_files(paths: &[&Path]) -> Vec<Result<Results>> {
    let mut left: Vec<FoundSpeed> = Vec::new();
    let first = |path: &&Path| {
        let run = super::read(path)?;
        left.push(FoundSpeed::by(&run));
        Ok((Results::from_run(&run), left.len() - 1))
    };
    let read: Vec<Result<(Results, usize)>> = paths.iter().map(first).collect();
    let again = |(path, first): (&&Path, Result<(Results, usize)>)| {
        let (results, own) = first?;
        match left[own].beside(&left) {
            None => Ok(results),
            Some(reference) => Ok(Results::from_run(&read_by(super::read(path)?, reference))),
        }
    };
    paths.iter().zip(read).map(again).collect()
}

/// A run as another level of its CPU has it judged.
pub(crate) fn read_by(mut run: Run, reference: Reference) -> Run {
    run.header.plan.reference = reference;
    run
}

fn key(machine: &Machine, cpus: &[u32]) -> Option<String> {
    let mut keys: Vec<String> =
        cpus.iter().map(|cpu| cpu_key(machine, *cpu)).collect::<Option<_>>()?;
    keys.dedup();
    keys.pop().filter(|_| keys.is_empty())
}

fn path() -> Result<PathBuf> {
    let dirs = ProjectDirs::from("", "", "switchcost").context("there is no home directory")?;
    let state = dirs.state_dir().context("there is no state directory (XDG_STATE_HOME)")?;
    Ok(state.join("full-speed.json"))
}

fn read(path: &Path) -> Result<SpeedFile> {
    path.parent().map_or(Ok(()), refuse_others_store)?;
    refuse_others(path)?;
    let cannot = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    super::open(path)?.read_to_end(&mut bytes).with_context(cannot)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Two runs that end at once leave one of the two, whole.
fn write(path: &Path, file: &SpeedFile) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let folder = path.parent().context("it has no folder")?;
    make_private(folder).with_context(cannot)?;
    refuse_others_store(folder).with_context(cannot)?;
    replace(path, &serde_json::to_vec_pretty(file)?).with_context(cannot)
}

/// A plan with what is known of its CPUs, and of launches of the same plan on this machine.
pub(crate) fn with_reference(plan: Plan, machine: &Machine) -> Plan {
    let cases = stored_launches(&plan, machine);
    let scatters: Vec<f64> = cases.iter().filter_map(|known| known.launch_scatter).collect();
    let launch_scatter = median(&scatters);
    let reference = Reference { launch_scatter, cases, ..known_speed(machine, &plan.cpus()) };
    Plan { reference, ..plan }
}

/// Stored launches that are looked at, the newest.
const MOST_LAUNCHES: usize = 20;
/// Files that are opened for them.
const MOST_FILES: usize = 60;
/// Larger files are passed over: reading them would take longer than they are worth.
const MOST_BYTES: u64 = 16 << 20;
/// Bytes of all files that are read: some two seconds.
const MOST_BYTES_IN_ALL: u64 = 40 << 20;

/// What stored launches of the same plan on the same machine say of each of its cases; empty where
/// there are none.
fn stored_launches(plan: &Plan, machine: &Machine) -> Vec<CaseHistory> {
    let entries = RunStore::of_user().and_then(|folder| folder.entries());
    let Ok(entries) = entries else { return Vec::new() };
    let recent =
        entries.into_iter().rev().filter(|entry| entry.name.contains(plan.experiment.name()));
    let cases = plan_cases(plan);
    let mut bytes_left = MOST_BYTES_IN_ALL;
    let results = |entry: StoredRun| {
        let bytes = entry.path.metadata().ok()?.len();
        let is_small = bytes <= MOST_BYTES.min(bytes_left);
        let header = is_small.then(|| header(&entry.path).ok()).flatten()?;
        // Which of its CPUs a run took is no other plan.
        let same = plan_cases(&header.plan) == cases
            && header.plan.batching == plan.batching
            && has_same_parts(&header.plan, plan)
            && header.machine.kernel == machine.kernel
            && header.machine.cpu.models == machine.cpu.models;
        let run = same.then(|| super::read(&entry.path).ok()).flatten()?;
        bytes_left -= bytes;
        // What it was told by others is not its own.
        let known = Reference { cases: Vec::new(), ..known_now(&run) };
        Some(Results::from_run(&read_by(run, known)))
    };
    let sides: Vec<Results> =
        recent.take(MOST_FILES).filter_map(results).take(MOST_LAUNCHES).collect();
    let known = (0..plan.cases.len()).map(|case| known_from_launches(&sides, case));
    let known: Vec<CaseHistory> = known.collect();
    if known.iter().all(|of| *of == CaseHistory::default()) { Vec::new() } else { known }
}

/// Whether two plans measure the same experiments in the same way.
fn has_same_parts(one: &Plan, other: &Plan) -> bool {
    let way = |plan: &Plan| -> Vec<(Experiment, usize, Batching)> {
        let parts = plan.parts.iter();
        parts.map(|part| (part.experiment, part.cases, part.batching.clone())).collect()
    };
    way(one) == way(other)
}

/// Takes up the level that a run has found. Nothing depends on it but later runs: a failure is told
/// and no more.
pub(crate) fn learn(run: &Run) {
    let plan = &run.header.plan;
    let levels = levels(plan, &run.samples);
    let Some(level) = levels.values().next() else { return };
    let Some(key) = key(&run.header.machine, &plan.cpus()) else { return };
    let kept = path().and_then(|path| {
        let mut file = read(&path).unwrap_or_default();
        if file.learn(&key, level) { write(&path, &file) } else { Ok(()) }
    });
    if let Err(error) = kept {
        say(&format!("warning: the CPU's speed that this run measured is not stored: {error:#}"));
    }
}
