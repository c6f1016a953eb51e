//! The machine's cost profile: costs of a switch by array size, from stored runs.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use launcher::KeptActions;
use model::experiment::Experiment;
use model::plan::{Batching, Plan};
use model::reading::Reading;
use model::record::Record;
use model::ring::{Case, Kind, Op, Placement, Walk, Work};
use model::speed::FEWEST_ROUNDS;
use model::summary::CaseSummary;
use model::words::bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effort::Effort;
use crate::execute;
use crate::setting::{Here, pair};
use crate::store::{Entry, Folder, header, read};

/// Bytes that a program touches between two of its switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WorkingSet {
    /// At least so many.
    pub(crate) low_bytes: u64,
    /// At most so many.
    pub(crate) high_bytes: u64,
}

impl WorkingSet {
    /// The range where touched pages could not be counted: all of the resident memory or none.
    pub(crate) fn within(resident_bytes: u64) -> Self {
        Self { low_bytes: 0, high_bytes: resident_bytes }
    }
}

/// The machine's costs by array size, and the stored run that they are from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CostProfile {
    /// The stored run.
    pub(crate) run: String,
    /// Its costs by array.
    pub(crate) points: Vec<ProfilePoint>,
}

/// A cost of a switch with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Cost {
    /// Lower end in ns; signed.
    pub(crate) low_ns: f64,
    /// Upper end in ns.
    pub(crate) high_ns: f64,
}

/// What is missing without any point.
pub(super) const NO_PROFILE: &str = "no stored cost profile: run `switchcost cost` first";

impl Cost {
    fn is_sound(&self) -> bool {
        self.low_ns.is_finite() && self.high_ns.is_finite() && self.low_ns <= self.high_ns
    }

    fn around(self, other: Cost) -> Cost {
        Cost { low_ns: self.low_ns.min(other.low_ns), high_ns: self.high_ns.max(other.high_ns) }
    }
}

/// What was measured at one array size. Several may have the same size: other strides, other kinds
/// of access.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProfilePoint {
    /// Array of each member in bytes.
    pub(crate) array_bytes: u64,
    /// c2 there.
    pub(crate) total: Cost,
    /// c1 of the same run, if it was measured.
    pub(crate) direct: Option<Cost>,
}

/// The costs that a run of rings has measured: of each ring of two processes with work on one CPU, the
/// total cost, and the direct one where the same ring without work was measured beside it: the interval at full
/// speed, else the middle half of the rounds. Rings without either are left out.
pub(super) fn points_of(record: &Record) -> Vec<ProfilePoint> {
    let cost = |summary: &CaseSummary| {
        let interval = summary.ns_per_switch_above_solo.as_ref()?.interval();
        // A program's switches are at whatever speed, too: where full speed was not seen, most rounds tell.
        let contended = summary.contended_ns_per_switch_above_solo;
        let quartiles = contended.map(|all| (all.lower_quartile, all.upper_quartile));
        let (low_ns, high_ns) = interval.map(|i| (i.low, i.high)).or(quartiles)?;
        Some(Cost { low_ns, high_ns })
    };
    let of_two = |case: &Case| {
        case.members == 2 && case.kind == Kind::Process && case.placement.is_one_cpu()
    };
    let rings = record.cases.iter().filter(|summary| of_two(&summary.case));
    let point = |summary: &CaseSummary| {
        // One line a page is not a working set that a program walks.
        let array_bytes = summary.case.work.filter(|work| work.walk == Walk::Whole)?.bytes;
        let bare = Case { work: None, ..summary.case.clone() };
        let direct = record.cases.iter().find(|other| other.case == bare).and_then(cost);
        Some(ProfilePoint { array_bytes, total: cost(summary)?, direct })
    };
    rings.filter_map(point).collect()
}

/// The direct cost: everything that any of the points gives for it.
pub(super) fn direct(points: &[ProfilePoint]) -> Option<Cost> {
    let all = points.iter().filter_map(|point| point.direct).filter(Cost::is_sound);
    all.reduce(Cost::around)
}

/// Lowest and highest cost that the points around the working set leave open; or which input does
/// not allow it.
pub(super) fn cost_at(set: WorkingSet, points: &[ProfilePoint]) -> Result<Cost, String> {
    let WorkingSet { low_bytes: low, high_bytes: high } = set;
    if low > high {
        return Err("working set: its lower end is above its upper end".into());
    }
    let sound = points.iter().filter(|point| point.array_bytes > 0 && point.total.is_sound());
    let totals = sound.map(|point| (point.array_bytes, point.total));
    // No work at all is the smallest working set there is.
    let known: Vec<(u64, Cost)> = totals.chain(direct(points).map(|direct| (0, direct))).collect();
    let sizes = || known.iter().map(|(size, _)| *size);
    let (Some(smallest), Some(largest)) = (sizes().min(), sizes().max()) else {
        return Err(NO_PROFILE.into());
    };
    let below = sizes().filter(|size| *size <= low).max();
    let above = sizes().filter(|size| *size >= high).min();
    if let (Some(below), Some(above)) = (below, above) {
        let around = known.iter().filter(|(size, _)| (below..=above).contains(size));
        let around = around.map(|(_, cost)| *cost).reduce(Cost::around);
        return around.ok_or_else(|| NO_PROFILE.into());
    }
    let range = |low: u64, high: u64| format!("{} to {}", bytes(low), bytes(high));
    let set = if low == high { bytes(low) } else { range(low, high) };
    // The typed form has no blank.
    let end = bytes(high.max(largest).checked_next_power_of_two().unwrap_or(u64::MAX));
    let array = format!("1K..{}:x2", end.replace(' ', ""));
    Err(format!(
        "cost profile: the working set ({set}) lies outside the measured arrays ({}): measure them with `switchcost cost --array {array}`",
        range(smallest, largest)
    ))
}

/// Experiments that measure costs of rings with work, the better one first.
const EXPERIMENTS: [Experiment; 2] = [Experiment::Cost, Experiment::Ring];

/// Differences of machines that are named one by one.
const MOST_DIFFERENCES: usize = 3;

/// Fields of a machine on which costs of switches depend most: where one differs it is another machine.
const OF_THE_MACHINE: [&str; 4] = ["cpu.models", "cpu.topology", "cpu.caches", "kernel.release"];

/// The costs of the stored run that fits best: one of this machine before others, one whose arrays
/// enclose the working set before others, `cost` before `ring`, the newest of equals. Adds a notice
/// where it is of another machine.
pub(crate) fn stored(set: Option<WorkingSet>, notices: &mut Vec<String>) -> Reading<CostProfile> {
    let entries = match Folder::of_user().and_then(|folder| folder.entries()) {
        Ok(entries) => entries,
        Err(error) => return Reading::unknown(format!("{error:#}")),
    };
    let here = probe::machine::read(Path::new("/"));
    // By the header alone, as costs take a while to be computed; one that cannot be read is passed over.
    let candidate = |entry: Entry| {
        let header = header(&entry.path).ok()?;
        let experiment = EXPERIMENTS.iter().position(|of| *of == header.plan.experiment)?;
        let sizes = sizes(&header.plan);
        let (least, most) = sizes.iter().min().zip(sizes.iter().max())?;
        let encloses = set.is_none_or(|set| *least <= set.low_bytes && set.high_bytes <= *most);
        let differences = header.machine.differences(&here).into_iter().map(|of| of.field);
        let differences: Vec<String> = differences.collect();
        let of_machine = |field: &String| OF_THE_MACHINE.iter().any(|of| field.starts_with(of));
        // Less is better.
        let rank = (differences.iter().any(of_machine), !encloses, experiment);
        Some((rank, entry, differences))
    };
    let mut candidates: Vec<_> = entries.into_iter().rev().filter_map(candidate).collect();
    // Stable: the newest of equals stays the first.
    candidates.sort_by_key(|(rank, ..)| *rank);
    for (_, entry, fields) in candidates {
        let points = read(&entry.path).map_or(Vec::new(), |run| points_of(&Record::of(&run)));
        if points.is_empty() {
            continue;
        }
        let more = if fields.len() > MOST_DIFFERENCES { ", ..." } else { "" };
        if !fields.is_empty() {
            notices.push(format!(
                "the cost profile ({}) was measured on a machine that differs in {} fields: {}{more}",
                entry.name,
                fields.len(),
                fields[..fields.len().min(MOST_DIFFERENCES)].join(", "),
            ));
        }
        return Reading::Known(CostProfile { run: entry.name, points });
    }
    Reading::unknown(NO_PROFILE)
}

/// Array sizes of the rings of two that work, 0 for those without; none if none works.
fn sizes(plan: &Plan) -> Vec<u64> {
    let rings = plan.rings().map(|(_, case)| case);
    let of_two = rings.filter(|case| case.members == 2 && case.placement.is_one_cpu());
    // One line a page is not a working set that a program walks.
    let whole = of_two.filter(|case| case.work.is_none_or(|work| work.walk == Walk::Whole));
    let sizes: Vec<u64> = whole.map(|case| case.work.map_or(0, |work| work.bytes)).collect();
    if sizes.iter().all(|size| *size == 0) { Vec::new() } else { sizes }
}

/// Arrays of the quick measurement: about a first-level cache, and well beyond it. Larger ones take
/// more rounds than there is time for.
const QUICK_ARRAYS: [u64; 2] = [32 << 10, 256 << 10];

/// Measures and stores a few costs: rings of two by pipe on one CPU, one sample
/// in each of five rounds, a second or two in all.
pub(crate) fn measure_quickly() -> Result<()> {
    Folder::of_user()?.make()?;
    let here = Here::detect()?;
    let allowed = here.allowed.clone();
    let cpu = probe::placement::choose_one(&allowed, &here.machine).context("no CPU is allowed")?;
    let works = [None, Some(QUICK_ARRAYS[0]), Some(QUICK_ARRAYS[1])];
    let works = works.map(|bytes| Work::new(bytes?, 64, Op::Rmw).ok());
    let case = |work| Case { work, ..pair(Placement::Same { cpu }) };
    let budget = Duration::from_secs(10);
    let rounds = Some(FEWEST_ROUNDS);
    let effort = Effort::<10> { precision: 0.0, budget, rounds, seed: 1992 };
    let plan = effort.plan(Experiment::Ring, works.map(case), Batching::default());
    let notices = vec!["a quick measurement of `switchcost run`".to_string()];
    let taken = {
        // Its own handlers stay, and would keep Ctrl-C from ending what comes after.
        let _kept = KeptActions::keep();
        execute::new_run((plan.with_solos(), notices), here, true)?
    };
    if taken.exit_code() != ExitCode::SUCCESS {
        bail!("interrupted");
    }
    // It has moved this process away from the CPU that it measured.
    probe::placement::pin(&allowed).context("cannot go back to all CPUs")
}
