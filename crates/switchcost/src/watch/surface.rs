//! The machine's costs from stored runs.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use model::experiment::Experiment;
use model::machine::{Difference, Machine};
use model::plan::{Batching, Plan, Stopping};
use model::program_cost::{Surface, WorkingSet, points_of};
use model::reading::Reading;
use model::record::Record;
use model::ring::{Case, Kind, Op, Placement, Policy, Walk, Work};
use model::speed::{FEWEST_ROUNDS, Reference};
use probe::command::KeptActions;

use crate::cli::Output;
use crate::store::{Entry, Folder, header, read};
use crate::{measure, resolve};

/// Experiments that measure costs of rings with work, the better one first.
const EXPERIMENTS: [Experiment; 2] = [Experiment::Cost, Experiment::Ring];

/// Differences of machines that are named one by one.
const MOST_DIFFERENCES: usize = 3;

/// Fields of a machine on which costs of switches depend most: where one differs it is another machine.
const OF_THE_MACHINE: [&str; 4] = ["cpu.models", "cpu.topology", "cpu.caches", "kernel.release"];

/// The costs of the stored run that fits best: one of this machine before others, one whose arrays
/// enclose the working set before others, `cost` before `ring`, the newest of equals. With a word where
/// it is of another machine.
pub(crate) fn stored(set: Option<WorkingSet>, notices: &mut Vec<String>) -> Reading<Surface> {
    let entries = match Folder::of_user().and_then(|folder| folder.entries()) {
        Ok(entries) => entries,
        Err(error) => return Reading::unknown(format!("{error:#}")),
    };
    let here = probe::machine::read(std::path::Path::new("/"));
    let newest_first = entries.into_iter().rev();
    let mut candidates: Vec<Candidate> =
        newest_first.filter_map(|entry| Candidate::of(entry, &here, set)).collect();
    // Stable: the newest of equals stays the first.
    candidates.sort_by_key(|candidate| candidate.rank);
    let found = candidates.into_iter().find_map(|candidate| candidate.surface(notices));
    found.ok_or("no stored surface: run `switchcost cost` first").into()
}

/// A stored run with rings that work, by its header alone: its costs take a while to be computed.
struct Candidate {
    entry: Entry,
    differences: Vec<Difference>,
    /// The lower the better: on another machine, not around the working set, experiment.
    rank: (bool, bool, usize),
}

impl Candidate {
    /// A file that cannot be read is no surface.
    fn of(entry: Entry, here: &Machine, set: Option<WorkingSet>) -> Option<Self> {
        let header = header(&entry.path).ok()?;
        let experiment = EXPERIMENTS.iter().position(|of| *of == header.plan.experiment)?;
        let sizes = sizes(&header.plan);
        let (least, most) = sizes.iter().min().zip(sizes.iter().max())?;
        let encloses = set.is_none_or(|set| *least <= set.low_bytes && set.high_bytes <= *most);
        let differences = header.machine.differences(here);
        let is_elsewhere = differences
            .iter()
            .any(|differs| OF_THE_MACHINE.iter().any(|field| differs.field.starts_with(field)));
        Some(Self { entry, differences, rank: (is_elsewhere, !encloses, experiment) })
    }

    fn surface(self, notices: &mut Vec<String>) -> Option<Surface> {
        let run = read(&self.entry.path).ok()?;
        let points = points_of(&Record::of(&run));
        if points.is_empty() {
            return None;
        }
        let name = self.entry.name;
        let fields: Vec<&str> =
            self.differences.iter().take(MOST_DIFFERENCES).map(|differs| &*differs.field).collect();
        if !fields.is_empty() {
            notices.push(format!(
                "the surface ({name}) was measured on a machine that differs in {} fields: {}{}",
                self.differences.len(),
                fields.join(", "),
                if self.differences.len() > MOST_DIFFERENCES { ", ..." } else { "" }
            ));
        }
        Some(Surface { run: name, points })
    }
}

/// Array sizes of the rings of two that work, 0 for those without; none if none works.
fn sizes(plan: &Plan) -> Vec<u64> {
    let rings = plan.rings().map(|(_, case)| case);
    let of_two = rings.filter(|case| case.members == 2 && case.placement.is_one_cpu());
    let size = |case: &Case| match case.work {
        None => Some(0),
        Some(work) => (work.walk == Walk::Whole).then_some(work.bytes),
    };
    let sizes: Vec<u64> = of_two.filter_map(size).collect();
    if sizes.iter().all(|size| *size == 0) { Vec::new() } else { sizes }
}

/// Arrays of the quick measurement: about a first-level cache, and well beyond it. Larger ones take
/// more rounds than there is time for.
const QUICK_ARRAYS: [u64; 2] = [32 << 10, 256 << 10];

/// Measures and stores a few costs, for whoever has none: rings of two by pipe on one CPU, one sample
/// in each of five rounds, a second or two in all.
pub(crate) fn measure_quickly() -> Result<()> {
    Folder::of_user()?.make()?;
    let (machine, allowed) = measure::look_around()?;
    let cpu = probe::placement::choose_one(&allowed, &machine).context("no CPU is allowed")?;
    let work = |bytes| Work::new(bytes, 64, Op::Rmw).map_err(|error| anyhow!("{error}"));
    let works = QUICK_ARRAYS.map(work).into_iter().collect::<Result<Vec<Work>>>()?;
    let case = |work| Case {
        members: 2,
        kind: Kind::Process,
        link: "pipe".to_string(),
        work,
        placement: Placement::Same { cpu },
        policy: Policy::Other,
        priority: None,
        state: None,
    };
    let plan = Plan {
        experiment: Experiment::Ring,
        cases: [None]
            .into_iter()
            .chain(works.into_iter().map(Some))
            .map(|work| case(work).into())
            .collect(),
        seed: 1992,
        batching: Batching::default(),
        stopping: Stopping {
            precision: 0.0,
            budget_ns: 10_000_000_000,
            rounds: Some(FEWEST_ROUNDS),
            confidence: resolve::CONFIDENCE,
        },
        reference: Reference::default(),
    };
    let silent = Output { json: None, csv: None, plot: false, quiet: true };
    let notices = vec!["a quick measurement of `switchcost run`".to_string()];
    let code = {
        // Its own handlers stay, and would keep Ctrl-C from ending what comes after.
        let _kept = KeptActions::keep();
        measure::new_run(plan.with_solos(), machine, &allowed, notices, &silent)?
    };
    if code != ExitCode::SUCCESS {
        bail!("interrupted");
    }
    // It has moved this process away from the CPU that it measured.
    probe::placement::pin(&allowed).context("cannot go back to all CPUs")
}
