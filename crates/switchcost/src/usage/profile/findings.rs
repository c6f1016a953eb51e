//! What calls cost, over all runs.
//!
//! Every formula is in `docs/method.md`.

use std::collections::BTreeMap;

use anyhow::Result;
use launcher::{Ending, Used};
use model::estimate::Estimate;
use model::machine::Machine;
use model::plan::MINIMUM_ROUNDS;
use model::run::Build;
use preload::bins::{edges, sizes};
use preload::layout::{self, ALLOCATOR, KNOWN_CALLS, Kind, NOTHING};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;
use threadclock::Tier;

use super::memory::{Calls, Counts};
use crate::present::output::csv::{self, known};

/// Version of [`Profile`].
const SCHEMA: u32 = 1;

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
        number.checked_sub(1).map_or("its own", |other| &self.allocators[other])
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
    /// Sum of their CPU time in nanoseconds.
    pub(crate) sum_ns: u64,
    /// The longest in nanoseconds of CPU time.
    pub(crate) max_ns: u64,
    /// Calls in which the thread was switched out, moved, or took a signal.
    pub(crate) switched: u64,
    /// Nanoseconds that a wall clock would add to the sum.
    pub(crate) off_cpu_ns: u64,
    /// The longest of those that were switched, in nanoseconds by a wall clock.
    pub(crate) max_wall_ns: u64,
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
        used: &Used,
        counts: Counts,
        plan: &Plan,
    ) -> Self {
        let calls = |wanted: Kind| {
            let found = counts.kinds.iter().find(|(kind, _)| *kind == wanted);
            found.map(|(_, calls)| calls)
        };
        let typical = |wanted: Kind| calls(wanted)?.typical_ns();
        let own_ns = calls(Kind::Own).map(|of| of.sum_ns as f64 / of.count() as f64);
        let empty_ns = typical(Kind::Empty);
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
            empty_call_ns: typical(Kind::Named(NOTHING)),
            known: Known::of(typical),
            // Of a named function it was taken with a reading of the clock in it.
            own_ns: match plan.malloc {
                true => own_ns,
                false => own_ns.map(|own| own - empty_ns.unwrap_or(0.0)),
            },
            counted: counted.collect(),
        }
    }

    /// What timing adds to a call of this kind.
    fn empty_ns(&self, what: &What) -> f64 {
        let is_named = what.function.as_ref().is_some_and(|name| !is_allocator(name));
        let empty = if is_named { self.empty_call_ns } else { self.empty_ns };
        empty.unwrap_or(0.0)
    }

    /// What was counted of these, added up; none without calls.
    fn sum(&self, what: &What) -> Option<Sum> {
        let of = self.counted.iter().filter(|counted| counted.what.belongs_to(what));
        of.map(|counted| Sum::of(counted, self.empty_ns(&counted.what))).reduce(Sum::and)
    }

    /// CPU time of the command without profiling, in nanoseconds: what profiling took is
    /// subtracted. Not known where that is most of it.
    fn own_cpu_ns(&self) -> Option<f64> {
        let calls: u64 = self.counted.iter().map(|of| of.calls).sum();
        let own_ns = calls as f64 * self.own_ns?;
        let cpu_ns = self.cpu_ns as f64;
        (own_ns <= cpu_ns / 2.0).then_some(cpu_ns - own_ns)
    }
}

/// A call of eight dependent multiplications, which waits for nothing before it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Known {
    /// As calls of the command are told.
    pub(crate) told_ns: f64,
    /// Each of sixteen in a row, without readings between them: they overlap.
    pub(crate) in_a_row_ns: f64,
    /// The same where each waits for the one before: nothing overlaps.
    pub(crate) chained_ns: f64,
}

impl Known {
    /// By what intervals of these kinds take.
    fn of(typical_ns: impl Fn(Kind) -> Option<f64>) -> Option<Self> {
        let empty_ns = typical_ns(Kind::Empty)?;
        let each = |kind| Some((typical_ns(kind)? - empty_ns) / KNOWN_CALLS as f64);
        Some(Self {
            told_ns: typical_ns(Kind::Known)? - empty_ns,
            in_a_row_ns: each(Kind::KnownInARow)?,
            chained_ns: each(Kind::KnownChained)?,
        })
    }

    fn median<'a>(launches: impl IntoIterator<Item = &'a Launch>) -> Option<Self> {
        let all: Vec<Self> = launches.into_iter().filter_map(|of| of.known).collect();
        let of = |figure: fn(&Self) -> f64| median(&all.iter().map(figure).collect::<Vec<_>>());
        Some(Self {
            told_ns: of(|of| of.told_ns)?,
            in_a_row_ns: of(|of| of.in_a_row_ns)?,
            chained_ns: of(|of| of.chained_ns)?,
        })
    }

    /// By how much it is told too long, as readings undo its overlap with what is around it.
    pub(super) fn overlap_ns(&self) -> f64 {
        (self.told_ns - self.in_a_row_ns).max(0.0)
    }

    /// By how much it is told too short, as it overlaps with the readings.
    pub(super) fn shortfall_ns(&self) -> f64 {
        (self.chained_ns - self.told_ns).max(0.0)
    }
}

fn is_allocator(name: &str) -> bool {
    ALLOCATOR.contains(&name)
}

impl What {
    /// All calls together.
    const ALL: Self = Self { function: None, bytes: None };

    /// All calls of a function.
    fn function(name: &str) -> Self {
        Self { function: Some(name.to_string()), bytes: None }
    }

    fn belongs_to(&self, group: &Self) -> bool {
        let matches = |own: bool, wanted: bool| own || !wanted;
        matches(self.function == group.function, group.function.is_some())
            && matches(self.bytes == group.bytes, group.bytes.is_some())
    }
}

impl Counted {
    fn of(kind: Kind, calls: &Calls, plan: &Plan) -> Option<Self> {
        let (name, bytes) = match kind {
            Kind::Allocator { function, class } => {
                let name = ALLOCATOR.get(function)?;
                (*name, (*name != "free").then(|| sizes(class)))
            }
            Kind::Named(number) => (plan.calls.get(number)?.as_str(), None),
            Kind::Empty | Kind::Own => return None,
            Kind::Known | Kind::KnownInARow | Kind::KnownChained => return None,
        };
        let histogram = calls.buckets.iter().enumerate().filter(|(_, calls)| **calls > 0);
        Some(Self {
            what: What { function: Some(name.to_string()), bytes },
            calls: calls.count(),
            sum_ns: calls.sum_ns,
            max_ns: calls.max_ns,
            switched: calls.switched,
            off_cpu_ns: calls.off_cpu_ns,
            max_wall_ns: calls.max_wall_ns,
            histogram: histogram
                .map(|(bucket, calls)| {
                    let (from_ns, below_ns) = edges(bucket);
                    Bin { from_ns, below_ns, calls: *calls }
                })
                .collect(),
        })
    }
}

/// Calls of several kinds, added up.
#[derive(Clone, Debug)]
struct Sum {
    calls: u64,
    /// CPU time without what timing adds.
    net_ns: f64,
    switched: u64,
    off_cpu_ns: u64,
    longest_ns: u64,
    longest_wall_ns: u64,
    /// Calls by net CPU time: the middle of their bin.
    times: BTreeMap<i64, u64>,
}

/// Of a time in ns, so that times can be keys: tenths.
const TENTHS: f64 = 10.0;

impl Sum {
    fn of(counted: &Counted, empty_ns: f64) -> Self {
        let Counted { calls, sum_ns, max_ns, switched, off_cpu_ns, max_wall_ns, .. } = *counted;
        let time = |bin: &Bin| {
            // A bin of 1 ns has one value.
            let middle = (bin.from_ns as f64 + (bin.below_ns - 1) as f64) / 2.0;
            ((middle - empty_ns) * TENTHS).round() as i64
        };
        let mut times = BTreeMap::new();
        for bin in &counted.histogram {
            *times.entry(time(bin)).or_default() += bin.calls;
        }
        Self {
            calls,
            net_ns: sum_ns as f64 - calls as f64 * empty_ns,
            switched,
            off_cpu_ns,
            longest_ns: max_ns,
            longest_wall_ns: max_wall_ns.max(max_ns),
            times,
        }
    }

    fn and(mut self, more: Self) -> Self {
        self.calls += more.calls;
        self.net_ns += more.net_ns;
        self.switched += more.switched;
        self.off_cpu_ns += more.off_cpu_ns;
        self.longest_ns = self.longest_ns.max(more.longest_ns);
        self.longest_wall_ns = self.longest_wall_ns.max(more.longest_wall_ns);
        for (time, calls) in more.times {
            *self.times.entry(time).or_default() += calls;
        }
        self
    }

    /// The time that a share of the calls does not exceed.
    fn quantile_ns(&self, share: f64) -> f64 {
        let wanted = (share * self.calls as f64).ceil() as u64;
        let mut seen = 0;
        let found = self.times.iter().find(|(_, calls)| {
            seen += **calls;
            seen >= wanted
        });
        found.map_or(0.0, |(time, _)| *time as f64 / TENTHS)
    }
}

/// What calls cost over the runs of one allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Row {
    /// Which allocator: 0 is the C library's, then those of the plan.
    pub(crate) allocator: usize,
    /// Which calls.
    #[serde(flatten)]
    pub(crate) what: What,
    /// Calls a run: the median of runs.
    pub(crate) calls: f64,
    /// Mean CPU time of a call, less what timing adds, in nanoseconds: median of runs. Nothing
    /// around a call overlaps with it while it is timed; the interval has in it by how much a known
    /// call is told too long or too short.
    pub(crate) ns_per_call: Estimate,
    /// Whether the call is so short that only what it takes at most is known: that of a known call
    /// is more than three tenths of it, or not known.
    pub(crate) is_bound: bool,
    /// What a call takes at least and at most by the known call, in nanoseconds, without the
    /// scatter of runs; at least 0 where it is a bound.
    pub(crate) least_ns: f64,
    /// See `least_ns`.
    pub(crate) most_ns: f64,
    /// The same by a wall clock, which goes on while the thread is off the CPU.
    pub(crate) wall_ns_per_call: Estimate,
    /// Median CPU time of all calls, less what timing adds.
    pub(crate) p50_ns: f64,
    /// What 99 % of them do not exceed.
    pub(crate) p99_ns: f64,
    /// What 99.9 % of them do not exceed.
    pub(crate) p999_ns: f64,
    /// The longest by CPU time.
    pub(crate) longest_ns: u64,
    /// The longest by a wall clock.
    pub(crate) longest_wall_ns: u64,
    /// Calls in which the thread was switched out, moved, or took a signal, in all runs.
    pub(crate) switched: u64,
    /// Their part of the command's CPU time without profiling, median of runs; absent where
    /// profiling took most of it in any.
    pub(crate) share_of_cpu: Option<Estimate>,
}

/// The cost of calls with another allocator over that with the C library's, within rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Ratio {
    /// Which allocator.
    pub(crate) allocator: usize,
    /// Which calls.
    #[serde(flatten)]
    pub(crate) what: What,
    /// Median over rounds; resolved where its interval, which has the overlap of both in it,
    /// excludes 1.
    pub(crate) ratio: Estimate,
    /// Whether it is an upper bound, as the other allocator's cost is.
    pub(crate) is_bound: bool,
}

/// All that `switchcost profile` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Profile {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// When it started, in UTC (RFC 3339).
    pub(crate) started: String,
    /// The machine's name; absent if it was left out.
    pub(crate) host: Option<String>,
    /// What the program was built as.
    pub(crate) build: Build,
    /// What was asked for.
    pub(crate) plan: Plan,
    /// The machine.
    pub(crate) machine: Machine,
    /// All runs as they were counted.
    pub(crate) launches: Vec<Launch>,
    /// What calls cost: all together, then by function, then by size.
    pub(crate) rows: Vec<Row>,
    /// Other allocators over the C library's.
    pub(crate) ratios: Vec<Ratio>,
    /// A short call that is known: medians of runs.
    pub(crate) known: Option<Known>,
    /// What profiling adds to a call, in nanoseconds: median of runs.
    pub(crate) added_ns: Option<f64>,
    /// What was not counted, and what is in doubt.
    pub(crate) notices: Vec<String>,
}

impl Profile {
    pub(super) fn of(
        plan: Plan,
        launches: Vec<Launch>,
        (started, host, machine): (String, Option<String>, Machine),
        build: Build,
    ) -> Self {
        let groups = groups(&launches);
        let rows = (0..=plan.allocators.len()).flat_map(|allocator| {
            let own: Vec<&Launch> =
                launches.iter().filter(|of| of.allocator == allocator).collect();
            groups
                .iter()
                .filter_map(|what| Row::of(allocator, what, &own, &plan))
                .collect::<Vec<_>>()
        });
        let rows = rows.collect::<Vec<_>>();
        let ratios = (1..=plan.allocators.len()).flat_map(|allocator| {
            let of = |what| Ratio::of(allocator, what, &rows, &launches, &plan);
            groups.iter().filter_map(of).collect::<Vec<_>>()
        });
        let ratios = ratios.collect();
        let added_ns = median(&launches.iter().filter_map(|of| of.own_ns).collect::<Vec<f64>>());
        let known = Known::median(&launches);
        let notices = notices(&plan, &launches, &rows);
        let schema = SCHEMA;
        Self {
            schema,
            started,
            host,
            build,
            plan,
            machine,
            launches,
            rows,
            ratios,
            known,
            added_ns,
            notices,
        }
    }

    /// The row of these calls.
    pub(super) fn row(&self, allocator: usize, what: &What) -> Option<&Row> {
        self.rows.iter().find(|row| row.allocator == allocator && row.what == *what)
    }

    /// All calls of an allocator together.
    pub(super) fn all(&self, allocator: usize) -> Option<&Row> {
        self.row(allocator, &What::ALL)
    }

    /// A line of CSV for each run, function and size.
    pub(super) fn csv(&self) -> Result<Vec<u8>> {
        let names = [
            "experiment",
            "allocator",
            "round",
            "exit_code",
            "function",
            "from_bytes",
            "to_bytes",
            "calls",
            "sum_ns",
            "empty_ns",
            "max_ns",
            "switched",
            "off_cpu_ns",
            "max_wall_ns",
            "known_told_ns",
            "known_in_a_row_ns",
            "known_chained_ns",
            "own_ns",
            "cpu_ns",
        ];
        let rows = self.launches.iter().flat_map(|launch| {
            launch.counted.iter().map(move |of| {
                let (from, to) = of.what.bytes.unzip();
                vec![
                    "profile".to_string(),
                    self.plan.allocator(launch.allocator).to_string(),
                    launch.round.to_string(),
                    launch.exit_code.to_string(),
                    of.what.function.clone().unwrap_or_default(),
                    known(from),
                    known(to),
                    of.calls.to_string(),
                    of.sum_ns.to_string(),
                    launch.empty_ns(&of.what).to_string(),
                    of.max_ns.to_string(),
                    of.switched.to_string(),
                    of.off_cpu_ns.to_string(),
                    of.max_wall_ns.to_string(),
                    known(launch.known.map(|of| of.told_ns)),
                    known(launch.known.map(|of| of.in_a_row_ns)),
                    known(launch.known.map(|of| of.chained_ns)),
                    known(launch.own_ns),
                    launch.cpu_ns.to_string(),
                ]
            })
        });
        csv::write(&names, rows)
    }
}

/// All calls, each function, each function with each of its sizes.
fn groups(launches: &[Launch]) -> Vec<What> {
    let counted = || launches.iter().flat_map(|launch| &launch.counted);
    let mut kinds: Vec<What> = counted().map(|of| of.what.clone()).collect();
    kinds.sort();
    kinds.dedup();
    let mut functions: Vec<(u64, &String)> = Vec::new();
    for name in kinds.iter().filter_map(|what| what.function.as_ref()) {
        let calls = counted().filter(|of| of.what.function.as_ref() == Some(name));
        functions.push((calls.map(|of| of.calls).sum(), name));
    }
    // The most often called first.
    functions.sort_by(|one, other| other.cmp(one));
    functions.dedup();
    let each = functions.iter().flat_map(|(_, name)| {
        let of = kinds.iter().filter(|what| what.function.as_ref() == Some(name));
        let sizes = of.filter(|what| what.bytes.is_some()).cloned();
        std::iter::once(What::function(name)).chain(sizes)
    });
    // A function that is named may call another one: their sum would count that twice.
    let is_apart = functions.iter().all(|(_, name)| is_allocator(name)) || functions.len() == 1;
    is_apart.then_some(What::ALL).into_iter().chain(each).collect()
}

impl Row {
    fn of(allocator: usize, what: &What, launches: &[&Launch], plan: &Plan) -> Option<Self> {
        let sums: Vec<(Option<f64>, Sum)> = launches
            .iter()
            .filter_map(|launch| Some((launch.own_cpu_ns(), launch.sum(what)?)))
            .collect();
        let over = |figures: Vec<f64>| {
            Estimate::over(&figures, MINIMUM_ROUNDS, plan.confidence, plan.seed)
        };
        let each =
            |of: fn(&Sum) -> f64| sums.iter().map(|(_, sum)| of(sum) / sum.calls as f64).collect();
        let shares = sums.iter().map(|(cpu_ns, sum)| Some(sum.net_ns / (*cpu_ns)?));
        let calls: Vec<f64> = sums.iter().map(|(_, sum)| sum.calls as f64).collect();
        let all = sums.iter().map(|(_, sum)| sum.clone()).reduce(Sum::and)?;
        let known = Known::median(launches.iter().copied());
        let ns_per_call = over(each(|sum| sum.net_ns))?;
        let is_bound = is_bound(ns_per_call.value, known);
        // A call takes no less than nothing.
        let ends = |ns: f64| match (known, is_bound) {
            (Some(known), false) => [ns - known.overlap_ns(), ns + known.shortfall_ns()],
            (known, _) => [ns.min(0.0), ns + known.map_or(0.0, |known| known.shortfall_ns())],
        };
        let [least_ns, most_ns] = ends(ns_per_call.value);
        let is_above_zero = ns_per_call.value > 0.0;
        let part = |ns: f64| if is_above_zero { ns / ns_per_call.value } else { 1.0 };
        let share = |share: f64| [least_ns, most_ns].map(|ns| share * part(ns));
        Some(Self {
            allocator,
            what: what.clone(),
            calls: median(&calls)?,
            ns_per_call: widened(ns_per_call, ends),
            is_bound,
            least_ns,
            most_ns,
            wall_ns_per_call: widened(over(each(|sum| sum.net_ns + sum.off_cpu_ns as f64))?, ends),
            p50_ns: all.quantile_ns(0.5),
            p99_ns: all.quantile_ns(0.99),
            p999_ns: all.quantile_ns(0.999),
            longest_ns: all.longest_ns,
            longest_wall_ns: all.longest_wall_ns,
            switched: all.switched,
            share_of_cpu: shares.collect::<Option<_>>().and_then(over).map(|of| widened(of, share)),
        })
    }

    /// What a call takes at most, with the scatter of runs where that is known.
    pub(super) fn at_most_ns(&self) -> f64 {
        self.ns_per_call.high.unwrap_or(self.most_ns)
    }
}

/// A time of which a larger part may be overlap is an upper bound and no more.
const MOST_OVERLAP: f64 = 0.3;

/// Whether more of a time than [`MOST_OVERLAP`] may be that by which a known call is told too long
/// or too short.
pub(super) fn is_bound(ns: f64, known: Option<Known>) -> bool {
    ns <= 0.0
        || known.is_none_or(|known| {
            known.overlap_ns() + known.shortfall_ns() > MOST_OVERLAP * (ns + known.shortfall_ns())
        })
}

/// An estimate whose ends lie further out.
fn widened(of: Estimate, ends: impl Fn(f64) -> [f64; 2]) -> Estimate {
    let (low, high) = (of.low.map(|low| ends(low)[0]), of.high.map(|high| ends(high)[1]));
    let resolved = low.is_some_and(|low| low > 0.0) || high.is_some_and(|high| high < 0.0);
    Estimate { low, high, resolved, ..of }
}

/// Allocators whose calls differ in number by more are not compared: they are not of the same
/// calls.
const MOST_UNLIKE: f64 = 0.1;

impl Ratio {
    fn of(
        allocator: usize,
        what: &What,
        rows: &[Row],
        launches: &[Launch],
        plan: &Plan,
    ) -> Option<Self> {
        let row = |of: usize| rows.iter().find(|row| row.allocator == of && row.what == *what);
        let (own_row, other_row) = (row(0)?, row(allocator)?);
        // Over what may be nothing there is no ratio.
        if own_row.is_bound {
            return None;
        }
        let of_round = |allocator: usize| -> BTreeMap<u32, (u64, f64)> {
            let own = launches.iter().filter(|launch| launch.allocator == allocator);
            let sum = |launch: &Launch| {
                let sum = launch.sum(what)?;
                Some((launch.round, (sum.calls, sum.net_ns / sum.calls as f64)))
            };
            own.filter_map(sum).collect()
        };
        let (own, other) = (of_round(0), of_round(allocator));
        let pairs = own.iter().filter_map(|(round, own)| Some((own, other.get(round)?)));
        let logs = pairs.map(|((calls, own), (others, other))| {
            let is_alike = (*others as f64 / *calls as f64 - 1.0).abs() <= MOST_UNLIKE;
            (is_alike && *own > 0.0 && *other > 0.0).then(|| (other / own).ln())
        });
        // A round whose cost is not above zero has no ratio, and without it the others say too
        // much.
        let logs: Vec<f64> = logs.collect::<Option<_>>()?;
        let log = Estimate::over(&logs, MINIMUM_ROUNDS, plan.confidence, plan.seed)?;
        // Each may overlap with what is around it, the other one not.
        let part = |ns: f64, of: &Row| ns / of.ns_per_call.value;
        let [own_least, own_most] = [own_row.least_ns, own_row.most_ns].map(|ns| part(ns, own_row));
        let [least, most] = [other_row.least_ns, other_row.most_ns].map(|ns| part(ns, other_row));
        let low = log.low.map(|low| low.exp() * least / own_most);
        let high = log.high.map(|high| high.exp() * most / own_least);
        let resolved = low.is_some_and(|low| low > 1.0) || high.is_some_and(|high| high < 1.0);
        let value = log.value.exp();
        let ratio = Estimate { value, standard_error: None, low, high, resolved, ..log };
        Some(Self { allocator, what: what.clone(), ratio, is_bound: other_row.is_bound })
    }
}

/// What a reader must know before the figures.
fn notices(plan: &Plan, launches: &[Launch], rows: &[Row]) -> Vec<String> {
    let mut notices = Vec::new();
    let called = |name: &str| {
        let of = |of: &Counted| of.what.function.as_deref() == Some(name);
        launches.iter().any(|launch| launch.counted.iter().any(of))
    };
    if launches.iter().all(|launch| launch.processes == 0) {
        notices.push(
            "the command did not load the profiler: it is linked statically or set-user-ID, its \
             C library is older than glibc 2.34, it runs as another user or in another PID \
             namespace, this program has capabilities by setcap, or 32 thread-specific keys were \
             there before"
                .to_string(),
        );
    } else if plan.malloc && rows.is_empty() {
        notices.push(
            "the command has an allocator of its own that it does not call as malloc".to_string(),
        );
    } else {
        notices.extend(plan.calls.iter().filter(|name| !called(name)).map(|name| {
            format!(
                "{name} was not called, or not through the dynamic linker: calls within one \
                 library, and inlined ones, are not seen"
            )
        }));
    }
    let missed: u64 = launches.iter().map(|launch| launch.missed_threads).sum();
    if missed > 0 {
        notices.push(format!(
            "{missed} threads were not counted: at most {} at a time",
            layout::SLOTS
        ));
    }
    let calls = |allocator: usize| {
        let all = rows.iter().find(|row| row.allocator == allocator && row.what == What::ALL);
        all.map_or(0.0, |all| all.calls)
    };
    for (number, library) in plan.allocators.iter().enumerate() {
        let (own, other) = (calls(0), calls(number + 1));
        if (other / own - 1.0).abs() > 0.01 {
            notices.push(format!(
                "with {library} {other:.0} calls are seen, else {own:.0}: operators new and \
                 delete that it brings call no malloc"
            ));
        }
    }
    let own = |row: &Row| row.allocator == 0 && row.what.bytes.is_none();
    if !plan.allocators.is_empty() && rows.iter().any(|row| own(row) && row.is_bound) {
        notices.push(
            "calls of its own allocator whose time is but an upper bound are compared with no \
             other's"
                .to_string(),
        );
    }
    if rows.iter().any(|row| row.share_of_cpu.is_none()) {
        notices.push(
            "profiling took most of the CPU time: what part of it the calls are is not known"
                .to_string(),
        );
    }
    let slow = Tier::Kernel.name();
    if launches.iter().any(|launch| launch.clocks.iter().any(|clock| clock == slow)) {
        notices.push(
            "this machine has no fast clock of a thread's CPU time: each reading is a system \
             call, and time off the CPU is not known (switchcost clock overhead says why)"
                .to_string(),
        );
    }
    notices
}
