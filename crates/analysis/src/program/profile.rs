//! The machine's cost profile: costs of a switch by array size, from a stored run.

use rundata::machine::Machine;
use rundata::plan::MIN_ROUNDS;
use rundata::ring::{MemberKind, RingCase, Walk, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Elasticity;

use crate::at_clock::SAME_CLOCK;
use crate::estimate::Estimate;
use crate::record::RingRecord;
use crate::summary::CaseSummary;

/// What samples of a program's accesses say beside its working set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// Working sets of one thread's size that are used on one CPU, by its threads and by other
    /// processes that run there: 1 where all use the same lines.
    pub sets_per_cpu: f64,
    /// Threads that take turns on one CPU.
    pub threads_per_cpu: f64,
    /// Share of its user time in code that accesses memory.
    pub memory_share: f64,
    /// Share of the accesses whose address was itself read from memory: nothing can fetch them
    /// ahead.
    pub dependent_share: f64,
    /// Share of its switches that are involuntary (a yield is one).
    pub involuntary_share: f64,
}

/// Bytes that a program touches between two of its switches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkingSet {
    /// At least so many.
    pub low_bytes: u64,
    /// At most so many.
    pub high_bytes: u64,
    /// What samples of its memory accesses say beside; absent where they were not sampled.
    #[serde(default)]
    pub sampled: Option<Sampled>,
}

impl WorkingSet {
    /// The range where touched pages could not be counted: all of the resident memory or none.
    pub fn within(resident_bytes: u64) -> Self {
        Self { low_bytes: 0, high_bytes: resident_bytes, sampled: None }
    }

    /// The same, no larger than twice the machine's largest cache: an array of that size misses in
    /// every round, with and without switches, and so does a larger one.
    pub fn in_caches(self, machine: &Machine) -> Self {
        let largest = machine.largest_cache().ok().and_then(|cache| cache.size_bytes.known());
        let most = largest.map_or(u64::MAX, |bytes| bytes.saturating_mul(2));
        Self { low_bytes: self.low_bytes.min(most), high_bytes: self.high_bytes.min(most), ..self }
    }
}

/// How sure the costs of a profile are, the best first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ProfileGrade {
    /// Most of them were measured at full speed and are resolved.
    #[default]
    FullSpeed,
    /// Most of them are of a core that was busy, or are not resolved: an upper estimate.
    BusyCore,
    /// Of too few rounds for an interval, as the core was or by CPU time: an upper estimate.
    FewRounds,
}

impl ProfileGrade {
    /// What follows the name of the profile; nothing at full speed.
    fn in_words(self) -> &'static str {
        match self {
            Self::FullSpeed => "",
            Self::BusyCore => ", which was measured on a busy core",
            Self::FewRounds => ", which was measured in few rounds",
        }
    }
}

/// The machine's costs by array size, and the stored run that they are from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostProfile {
    /// The stored run.
    pub run: String,
    /// Its name (`--name`), where it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Seconds from its start to now; absent where that cannot be told.
    #[serde(default)]
    pub age_s: Option<u64>,
    /// Clock of the core in GHz that its run had; absent where that is not known.
    #[serde(default)]
    pub measured_ghz: Option<f64>,
    /// Clock of the core in GHz that its costs have been brought to: the one found now. Absent
    /// where either is not known.
    #[serde(default)]
    pub clock_ghz: Option<f64>,
    /// How sure its costs are.
    #[serde(default)]
    pub grade: ProfileGrade,
    /// Its costs by array.
    pub points: Vec<ProfilePoint>,
}

impl CostProfile {
    /// `profile 20261125T022900, 3 hours old`: what may be typed after `--profile`. Where the clock
    /// is clearly another one now, both.
    pub fn called(&self) -> String {
        let name = self.name.clone().unwrap_or_else(|| short(&self.run));
        let age = self.age_s.map_or(String::new(), |age| format!(", {}", old(age)));
        let clocks = self.measured_ghz.zip(self.clock_ghz);
        let clocks = clocks.filter(|(then, now)| (now / then).ln().abs() >= TOLD_APART);
        let clocks = clocks.map(|(then, now)| format!(", brought from {then:.2} to {now:.2} GHz"));
        format!("profile {name}{age}{}{}", clocks.unwrap_or_default(), self.grade.in_words())
    }
}

/// Clocks that differ by more, as ln of their ratio, are told: smaller differences are brought, too,
/// and change no answer.
const TOLD_APART: f64 = 0.01;

/// Letters of the moment, to the second, that the name of a run begins with.
const MOMENT: usize = "20261125T022900".len();

/// A run's name as short as it may be typed: the second in which it began.
pub fn short(run: &str) -> String {
    let is_moment = run.split_once('Z').is_some_and(|(moment, _)| {
        moment.len() > MOMENT && moment.bytes().all(|byte| byte.is_ascii_digit() || byte == b'T')
    });
    if is_moment { run[..MOMENT].to_string() } else { run.to_string() }
}

/// `3 hours old`.
pub fn old(age_s: u64) -> String {
    let (count, unit) = match age_s {
        ..60 => return "less than a minute old".to_string(),
        60..3600 => (age_s / 60, "minute"),
        3600..172_800 => (age_s / 3600, "hour"),
        _ => (age_s / 86_400, "day"),
    };
    format!("{count} {unit}{} old", if count == 1 { "" } else { "s" })
}

/// A cost of a switch with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Lower end in ns; signed.
    pub low_ns: f64,
    /// Upper end in ns.
    pub high_ns: f64,
}

impl Cost {
    pub(crate) fn is_sound(&self) -> bool {
        self.low_ns.is_finite() && self.high_ns.is_finite() && self.low_ns <= self.high_ns
    }

    /// At a clock whose period is longer by exp(`apart`): by the power that the case itself shows,
    /// with its error; where that is not known by any from 0 to 1.
    pub(crate) fn at_clock(self, apart: f64, power: Option<Elasticity>) -> Cost {
        let [least, most] = power.map_or([0.0, 1.0], |of| {
            [of.value - 1.96 * of.standard_error, of.value + 1.96 * of.standard_error]
        });
        let by = |power: f64| {
            let factor = (apart * power).exp();
            Cost { low_ns: self.low_ns * factor, high_ns: self.high_ns * factor }
        };
        by(least).around(by(most))
    }

    pub(crate) fn around(self, other: Cost) -> Cost {
        Cost { low_ns: self.low_ns.min(other.low_ns), high_ns: self.high_ns.max(other.high_ns) }
    }
}

/// What was measured at one array size. Several may have the same size: other walks, strides, kinds
/// of access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilePoint {
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// c2 there.
    pub total: Cost,
    /// c1 of the same run, if it was measured.
    pub direct: Option<Cost>,
    /// How the array is walked.
    #[serde(default)]
    pub walk: Walk,
    /// A hop of the ring in ns: the walk and the switch. Absent where it was not measured.
    #[serde(default)]
    pub hop_ns: Option<f64>,
    /// Members of the ring.
    #[serde(default = "two")]
    pub members: u32,
    /// Of a ring without work that switches by sched_yield: `total` and `direct` are that switch.
    #[serde(default)]
    pub yields: bool,
    /// The arrays of all members together fit into a cache that no other core uses.
    #[serde(default)]
    pub fits_private_cache: bool,
}

fn two() -> u32 {
    2
}

impl ProfilePoint {
    /// Of two members that work: what the cost of a program is read from whose accesses were not
    /// sampled.
    pub fn is_of_two(&self) -> bool {
        self.members <= 2 && !self.yields && self.array_bytes > 0
    }
}

/// Whether a ring's costs are those of a profile: of processes on one CPU.
fn is_of_one_cpu(case: &RingCase) -> bool {
    case.members > 1 && case.kind == MemberKind::Process && case.placement.is_one_cpu()
}

/// The same of two.
pub fn is_of_two(case: &RingCase) -> bool {
    case.members == 2 && is_of_one_cpu(case)
}

/// Whether a program may walk its working set so: one line a page is no working set.
pub fn is_walk(work: &Work) -> bool {
    work.walk != Walk::Sparse
}

/// Whether a cost holds: it may be quoted, and is of enough rounds.
fn holds(cost: &Estimate) -> bool {
    cost.quote_cost().is_ok() && cost.rounds >= MIN_ROUNDS
}

/// Cost of a switch of a ring: its interval where it holds, else the middle half of the rounds,
/// else whatever interval there is. None of a few rounds: one figure says nothing of the next.
pub fn cost_of(summary: &CaseSummary) -> Option<Cost> {
    let estimate = summary.ns_per_switch_above_solo;
    let interval = |of: Estimate| of.interval().map(|of| (of.low, of.high));
    // A program's switches are at whatever speed, too: where full speed was not seen, most rounds
    // tell.
    let contended = summary.contended_ns_per_switch_above_solo;
    let contended = contended.filter(|_| summary.rounds >= MIN_ROUNDS);
    let quartiles = contended.map(|all| (all.lower_quartile, all.upper_quartile));
    let held = estimate.filter(holds).and_then(interval);
    let (low_ns, high_ns) = held.or(quartiles).or_else(|| estimate.and_then(interval))?;
    Some(Cost { low_ns, high_ns })
}

/// Like [`cost_of`]; of too few rounds, all that was seen: every round, and the CPU time.
fn rough_cost_of(summary: &CaseSummary) -> Option<Cost> {
    if let Some(cost) = cost_of(summary) {
        return Some(cost);
    }
    let seen = summary.contended_ns_per_switch_above_solo;
    let mut costs = Vec::new();
    costs.extend(seen.map(|all| Cost { low_ns: all.lower_quartile, high_ns: all.upper_quartile }));
    let estimates = [summary.ns_per_switch_above_solo, summary.cpu_ns_per_switch_above_solo];
    for value in estimates.into_iter().flatten().map(|estimate| estimate.value) {
        costs.push(Cost { low_ns: value, high_ns: value });
    }
    costs.into_iter().filter(Cost::is_sound).reduce(Cost::around)
}

/// The clock that its cost is at: known of what was found at full speed.
pub fn clock_of(summary: &CaseSummary) -> Option<f64> {
    let cost = summary.ns_per_switch_above_solo?;
    summary.clock_ghz.filter(|_| cost.speed.is_full())
}

/// Whether a run is clean as a profile: its direct cost holds, and so do most of its costs by
/// array.
pub fn is_clean(record: &RingRecord) -> bool {
    let of_two = || record.cases.iter().filter(|of| is_of_two(&of.case));
    let held = |of: &&CaseSummary| of.ns_per_switch_above_solo.as_ref().is_some_and(holds);
    let walked = || of_two().filter(|of| of.case.work.as_ref().is_some_and(is_walk));
    of_two().any(|of| of.case.work.is_none() && held(&of))
        && 2 * walked().filter(held).count() > walked().count()
}

/// The costs that a run of rings has measured: of each ring of two processes with work on one CPU,
/// the total cost, and the direct one where the same ring without work was measured beside it.
/// Rings without any are left out.
///
/// Those at full speed are brought from their clock to `clock_ghz`, where both are known and
/// differ; others have no clock.
pub fn points_of(record: &RingRecord, clock_ghz: Option<f64>) -> Vec<ProfilePoint> {
    points_by(record, clock_ghz, cost_of)
}

/// Like [`points_of`], with costs of too few rounds for an interval: upper estimates.
pub fn rough_points_of(record: &RingRecord) -> Vec<ProfilePoint> {
    points_by(record, None, rough_cost_of)
}

fn points_by(
    record: &RingRecord,
    clock_ghz: Option<f64>,
    read_cost: impl Fn(&CaseSummary) -> Option<Cost>,
) -> Vec<ProfilePoint> {
    let apart = |summary: &CaseSummary| {
        let clocks = clock_of(summary).zip(clock_ghz);
        let apart = clocks.map(|(then, now)| (then / now).ln());
        apart.filter(|apart| apart.abs() >= SAME_CLOCK)
    };
    let cost_of = |summary: &CaseSummary| {
        let cost = read_cost(summary)?;
        Some(apart(summary).map_or(cost, |apart| cost.at_clock(apart, summary.elasticity)))
    };
    // In the middle of where its cost is brought.
    let hop_of = |summary: &CaseSummary| {
        let power = summary.elasticity.map_or(0.5, |of| of.value);
        let factor = apart(summary).map_or(1.0, |apart| (apart * power).exp());
        Some(summary.ns_per_hop?.value * factor)
    };
    let rings = record.cases.iter().filter(|summary| is_of_one_cpu(&summary.case));
    let point = |summary: &CaseSummary| {
        let work = summary.case.work.filter(is_walk)?;
        let bare = RingCase { work: None, ..summary.case.clone() };
        let direct = record.cases.iter().find(|other| other.case == bare).and_then(&cost_of);
        Some(ProfilePoint {
            array_bytes: work.bytes,
            total: cost_of(summary)?,
            direct,
            walk: work.walk,
            hop_ns: hop_of(summary),
            members: summary.case.members,
            yields: false,
            fits_private_cache: fits_private_cache(&record.header.machine, &summary.case),
        })
    };
    let yielding = record.cases.iter().filter(|summary| {
        let case = &summary.case;
        case.link == "yield" && case.members > 1 && case.work.is_none()
    });
    let switch = |summary: &CaseSummary| {
        let total = cost_of(summary)?;
        let members = summary.case.members;
        Some(ProfilePoint { total, members, yields: true, ..ProfilePoint::default() })
    };
    rings.filter_map(point).chain(yielding.filter_map(switch)).collect()
}

/// From this share of a cache on lines of some sets evict each other, as pages fall into sets by
/// chance.
const FILLED: f64 = 0.5;

/// Whether the arrays of all members of a ring fit into the last cache that only its core uses.
fn fits_private_cache(machine: &Machine, case: &RingCase) -> bool {
    let cpu = case.placement.cpus_of(0).first().copied();
    let private = cpu.and_then(|cpu| machine.last_private_cache(cpu).ok());
    let private_bytes = private.and_then(|cache| cache.size_bytes.known().copied());
    let touched = case.work.map_or(0, |work| work.fetched_bytes());
    let all = touched.saturating_mul(case.members.into());
    private_bytes.is_some_and(|private_bytes| all as f64 <= FILLED * private_bytes as f64)
}

/// The direct cost of two members: everything that any of the points gives for it.
pub fn direct(points: &[ProfilePoint]) -> Option<Cost> {
    let of_two = points.iter().filter(|point| point.is_of_two());
    let all = of_two.filter_map(|point| point.direct).filter(Cost::is_sound);
    all.reduce(Cost::around)
}

/// What a profile lacks for a working set.
#[derive(Debug, PartialEq)]
pub struct Lack {
    /// In words.
    pub why: String,
    /// The command that would measure it.
    pub command: Option<String>,
}

/// What follows the arrays that were not measured.
pub fn measure_with(command: &str) -> String {
    format!(": measure them with `{command}`")
}
