//! Findings from the runs of commands: the summary of each command, its estimated switch overhead,
//! and the ratios of each further command to the first.
//!
//! `docs/method.md` has every formula and its source. Ratios are taken within rounds, because a
//! machine that gets slower from round to round slows all commands alike:
//!
//! ```text
//! round       0        1        2
//! first    10 ms    20 ms    40 ms     median 20 ms
//! second   15 ms    30 ms    60 ms     median 30 ms, +- a factor of 2
//! ratio     1.5      1.5      1.5      1.5, without any scatter
//! ```

use std::collections::BTreeMap;

use analysis::estimate::Estimate;
use analysis::program::{CostProfile, Program, ProgramCost, Range, WorkingSet, program_cost};
use analysis::results::Quantity;
use analysis::used::{CpuTimeSums, Figure, UserSplit};
use launcher::{CommandRun, Ending, RunUsage};
use rundata::machine::CpuAccounting;
use rundata::reading::Reading;
use rundata::reading::Reading::Known;
use rundata::words::bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Interval;

use super::plan::CommandPlan;

/// A run whose real time is far from the median.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Outlier")]
pub(crate) struct OutlierRun {
    /// Round of the run, from 0.
    pub(crate) round: u32,
    /// Real time in nanoseconds.
    pub(crate) real_ns: u64,
    /// Real time over the median.
    pub(crate) times_median: f64,
}

/// Summary of the runs of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Summary")]
pub(crate) struct CommandSummary {
    /// Number of the command, from 0; a command without runs has no summary.
    pub(crate) number: usize,
    /// Words of the command.
    pub(crate) command: Vec<String>,
    /// Number of runs that count.
    pub(crate) runs: u32,
    /// Endings of the runs, each with its count.
    pub(crate) endings: Vec<(Ending, u32)>,
    /// Figures that could be read in at least one run.
    pub(crate) figures: Vec<Figure>,
    /// Reasons why figures could not be read in some runs or in all, by their names.
    pub(crate) missing: BTreeMap<String, String>,
    /// User and system time.
    pub(crate) split: UserSplit,
    /// Runs whose real time is more than 3.5 spreads from the median (Iglewicz and Hoaglin 1993).
    pub(crate) outliers: Vec<OutlierRun>,
    /// Estimated overhead of its switches; absent if no estimate was asked for.
    pub(crate) switching: Option<SwitchOverhead>,
}

/// A figure that is read from every run.
pub(super) struct FigureSource {
    /// Name in files; it ends with the unit.
    pub(super) name: &'static str,
    /// Label in reports; empty for a figure without a row of its own.
    pub(super) label: &'static str,
    pub(super) read: fn(&RunUsage) -> Reading<u64>,
}

impl FigureSource {
    const fn new(
        name: &'static str,
        label: &'static str,
        read: fn(&RunUsage) -> Reading<u64>,
    ) -> Self {
        Self { name, label, read }
    }
}

/// Label of the CPU time in reports; user and system time follow it.
pub(super) const CPU_LABEL: &str = "CPU (user + system)";

/// The figures of a run, in the order in which they are shown.
pub(super) const FIGURE_SOURCES: [FigureSource; 23] = [
    FigureSource::new("real_ns", "real", |used| Known(used.real_ns)),
    FigureSource::new("cpu_ns", CPU_LABEL, |used| Known(used.total().cpu_ns())),
    FigureSource::new("user_ns", "", |used| Known(used.total().user_ns)),
    FigureSource::new("system_ns", "", |used| Known(used.total().system_ns)),
    FigureSource::new("max_resident_bytes", "max resident", |used| {
        Known(used.total().max_resident_bytes)
    }),
    FigureSource::new("minor_faults", "minor faults", |used| Known(used.total().minor_faults)),
    FigureSource::new("major_faults", "major faults", |used| Known(used.total().major_faults)),
    FigureSource::new("input_blocks", "blocks in", |used| Known(used.total().input_blocks)),
    FigureSource::new("output_blocks", "blocks out", |used| Known(used.total().output_blocks)),
    FigureSource::new("voluntary", "voluntary switches", |used| Known(used.total().voluntary)),
    FigureSource::new("involuntary", "involuntary switches", |used| {
        Known(used.total().involuntary)
    }),
    FigureSource::new("run_delay_ns", "run delay", |used| {
        used.delay.as_ref().map(|delay| delay.run_delay_ns)
    }),
    FigureSource::new("run_delay_covered_cpu_ns", "", |used| {
        used.delay.as_ref().map(|delay| delay.covered_cpu_ns)
    }),
    FigureSource::new("migrations", "migrations", |used| used.migrations.clone()),
    FigureSource::new("read_call_bytes", "read calls", |used| {
        used.io.as_ref().map(|io| io.read_call_bytes)
    }),
    FigureSource::new("write_call_bytes", "write calls", |used| {
        used.io.as_ref().map(|io| io.write_call_bytes)
    }),
    FigureSource::new("storage_read_bytes", "storage read", |used| {
        used.io.as_ref().map(|io| io.storage_read_bytes)
    }),
    FigureSource::new("storage_write_bytes", "storage written", |used| {
        used.io.as_ref().map(|io| io.storage_write_bytes)
    }),
    FigureSource::new("cancelled_write_bytes", "cancelled writes", |used| {
        used.io.as_ref().map(|io| io.cancelled_write_bytes)
    }),
    FigureSource::new("peak_threads_seen", "peak threads seen", |used| {
        used.threads.as_ref().map(|threads| threads.peak_seen.into())
    }),
    FigureSource::new("at_exec_resident_bytes", "resident at exec", |used| {
        Known(used.at_exec.resident_bytes)
    }),
    FigureSource::new("at_exec_minor_faults", "", |used| Known(used.at_exec.minor_faults)),
    FigureSource::new("at_exec_cpu_ns", "", |used| Known(used.at_exec.cpu_ns)),
];

/// Accounting of user and system time by the kernel.
#[derive(Clone)]
pub(super) struct CpuTimeAccounting {
    pub(super) accounting: Reading<CpuAccounting>,
    /// Nanoseconds between two timer ticks.
    pub(super) tick_ns: Reading<u64>,
}

impl CommandSummary {
    /// Summarizes `runs` of the command with this number; `None` without any.
    pub(super) fn from_runs(
        number: usize,
        runs: &[&CommandRun],
        plan: &CommandPlan,
        accounting: &CpuTimeAccounting,
    ) -> Option<Self> {
        runs.first()?;
        let mut figures = Vec::new();
        let mut missing = BTreeMap::new();
        for FigureSource { name, read, .. } in FIGURE_SOURCES {
            let mut values = Vec::new();
            let mut first_reason = None;
            for run in runs {
                let reading = read(&run.used);
                if let Some(value) = reading.known() {
                    values.push(*value as f64);
                }
                first_reason = first_reason.or(reading.why().map(str::to_string));
            }
            if let Some(reason) = first_reason {
                let count = runs.len() - values.len();
                let reason = if values.is_empty() {
                    reason
                } else {
                    format!("in {count} of {} runs: {reason}", runs.len())
                };
                missing.insert(name.to_owned(), reason);
            }
            figures.extend(Figure::from_values(name, &values, plan.confidence, plan.seed));
        }
        let mut endings: BTreeMap<Ending, u32> = BTreeMap::new();
        for run in runs {
            *endings.entry(run.used.ending).or_default() += 1;
        }
        let CpuTimeAccounting { accounting, tick_ns } = accounting.clone();
        Some(Self {
            number,
            command: plan.commands[number].clone(),
            runs: runs.len() as u32,
            endings: endings.into_iter().collect(),
            figures,
            missing,
            split: UserSplit::from_sums(sum_cpu_times(runs), accounting, tick_ns),
            outliers: find_outliers(runs),
            switching: None,
        })
    }

    /// Returns the figure with this name.
    pub(crate) fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// Returns the median of the figure with this name.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        self.figure(name).map(|figure| figure.estimate.value)
    }

    /// Returns the interval of the median of the figure with this name.
    pub(super) fn interval(&self, name: &str) -> Option<Interval> {
        self.figure(name)?.estimate.interval()
    }

    /// Returns the number of switches of both kinds in a run.
    pub(super) fn switches(&self) -> Option<f64> {
        Some(self.median("voluntary")? + self.median("involuntary")?)
    }

    /// Returns whether the command made any switches, as far as they are known.
    pub(crate) fn has_switches(&self) -> bool {
        let medians = [self.median("voluntary"), self.median("involuntary")];
        medians.into_iter().flatten().any(|count| count > 0.0)
    }
}

fn sum_cpu_times(runs: &[&CommandRun]) -> CpuTimeSums {
    let mut sums = CpuTimeSums { cpu: 0.0, user: 0.0, own: 0.0, sampled_user: 0.0, sampled: 0.0 };
    for run in runs {
        let total = run.used.total();
        let own_ns = run.used.own_cpu_ns.known().copied();
        sums.cpu += total.cpu_ns() as f64;
        sums.user += total.user_ns as f64;
        sums.own += own_ns.unwrap_or(total.cpu_ns()) as f64;
        if let Some(sampled) = run.used.sampled.known() {
            sums.sampled_user += sampled.user_ns as f64;
            sums.sampled += sampled.both_ns as f64;
        }
    }
    sums
}

fn find_outliers(runs: &[&CommandRun]) -> Vec<OutlierRun> {
    let times: Vec<f64> = runs.iter().map(|run| run.used.real_ns as f64).collect();
    let mut outliers = Vec::new();
    for (index, times_median) in analysis::used::outliers(&times) {
        let run = runs[index];
        outliers.push(OutlierRun { round: run.round, real_ns: run.used.real_ns, times_median });
    }
    outliers
}

/// Returns the summaries by their median real time, the shortest first.
pub(super) fn sort_by_real_time(summaries: &[CommandSummary]) -> Vec<&CommandSummary> {
    let real_ns = |summary: &CommandSummary| summary.median("real_ns").unwrap_or(f64::INFINITY);
    let mut sorted: Vec<&CommandSummary> = summaries.iter().collect();
    sorted.sort_by(|one, other| real_ns(one).total_cmp(&real_ns(other)));
    sorted
}

/// Returns the runs that were not interrupted.
pub(super) fn complete_runs(runs: &[CommandRun]) -> Vec<&CommandRun> {
    runs.iter().filter(|run| !run.interrupted).collect()
}

/// Returns those of `runs` that are of the command with this number.
pub(super) fn runs_of_command<'a>(runs: &[&'a CommandRun], number: usize) -> Vec<&'a CommandRun> {
    runs.iter().copied().filter(|run| run.command == number).collect()
}

/// Estimated overhead of a command's switches, by the measured costs of this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Switching")]
pub(crate) struct SwitchOverhead {
    /// Cost profile that the estimate rests on.
    #[serde(rename = "surface")]
    pub(crate) profile: Reading<CostProfile>,
    /// Estimated cost of the switches.
    pub(crate) cost: ProgramCost,
    /// Switches times the cost of one, in nanoseconds a run. Absent without an estimate.
    #[serde(rename = "lost_ns")]
    pub(crate) overhead_ns: Option<Range>,
    /// Switches times the direct cost of one, in nanoseconds a run. Absent without an estimate.
    #[serde(rename = "direct_lost_ns")]
    pub(crate) direct_overhead_ns: Option<Range>,
    /// Assumptions beyond those of the estimate, and differences between machine and profile.
    pub(crate) notices: Vec<String>,
}

impl SwitchOverhead {
    /// Estimates the overhead for the medians of a command's runs.
    ///
    /// The memory that a command touches between two switches is not observed, as that would
    /// disturb it. It is taken to be anything up to the command's largest resident memory, but no
    /// more than the largest array of the profile.
    pub(crate) fn estimate(
        summary: &CommandSummary,
        profile: Reading<CostProfile>,
        mut notices: Vec<String>,
    ) -> Self {
        let points = profile.known().map_or(&[][..], |profile| &profile.points);
        let resident_bytes = summary.median("max_resident_bytes").unwrap_or(0.0) as u64;
        let arrays = points.iter().map(|point| point.array_bytes);
        let largest_array = arrays.max().unwrap_or(resident_bytes);
        if largest_array < resident_bytes {
            notices.push(format!(
                "assumes that it touches at most {} between switches (up to {} resident)",
                bytes(largest_array),
                bytes(resident_bytes)
            ));
        }
        let working_set = WorkingSet::within(largest_array.min(resident_bytes));
        let counts = ["voluntary", "involuntary", "cpu_ns"]
            .map(|name| summary.median(name).ok_or("not counted").into());
        let real_ns = summary.median("real_ns").unwrap_or(0.0);
        let program = Program::over(real_ns, counts, Reading::Known(working_set));
        let mut cost = program_cost(&program, points);
        if let Some(reason) = profile.why() {
            cost = cost.without_profile(reason);
        }
        let (mut overhead_ns, mut direct_overhead_ns) = (None, None);
        if let ProgramCost::Estimated { share, direct_share, .. } = &cost {
            let cpu_ns = summary.median("cpu_ns").unwrap_or(0.0);
            overhead_ns = Some(share.map(|end| end * cpu_ns));
            direct_overhead_ns = direct_share.map(|share| share.map(|end| end * cpu_ns));
        }
        Self { profile, cost, overhead_ns, direct_overhead_ns, notices }
    }

    /// Returns the share of the CPU time, if its range is narrow enough to be useful.
    pub(super) fn useful_share(&self) -> Option<Range> {
        self.cost.share().filter(|share| !share.is_wide())
    }

    /// Returns the share of the direct cost, if its range is narrow enough to be useful.
    pub(super) fn useful_direct_share(&self) -> Option<Range> {
        self.cost.direct_share().filter(|share| !share.is_wide())
    }
}

/// A time by which commands are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparedTime {
    Real,
    Cpu,
}

impl ComparedTime {
    pub(super) const ALL: [Self; 2] = [Self::Real, Self::Cpu];

    /// Returns the name of its figure.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Real => "real_ns",
            Self::Cpu => "cpu_ns",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Real => "real time",
            Self::Cpu => "CPU time",
        }
    }

    pub(super) fn quantity(self) -> Quantity {
        match self {
            Self::Real => Quantity::RealNs,
            Self::Cpu => Quantity::CpuNs,
        }
    }

    /// Reads it from a run, in nanoseconds.
    pub(super) fn read(self, used: &RunUsage) -> u64 {
        match self {
            Self::Real => used.real_ns,
            Self::Cpu => used.total().cpu_ns(),
        }
    }
}

/// Ratio of a time of a command to that of the first, taken within each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Ratio")]
pub(crate) struct CommandRatio {
    /// Figure that is compared: `real_ns` or `cpu_ns`.
    #[serde(rename = "of")]
    pub(crate) figure: String,
    /// Number of the command, from 1.
    #[serde(default = "second_command")]
    pub(crate) command: usize,
    /// Median over rounds of that command / first; resolved if its interval excludes 1.
    #[serde(flatten)]
    pub(crate) estimate: Estimate,
}

/// Returns the command of a ratio that names none: before schema 2 there were two commands.
fn second_command() -> usize {
    1
}

impl CommandRatio {
    /// Estimates the ratio of a time of `command` to that of the first command; `None` if no round
    /// has both.
    pub(super) fn to_first(
        runs: &[&CommandRun],
        command: usize,
        time: ComparedTime,
        plan: &CommandPlan,
    ) -> Option<Self> {
        let pair = CommandPair { base: 0, command };
        let estimate = estimate_ratio(runs, pair, |run| time.read(&run.used), plan)?;
        Some(Self { figure: time.name().to_owned(), command, estimate })
    }

    pub(super) fn is_of(&self, time: ComparedTime) -> bool {
        self.figure == time.name()
    }
}

/// Numbers of a command and of the one that it is compared with.
#[derive(Clone, Copy)]
pub(super) struct CommandPair {
    pub(super) base: usize,
    pub(super) command: usize,
}

/// Estimates the ratio of a figure of a command to that of the base, over the rounds of `runs` that
/// have both; `read` reads the figure.
///
/// The estimate is made on the logarithm, so that command / base and base / command agree.
pub(super) fn estimate_ratio(
    runs: &[&CommandRun],
    pair: CommandPair,
    read: impl Fn(&CommandRun) -> u64,
    plan: &CommandPlan,
) -> Option<Estimate> {
    let (mut base, mut command) = (BTreeMap::new(), BTreeMap::new());
    for run in runs {
        if run.command == pair.base {
            base.insert(run.round, read(run));
        } else if run.command == pair.command {
            command.insert(run.round, read(run));
        }
    }
    analysis::used::ratio(&base, &command, plan.confidence, plan.seed)
}
