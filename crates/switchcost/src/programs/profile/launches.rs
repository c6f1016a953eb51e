//! The plan of a profile, and what was counted in each launch of the command.
//!
//! Each call is counted with what timing adds to it. A mean of 62 ns a call, where an interval with
//! nothing in it takes 12 ns, is a call of 50 ns; [`CallSum`] subtracts that.

use std::collections::BTreeMap;

use analysis::used::Known;
use launcher::{Ending, RunUsage};
use preload::bins::{bucket_bounds, class_bounds};
use preload::layout::{ALLOCATOR_CALLS, CellKind, EMPTY_FUNCTION, KNOWN_CALLS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadclock::Tier;

use super::memory::{CallTimes, CellCalls, LaunchCounts};

/// Command, functions and launches that the user asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProfilePlan {
    /// Words of the command.
    pub(crate) command: Vec<String>,
    /// True if calls of the allocator are timed.
    pub(crate) malloc: bool,
    /// Functions that are timed.
    pub(crate) calls: Vec<String>,
    /// Allocators beside the C library's.
    pub(crate) allocators: Vec<String>,
    /// Launches with each allocator.
    pub(crate) runs: u32,
    /// Seed of the order and of every resampling.
    pub(crate) seed: u64,
    /// Confidence of every interval: 0.95 is 95 %.
    pub(crate) confidence: f64,
}

impl ProfilePlan {
    /// Returns the name of allocator 0, 1, ...; the first is the command's.
    pub(super) fn allocator(&self, number: usize) -> &str {
        let Some(index) = number.checked_sub(1) else { return "its own" };
        // A record may have been changed by hand.
        self.allocators.get(index).map_or("?", String::as_str)
    }
}

/// Calls that are counted together: of one function, and of one range of sizes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CallGroup {
    /// Name of the function; absent for all functions together.
    pub(crate) function: Option<String>,
    /// Least and greatest size in bytes; absent for all sizes together, and for calls without size.
    pub(crate) bytes: Option<(u64, u64)>,
}

impl CallGroup {
    /// Group of all calls together.
    pub(super) const ALL: Self = Self { function: None, bytes: None };

    /// Returns the group of all calls of a function.
    pub(super) fn of_function(name: &str) -> Self {
        Self { function: Some(name.to_string()), bytes: None }
    }

    /// Returns whether the calls of this group are part of a larger one.
    fn is_within(&self, larger: &Self) -> bool {
        let is_function = larger.function.is_none() || larger.function == self.function;
        is_function && (larger.bytes.is_none() || larger.bytes == self.bytes)
    }
}

/// Calls whose CPU time is within a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CallTimeBin {
    /// Least time in nanoseconds.
    pub(crate) from_ns: u64,
    /// First time above the range, in nanoseconds.
    pub(crate) below_ns: u64,
    /// Number of calls.
    pub(crate) calls: u64,
}

impl CallTimeBin {
    /// Returns the middle of the range in nanoseconds. A bin of 1 ns has one value.
    fn middle_ns(&self) -> f64 {
        (self.from_ns as f64 + (self.below_ns - 1) as f64) / 2.0
    }
}

/// Calls of one group in one launch, as they were counted: with what timing adds to each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CountedCalls {
    /// Function and sizes.
    #[serde(flatten)]
    pub(crate) group: CallGroup,
    /// Number of calls.
    pub(crate) calls: u64,
    /// Time that they took.
    #[serde(flatten)]
    pub(crate) times: CallTimes,
    /// Calls by CPU time.
    pub(crate) histogram: Vec<CallTimeBin>,
}

/// A launch of the command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProfiledLaunch {
    /// Number of the allocator: 0 is the C library's, then those of the plan.
    pub(crate) allocator: usize,
    /// Number of the round, from 0.
    pub(crate) round: u32,
    /// Exit code or signal by which the command ended.
    pub(crate) ending: Ending,
    /// Exit code as a shell tells it: 128 + the signal.
    pub(crate) exit_code: u8,
    /// CPU time in nanoseconds of the command and all that it waited for, profiling included.
    pub(crate) cpu_ns: u64,
    /// Programs that were profiled: the command and those that it started.
    pub(crate) processes: u32,
    /// Threads that were not profiled, for want of a slot, memory or a clock.
    pub(crate) missed_threads: u64,
    /// Ways in which threads read their CPU time (docs/threadclock.md).
    pub(crate) clocks: Vec<String>,
    /// Nanoseconds that timing adds to the CPU time of a call of an allocator: the mean of
    /// intervals with nothing in them, of those up to four times their median.
    pub(crate) empty_ns: Option<f64>,
    /// Nanoseconds that timing adds to a call of a named function, measured in the same way.
    pub(crate) empty_call_ns: Option<f64>,
    /// Short call of known length, timed like the others.
    pub(crate) known: Option<Known>,
    /// Nanoseconds that profiling adds to the CPU time of the command for each call: the mean of
    /// samples of all calls.
    #[serde(rename = "own_ns")]
    pub(crate) overhead_ns: Option<f64>,
    /// Calls that were counted.
    pub(crate) counted: Vec<CountedCalls>,
}

impl ProfiledLaunch {
    /// Returns what a launch used, and what was counted in it.
    pub(super) fn from_counts(
        allocator: usize,
        round: u32,
        used: &RunUsage,
        counts: &LaunchCounts,
        plan: &ProfilePlan,
    ) -> Self {
        let empty_ns = counts.typical_ns(CellKind::Empty);
        // For named functions, counting a call includes a reading of the clock.
        let reading_ns = if plan.malloc { 0.0 } else { empty_ns.unwrap_or(0.0) };
        let mut clocks = Vec::new();
        for tier in Tier::ALL {
            if counts.tiers & (1 << tier as u32) != 0 {
                clocks.push(tier.name().to_string());
            }
        }
        let mut counted = Vec::new();
        for cell in &counts.cells {
            counted.extend(CountedCalls::from_cell(cell, plan));
        }
        Self {
            allocator,
            round,
            ending: used.ending,
            exit_code: used.ending.shell_code(),
            cpu_ns: used.total().cpu_ns(),
            processes: counts.processes,
            missed_threads: counts.missed_threads,
            clocks,
            empty_ns,
            empty_call_ns: counts.typical_ns(CellKind::Named(EMPTY_FUNCTION)),
            known: known_call(counts),
            overhead_ns: counts.mean_ns(CellKind::Overhead).map(|mean_ns| mean_ns - reading_ns),
            counted,
        }
    }

    /// Returns the nanoseconds that timing adds to a call of a group.
    pub(super) fn added_ns(&self, group: &CallGroup) -> f64 {
        let is_named = group.function.as_ref().is_some_and(|name| !is_allocator(name));
        let added_ns = if is_named { self.empty_call_ns } else { self.empty_ns };
        added_ns.unwrap_or(0.0)
    }

    /// Returns the sum over all calls of a group; none without calls.
    pub(super) fn sum(&self, group: &CallGroup) -> Option<CallSum> {
        let mut sum: Option<CallSum> = None;
        for counted in &self.counted {
            if counted.group.is_within(group) {
                let more = CallSum::from_counted(counted, self.added_ns(&counted.group));
                sum = Some(match sum {
                    Some(sum) => sum.plus(more),
                    None => more,
                });
            }
        }
        sum
    }

    /// Returns the CPU time of the command without profiling, in nanoseconds: what profiling took
    /// is subtracted. None if that is most of it.
    pub(super) fn unprofiled_cpu_ns(&self) -> Option<f64> {
        let calls: u64 = self.counted.iter().map(|counted| counted.calls).sum();
        let overhead_ns = calls as f64 * self.overhead_ns?;
        let cpu_ns = self.cpu_ns as f64;
        if overhead_ns <= cpu_ns / 2.0 { Some(cpu_ns - overhead_ns) } else { None }
    }

    /// Returns whether a thread read its CPU time by a system call, which tells no time off the
    /// CPU.
    pub(super) fn has_slow_clock(&self) -> bool {
        self.clocks.iter().any(|clock| clock == Tier::Kernel.name())
    }
}

/// Returns the times of the call of known length.
fn known_call(counts: &LaunchCounts) -> Option<Known> {
    let empty_ns = counts.typical_ns(CellKind::Empty)?;
    let net_ns = |kind: CellKind| Some(counts.typical_ns(kind)? - empty_ns);
    Some(Known {
        told_ns: net_ns(CellKind::Known)?,
        in_a_row_ns: net_ns(CellKind::KnownInARow)? / KNOWN_CALLS as f64,
        chained_ns: net_ns(CellKind::KnownChained)? / KNOWN_CALLS as f64,
    })
}

/// Returns the medians over launches of the call of known length.
pub(super) fn median_known<'a>(
    launches: impl IntoIterator<Item = &'a ProfiledLaunch>,
) -> Option<Known> {
    let mut known: Vec<Known> = Vec::new();
    for launch in launches {
        known.extend(launch.known);
    }
    Known::median(&known)
}

/// Returns whether a function is one of the allocator.
pub(super) fn is_allocator(name: &str) -> bool {
    ALLOCATOR_CALLS.contains(&name)
}

impl CountedCalls {
    /// Returns the calls of a cell; none for cells of timing itself.
    fn from_cell(cell: &CellCalls, plan: &ProfilePlan) -> Option<Self> {
        let (name, bytes) = match cell.kind {
            CellKind::Allocator { function, class } => {
                let name = *ALLOCATOR_CALLS.get(function)?;
                let bytes = if name == "free" { None } else { Some(class_bounds(class)) };
                (name, bytes)
            }
            CellKind::Named(number) => (plan.calls.get(number)?.as_str(), None),
            CellKind::Empty | CellKind::Overhead => return None,
            CellKind::Known | CellKind::KnownInARow | CellKind::KnownChained => return None,
        };
        let mut histogram = Vec::new();
        for (bucket, calls) in cell.buckets.iter().enumerate() {
            if *calls > 0 {
                let (from_ns, below_ns) = bucket_bounds(bucket);
                histogram.push(CallTimeBin { from_ns, below_ns, calls: *calls });
            }
        }
        Some(Self {
            group: CallGroup { function: Some(name.to_string()), bytes },
            calls: cell.count(),
            times: cell.times,
            histogram,
        })
    }
}

/// Sum over calls of several groups.
#[derive(Clone, Debug)]
pub(super) struct CallSum {
    pub(super) calls: u64,
    pub(super) times: CallTimes,
    /// CPU time less what timing adds, in nanoseconds.
    pub(super) net_ns: f64,
    /// Calls by net CPU time, the middle of their bin, in tenths of a nanosecond.
    calls_by_tenths: BTreeMap<i64, u64>,
}

/// Keys of times in a nanosecond.
const TENTHS_PER_NS: f64 = 10.0;

impl CallSum {
    fn from_counted(counted: &CountedCalls, added_ns: f64) -> Self {
        let CountedCalls { calls, times, .. } = *counted;
        let mut calls_by_tenths = BTreeMap::new();
        for bin in &counted.histogram {
            let tenths = ((bin.middle_ns() - added_ns) * TENTHS_PER_NS).round() as i64;
            *calls_by_tenths.entry(tenths).or_default() += bin.calls;
        }
        let net_ns = times.sum_ns as f64 - calls as f64 * added_ns;
        Self { calls, times, net_ns, calls_by_tenths }
    }

    /// Returns the sum of both.
    pub(super) fn plus(mut self, more: Self) -> Self {
        self.calls += more.calls;
        self.times.add(&more.times);
        self.net_ns += more.net_ns;
        for (tenths, calls) in more.calls_by_tenths {
            *self.calls_by_tenths.entry(tenths).or_default() += calls;
        }
        self
    }

    /// Returns the net CPU time in nanoseconds of a call on average.
    pub(super) fn net_ns_per_call(&self) -> f64 {
        self.net_ns / self.calls as f64
    }

    /// Returns the net time in nanoseconds of a call on average by a wall clock.
    pub(super) fn wall_ns_per_call(&self) -> f64 {
        (self.net_ns + self.times.off_cpu_ns as f64) / self.calls as f64
    }

    /// Returns the net CPU time in nanoseconds that a `share` of the calls does not exceed.
    pub(super) fn quantile_ns(&self, share: f64) -> f64 {
        let wanted = (share * self.calls as f64).ceil() as u64;
        let mut calls_below = 0;
        for (tenths, calls) in &self.calls_by_tenths {
            calls_below += *calls;
            if calls_below >= wanted {
                return *tenths as f64 / TENTHS_PER_NS;
            }
        }
        0.0
    }
}
