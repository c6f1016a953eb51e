//! All that `switchcost run` says, as it is written in JSON.

use launcher::CommandRun;
use rundata::machine::{CpuAccounting, Machine};
use rundata::reading::Reading;
use rundata::run::ProgramBuild;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::findings::{Ratio, Summary, ratio};
use super::gate::Gate;
use super::notices::{CommandNotice, find_notices};
use super::plan::Plan;
use crate::programs::watch::Source;

/// Version of [`Record`]. Since 2 there may be more than two commands, and a ratio says which it is
/// of. Outputs were discarded from a command's second run on, and are now in all runs, unless the
/// plan says that they are shown.
pub(crate) const SCHEMA: u32 = 2;

/// Fields of getrusage(2) that Linux leaves at zero: they are no counts.
const NOT_KEPT: [&str; 7] = ["ixrss", "idrss", "isrss", "nswap", "msgsnd", "msgrcv", "nsignals"];

/// All that `switchcost run` says of one command or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Record {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// When it started, in UTC (RFC 3339).
    pub(crate) started: String,
    /// The machine's name; absent if it was left out.
    #[serde(default)]
    pub(crate) host: Option<String>,
    /// The command line.
    pub(crate) invocation: Vec<String>,
    /// What the program was built as.
    pub(crate) build: ProgramBuild,
    /// What was asked for.
    pub(crate) plan: Plan,
    /// The machine.
    pub(crate) machine: Machine,
    /// Every run, in order.
    pub(crate) runs: Vec<CommandRun>,
    /// What the runs of each command come to.
    pub(crate) commands: Vec<Summary>,
    /// With several commands: each of the others / first.
    pub(crate) ratios: Vec<Ratio>,
    /// With `--fail-above`: the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gate: Option<Gate>,
    /// Who counted the switches.
    #[serde(default)]
    pub(crate) counted_by: Source,
    /// Fields of getrusage(2) that Linux leaves at zero.
    pub(crate) not_kept: Vec<String>,
    /// What was not counted, and what happened on the way.
    pub(crate) notices: Vec<String>,
}

impl Record {
    /// Returns the notices of what happened: those that say what the figures do not cover left out.
    pub(super) fn events(&self) -> Vec<String> {
        let mut notices = find_notices(&self.plan, &self.runs, &self.commands);
        notices.retain(CommandNotice::is_event);
        in_words(&notices, &self.plan)
    }

    /// Takes commands, and what they are called, from another plan.
    pub(super) fn store_as(&mut self, (plan, gate): (Plan, Option<Gate>)) {
        let notices = find_notices(&self.plan, &self.runs, &self.commands);
        self.notices = in_words(&notices, &plan);
        for summary in &mut self.commands {
            summary.command.clone_from(&plan.commands[summary.number]);
        }
        (self.plan, self.gate) = (plan, gate);
    }

    /// The record of `runs`. A run that was interrupted counts only if its command has no other.
    pub(super) fn new(
        plan: Plan,
        runs: Vec<CommandRun>,
        (machine, accounting): (Machine, Reading<CpuAccounting>),
        (started, host, invocation, build): (String, Option<String>, Vec<String>, ProgramBuild),
    ) -> Self {
        let tick_ns = machine.kernel.hz.clone().and_then(|hz| match hz {
            0 => Reading::unknown("the kernel says CONFIG_HZ=0"),
            hz => Reading::Known(1_000_000_000 / u64::from(hz)),
        });
        let whole: Vec<&CommandRun> = runs.iter().filter(|run| !run.interrupted).collect();
        let mut commands = Vec::new();
        for number in 0..plan.commands.len() {
            let all: Vec<&CommandRun> = runs.iter().filter(|run| run.command == number).collect();
            let own: Vec<&CommandRun> =
                whole.iter().copied().filter(|run| run.command == number).collect();
            let kept = if own.is_empty() { &all } else { &own };
            let of = (accounting.clone(), tick_ns.clone());
            let Some(summary) = Summary::of(number, kept, &plan, of) else { continue };
            commands.push(summary);
        }
        let notices = find_notices(&plan, &runs, &commands);
        let mut ratios = Vec::new();
        for command in 1..plan.commands.len() {
            let mut over = |name: &str, of: fn(&CommandRun) -> u64| {
                let estimate = ratio(&whole, [0, command], of, &plan);
                let of = name.to_owned();
                ratios.extend(estimate.map(|estimate| Ratio { of, command, estimate }));
            };
            over("real_ns", |run| run.used.real_ns);
            over("cpu_ns", |run| run.used.total().cpu_ns());
        }
        Self {
            schema: SCHEMA,
            started,
            host,
            invocation,
            build,
            machine,
            commands,
            ratios,
            gate: None,
            // Tracing would make each switch of the command slower (docs/decisions.md).
            counted_by: Source::Wait4,
            not_kept: NOT_KEPT.map(str::to_owned).to_vec(),
            notices: in_words(&notices, &plan),
            runs,
            plan,
        }
    }
}

fn in_words(notices: &[CommandNotice], plan: &Plan) -> Vec<String> {
    notices.iter().map(|notice| notice.in_words(plan)).collect()
}
