//! The machine's cost profile: the cost of a switch by array size, from a stored run.

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

/// Facts about a program's memory accesses beside its working set, from samples of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Sampled")]
pub struct AccessPattern {
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
    /// Lower end.
    pub low_bytes: u64,
    /// Upper end.
    pub high_bytes: u64,
    /// Facts about its memory accesses; absent where they were not sampled.
    #[serde(default)]
    pub sampled: Option<AccessPattern>,
}

impl WorkingSet {
    /// Returns the range where touched pages could not be counted: from nothing to all of the
    /// resident memory.
    pub fn within(resident_bytes: u64) -> Self {
        Self { low_bytes: 0, high_bytes: resident_bytes, sampled: None }
    }

    /// Returns the range, limited to twice the machine's largest cache: an array of that size misses
    /// in every round, with and without switches, and so does a larger one.
    pub fn in_caches(self, machine: &Machine) -> Self {
        let largest = machine.largest_cache().ok().and_then(|cache| cache.size_bytes.known());
        let most = match largest {
            Some(bytes) => bytes.saturating_mul(2),
            None => u64::MAX,
        };
        Self { low_bytes: self.low_bytes.min(most), high_bytes: self.high_bytes.min(most), ..self }
    }
}

/// Precision of the costs of a profile, the best first.
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
    /// Most have too few rounds for an interval, and are of a core that was busy or by CPU time: an
    /// upper estimate.
    FewRounds,
}

impl ProfileGrade {
    /// Returns the words after the name of the profile; none at full speed.
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
    /// File name of the stored run.
    pub run: String,
    /// Name that the user gave to it (`--name`).
    #[serde(default)]
    pub name: Option<String>,
    /// Seconds from its start to now; absent where that is not known.
    #[serde(default)]
    pub age_s: Option<u64>,
    /// Clock of the core in GHz that its run had; absent where that is not known.
    #[serde(default)]
    pub measured_ghz: Option<f64>,
    /// Clock of the core in GHz that its costs have been converted to: the present one. Absent
    /// where either clock is not known.
    #[serde(default)]
    pub clock_ghz: Option<f64>,
    /// Precision of its costs.
    #[serde(default)]
    pub grade: ProfileGrade,
    /// The costs by array.
    pub points: Vec<ProfilePoint>,
}

impl CostProfile {
    /// Returns `profile 20261125T022900, 3 hours old`, whose name may be typed after `--profile`; with
    /// both clocks, where the present one is clearly another.
    pub fn called(&self) -> String {
        let name = self.name.clone().unwrap_or_else(|| short(&self.run));
        let age = self.age_s.map_or(String::new(), |age| format!(", {}", old(age)));
        let clocks = self.clocks_in_words();
        format!("profile {name}{age}{clocks}{}", self.grade.in_words())
    }

    fn clocks_in_words(&self) -> String {
        match (self.measured_ghz, self.clock_ghz) {
            (Some(then), Some(now)) if (now / then).ln().abs() >= MAX_SILENT_LOG_RATIO => {
                format!(", brought from {then:.2} to {now:.2} GHz")
            }
            _ => String::new(),
        }
    }
}

/// Largest ln of the ratio of two clocks that is not printed: costs are converted by smaller ratios,
/// too, but no answer changes by that.
const MAX_SILENT_LOG_RATIO: f64 = 0.01;

/// Length of the time, to the second, that the name of a run begins with.
const TIMESTAMP_LEN: usize = "20261125T022900".len();

/// Returns a run's name as short as it may be typed: the second in which it began.
pub fn short(run: &str) -> String {
    match run.split_once('Z') {
        Some((time, _)) if is_timestamp(time) => run[..TIMESTAMP_LEN].to_string(),
        _ => run.to_string(),
    }
}

fn is_timestamp(text: &str) -> bool {
    text.len() > TIMESTAMP_LEN && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'T')
}

/// Returns an age as `3 hours old`.
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

    /// Returns the cost at a clock whose period is exp(`log_ratio`) times as long, by the elasticity
    /// of the case with its error; where that is not known, by any from 0 to 1.
    pub(crate) fn at_clock(self, log_ratio: f64, elasticity: Option<Elasticity>) -> Cost {
        let (least, most) = match elasticity {
            Some(Elasticity { value, standard_error }) => {
                (value - 1.96 * standard_error, value + 1.96 * standard_error)
            }
            None => (0.0, 1.0),
        };
        self.times((log_ratio * least).exp()).around(self.times((log_ratio * most).exp()))
    }

    fn times(self, factor: f64) -> Cost {
        Cost { low_ns: self.low_ns * factor, high_ns: self.high_ns * factor }
    }

    /// Returns the range that encloses both.
    pub(crate) fn around(self, other: Cost) -> Cost {
        Cost { low_ns: self.low_ns.min(other.low_ns), high_ns: self.high_ns.max(other.high_ns) }
    }
}

/// The cost of a switch at one array size. Several points may have the same size: other walks,
/// strides, kinds of access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilePoint {
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// c2 at this size.
    pub total: Cost,
    /// c1 of the same run; absent where it was not measured.
    pub direct: Option<Cost>,
    /// Order in which the array is walked.
    #[serde(default)]
    pub walk: Walk,
    /// A hop of the ring in ns: the walk and the switch. Absent where it was not measured.
    #[serde(default)]
    pub hop_ns: Option<f64>,
    /// Members of the ring.
    #[serde(default = "two")]
    pub members: u32,
    /// True for a ring without work that switches by sched_yield: `total` is such a switch.
    #[serde(default)]
    pub yields: bool,
    /// True if the arrays of all members together fit into a cache that no other core uses.
    #[serde(default)]
    pub fits_private_cache: bool,
}

fn two() -> u32 {
    2
}

impl ProfilePoint {
    /// Returns whether it is of two members that work. Such points price a program whose accesses
    /// were not sampled.
    pub fn is_of_two(&self) -> bool {
        self.members <= 2 && !self.yields && self.array_bytes > 0
    }
}

/// Returns whether a ring's costs belong to a profile: its members are processes on one CPU.
fn is_of_one_cpu(case: &RingCase) -> bool {
    let is_ring = case.members > 1 && case.kind == MemberKind::Process;
    is_ring && case.placement.is_one_cpu() && !case.has_several_rings()
}

/// Returns whether a ring is one of two processes on one CPU.
pub fn is_of_two(case: &RingCase) -> bool {
    case.members == 2 && is_of_one_cpu(case)
}

/// Returns whether a program may walk its working set like this: one line a page is no working set.
pub fn is_walk(work: &Work) -> bool {
    work.walk != Walk::Sparse
}

/// Returns whether a cost is sure: it may be quoted, and is of enough rounds.
fn is_sure(cost: &Estimate) -> bool {
    cost.quote_cost().is_ok() && cost.rounds >= MIN_ROUNDS
}

fn interval_cost(estimate: &Estimate) -> Option<Cost> {
    let interval = estimate.interval()?;
    Some(Cost { low_ns: interval.low, high_ns: interval.high })
}

/// Returns the cost of a switch of a ring: its interval where that is sure, else the middle half of
/// the rounds, else whatever interval there is. Absent for a few rounds without an interval, as one
/// figure says nothing of the next.
pub fn cost_of(summary: &CaseSummary) -> Option<Cost> {
    let estimate = summary.ns_per_switch_above_solo;
    let interval = estimate.and_then(|estimate| interval_cost(&estimate));
    if interval.is_some() && estimate.as_ref().is_some_and(is_sure) {
        return interval;
    }
    // A program's switches happen at any speed, too: where full speed was not seen, most rounds
    // answer.
    if summary.rounds >= MIN_ROUNDS { middle_half(summary).or(interval) } else { interval }
}

/// Returns the middle half of the rounds, measured on the core as it was.
fn middle_half(summary: &CaseSummary) -> Option<Cost> {
    let rounds = summary.contended_ns_per_switch_above_solo?;
    Some(Cost { low_ns: rounds.lower_quartile, high_ns: rounds.upper_quartile })
}

/// Like [`cost_of`], but with too few rounds returns all that was seen: every round, and the CPU
/// time.
fn rough_cost_of(summary: &CaseSummary) -> Option<Cost> {
    if let Some(cost) = cost_of(summary) {
        return Some(cost);
    }
    let mut costs = Vec::new();
    costs.extend(middle_half(summary));
    let estimates = [summary.ns_per_switch_above_solo, summary.cpu_ns_per_switch_above_solo];
    for Estimate { value, .. } in estimates.into_iter().flatten() {
        costs.push(Cost { low_ns: value, high_ns: value });
    }
    costs.retain(Cost::is_sound);
    costs.into_iter().reduce(Cost::around)
}

/// Returns the clock in GHz of a ring's cost; absent where the cost is not at full speed.
pub fn clock_of(summary: &CaseSummary) -> Option<f64> {
    let cost = summary.ns_per_switch_above_solo?;
    if cost.speed.is_full() { summary.clock_ghz } else { None }
}

/// Returns whether a run is clean as a profile: its direct cost is sure, and so are most of its costs
/// by array.
pub fn is_clean(record: &RingRecord) -> bool {
    let mut has_sure_direct = false;
    let (mut walked, mut sure_walked) = (0, 0);
    for summary in &record.cases {
        if !is_of_two(&summary.case) {
            continue;
        }
        let cost_is_sure = summary.ns_per_switch_above_solo.as_ref().is_some_and(is_sure);
        match &summary.case.work {
            None => has_sure_direct |= cost_is_sure,
            Some(work) if is_walk(work) => {
                walked += 1;
                sure_walked += usize::from(cost_is_sure);
            }
            Some(_) => {}
        }
    }
    has_sure_direct && 2 * sure_walked > walked
}

/// Returns the costs that a run of rings has measured: for each ring of processes with work on one
/// CPU the total cost, and the direct one where the same ring without work was measured beside it;
/// then those of rings that switch by sched_yield. Rings without any cost are left out.
///
/// Costs at full speed are converted from their clock to `clock_ghz`, where both are known and
/// differ; others have no clock.
pub fn points_of(record: &RingRecord, clock_ghz: Option<f64>) -> Vec<ProfilePoint> {
    ProfileReader { record, clock_ghz, read_cost: cost_of }.points()
}

/// Like [`points_of`], with costs of too few rounds for an interval: upper estimates.
pub fn rough_points_of(record: &RingRecord) -> Vec<ProfilePoint> {
    ProfileReader { record, clock_ghz: None, read_cost: rough_cost_of }.points()
}

/// Reads the points of a profile from a run.
struct ProfileReader<'a> {
    record: &'a RingRecord,
    /// The clock that costs are converted to.
    clock_ghz: Option<f64>,
    /// Returns the cost of a ring at its own clock.
    read_cost: fn(&CaseSummary) -> Option<Cost>,
}

impl ProfileReader<'_> {
    fn points(&self) -> Vec<ProfilePoint> {
        let mut points = Vec::new();
        for summary in &self.record.cases {
            points.extend(self.walk_point(summary));
        }
        for summary in &self.record.cases {
            points.extend(self.yield_point(summary));
        }
        points
    }

    /// Returns the point of a ring whose members work on one CPU.
    fn walk_point(&self, summary: &CaseSummary) -> Option<ProfilePoint> {
        if !is_of_one_cpu(&summary.case) {
            return None;
        }
        let work = summary.case.work.filter(is_walk)?;
        let without_work = RingCase { work: None, ..summary.case.clone() };
        let direct = self.record.cases.iter().find(|other| other.case == without_work);
        Some(ProfilePoint {
            array_bytes: work.bytes,
            total: self.cost(summary)?,
            direct: direct.and_then(|direct| self.cost(direct)),
            walk: work.walk,
            hop_ns: self.hop_ns(summary),
            members: summary.case.members,
            yields: false,
            fits_private_cache: fits_private_cache(&self.record.header.machine, &summary.case),
        })
    }

    /// Returns the point of a ring that switches by sched_yield.
    fn yield_point(&self, summary: &CaseSummary) -> Option<ProfilePoint> {
        let case = &summary.case;
        if case.link != "yield" || case.members <= 1 || case.work.is_some() {
            return None;
        }
        let (total, members) = (self.cost(summary)?, case.members);
        Some(ProfilePoint { total, members, yields: true, ..ProfilePoint::default() })
    }

    fn cost(&self, summary: &CaseSummary) -> Option<Cost> {
        let cost = (self.read_cost)(summary)?;
        match self.clock_log_ratio(summary) {
            Some(log_ratio) => Some(cost.at_clock(log_ratio, summary.elasticity)),
            None => Some(cost),
        }
    }

    /// Returns the time of a hop, converted by the middle of the elasticities that are possible.
    fn hop_ns(&self, summary: &CaseSummary) -> Option<f64> {
        let hop_ns = summary.ns_per_hop?.value;
        let power = match summary.elasticity {
            Some(elasticity) => elasticity.value,
            None => 0.5,
        };
        match self.clock_log_ratio(summary) {
            Some(log_ratio) => Some(hop_ns * (log_ratio * power).exp()),
            None => Some(hop_ns),
        }
    }

    /// Returns ln of the ring's clock over the wanted one; absent where either is not known or both
    /// are the same.
    fn clock_log_ratio(&self, summary: &CaseSummary) -> Option<f64> {
        let log_ratio = (clock_of(summary)? / self.clock_ghz?).ln();
        if log_ratio.abs() >= SAME_CLOCK { Some(log_ratio) } else { None }
    }
}

/// Largest share of a cache that arrays fill without evicting each other: beyond it lines of some
/// sets do, as pages fall into sets by chance.
const MAX_FILL: f64 = 0.5;

/// Returns whether the arrays of all members of a ring fit into the last cache that only its core
/// uses.
fn fits_private_cache(machine: &Machine, case: &RingCase) -> bool {
    let Some(cache_bytes) = private_cache_bytes(machine, case) else { return false };
    let array_bytes = case.work.map_or(0, |work| work.fetched_bytes());
    let ring_bytes = array_bytes.saturating_mul(case.members.into());
    ring_bytes as f64 <= MAX_FILL * cache_bytes as f64
}

fn private_cache_bytes(machine: &Machine, case: &RingCase) -> Option<u64> {
    let cpu = *case.placement.cpus_of(0).first()?;
    machine.last_private_cache(cpu).ok()?.size_bytes.known().copied()
}

/// Returns the range of the direct costs that the points of two members give.
pub fn direct(points: &[ProfilePoint]) -> Option<Cost> {
    let mut costs = Vec::new();
    for point in points {
        if point.is_of_two() {
            costs.extend(point.direct);
        }
    }
    costs.retain(Cost::is_sound);
    costs.into_iter().reduce(Cost::around)
}

/// A cost that the profile does not have.
#[derive(Debug, PartialEq)]
pub struct MissingCost {
    /// The reason in words.
    pub why: String,
    /// The command that would measure it.
    pub command: Option<String>,
}

/// Returns the advice that follows the arrays that were not measured.
pub fn measure_with(command: &str) -> String {
    format!(": measure them with `{command}`")
}
