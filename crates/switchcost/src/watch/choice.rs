//! Which stored run is the machine's cost profile.

use std::path::{Path, PathBuf};

use anyhow::Result;
use model::experiment::Experiment;
use model::machine::Machine;
use model::plan::Plan;
use model::record::Record;
use model::ring::{Case, Kind};
use model::run::Header;

use super::profile::{
    CostProfile, NO_PROFILE, QUICK, WorkingSet, cost_at, cost_of, is_of_two, is_walk, points_of,
};
use crate::failure::usage;
use crate::price::Range;
use crate::store::{Entry, Folder, find, header, read};

/// Which runs may be the profile without being asked for: costs of a second's measurement for another purpose are no
/// profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    /// Runs of `cost`.
    Costs,
    /// And quick measurements of `run`, where there is no other.
    CostsAndQuick,
}

impl Accepts {
    fn takes(self, header: &Header) -> bool {
        header.plan.experiment == Experiment::Cost
            || self == Self::CostsAndQuick && is_quick(header)
    }
}

fn is_quick(header: &Header) -> bool {
    header.notices.iter().any(|notice| notice == QUICK)
}

/// A profile, and why it is the one.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) profile: CostProfile,
    /// Its run file.
    pub(crate) path: PathBuf,
    /// Why it was chosen.
    pub(crate) why: String,
    /// In what its machine differs from this one; absent where it does not.
    pub(crate) differs: Option<String>,
}

/// Differences of machines that are named one by one.
const MOST_DIFFERENCES: usize = 3;

/// Fields of a machine on which costs of switches depend most: where one differs it is another machine.
const OF_THE_MACHINE: [&str; 4] = ["cpu.models", "cpu.topology", "cpu.caches", "kernel.release"];

/// The run that was asked for by name, or what is wrong with it.
pub(crate) fn named(name: &str) -> Result<Chosen> {
    let entry = find(name)?;
    let refuse = |why: &str| {
        usage(format!(
            "--profile {name}: no costs by working set: {why} (accepted: a run of `switchcost cost`, or of `ring \
             --members 2 --work SIZE`)"
        ))
    };
    let run = read(&entry.path)?;
    if let Some(why) = unfit(&run.header.plan) {
        return Err(refuse(&why));
    }
    let points = points_of(&Record::of(&run));
    if points.is_empty() {
        return Err(refuse("none of its rings of two processes was measured"));
    }
    let (_, differs) = differences(&run.header.machine, &this_machine(), &entry.name);
    let profile = CostProfile { run: entry.name, points };
    let why = "asked for with --profile".to_string();
    Ok(Chosen { profile, path: entry.path, why, differs })
}

/// Why a plan has no costs by working set; nothing where it has.
fn unfit(plan: &Plan) -> Option<String> {
    let mut left: Vec<&Case> = plan.rings().map(|(_, case)| case).collect();
    let mut without = |why: &str, has: &dyn Fn(&Case) -> bool| {
        left.retain(|case| has(case));
        left.is_empty().then(|| why.to_string())
    };
    let kind = format!("it is a run of `{}`, without rings", plan.experiment);
    without(&kind, &|_| true)
        .or_else(|| without("it has no ring of two", &|case| case.members == 2))
        .or_else(|| without("its members are threads", &|case| case.kind == Kind::Process))
        .or_else(|| without("its members run on several CPUs", &is_of_two))
        .or_else(|| without("its rings of two do no work", &|case| case.work.is_some()))
        .or_else(|| {
            let walks = |case: &Case| case.work.as_ref().is_some_and(is_walk);
            without("it touches one line a page (--tlb)", &walks)
        })
}

/// Array sizes of the rings of two that work, 0 for those without; none if none works.
fn sizes(plan: &Plan) -> Vec<u64> {
    let rings = plan.rings().map(|(_, case)| case).filter(|case| is_of_two(case));
    let walked = rings.filter(|case| case.work.as_ref().is_none_or(is_walk));
    let sizes: Vec<u64> = walked.map(|case| case.work.map_or(0, |work| work.bytes)).collect();
    if sizes.iter().all(|size| *size == 0) { Vec::new() } else { sizes }
}

/// Stored runs whose costs are computed in search of one that answers, which takes a while each.
const MOST_READ: usize = 5;

/// A run that may be the profile, by its header alone.
struct Candidate {
    entry: Entry,
    /// Whether its machine is another one.
    is_foreign: bool,
    differs: Option<String>,
    /// Whether its arrays lie on both sides of the working set.
    encloses: bool,
    is_quick: bool,
}

impl Candidate {
    fn of(entry: Entry, set: Option<WorkingSet>, accepts: Accepts, here: &Machine) -> Option<Self> {
        // One that cannot be read is passed over.
        let header = header(&entry.path).ok().filter(|header| accepts.takes(header))?;
        let sizes = sizes(&header.plan);
        let (least, most) = sizes.iter().min().zip(sizes.iter().max())?;
        let encloses = set.is_none_or(|set| *least <= set.low_bytes && set.high_bytes <= *most);
        let (is_foreign, differs) = differences(&header.machine, here, &entry.name);
        Some(Self { is_quick: is_quick(&header), entry, is_foreign, differs, encloses })
    }

    /// Less is better.
    fn rank(&self) -> (bool, bool, bool) {
        (self.is_foreign, self.is_quick, !self.encloses)
    }

    fn why(&self, answers: bool) -> String {
        let kind = match self.is_quick {
            true => "quick measurement of `run`",
            false => "run of `cost`",
        };
        let machine =
            if self.is_foreign { "another machine, as this one has none" } else { "this machine" };
        let reaches = if answers { " that covers the working set" } else { "" };
        format!("the newest {kind} on {machine}{reaches}")
    }
}

/// The costs of the stored run that fits best: one of this machine before others, one of `cost` before a quick
/// one, one whose arrays enclose the working set before others, the newest of equals; of these the first whose
/// figures answer, else the first that has any. `between_ns` as in [`cost_at`].
pub(super) fn best(
    set: Option<WorkingSet>,
    between_ns: Option<f64>,
    accepts: Accepts,
    here: &Machine,
) -> Result<Chosen, String> {
    let entries = Folder::of_user().and_then(|folder| folder.entries());
    let entries = entries.map_err(|error| format!("{error:#}"))?;
    let newest_first = entries.into_iter().rev();
    let mut candidates: Vec<Candidate> =
        newest_first.filter_map(|entry| Candidate::of(entry, set, accepts, here)).collect();
    // Stable: the newest of equals stays the first.
    candidates.sort_by_key(Candidate::rank);
    let mut first = None;
    for candidate in candidates.into_iter().take(MOST_READ) {
        let run = read(&candidate.entry.path).ok();
        let points = run.map_or(Vec::new(), |run| points_of(&Record::of(&run)));
        let answers = set.is_some_and(|set| cost_at(set, between_ns, &points).is_ok());
        if points.is_empty() || (first.is_some() && !answers) {
            continue;
        }
        let why = candidate.why(answers);
        let Candidate { entry, differs, .. } = candidate;
        let profile = CostProfile { run: entry.name, points };
        let chosen = Chosen { profile, path: entry.path, why, differs };
        if answers || set.is_none() {
            return Ok(chosen);
        }
        first = Some(chosen);
    }
    first.ok_or_else(|| NO_PROFILE.to_string())
}

/// What handing over to another CPU costs on this machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Apart {
    /// A hop between two CPUs in ns, above that of a ring of one: the wake-up and the switches of both.
    pub(crate) hand_over_ns: Range,
    /// The stored run.
    pub(crate) run: String,
}

/// That of the newest `ring --placement sweep` of this machine, between the two CPUs where it is least.
pub(crate) fn apart() -> Option<Apart> {
    let is_pair = |case: &Case| {
        case.placement.relation().is_some() && case.members == 2 && case.work.is_none()
    };
    let here = this_machine();
    let fits = |entry: &Entry| {
        let header = header(&entry.path).ok();
        header.is_some_and(|header| {
            header.plan.rings().any(|(_, case)| is_pair(case) && case.link == "pipe")
                && !differences(&header.machine, &here, "").0
        })
    };
    let entries = Folder::of_user().and_then(|folder| folder.entries()).ok()?;
    let newest_first = entries.into_iter().rev().filter(fits).take(MOST_READ);
    newest_first
        .filter_map(|entry| {
            let record = Record::of(&read(&entry.path).ok()?);
            let pairs =
                record.cases.iter().filter(|of| is_pair(&of.case) && of.case.link == "pipe");
            let hops = pairs.filter_map(|pair| {
                let switches = pair.switches_per_hop?.value;
                Some(Range::from(cost_of(pair)?).map(|ns| ns * switches))
            });
            let hand_over_ns = hops.min_by(|one, other| one.high.total_cmp(&other.high))?;
            Some(Apart { hand_over_ns, run: entry.name })
        })
        .next()
}

/// The machine that this program runs on.
pub(super) fn this_machine() -> Machine {
    probe::machine::read(Path::new("/"))
}

/// Whether `machine` is another one than `here`, and a notice of all in which they differ.
fn differences(machine: &Machine, here: &Machine, name: &str) -> (bool, Option<String>) {
    let fields: Vec<String> =
        machine.differences(here).into_iter().map(|difference| difference.field).collect();
    let of_machine = |field: &String| OF_THE_MACHINE.iter().any(|of| field.starts_with(of));
    let more = if fields.len() > MOST_DIFFERENCES { ", ..." } else { "" };
    let count = crate::terminal::counted(fields.len(), "field");
    let notice = (!fields.is_empty()).then(|| {
        format!(
            "the cost profile ({name}) was measured on a machine that differs in {count}: {}{more}",
            fields[..fields.len().min(MOST_DIFFERENCES)].join(", ")
        )
    });
    (fields.iter().any(of_machine), notice)
}
