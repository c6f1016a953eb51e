//! What was asked for, and what was counted in each run.

use std::collections::BTreeMap;

use analysis::used::Known;
use launcher::{Ending, RunUsage};
use preload::bins::{bucket_bounds, class_bounds};
use preload::layout::{ALLOCATOR_CALLS, CellKind, EMPTY_FUNCTION, KNOWN_CALLS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadclock::Tier;

use super::memory::{Calls, Counts, Times};

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Plan {
    /// The command.
    pub(crate) command: Vec<String>,
    /// Whether malloc and its kin are timed.
    pub(crate) malloc: bool,
    /// Functions that are timed.
    pub(crate) calls: Vec<String>,
    /// Allocators beside the C library's.
    pub(crate) allocators: Vec<String>,
    /// Runs with each.
    pub(crate) runs: u32,
    /// Seed of the order and of every resampling.
    pub(crate) seed: u64,
    /// Confidence of every interval: 0.95 is 95 %.
    pub(crate) confidence: f64,
}

impl Plan {
    /// What allocator 0, 1, ... is called.
    pub(super) fn allocator(&self, number: usize) -> &str {
        let Some(other) = number.checked_sub(1) else { return "its own" };
        // A record may have been changed by hand.
        self.allocators.get(other).map_or("?", String::as_str)
    }
}

/// A function, or its calls with sizes from one to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(crate) struct What {
    /// The function; absent of all together.
    pub(crate) function: Option<String>,
    /// Least and greatest size in bytes; absent of all sizes together, and where calls have none.
    pub(crate) bytes: Option<(u64, u64)>,
}

/// Calls by their CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Bin {
    /// Least time in nanoseconds.
    pub(crate) from_ns: u64,
    /// Least time above it.
    pub(crate) below_ns: u64,
    /// Calls.
    pub(crate) calls: u64,
}

/// Calls of one kind in one run, as they were counted: with what timing adds to each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Counted {
    /// Which.
    #[serde(flatten)]
    pub(crate) what: What,
    /// How many.
    pub(crate) calls: u64,
    /// How long they took.
    #[serde(flatten)]
    pub(crate) times: Times,
    /// By CPU time.
    pub(crate) histogram: Vec<Bin>,
}

/// One run of the command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Launch {
    /// Which allocator: 0 is the C library's, then those of the plan.
    pub(crate) allocator: usize,
    /// Its round, from 0.
    pub(crate) round: u32,
    /// How it ended.
    pub(crate) ending: Ending,
    /// The same as a shell tells it.
    pub(crate) exit_code: u8,
    /// CPU time in nanoseconds of the command and all that it waited for, profiling included.
    pub(crate) cpu_ns: u64,
    /// Programs that were profiled: the command and those that it started.
    pub(crate) processes: u32,
    /// Threads that could not be: no slot, memory or clock for them.
    pub(crate) missed_threads: u64,
    /// How threads read their CPU time (docs/threadclock.md).
    pub(crate) clocks: Vec<String>,
    /// What timing adds to the CPU time of a call of an allocator, in nanoseconds: the mean of
    /// intervals with nothing in them, of those up to four times their median.
    pub(crate) empty_ns: Option<f64>,
    /// The same of a function that was named.
    pub(crate) empty_call_ns: Option<f64>,
    /// A short call that is known, timed in the same way.
    pub(crate) known: Option<Known>,
    /// What profiling adds to the CPU time of the command for each call, in nanoseconds: the mean
    /// of samples of all calls.
    pub(crate) own_ns: Option<f64>,
    /// What was counted.
    pub(crate) counted: Vec<Counted>,
}

impl Launch {
    pub(super) fn of(
        (allocator, round): (usize, u32),
        used: &RunUsage,
        counts: Counts,
        plan: &Plan,
    ) -> Self {
        let calls = |wanted: CellKind| {
            let found = counts.kinds.iter().find(|(kind, _)| *kind == wanted);
            found.map(|(_, calls)| calls)
        };
        let typical = |wanted: CellKind| calls(wanted)?.typical_ns();
        let own_ns = calls(CellKind::Overhead).map(|of| of.times.sum_ns as f64 / of.count() as f64);
        let empty_ns = typical(CellKind::Empty);
        let clocks = Tier::ALL.into_iter().filter(|tier| counts.tiers & (1 << *tier as u32) != 0);
        let counted =
            counts.kinds.iter().filter_map(|(kind, calls)| Counted::of(*kind, calls, plan));
        Self {
            allocator,
            round,
            ending: used.ending,
            exit_code: used.ending.shell_code(),
            cpu_ns: used.total().cpu_ns(),
            processes: counts.processes,
            missed_threads: counts.missed_threads,
            clocks: clocks.map(|tier| tier.name().to_string()).collect(),
            empty_ns,
            empty_call_ns: typical(CellKind::Named(EMPTY_FUNCTION)),
            known: known(typical),
            // Of a named function it was taken with a reading of the clock in it.
            own_ns: match plan.malloc {
                true => own_ns,
                false => own_ns.map(|own| own - empty_ns.unwrap_or(0.0)),
            },
            counted: counted.collect(),
        }
    }

    /// What timing adds to a call of this kind.
    pub(super) fn empty_ns(&self, what: &What) -> f64 {
        let is_named = what.function.as_ref().is_some_and(|name| !is_allocator(name));
        let empty = if is_named { self.empty_call_ns } else { self.empty_ns };
        empty.unwrap_or(0.0)
    }

    /// What was counted of these, added up; none without calls.
    pub(super) fn sum(&self, what: &What) -> Option<Sum> {
        let of = self.counted.iter().filter(|counted| counted.what.belongs_to(what));
        of.map(|counted| Sum::of(counted, self.empty_ns(&counted.what))).reduce(Sum::and)
    }

    /// CPU time of the command without profiling, in nanoseconds: what profiling took is
    /// subtracted. Not known where that is most of it.
    pub(super) fn own_cpu_ns(&self) -> Option<f64> {
        let calls: u64 = self.counted.iter().map(|of| of.calls).sum();
        let own_ns = calls as f64 * self.own_ns?;
        let cpu_ns = self.cpu_ns as f64;
        (own_ns <= cpu_ns / 2.0).then_some(cpu_ns - own_ns)
    }
}

/// By what intervals of these kinds take.
fn known(typical_ns: impl Fn(CellKind) -> Option<f64>) -> Option<Known> {
    let empty_ns = typical_ns(CellKind::Empty)?;
    let each = |kind| Some((typical_ns(kind)? - empty_ns) / KNOWN_CALLS as f64);
    Some(Known {
        told_ns: typical_ns(CellKind::Known)? - empty_ns,
        in_a_row_ns: each(CellKind::KnownInARow)?,
        chained_ns: each(CellKind::KnownChained)?,
    })
}

/// Medians of runs.
pub(super) fn median_known<'a>(launches: impl IntoIterator<Item = &'a Launch>) -> Option<Known> {
    Known::median(&launches.into_iter().filter_map(|of| of.known).collect::<Vec<_>>())
}

pub(super) fn is_allocator(name: &str) -> bool {
    ALLOCATOR_CALLS.contains(&name)
}

impl What {
    /// All calls together.
    pub(super) const ALL: Self = Self { function: None, bytes: None };

    /// All calls of a function.
    pub(super) fn function(name: &str) -> Self {
        Self { function: Some(name.to_string()), bytes: None }
    }

    fn belongs_to(&self, group: &Self) -> bool {
        let matches = |own: bool, wanted: bool| own || !wanted;
        matches(self.function == group.function, group.function.is_some())
            && matches(self.bytes == group.bytes, group.bytes.is_some())
    }
}

impl Counted {
    fn of(kind: CellKind, calls: &Calls, plan: &Plan) -> Option<Self> {
        let (name, bytes) = match kind {
            CellKind::Allocator { function, class } => {
                let name = ALLOCATOR_CALLS.get(function)?;
                (*name, (*name != "free").then(|| class_bounds(class)))
            }
            CellKind::Named(number) => (plan.calls.get(number)?.as_str(), None),
            CellKind::Empty | CellKind::Overhead => return None,
            CellKind::Known | CellKind::KnownInARow | CellKind::KnownChained => return None,
        };
        let histogram = calls.buckets.iter().enumerate().filter(|(_, calls)| **calls > 0);
        Some(Self {
            what: What { function: Some(name.to_string()), bytes },
            calls: calls.count(),
            times: calls.times,
            histogram: histogram
                .map(|(bucket, calls)| {
                    let (from_ns, below_ns) = bucket_bounds(bucket);
                    Bin { from_ns, below_ns, calls: *calls }
                })
                .collect(),
        })
    }
}

/// Calls of several kinds, added up.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    pub(super) calls: u64,
    pub(super) times: Times,
    /// CPU time without what timing adds.
    pub(super) net_ns: f64,
    /// Calls by net CPU time: the middle of their bin.
    calls_by_ns: BTreeMap<i64, u64>,
}

/// Of a time in ns, so that times can be keys: tenths.
const TENTHS: f64 = 10.0;

impl Sum {
    fn of(counted: &Counted, empty_ns: f64) -> Self {
        let Counted { calls, times, .. } = *counted;
        let time = |bin: &Bin| {
            // A bin of 1 ns has one value.
            let middle = (bin.from_ns as f64 + (bin.below_ns - 1) as f64) / 2.0;
            ((middle - empty_ns) * TENTHS).round() as i64
        };
        let mut calls_by_ns = BTreeMap::new();
        for bin in &counted.histogram {
            *calls_by_ns.entry(time(bin)).or_default() += bin.calls;
        }
        Self { calls, times, net_ns: times.sum_ns as f64 - calls as f64 * empty_ns, calls_by_ns }
    }

    pub(super) fn and(mut self, more: Self) -> Self {
        self.calls += more.calls;
        self.times.add(&more.times);
        self.net_ns += more.net_ns;
        for (time, calls) in more.calls_by_ns {
            *self.calls_by_ns.entry(time).or_default() += calls;
        }
        self
    }

    /// The time that a share of the calls does not exceed.
    pub(super) fn quantile_ns(&self, share: f64) -> f64 {
        let wanted = (share * self.calls as f64).ceil() as u64;
        let mut seen = 0;
        let found = self.calls_by_ns.iter().find(|(_, calls)| {
            seen += **calls;
            seen >= wanted
        });
        found.map_or(0.0, |(time, _)| *time as f64 / TENTHS)
    }
}
