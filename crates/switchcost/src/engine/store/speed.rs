//! The full speed of this machine's CPUs as launches have found it: what a run is told, and what it
//! adds.
//!
//! ```text
//! ~/.local/state/switchcost/full-speed.json      one level for each model of CPU
//!    | known_speed                  ^
//!    v                              | learn
//! plan.reference  --> run -->  levels(samples)
//!    ^
//!    | stored_launches: how launches of the same plan scatter
//! ~/.local/share/switchcost/runs/*.jsonl
//! ```
//!
//! Runs that are compared are judged by one level ([`results_of`]): a run that never saw its core
//! unshared would otherwise be held against one that did.

use std::io::Read;
use std::path::{Path, PathBuf};

use analysis::results::{Results, known_from_launches, plan_cases};
use analysis::speed::{SpeedFile, cpu_key, levels};
use anyhow::{Context, Result};
use directories::ProjectDirs;
use rundata::machine::Machine;
use rundata::plan::{CaseHistory, Plan, Reference};
use rundata::run::Run;
use stats::median;

use super::{RunStore, StoredRun, header};
use crate::base::failure::print_message;
use crate::report::output::file::{
    make_private, refuse_others_writing, refuse_unsafe_store, replace_private,
};

/// Returns what is known of the CPUs that are measured on. Of several models of CPU nothing is: one
/// ratio would be wrong for one of them.
pub(crate) fn known_speed(machine: &Machine, cpus: &[u32]) -> Reference {
    let Some(key) = common_key(machine, cpus) else { return Reference::default() };
    // A file that cannot be read is as good as none: it is written anew.
    let file = path().and_then(|path| read(&path)).unwrap_or_default();
    file.reference(&key)
}

/// Returns what a run knows of its CPUs, and what has come to be known of them since. Only for what
/// is measured next: a stored run is read by what its file says.
pub(crate) fn known_now(run: &Run) -> Reference {
    let mut reference = run.header.plan.reference.clone();
    reference.learn(&known_speed(&run.header.machine, &run.header.plan.cpus()));
    reference
}

/// The speed that a run has found, and the model of its CPUs if all are of one.
pub(crate) struct FoundSpeed {
    key: Option<String>,
    reference: Reference,
}

impl FoundSpeed {
    /// Computes what a run has found.
    pub(crate) fn from_run(run: &Run) -> Self {
        let plan = &run.header.plan;
        let reference = analysis::speed::reference_after(plan, &run.samples);
        Self { key: common_key(&run.header.machine, &plan.cpus()), reference }
    }

    /// Returns the reference by which this run is read where all runs of `group` are compared;
    /// absent where its own level stands.
    pub(crate) fn beside(&self, group: &[Self]) -> Option<Reference> {
        let mut same = Vec::new();
        for found in group {
            if self.key.is_some() && found.key == self.key {
                same.push(found.reference.clone());
            }
        }
        self.reference.clone().beside(&Reference::join(same))
    }
}

/// Returns the figures of runs that are compared.
pub(crate) fn results_of(runs: &[&Run]) -> Vec<Results> {
    let mut speeds = Vec::new();
    for run in runs {
        speeds.push(FoundSpeed::from_run(run));
    }
    let mut results = Vec::new();
    for (run, speed) in runs.iter().zip(&speeds) {
        results.push(match speed.beside(&speeds) {
            None => Results::from_run(run),
            Some(reference) => Results::from_run(&read_by((*run).clone(), reference)),
        });
    }
    results
}

/// Returns the figures of run files that are compared. A file that another level decides is read
/// again: all at once may not fit into the memory.
pub(crate) fn results_of_files(paths: &[&Path]) -> Vec<Result<Results>> {
    let mut speeds: Vec<FoundSpeed> = Vec::new();
    let mut first_results: Vec<Result<(Results, usize)>> = Vec::new();
    for path in paths {
        first_results.push(super::read(path).map(|run| {
            speeds.push(FoundSpeed::from_run(&run));
            (Results::from_run(&run), speeds.len() - 1)
        }));
    }
    let mut results = Vec::new();
    for (path, first) in paths.iter().zip(first_results) {
        results.push(first.and_then(|(first, place)| match speeds[place].beside(&speeds) {
            None => Ok(first),
            Some(reference) => Ok(Results::from_run(&read_by(super::read(path)?, reference))),
        }));
    }
    results
}

/// Returns a run as another level of its CPU has it judged.
pub(crate) fn read_by(mut run: Run, reference: Reference) -> Run {
    run.header.plan.reference = reference;
    run
}

/// Returns the key of the CPUs' model, if all are of one and it can be named.
fn common_key(machine: &Machine, cpus: &[u32]) -> Option<String> {
    let mut common = None;
    for cpu in cpus {
        let key = cpu_key(machine, *cpu)?;
        if common.get_or_insert_with(|| key.clone()) != &key {
            return None;
        }
    }
    common
}

fn path() -> Result<PathBuf> {
    let dirs = ProjectDirs::from("", "", "switchcost").context("there is no home directory")?;
    let state = dirs.state_dir().context("there is no state directory (XDG_STATE_HOME)")?;
    Ok(state.join("full-speed.json"))
}

fn read(path: &Path) -> Result<SpeedFile> {
    if let Some(folder) = path.parent() {
        refuse_unsafe_store(folder)?;
    }
    refuse_others_writing(path)?;
    let mut bytes = Vec::new();
    super::open(path)?.read_to_end(&mut bytes).with_context(|| super::cannot_read(path))?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Writes the file. Two runs that end at once leave one of the two, complete.
fn write(path: &Path, file: &SpeedFile) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let folder = path.parent().context("it has no folder")?;
    make_private(folder).with_context(cannot)?;
    refuse_unsafe_store(folder).with_context(cannot)?;
    replace_private(path, &serde_json::to_vec_pretty(file)?).with_context(cannot)
}

/// Returns a plan with what is known of its CPUs, and of launches of the same plan on this machine.
pub(crate) fn with_reference(plan: Plan, machine: &Machine) -> Plan {
    let cases = stored_launches(&plan, machine);
    let mut scatters = Vec::new();
    for case in &cases {
        scatters.extend(case.launch_scatter);
    }
    let launch_scatter = median(&scatters);
    let reference = Reference { launch_scatter, cases, ..known_speed(machine, &plan.cpus()) };
    Plan { reference, ..plan }
}

/// Stored launches whose figures are used, the newest.
const MAX_LAUNCHES: usize = 20;
/// Files that are opened for them.
const MAX_FILES: usize = 60;
/// Bytes of a file that is read: reading a larger one would take longer than it is worth.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Bytes of all files that are read: some two seconds.
const MAX_BYTES_IN_ALL: u64 = 40 << 20;

/// Returns what stored launches of the same plan on the same machine say of each of its cases;
/// empty where there are none.
fn stored_launches(plan: &Plan, machine: &Machine) -> Vec<CaseHistory> {
    let entries = RunStore::of_user().and_then(|store| store.entries());
    let Ok(entries) = entries else { return Vec::new() };
    let launches = newest_launches(&entries, plan, machine);
    let mut known = Vec::new();
    for case in 0..plan.cases.len() {
        known.push(known_from_launches(&launches, case));
    }
    if known.iter().all(|case| *case == CaseHistory::default()) { Vec::new() } else { known }
}

/// Returns the figures of the launches of the same plan on the same machine, newest first, of runs
/// that are sorted oldest first.
fn newest_launches(entries: &[StoredRun], plan: &Plan, machine: &Machine) -> Vec<Results> {
    let mut launches = Vec::new();
    let (mut files, mut bytes_left) = (0, MAX_BYTES_IN_ALL);
    for entry in entries.iter().rev() {
        if !entry.name.contains(plan.experiment.name()) {
            continue;
        }
        if files == MAX_FILES || launches.len() == MAX_LAUNCHES {
            break;
        }
        files += 1;
        launches.extend(read_launch(entry, plan, machine, &mut bytes_left));
    }
    launches
}

/// Reads the figures of a stored run, if it is a launch of the same plan on the same machine and
/// small enough.
fn read_launch(
    entry: &StoredRun,
    plan: &Plan,
    machine: &Machine,
    bytes_left: &mut u64,
) -> Option<Results> {
    let bytes = entry.path.metadata().ok()?.len();
    if bytes > MAX_FILE_BYTES.min(*bytes_left) {
        return None;
    }
    let header = header(&entry.path).ok()?;
    // Which of its CPUs a run took is no other plan.
    let is_same = plan_cases(&header.plan) == plan_cases(plan)
        && header.plan.batching == plan.batching
        && has_same_parts(&header.plan, plan)
        && header.machine.kernel == machine.kernel
        && header.machine.cpu.models == machine.cpu.models;
    if !is_same {
        return None;
    }
    let run = super::read(&entry.path).ok()?;
    *bytes_left -= bytes;
    // What other launches told it are not its own figures.
    let known = Reference { cases: Vec::new(), ..known_now(&run) };
    Some(Results::from_run(&read_by(run, known)))
}

/// Returns whether two plans measure the same experiments in the same way.
fn has_same_parts(one: &Plan, other: &Plan) -> bool {
    if one.parts.len() != other.parts.len() {
        return false;
    }
    let mut pairs = one.parts.iter().zip(&other.parts);
    pairs.all(|(one, other)| {
        one.experiment == other.experiment
            && one.cases == other.cases
            && one.batching == other.batching
    })
}

/// Stores the level that a run has found. Nothing depends on it but later runs: a failure is told
/// and no more.
pub(crate) fn learn(run: &Run) {
    let plan = &run.header.plan;
    let levels = levels(plan, &run.samples);
    let Some(level) = levels.values().next() else { return };
    let Some(key) = common_key(&run.header.machine, &plan.cpus()) else { return };
    let kept = path().and_then(|path| {
        let mut file = read(&path).unwrap_or_default();
        if file.learn(&key, level) { write(&path, &file) } else { Ok(()) }
    });
    if let Err(error) = kept {
        print_message(&format!(
            "warning: the CPU's speed that this run measured is not stored: {error:#}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_more_launches_than_are_used_the_newest_are() {
        let text = include_str!("../../../tests/fixtures/ring.jsonl");
        let header = Run::parse(text).unwrap().header;
        let folder = tempfile::tempdir().unwrap();
        let name = |day: usize| format!("202601{day:02}T000000000Z-ring-1");
        let mut entries = Vec::new();
        for day in 1..=MAX_LAUNCHES + 1 {
            let path = folder.path().join(format!("{}.jsonl", name(day)));
            std::fs::write(&path, text.replace(&header.run, &name(day))).unwrap();
            entries.push(StoredRun::at(path));
        }
        let launches = newest_launches(&entries, &header.plan, &header.machine);
        let names = Vec::from_iter(launches.iter().map(|launch| launch.side.name.as_str()));
        assert_eq!(names, Vec::from_iter((2..=MAX_LAUNCHES + 1).rev().map(name)));
    }
}
