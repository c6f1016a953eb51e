//! Cost of calls, over all launches.
//!
//! Every formula is in `docs/method.md`. In short, for each group of calls:
//!
//! ```text
//! launch 1:  (sum of CPU times - calls x what timing adds) / calls   = 52.0 ns
//! launch 2:                                                            50.5 ns
//! ...                                                                  median 51 ns (50 to 53)
//! known call: told 2.5 ns too long at most, or 1 ns too short          51 ns (47.5 to 54)
//! ```
//!
//! The known call is why a short call has only an upper bound: a call that is timed does not
//! overlap with the code around it, and of 5 ns that may be half.

use std::collections::BTreeMap;

use analysis::estimate::Estimate;
use analysis::used::{Known, from_logarithm, is_bound, widened};
use anyhow::Result;
use preload::layout;
use rundata::machine::Machine;
use rundata::plan::MIN_ROUNDS;
use rundata::run::ProgramBuild;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;

use super::launches::{
    CallGroup, CallSum, CountedCalls, ProfilePlan, ProfiledLaunch, is_allocator, median_known,
};
use crate::report::output::columns::Columns;

/// Version of [`CallProfile`].
const SCHEMA: u32 = 1;

/// Cost of a group of calls over the launches with one allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct GroupCost {
    /// Number of the allocator: 0 is the C library's, then those of the plan.
    pub(crate) allocator: usize,
    /// Function and sizes.
    #[serde(flatten)]
    pub(crate) group: CallGroup,
    /// Calls a launch: the median of launches.
    pub(crate) calls: f64,
    /// Mean CPU time of a call, less what timing adds, in nanoseconds: median of launches. Nothing
    /// around a call overlaps with it while it is timed; the interval covers by how much a known
    /// call is measured too long or too short.
    pub(crate) ns_per_call: Estimate,
    /// True if the call is so short that there is only an upper bound: the error of a known call is
    /// more than three tenths of it, or not known.
    pub(crate) is_bound: bool,
    /// Least time of a call by the known call, in nanoseconds, without the scatter of launches; at
    /// most 0 if there is only an upper bound.
    pub(crate) least_ns: f64,
    /// Longest time of a call by the known call, in nanoseconds, without the scatter of launches.
    pub(crate) most_ns: f64,
    /// Like `ns_per_call`, by a wall clock, which goes on while the thread is off the CPU.
    pub(crate) wall_ns_per_call: Estimate,
    /// Median CPU time of all calls, less what timing adds, in nanoseconds.
    pub(crate) p50_ns: f64,
    /// CPU time that 99 % of the calls do not exceed.
    pub(crate) p99_ns: f64,
    /// CPU time that 99.9 % of the calls do not exceed.
    pub(crate) p999_ns: f64,
    /// Longest call by CPU time, in nanoseconds.
    pub(crate) longest_ns: u64,
    /// Longest call by a wall clock, in nanoseconds.
    pub(crate) longest_wall_ns: u64,
    /// Calls in which the thread was switched out, moved, or took a signal, in all launches.
    pub(crate) switched: u64,
    /// Part of the command's CPU time without profiling that the calls take, median of launches;
    /// absent if profiling took most of it in any.
    pub(crate) share_of_cpu: Option<Estimate>,
}

/// Ratio of the cost of calls with another allocator to that with the C library's, within rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AllocatorRatio {
    /// Number of the allocator.
    pub(crate) allocator: usize,
    /// Function and sizes.
    #[serde(flatten)]
    pub(crate) group: CallGroup,
    /// Median over rounds; resolved if its interval, which covers the error of the known call in
    /// both costs, excludes 1.
    pub(crate) ratio: Estimate,
    /// True if it is an upper bound, as the other allocator's cost is.
    pub(crate) is_bound: bool,
}

/// Everything that `switchcost profile` tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CallProfile {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// Start of the first launch, in UTC (RFC 3339).
    pub(crate) started: String,
    /// Name of the machine; absent if it was left out.
    pub(crate) host: Option<String>,
    /// Build of this program.
    pub(crate) build: ProgramBuild,
    /// Plan that the user asked for.
    pub(crate) plan: ProfilePlan,
    /// Machine that the command ran on.
    pub(crate) machine: Machine,
    /// Launches as they were counted.
    pub(crate) launches: Vec<ProfiledLaunch>,
    /// Costs of calls: all together, then by function, then by size.
    pub(crate) rows: Vec<GroupCost>,
    /// Ratios of other allocators to the C library's.
    pub(crate) ratios: Vec<AllocatorRatio>,
    /// Short call of known length: medians of launches.
    pub(crate) known: Option<Known>,
    /// Nanoseconds that profiling adds to a call: median of launches.
    pub(crate) added_ns: Option<f64>,
    /// Notes on what was not counted, and what is in doubt.
    pub(crate) notices: Vec<String>,
}

/// When, where and by which build a profile was measured.
#[derive(Clone, Debug)]
pub(super) struct ProfileOrigin {
    pub(super) started: String,
    pub(super) host: Option<String>,
    pub(super) machine: Machine,
    pub(super) build: ProgramBuild,
}

impl CallProfile {
    /// Computes the costs of all groups of calls.
    pub(super) fn from_launches(
        plan: ProfilePlan,
        launches: Vec<ProfiledLaunch>,
        origin: ProfileOrigin,
    ) -> Self {
        let groups = find_groups(&launches);
        let mut rows = Vec::new();
        for allocator in 0..=plan.allocators.len() {
            let with_allocator = launches_with(&launches, allocator);
            for group in &groups {
                rows.extend(GroupCost::from_launches(allocator, group, &with_allocator, &plan));
            }
        }
        let mut ratios = Vec::new();
        for allocator in 1..=plan.allocators.len() {
            for group in &groups {
                ratios.extend(AllocatorRatio::within_rounds(
                    allocator, group, &rows, &launches, &plan,
                ));
            }
        }
        let mut overheads: Vec<f64> = Vec::new();
        for launch in &launches {
            overheads.extend(launch.overhead_ns);
        }
        Self {
            schema: SCHEMA,
            started: origin.started,
            host: origin.host,
            build: origin.build,
            machine: origin.machine,
            ratios,
            known: median_known(&launches),
            added_ns: median(&overheads),
            notices: notices(&plan, &launches, &rows),
            plan,
            launches,
            rows,
        }
    }

    /// Returns the cost of a group of calls.
    pub(super) fn row(&self, allocator: usize, group: &CallGroup) -> Option<&GroupCost> {
        find_row(&self.rows, allocator, group)
    }

    /// Returns the ratio of a row's cost to that with the command's own allocator.
    pub(super) fn ratio(&self, row: &GroupCost) -> Option<&AllocatorRatio> {
        self.ratios
            .iter()
            .find(|ratio| ratio.allocator == row.allocator && ratio.group == row.group)
    }

    /// Returns the cost of all calls of an allocator together.
    pub(super) fn all_calls(&self, allocator: usize) -> Option<&GroupCost> {
        self.row(allocator, &CallGroup::ALL)
    }

    /// Writes a line of CSV for each launch, function and size.
    pub(super) fn csv(&self) -> Result<Vec<u8>> {
        let mut rows = Vec::new();
        for launch in &self.launches {
            for calls in &launch.counted {
                rows.push(CsvRow { plan: &self.plan, launch, calls });
            }
        }
        csv_columns().csv(rows)
    }
}

/// A line of CSV.
struct CsvRow<'a> {
    plan: &'a ProfilePlan,
    launch: &'a ProfiledLaunch,
    calls: &'a CountedCalls,
}

fn csv_columns<'a>() -> Columns<'a, CsvRow<'a>> {
    Columns::<CsvRow>::new()
        .left("experiment", |_| "profile")
        .left("allocator", |row| row.plan.allocator(row.launch.allocator).to_string())
        .right("round", |row| row.launch.round)
        .right("exit_code", |row| row.launch.exit_code)
        .or_empty("function", |row| row.calls.group.function.clone())
        .or_empty("from_bytes", |row| Some(row.calls.group.bytes?.0))
        .or_empty("to_bytes", |row| Some(row.calls.group.bytes?.1))
        .right("calls", |row| row.calls.calls)
        .right("sum_ns", |row| row.calls.times.sum_ns)
        .right("empty_ns", |row| row.launch.added_ns(&row.calls.group))
        .right("max_ns", |row| row.calls.times.max_ns)
        .right("switched", |row| row.calls.times.switched)
        .right("off_cpu_ns", |row| row.calls.times.off_cpu_ns)
        .right("max_wall_ns", |row| row.calls.times.max_wall_ns)
        .or_empty("known_told_ns", |row| Some(row.launch.known?.told_ns))
        .or_empty("known_in_a_row_ns", |row| Some(row.launch.known?.in_a_row_ns))
        .or_empty("known_chained_ns", |row| Some(row.launch.known?.chained_ns))
        .or_empty("own_ns", |row| row.launch.overhead_ns)
        .right("cpu_ns", |row| row.launch.cpu_ns)
}

fn find_row<'a>(
    rows: &'a [GroupCost],
    allocator: usize,
    group: &CallGroup,
) -> Option<&'a GroupCost> {
    rows.iter().find(|row| row.allocator == allocator && row.group == *group)
}

fn launches_with(launches: &[ProfiledLaunch], allocator: usize) -> Vec<&ProfiledLaunch> {
    launches.iter().filter(|launch| launch.allocator == allocator).collect()
}

/// Returns the groups of calls that have a cost: all calls, then each function, followed by each of
/// its sizes. The function that is called most often comes first.
fn find_groups(launches: &[ProfiledLaunch]) -> Vec<CallGroup> {
    let mut kinds: Vec<CallGroup> = Vec::new();
    let mut calls_by_function: BTreeMap<String, u64> = BTreeMap::new();
    for launch in launches {
        for counted in &launch.counted {
            kinds.push(counted.group.clone());
            if let Some(function) = &counted.group.function {
                *calls_by_function.entry(function.clone()).or_default() += counted.calls;
            }
        }
    }
    kinds.sort();
    kinds.dedup();
    let mut functions: Vec<(u64, String)> = Vec::new();
    for (function, calls) in calls_by_function {
        functions.push((calls, function));
    }
    functions.sort_by(|one, other| other.cmp(one));
    let mut groups = Vec::new();
    // A named function may call another one: their sum would count that twice.
    if functions.len() == 1 || functions.iter().all(|(_, function)| is_allocator(function)) {
        groups.push(CallGroup::ALL);
    }
    for (_, function) in &functions {
        groups.push(CallGroup::of_function(function));
        for kind in &kinds {
            if kind.function.as_ref() == Some(function) && kind.bytes.is_some() {
                groups.push(kind.clone());
            }
        }
    }
    groups
}

/// Returns the median over launches with its interval.
fn estimate_over(figures: &[f64], plan: &ProfilePlan) -> Option<Estimate> {
    Estimate::over(figures, MIN_ROUNDS, plan.confidence, plan.seed)
}

/// Range of a call's time by the error of the known call. No call takes less than 0.
#[derive(Clone, Copy)]
struct KnownCallError {
    known: Option<Known>,
    /// True if the call is too short for a lower end.
    is_bound: bool,
}

impl KnownCallError {
    /// Returns the least and the longest time, in nanoseconds, of a call that was measured as `ns`.
    fn ends(self, ns: f64) -> [f64; 2] {
        let Some(known) = self.known else { return [ns.min(0.0), ns] };
        let least_ns = if self.is_bound { ns.min(0.0) } else { ns - known.overlap_ns() };
        [least_ns, ns + known.shortfall_ns()]
    }
}

impl GroupCost {
    fn from_launches(
        allocator: usize,
        group: &CallGroup,
        launches: &[&ProfiledLaunch],
        plan: &ProfilePlan,
    ) -> Option<Self> {
        let mut all: Option<CallSum> = None;
        let (mut calls, mut cpu_ns, mut wall_ns) = (Vec::new(), Vec::new(), Vec::new());
        let mut shares: Vec<Option<f64>> = Vec::new();
        for launch in launches {
            let Some(sum) = launch.sum(group) else { continue };
            calls.push(sum.calls as f64);
            cpu_ns.push(sum.net_ns_per_call());
            wall_ns.push(sum.wall_ns_per_call());
            shares.push(launch.unprofiled_cpu_ns().map(|launch_ns| sum.net_ns / launch_ns));
            all = Some(match all {
                Some(all) => all.plus(sum),
                None => sum,
            });
        }
        let all = all?;
        let ns_per_call = estimate_over(&cpu_ns, plan)?;
        let known = median_known(launches.iter().copied());
        let is_bound = is_bound(ns_per_call.value, known);
        let error = KnownCallError { known, is_bound };
        let [least_ns, most_ns] = error.ends(ns_per_call.value);
        let shares: Option<Vec<f64>> = shares.into_iter().collect();
        let mut share_of_cpu = None;
        if let Some(share) = shares.and_then(|shares| estimate_over(&shares, plan)) {
            let least = relative(least_ns, ns_per_call.value);
            let most = relative(most_ns, ns_per_call.value);
            share_of_cpu = Some(widened(share, |share| [share * least, share * most]));
        }
        Some(Self {
            allocator,
            group: group.clone(),
            calls: median(&calls)?,
            ns_per_call: widened(ns_per_call, |ns| error.ends(ns)),
            is_bound,
            least_ns,
            most_ns,
            wall_ns_per_call: widened(estimate_over(&wall_ns, plan)?, |ns| error.ends(ns)),
            p50_ns: all.quantile_ns(0.5),
            p99_ns: all.quantile_ns(0.99),
            p999_ns: all.quantile_ns(0.999),
            longest_ns: all.times.max_ns,
            longest_wall_ns: all.times.max_wall_ns.max(all.times.max_ns),
            switched: all.times.switched,
            share_of_cpu,
        })
    }

    /// Returns the longest time of a call in nanoseconds, with the scatter of launches if that is
    /// known.
    pub(super) fn at_most_ns(&self) -> f64 {
        self.ns_per_call.high.unwrap_or(self.most_ns)
    }

    /// Returns the ends of the call's time as multiples of its value, without the scatter of
    /// launches.
    fn relative_ends(&self) -> [f64; 2] {
        [self.least_ns, self.most_ns].map(|ns| ns / self.ns_per_call.value)
    }
}

/// Returns a time as a multiple of a call's; 1 if the call takes no time.
fn relative(ns: f64, call_ns: f64) -> f64 {
    if call_ns > 0.0 { ns / call_ns } else { 1.0 }
}

/// Largest difference in the number of calls, as a part, up to which allocators are compared: with
/// a larger one, they do not see the same calls.
const MAX_CALLS_DIFFERENCE: f64 = 0.1;

impl AllocatorRatio {
    fn within_rounds(
        allocator: usize,
        group: &CallGroup,
        rows: &[GroupCost],
        launches: &[ProfiledLaunch],
        plan: &ProfilePlan,
    ) -> Option<Self> {
        let base_row = find_row(rows, 0, group)?;
        let other_row = find_row(rows, allocator, group)?;
        // A cost that may be 0 has no multiple.
        if base_row.is_bound {
            return None;
        }
        let base_sums = sums_by_round(launches, 0, group);
        let other_sums = sums_by_round(launches, allocator, group);
        let mut logarithms = Vec::new();
        for (round, base) in &base_sums {
            if let Some(other) = other_sums.get(round) {
                // A round without a ratio leaves none for the others: they would look too good.
                logarithms.push(log_ratio(base, other)?);
            }
        }
        let logarithm = estimate_over(&logarithms, plan)?;
        // The error of the known call may differ between the two costs.
        let [base_least, base_most] = base_row.relative_ends();
        let [other_least, other_most] = other_row.relative_ends();
        let low = logarithm.low.map(|low| low.exp() * other_least / base_most);
        let high = logarithm.high.map(|high| high.exp() * other_most / base_least);
        let resolved = low.is_some_and(|low| low > 1.0) || high.is_some_and(|high| high < 1.0);
        let ratio = Estimate { low, high, resolved, ..from_logarithm(logarithm) };
        Some(Self { allocator, group: group.clone(), ratio, is_bound: other_row.is_bound })
    }
}

/// Returns the sum over a group of calls in each round with an allocator.
fn sums_by_round(
    launches: &[ProfiledLaunch],
    allocator: usize,
    group: &CallGroup,
) -> BTreeMap<u32, CallSum> {
    let mut sums = BTreeMap::new();
    for launch in launches_with(launches, allocator) {
        if let Some(sum) = launch.sum(group) {
            sums.insert(launch.round, sum);
        }
    }
    sums
}

/// Returns the logarithm of the ratio of two costs of a call; none if the number of calls differs
/// or a cost is not above zero.
fn log_ratio(base: &CallSum, other: &CallSum) -> Option<f64> {
    let (base_ns, other_ns) = (base.net_ns_per_call(), other.net_ns_per_call());
    let is_alike = (other.calls as f64 / base.calls as f64 - 1.0).abs() <= MAX_CALLS_DIFFERENCE;
    if is_alike && base_ns > 0.0 && other_ns > 0.0 { Some((other_ns / base_ns).ln()) } else { None }
}

/// Difference in the number of calls, as a part, from which on a notice tells of it.
const MAX_UNNOTED_DIFFERENCE: f64 = 0.01;

/// Returns what a reader must know before the figures.
fn notices(plan: &ProfilePlan, launches: &[ProfiledLaunch], rows: &[GroupCost]) -> Vec<String> {
    let mut notices = Vec::new();
    if launches.iter().all(|launch| launch.processes == 0) {
        notices.push(
            "the command did not load the profiler. Possible causes: it is linked statically or \
             set-user-ID; its C library is older than glibc 2.34; it runs as another user or in \
             another PID namespace; this program has capabilities by setcap; 32 thread-specific \
             keys existed before"
                .to_string(),
        );
    } else if plan.malloc && rows.is_empty() {
        notices.push(
            "the command uses an allocator of its own under other names than malloc".to_string(),
        );
    } else {
        for name in &plan.calls {
            if is_called(launches, name) {
                continue;
            }
            notices.push(format!(
                "{name} was not called, or not through the dynamic linker: calls within one \
                 library, and inlined ones, are not seen"
            ));
        }
    }
    let missed: u64 = launches.iter().map(|launch| launch.missed_threads).sum();
    if missed > 0 {
        let slots = layout::SLOTS;
        notices.push(format!("{missed} threads were not counted: at most {slots} at a time"));
    }
    let base_calls = all_calls_of(rows, 0);
    for (index, library) in plan.allocators.iter().enumerate() {
        let calls = all_calls_of(rows, index + 1);
        if (calls / base_calls - 1.0).abs() > MAX_UNNOTED_DIFFERENCE {
            notices.push(format!(
                "with {library} {calls:.0} calls are seen, without it {base_calls:.0}: its \
                 operators new and delete do not call malloc"
            ));
        }
    }
    let has_bound =
        rows.iter().any(|row| row.allocator == 0 && row.group.bytes.is_none() && row.is_bound);
    if !plan.allocators.is_empty() && has_bound {
        notices
            .push("calls with only an upper bound are not compared between allocators".to_string());
    }
    if rows.iter().any(|row| row.share_of_cpu.is_none()) {
        notices.push(
            "profiling took most of the CPU time: the share of the calls is unknown".to_string(),
        );
    }
    if launches.iter().any(ProfiledLaunch::has_slow_clock) {
        notices.push(
            "no fast clock of a thread's CPU time here: each reading is a system call, and time \
             off the CPU is unknown (`switchcost clock overhead` says why)"
                .to_string(),
        );
    }
    notices
}

fn is_called(launches: &[ProfiledLaunch], name: &str) -> bool {
    for launch in launches {
        if launch.counted.iter().any(|calls| calls.group.function.as_deref() == Some(name)) {
            return true;
        }
    }
    false
}

/// Returns the number of all calls with an allocator; 0 without any.
fn all_calls_of(rows: &[GroupCost], allocator: usize) -> f64 {
    find_row(rows, allocator, &CallGroup::ALL).map_or(0.0, |row| row.calls)
}
