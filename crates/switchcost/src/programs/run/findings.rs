//! What the runs of one command come to, and what the runs of a second one are beside them.
//!
//! Every formula and its source is in `docs/method.md`.

use std::collections::BTreeMap;

use analysis::estimate::Estimate;
use analysis::program::{CostProfile, Program, ProgramCost, Range, WorkingSet, program_cost};
use analysis::used::{CpuTimeSums, Figure, UserSplit};
use launcher::{CommandRun, Ending, RunUsage};
use rundata::machine::CpuAccounting;
use rundata::reading::Reading;
use rundata::reading::Reading::Known;
use rundata::words::bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::Plan;

/// A run whose real time is unlike the others'.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Outlier {
    /// Its round.
    pub(crate) round: u32,
    /// Its real time in nanoseconds.
    pub(crate) real_ns: u64,
    /// The same over the median.
    pub(crate) times_median: f64,
}

/// The runs of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Summary {
    /// Which command, from 0: one without runs has no summary.
    pub(crate) number: usize,
    /// The command.
    pub(crate) command: Vec<String>,
    /// Runs that went to their end.
    pub(crate) runs: u32,
    /// How they ended, and how many did so.
    pub(crate) endings: Vec<(Ending, u32)>,
    /// All figures that could be read.
    pub(crate) figures: Vec<Figure>,
    /// Those that could not, by name, and why.
    pub(crate) missing: BTreeMap<String, String>,
    /// User and system time.
    pub(crate) split: UserSplit,
    /// Runs whose real time lies more than 3.5 spreads from the median (Iglewicz and Hoaglin 1993).
    pub(crate) outliers: Vec<Outlier>,
    /// What its switches cost it, if that was asked for.
    pub(crate) switching: Option<Switching>,
}

/// A figure of a run: its name, which ends with its unit, what it is called in the report (there
/// without a row if empty), and where it comes from.
type Source = (&'static str, &'static str, fn(&RunUsage) -> Reading<u64>);

/// What the CPU time is called in the report: its split follows it.
pub(super) const CPU: &str = "CPU (user + system)";

/// All figures of a run, in the order in which they are shown.
pub(super) const SOURCES: [Source; 23] = [
    ("real_ns", "real", |used| Known(used.real_ns)),
    ("cpu_ns", CPU, |used| Known(used.total().cpu_ns())),
    ("user_ns", "", |used| Known(used.total().user_ns)),
    ("system_ns", "", |used| Known(used.total().system_ns)),
    ("max_resident_bytes", "max resident", |used| Known(used.total().max_resident_bytes)),
    ("minor_faults", "minor faults", |used| Known(used.total().minor_faults)),
    ("major_faults", "major faults", |used| Known(used.total().major_faults)),
    ("input_blocks", "blocks in", |used| Known(used.total().input_blocks)),
    ("output_blocks", "blocks out", |used| Known(used.total().output_blocks)),
    ("voluntary", "voluntary switches", |used| Known(used.total().voluntary)),
    ("involuntary", "involuntary switches", |used| Known(used.total().involuntary)),
    ("run_delay_ns", "run delay", |used| used.delay.as_ref().map(|delay| delay.run_delay_ns)),
    ("run_delay_covered_cpu_ns", "", |used| used.delay.as_ref().map(|d| d.covered_cpu_ns)),
    ("migrations", "migrations", |used| used.migrations.clone()),
    ("read_call_bytes", "read calls", |used| used.io.as_ref().map(|io| io.read_call_bytes)),
    ("write_call_bytes", "write calls", |used| used.io.as_ref().map(|io| io.write_call_bytes)),
    ("storage_read_bytes", "storage read", |u| u.io.as_ref().map(|io| io.storage_read_bytes)),
    ("storage_write_bytes", "storage written", |u| u.io.as_ref().map(|io| io.storage_write_bytes)),
    ("cancelled_write_bytes", "of it cancelled", |u| {
        u.io.as_ref().map(|io| io.cancelled_write_bytes)
    }),
    ("peak_threads_seen", "peak threads seen", |u| u.threads.as_ref().map(|t| t.peak_seen.into())),
    ("at_exec_resident_bytes", "resident at exec", |used| Known(used.at_exec.resident_bytes)),
    ("at_exec_minor_faults", "", |used| Known(used.at_exec.minor_faults)),
    ("at_exec_cpu_ns", "", |used| Known(used.at_exec.cpu_ns)),
];

impl Summary {
    /// What `runs` of command `number` come to; absent without any.
    pub(super) fn of(
        number: usize,
        runs: &[&CommandRun],
        plan: &Plan,
        clock: (Reading<CpuAccounting>, Reading<u64>),
    ) -> Option<Self> {
        runs.first()?;
        let (mut figures, mut missing) = (Vec::new(), BTreeMap::new());
        for (name, _, of) in SOURCES {
            let readings: Vec<Reading<u64>> = runs.iter().map(|run| of(&run.used)).collect();
            let known = readings.iter().filter_map(Reading::known);
            let known: Vec<f64> = known.map(|value| *value as f64).collect();
            if let Some(why) = readings.iter().find_map(Reading::why) {
                let some = match known.len() {
                    0 => String::new(),
                    some => format!("in {} of {} runs: ", readings.len() - some, readings.len()),
                };
                missing.insert(name.to_owned(), format!("{some}{why}"));
            }
            figures.extend(Figure::from_values(name, &known, plan.confidence, plan.seed));
        }
        let mut endings: BTreeMap<Ending, u32> = BTreeMap::new();
        for run in runs {
            *endings.entry(run.used.ending).or_default() += 1;
        }
        Some(Self {
            number,
            command: plan.commands[number].clone(),
            runs: runs.len() as u32,
            endings: endings.into_iter().collect(),
            figures,
            missing,
            split: UserSplit::from_sums(sums(runs), clock.0, clock.1),
            outliers: outliers(runs),
            switching: None,
        })
    }

    /// A figure by its name.
    pub(crate) fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// The median of a figure.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        self.figure(name).map(|figure| figure.estimate.value)
    }

    /// Whether it made any switches.
    pub(crate) fn switched(&self) -> bool {
        ["voluntary", "involuntary"].iter().any(|name| self.median(name).is_some_and(|n| n > 0.0))
    }
}

fn sums(runs: &[&CommandRun]) -> CpuTimeSums {
    let sum = |of: fn(&RunUsage) -> u64| runs.iter().map(|run| of(&run.used) as f64).sum::<f64>();
    CpuTimeSums {
        cpu: sum(|used| used.total().cpu_ns()),
        user: sum(|used| used.total().user_ns),
        own: sum(|used| used.own_cpu_ns.known().copied().unwrap_or(used.total().cpu_ns())),
        sampled_user: sum(|used| used.sampled.known().map_or(0, |of| of.user_ns)),
        sampled: sum(|used| used.sampled.known().map_or(0, |of| of.both_ns)),
    }
}

fn outliers(runs: &[&CommandRun]) -> Vec<Outlier> {
    let real: Vec<f64> = runs.iter().map(|run| run.used.real_ns as f64).collect();
    let outlier = |(at, times_median): (usize, f64)| Outlier {
        round: runs[at].round,
        real_ns: runs[at].used.real_ns,
        times_median,
    };
    analysis::used::outliers(&real).into_iter().map(outlier).collect()
}

/// What its switches cost a command, on this machine's measured costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Switching {
    /// The cost profile that the estimate rests on.
    #[serde(rename = "surface")]
    pub(crate) profile: Reading<CostProfile>,
    /// The estimate.
    pub(crate) cost: ProgramCost,
    /// Estimated switch overhead in one run, in nanoseconds: switches x cost of one. Absent where
    /// there is no estimate.
    #[serde(rename = "lost_ns")]
    pub(crate) overhead_ns: Option<Range>,
    /// The same by the direct cost alone.
    #[serde(rename = "direct_lost_ns")]
    pub(crate) direct_overhead_ns: Option<Range>,
    /// What was taken for granted beyond the estimate's own assumptions, and what differs.
    pub(crate) notices: Vec<String>,
}

impl Switching {
    /// The estimate for the medians of a command's runs. What it touches between two switches is
    /// not watched, as that would disturb it: anything up to its greatest resident memory, but no
    /// more than the largest array that was measured.
    pub(crate) fn of(
        summary: &Summary,
        profile: Reading<CostProfile>,
        mut notices: Vec<String>,
    ) -> Self {
        let median = |name: &str| summary.median(name);
        let points = profile.known().map_or(&[][..], |profile| &profile.points);
        let resident = median("max_resident_bytes").unwrap_or(0.0) as u64;
        let largest = points.iter().map(|point| point.array_bytes).max().unwrap_or(resident);
        if largest < resident {
            notices.push(format!(
                "assumes that it touches at most {} between switches (up to {} resident)",
                bytes(largest),
                bytes(resident)
            ));
        }
        let counts = ["voluntary", "involuntary", "cpu_ns"];
        let counts = counts.map(|name| median(name).ok_or("not counted").into());
        let set = Reading::Known(WorkingSet::within(largest.min(resident)));
        let program = Program::over(median("real_ns").unwrap_or(0.0), counts, set);
        let cost = program_cost(&program, points);
        let cost = profile.why().map_or(cost.clone(), |why| cost.clone().without_profile(why));
        let cpu_ns = median("cpu_ns").unwrap_or(0.0);
        let overhead = |share: Range| share.map(|end| end * cpu_ns);
        let [overhead_ns, direct_overhead_ns] = match &cost {
            ProgramCost::Estimated { .. } => [cost.share(), cost.direct_share()],
            ProgramCost::Inconclusive { .. } => [None; 2],
        }
        .map(|share| share.map(overhead));
        Self { profile, cost, overhead_ns, direct_overhead_ns, notices }
    }
}

/// A figure of a command over the first one's, taken within each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Ratio {
    /// Which figure: `real_ns` or `cpu_ns`.
    pub(crate) of: String,
    /// Which command, from 1.
    #[serde(default = "second")]
    pub(crate) command: usize,
    /// Median over rounds of that command / first; resolved where its interval excludes 1.
    #[serde(flatten)]
    pub(crate) estimate: Estimate,
}

/// The command of a ratio that does not say so: before schema 2 there were two.
fn second() -> usize {
    1
}

/// The ratio of `of` of `command` to that of `base`, over the rounds of `runs` in which both ran to
/// their end. It is estimated on the logarithm, so that second / first and first / second say the
/// same.
pub(super) fn ratio(
    runs: &[&CommandRun],
    [base, command]: [usize; 2],
    of: impl Fn(&CommandRun) -> u64,
    plan: &Plan,
) -> Option<Estimate> {
    let by_round = |number: usize| -> BTreeMap<u32, u64> {
        let own = runs.iter().filter(|run| run.command == number);
        own.map(|run| (run.round, of(run))).collect()
    };
    analysis::used::ratio(&by_round(base), &by_round(command), plan.confidence, plan.seed)
}
