//! What calls cost, over all runs.
//!
//! Every formula is in `docs/method.md`.

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
use threadclock::Tier;

use super::launches::{Counted, Launch, Plan, Sum, What, is_allocator, median_known};
use crate::report::output::csv::{self, known};

/// Version of [`CallProfile`].
const SCHEMA: u32 = 1;

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
pub(crate) struct CallProfile {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// When it started, in UTC (RFC 3339).
    pub(crate) started: String,
    /// The machine's name; absent if it was left out.
    pub(crate) host: Option<String>,
    /// What the program was built as.
    pub(crate) build: ProgramBuild,
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

impl CallProfile {
    pub(super) fn of(
        plan: Plan,
        launches: Vec<Launch>,
        (started, host, machine): (String, Option<String>, Machine),
        build: ProgramBuild,
    ) -> Self {
        let groups = groups(&launches);
        let mut rows = Vec::new();
        for allocator in 0..=plan.allocators.len() {
            let own: Vec<&Launch> =
                launches.iter().filter(|of| of.allocator == allocator).collect();
            rows.extend(groups.iter().filter_map(|what| Row::of(allocator, what, &own, &plan)));
        }
        let mut ratios = Vec::new();
        for allocator in 1..=plan.allocators.len() {
            let of = |what| Ratio::of(allocator, what, &rows, &launches, &plan);
            ratios.extend(groups.iter().filter_map(of));
        }
        Self {
            schema: SCHEMA,
            started,
            host,
            build,
            machine,
            ratios,
            known: median_known(&launches),
            added_ns: median(&launches.iter().filter_map(|of| of.own_ns).collect::<Vec<f64>>()),
            notices: notices(&plan, &launches, &rows),
            plan,
            launches,
            rows,
        }
    }

    /// The row of these calls.
    pub(super) fn row(&self, allocator: usize, what: &What) -> Option<&Row> {
        self.rows.iter().find(|row| row.allocator == allocator && row.what == *what)
    }

    /// The ratio of a row's calls to those of the command's own allocator.
    pub(super) fn ratio(&self, row: &Row) -> Option<&Ratio> {
        self.ratios.iter().find(|of| of.allocator == row.allocator && of.what == row.what)
    }

    /// All calls of an allocator together.
    pub(super) fn all(&self, allocator: usize) -> Option<&Row> {
        self.row(allocator, &What::ALL)
    }

    /// A line of CSV for each run, function and size.
    pub(super) fn csv(&self) -> Result<Vec<u8>> {
        let row = |launch: &Launch, of: &Counted| {
            COLUMNS.iter().map(|(_, cell)| cell(&self.plan, launch, of)).collect()
        };
        let row = &row;
        let rows = self.launches.iter();
        let rows = rows.flat_map(|launch| launch.counted.iter().map(move |of| row(launch, of)));
        csv::write(&COLUMNS.map(|(name, _)| name), rows)
    }
}

/// A column of CSV: its name, and what stands in it.
type Column = (&'static str, fn(&Plan, &Launch, &Counted) -> String);

const COLUMNS: [Column; 19] = [
    ("experiment", |_, _, _| "profile".to_string()),
    ("allocator", |plan, launch, _| plan.allocator(launch.allocator).to_string()),
    ("round", |_, launch, _| launch.round.to_string()),
    ("exit_code", |_, launch, _| launch.exit_code.to_string()),
    ("function", |_, _, of| known(of.what.function.as_ref())),
    ("from_bytes", |_, _, of| known(of.what.bytes.map(|(from, _)| from))),
    ("to_bytes", |_, _, of| known(of.what.bytes.map(|(_, to)| to))),
    ("calls", |_, _, of| of.calls.to_string()),
    ("sum_ns", |_, _, of| of.times.sum_ns.to_string()),
    ("empty_ns", |_, launch, of| launch.empty_ns(&of.what).to_string()),
    ("max_ns", |_, _, of| of.times.max_ns.to_string()),
    ("switched", |_, _, of| of.times.switched.to_string()),
    ("off_cpu_ns", |_, _, of| of.times.off_cpu_ns.to_string()),
    ("max_wall_ns", |_, _, of| of.times.max_wall_ns.to_string()),
    ("known_told_ns", |_, launch, _| known(launch.known.map(|of| of.told_ns))),
    ("known_in_a_row_ns", |_, launch, _| known(launch.known.map(|of| of.in_a_row_ns))),
    ("known_chained_ns", |_, launch, _| known(launch.known.map(|of| of.chained_ns))),
    ("own_ns", |_, launch, _| known(launch.own_ns)),
    ("cpu_ns", |_, launch, _| launch.cpu_ns.to_string()),
];

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
        let over =
            |figures: Vec<f64>| Estimate::over(&figures, MIN_ROUNDS, plan.confidence, plan.seed);
        let each =
            |of: fn(&Sum) -> f64| sums.iter().map(|(_, sum)| of(sum) / sum.calls as f64).collect();
        let shares = sums.iter().map(|(cpu_ns, sum)| Some(sum.net_ns / (*cpu_ns)?));
        let calls: Vec<f64> = sums.iter().map(|(_, sum)| sum.calls as f64).collect();
        let all = sums.iter().map(|(_, sum)| sum.clone()).reduce(Sum::and)?;
        let known = median_known(launches.iter().copied());
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
            wall_ns_per_call: widened(
                over(each(|sum| sum.net_ns + sum.times.off_cpu_ns as f64))?,
                ends,
            ),
            p50_ns: all.quantile_ns(0.5),
            p99_ns: all.quantile_ns(0.99),
            p999_ns: all.quantile_ns(0.999),
            longest_ns: all.times.max_ns,
            longest_wall_ns: all.times.max_wall_ns.max(all.times.max_ns),
            switched: all.times.switched,
            share_of_cpu: shares.collect::<Option<_>>().and_then(over).map(|of| widened(of, share)),
        })
    }

    /// What a call takes at most, with the scatter of runs where that is known.
    pub(super) fn at_most_ns(&self) -> f64 {
        self.ns_per_call.high.unwrap_or(self.most_ns)
    }
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
        let log = Estimate::over(&logs, MIN_ROUNDS, plan.confidence, plan.seed)?;
        // Each may overlap with what is around it, the other one not.
        let part = |ns: f64, of: &Row| ns / of.ns_per_call.value;
        let [own_least, own_most] = [own_row.least_ns, own_row.most_ns].map(|ns| part(ns, own_row));
        let [least, most] = [other_row.least_ns, other_row.most_ns].map(|ns| part(ns, other_row));
        let low = log.low.map(|low| low.exp() * least / own_most);
        let high = log.high.map(|high| high.exp() * most / own_least);
        let resolved = low.is_some_and(|low| low > 1.0) || high.is_some_and(|high| high < 1.0);
        let ratio = Estimate { low, high, resolved, ..from_logarithm(log) };
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
            "the command did not load the profiler. Possible causes: it is linked statically or \
                set-user-ID; its C library is older than glibc 2.34; it runs as another user or \
                in another PID namespace; this program has capabilities by setcap; 32 \
                thread-specific keys existed before"
                .to_string(),
        );
    } else if plan.malloc && rows.is_empty() {
        notices.push(
            "the command uses an allocator of its own under other names than malloc".to_string(),
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
                "with {library} {other:.0} calls are seen, without it {own:.0}: its operators \
                    new and delete do not call malloc"
            ));
        }
    }
    let own = |row: &Row| row.allocator == 0 && row.what.bytes.is_none();
    if !plan.allocators.is_empty() && rows.iter().any(|row| own(row) && row.is_bound) {
        notices
            .push("calls with only an upper bound are not compared between allocators".to_string());
    }
    if rows.iter().any(|row| row.share_of_cpu.is_none()) {
        notices.push(
            "profiling took most of the CPU time: the share of the calls is unknown".to_string(),
        );
    }
    let slow = Tier::Kernel.name();
    if launches.iter().any(|launch| launch.clocks.iter().any(|clock| clock == slow)) {
        notices.push(
            "no fast clock of a thread's CPU time here: each reading is a system call, and time \
                off the CPU is unknown (`switchcost clock overhead` says why)"
                .to_string(),
        );
    }
    notices
}
