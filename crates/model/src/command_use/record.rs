//! All that `switchcost run` says.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::{SOURCES, Summary};
use super::notices;
use super::ratio::Ratio;
use super::run::Run;
use super::split::CpuAccounting;
use crate::machine::Machine;
use crate::program_cost::{ProgramCost, Range, Surface};
use crate::reading::Reading;
use crate::run::Build;

/// Version of [`Record`].
pub const SCHEMA: u32 = 1;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// One command, or two that are compared.
    pub commands: Vec<Vec<String>>,
    /// Runs of each.
    pub runs: u32,
    /// Runs of each beforehand, of which nothing is kept.
    pub warmup: u32,
    /// Seed of the order of commands and of every resampling.
    pub seed: u64,
    /// Whether descendants that outlive their parents are counted too.
    pub tree: bool,
    /// Confidence of every interval: 0.95 is 95 %.
    pub confidence: f64,
}

impl Plan {
    /// The order in which the commands of round `round` run: shuffled anew in each (Fisher-Yates by
    /// ChaCha8 with the seed, stream `round`).
    #[must_use]
    pub fn order(&self, round: u32) -> Vec<usize> {
        order(self.commands.len(), self.seed, round)
    }
}

/// [`Plan::order`] of so many commands.
#[must_use]
pub fn order(commands: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..commands).collect();
    if commands > 1 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(round));
        order.shuffle(&mut rng);
    }
    order
}

/// What its switches cost a command, on this machine's measured costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Switching {
    /// The costs that the estimate rests on.
    pub surface: Reading<Surface>,
    /// The estimate.
    pub cost: ProgramCost,
    /// Time lost to switches in one run, in nanoseconds: switches x cost of one. Absent where there is
    /// no estimate.
    pub lost_ns: Option<Range>,
    /// The same by the direct cost alone.
    pub direct_lost_ns: Option<Range>,
    /// What was taken for granted beyond the estimate's own assumptions, and what differs.
    pub notices: Vec<String>,
}

/// All that `switchcost run` says of one or two commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When it started, in UTC (RFC 3339).
    pub started: String,
    /// The command line.
    pub invocation: Vec<String>,
    /// What the program was built as.
    pub build: Build,
    /// What was asked for.
    pub plan: Plan,
    /// The machine.
    pub machine: Machine,
    /// Every run, in order.
    pub runs: Vec<Run>,
    /// What the runs of each command come to.
    pub commands: Vec<Summary>,
    /// With two commands: second / first.
    pub ratios: Vec<Ratio>,
    /// Fields of getrusage(2) that Linux leaves at zero.
    pub not_kept: Vec<String>,
    /// What was not counted, and what happened on the way.
    pub notices: Vec<String>,
}

impl Record {
    /// The record of `runs`. A run that was interrupted counts only if its command has no other.
    #[must_use]
    pub fn new(
        plan: Plan,
        runs: Vec<Run>,
        (machine, accounting): (Machine, Reading<CpuAccounting>),
        (started, invocation, build): (String, Vec<String>, Build),
    ) -> Self {
        let tick_ns = machine.kernel.hz.clone().and_then(|hz| match hz {
            0 => Reading::unknown("the kernel says CONFIG_HZ=0"),
            hz => Reading::Known(1_000_000_000 / u64::from(hz)),
        });
        let of = |command: usize| -> Vec<&Run> {
            let all: Vec<&Run> = runs.iter().filter(|run| run.command == command).collect();
            let whole: Vec<&Run> = all.iter().copied().filter(|run| !run.interrupted).collect();
            if whole.is_empty() { all } else { whole }
        };
        let kept: Vec<Vec<&Run>> = (0..plan.commands.len()).map(of).collect();
        let numbered = plan.commands.iter().map(Vec::as_slice).enumerate();
        let summaries = numbered.zip(&kept).filter_map(|(command, runs)| {
            let (accounting, tick_ns) = (accounting.clone(), tick_ns.clone());
            Summary::of(command, runs, accounting, tick_ns, plan.confidence, plan.seed)
        });
        let commands: Vec<Summary> = summaries.collect();
        let notices = notices::of(&plan, &commands, &runs);
        let both: Vec<&Run> = kept.concat().into_iter().filter(|run| !run.interrupted).collect();
        let ratio = |name: &str, of: fn(&Run) -> u64| {
            Ratio::over(&both, name, of, plan.confidence, plan.seed)
        };
        let ratios = [
            ratio("real_ns", |run| run.used.real_ns),
            ratio("cpu_ns", |run| run.used.total().cpu_ns()),
        ];
        let ratios = ratios.into_iter().flatten();
        let ratios = if plan.commands.len() == 2 { ratios.collect() } else { Vec::new() };
        Self {
            schema: SCHEMA,
            started,
            invocation,
            build,
            machine,
            commands,
            ratios,
            not_kept: super::NOT_KEPT.map(str::to_owned).to_vec(),
            notices,
            runs,
            plan,
        }
    }

    /// The names of all figures of a run, in their order.
    pub fn figure_names() -> impl Iterator<Item = &'static str> {
        SOURCES.into_iter().map(|(name, _)| name)
    }

    /// The figures of a run by the same order; absent where not read.
    pub fn figures_of(run: &Run) -> impl Iterator<Item = Option<u64>> + '_ {
        SOURCES.into_iter().map(|(_, of)| of(run).known().copied())
    }
}
