//! What a run is told of its CPUs and of earlier launches, and what it adds to that.

use model::levels::levels;
use model::machine::Machine;
use model::plan::Plan;
use model::run::Run;
use model::speed::{Reference, Speed};
use model::subject::{Subject, Values};
use stats::{Group, median, scatter_between};

use crate::failure::say;
use crate::store::{self, Entry, Folder, header, known_speed};

/// A plan with what is known of its CPUs, and of launches of the same plan on this machine.
pub(crate) fn with_reference(plan: Plan, machine: &Machine) -> Plan {
    let launch_scatter = stored_scatter(&plan, machine);
    let reference = Reference { launch_scatter, ..known_speed(machine, &plan.cpus()) };
    Plan { reference, ..plan }
}

/// Stored launches that are looked at, the newest.
const MOST_LAUNCHES: usize = 20;
/// Files that are opened for them.
const MOST_FILES: usize = 60;
/// Larger files are passed over: reading them would take longer than they are worth.
const MOST_BYTES: u64 = 8 << 20;
/// Launches scatter by at least so much, whatever a handful of them says.
const LEAST_SCATTER: f64 = 0.005;

/// tau from stored launches of the same plan on the same machine, the median over its cases; absent where they
/// are fewer than five.
fn stored_scatter(plan: &Plan, machine: &Machine) -> Option<f64> {
    let entries = Folder::of_user().and_then(|folder| folder.entries()).ok()?;
    let recent =
        entries.into_iter().rev().filter(|entry| entry.name.contains(plan.experiment.name()));
    let subject = |entry: Entry| {
        let small = entry.path.metadata().is_ok_and(|file| file.len() <= MOST_BYTES);
        let header = small.then(|| header(&entry.path).ok()).flatten()?;
        let same = header.plan.cases == plan.cases
            && header.plan.batching == plan.batching
            && header.machine.kernel == machine.kernel
            && header.machine.cpu.models == machine.cpu.models;
        same.then(|| store::read(&entry.path).ok().map(|run| Subject::of_run(&run))).flatten()
    };
    let subjects: Vec<Subject> =
        recent.take(MOST_FILES).filter_map(subject).take(MOST_LAUNCHES).collect();
    let scatter = |case: usize| {
        let launches = subjects.iter().filter_map(|subject| {
            let Values::Measured(all) = &subject.cases.get(case)?.figures.first()?.values else {
                return None;
            };
            let estimate = all.first()?.estimate.filter(|e| e.speed == Speed::Full)?;
            Some(Group { value: estimate.value, standard_error: estimate.standard_error? })
        });
        scatter_between(&launches.collect::<Vec<Group>>())
    };
    let by_case: Vec<f64> = (0..plan.cases.len()).filter_map(scatter).collect();
    median(&by_case).map(|scatter| scatter.max(LEAST_SCATTER))
}

/// Takes up what a run has found. Nothing depends on it but later runs: a failure is told and no more.
pub(crate) fn learn(run: &Run) {
    let header = &run.header;
    let levels = levels(&header.plan, &run.samples);
    let Some(level) = levels.values().next() else { return };
    if let Err(error) = store::keep_speed(&header.machine, &header.plan.cpus(), level) {
        say(&format!("warning: what this run says of the CPU's speed is not kept: {error:#}"));
    }
}
