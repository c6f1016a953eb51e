//! All that `switchcost run` says, as it is written in JSON.

use launcher::Run;
use model::machine::{CpuAccounting, Machine};
use model::reading::Reading;
use model::run::Build;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::findings::{Ratio, Summary};
use super::notices;
use super::plan::Plan;

/// Version of [`Record`].
pub(crate) const SCHEMA: u32 = 1;

/// Fields of getrusage(2) that Linux leaves at zero: they are no counts.
const NOT_KEPT: [&str; 7] = ["ixrss", "idrss", "isrss", "nswap", "msgsnd", "msgrcv", "nsignals"];

/// All that `switchcost run` says of one or two commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Record {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// When it started, in UTC (RFC 3339).
    pub(crate) started: String,
    /// The command line.
    pub(crate) invocation: Vec<String>,
    /// What the program was built as.
    pub(crate) build: Build,
    /// What was asked for.
    pub(crate) plan: Plan,
    /// The machine.
    pub(crate) machine: Machine,
    /// Every run, in order.
    pub(crate) runs: Vec<Run>,
    /// What the runs of each command come to.
    pub(crate) commands: Vec<Summary>,
    /// With two commands: second / first.
    pub(crate) ratios: Vec<Ratio>,
    /// Fields of getrusage(2) that Linux leaves at zero.
    pub(crate) not_kept: Vec<String>,
    /// What was not counted, and what happened on the way.
    pub(crate) notices: Vec<String>,
}

impl Record {
    /// The record of `runs`. A run that was interrupted counts only if its command has no other.
    pub(super) fn new(
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
        let summaries = kept.iter().enumerate().filter_map(|(command, runs)| {
            Summary::of(command, runs, &plan, accounting.clone(), tick_ns.clone())
        });
        let commands: Vec<Summary> = summaries.collect();
        let notices = notices::of(&plan, &commands, &runs);
        let mut ratios = Vec::new();
        if plan.commands.len() == 2 {
            let whole: Vec<&Run> = runs.iter().filter(|run| !run.interrupted).collect();
            ratios.extend(Ratio::over(&whole, "real_ns", |run| run.used.real_ns, &plan));
            ratios.extend(Ratio::over(&whole, "cpu_ns", |run| run.used.total().cpu_ns(), &plan));
        }
        Self {
            schema: SCHEMA,
            started,
            invocation,
            build,
            machine,
            commands,
            ratios,
            not_kept: NOT_KEPT.map(str::to_owned).to_vec(),
            notices,
            runs,
            plan,
        }
    }
}
