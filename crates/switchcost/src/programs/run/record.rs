//! The record of `switchcost run`, as --json writes it and as reports read it.

use std::collections::BTreeMap;

use analysis::estimate::Estimate;
use launcher::CommandRun;
use rundata::machine::{CpuAccounting, Machine};
use rundata::reading::Reading;
use rundata::run::ProgramBuild;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::findings::{
    CommandRatio, CommandSummary, ComparedTime, CpuTimeAccounting, complete_runs, runs_of_command,
};
use super::gate::CommandGate;
use super::notices::{CommandNotice, find_notices};
use super::plan::CommandPlan;
use crate::programs::watch::CountSource;

/// Version of [`CommandUseRecord`].
///
/// Since 2 there may be more than two commands, and a ratio says which of them it compares. Version
/// 1 discarded outputs from a command's second run on; since 2 they are discarded in all runs,
/// unless the plan says that they are shown.
pub(crate) const SCHEMA: u32 = 2;

/// Fields of getrusage(2) that Linux leaves at zero: they are no counts.
const NOT_KEPT: [&str; 7] = ["ixrss", "idrss", "isrss", "nswap", "msgsnd", "msgrcv", "nsignals"];

/// Measurements of one command or several, with what was computed from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Record")]
pub(crate) struct CommandUseRecord {
    /// Version of this format.
    pub(crate) schema: u32,
    /// Time of the start in UTC (RFC 3339).
    pub(crate) started: String,
    /// Name of the machine; absent if it was left out.
    #[serde(default)]
    pub(crate) host: Option<String>,
    /// Command line of switchcost.
    pub(crate) invocation: Vec<String>,
    /// Build of switchcost.
    pub(crate) build: ProgramBuild,
    /// Commands, and how they were run.
    pub(crate) plan: CommandPlan,
    /// Machine on which they ran.
    pub(crate) machine: Machine,
    /// Every run, in order.
    pub(crate) runs: Vec<CommandRun>,
    /// Summary of the runs of each command that has any.
    pub(crate) commands: Vec<CommandSummary>,
    /// Ratios of each further command to the first.
    pub(crate) ratios: Vec<CommandRatio>,
    /// Verdict of `--fail-above`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gate: Option<CommandGate>,
    /// Source of the counts of switches.
    #[serde(default)]
    pub(crate) counted_by: CountSource,
    /// Fields of getrusage(2) that Linux leaves at zero.
    pub(crate) not_kept: Vec<String>,
    /// Events during the runs, and limits of what was counted.
    pub(crate) notices: Vec<String>,
}

/// The machine, the build and the time of the runs of a record.
pub(super) struct RecordOrigin {
    pub(super) started: String,
    pub(super) host: Option<String>,
    pub(super) invocation: Vec<String>,
    pub(super) build: ProgramBuild,
    pub(super) machine: Machine,
    pub(super) accounting: Reading<CpuAccounting>,
}

impl CommandUseRecord {
    /// Builds the record of `runs`. An interrupted run counts only if its command has no other.
    pub(super) fn new(plan: CommandPlan, runs: Vec<CommandRun>, origin: RecordOrigin) -> Self {
        let tick_ns = tick_length(&origin.machine);
        let accounting = CpuTimeAccounting { accounting: origin.accounting, tick_ns };
        let all_runs: Vec<&CommandRun> = runs.iter().collect();
        let complete_runs = complete_runs(&runs);
        let mut commands = Vec::new();
        for number in 0..plan.commands.len() {
            let mut counted_runs = runs_of_command(&complete_runs, number);
            if counted_runs.is_empty() {
                counted_runs = runs_of_command(&all_runs, number);
            }
            commands.extend(CommandSummary::from_runs(number, &counted_runs, &plan, &accounting));
        }
        let mut ratios = Vec::new();
        for command in 1..plan.commands.len() {
            for time in ComparedTime::ALL {
                ratios.extend(CommandRatio::to_first(&complete_runs, command, time, &plan));
            }
        }
        let notices = find_notices(&plan, &runs, &commands);
        Self {
            schema: SCHEMA,
            started: origin.started,
            host: origin.host,
            invocation: origin.invocation,
            build: origin.build,
            machine: origin.machine,
            commands,
            ratios,
            gate: None,
            // Tracing would make each switch of the command slower (docs/decisions.md).
            counted_by: CountSource::Wait4,
            not_kept: NOT_KEPT.map(str::to_owned).to_vec(),
            notices: notice_texts(&notices, &plan),
            runs,
            plan,
        }
    }

    /// Returns the medians of what a command used, by column.
    pub(crate) fn used(&self, command: usize) -> BTreeMap<String, Estimate> {
        let mut medians = BTreeMap::new();
        for summary in self.commands.iter().filter(|summary| summary.number == command) {
            for figure in &summary.figures {
                medians.insert(figure.name.clone(), figure.estimate);
            }
        }
        medians
    }

    /// Returns the notices of events; those that only limit what the figures cover are left out.
    pub(super) fn events(&self) -> Vec<String> {
        let mut notices = find_notices(&self.plan, &self.runs, &self.commands);
        notices.retain(CommandNotice::is_event);
        notice_texts(&notices, &self.plan)
    }

    /// Replaces the words and names of commands by those of `plan`, and the verdict by `gate`.
    pub(super) fn store_as(&mut self, plan: CommandPlan, gate: Option<CommandGate>) {
        let notices = find_notices(&self.plan, &self.runs, &self.commands);
        self.notices = notice_texts(&notices, &plan);
        for summary in &mut self.commands {
            summary.command.clone_from(&plan.commands[summary.number]);
        }
        self.plan = plan;
        self.gate = gate;
    }
}

fn notice_texts(notices: &[CommandNotice], plan: &CommandPlan) -> Vec<String> {
    notices.iter().map(|notice| notice.in_words(plan)).collect()
}

/// Returns the length of the timer tick in nanoseconds.
fn tick_length(machine: &Machine) -> Reading<u64> {
    machine.kernel.hz.clone().and_then(|hz| match hz {
        0 => Reading::unknown("the kernel says CONFIG_HZ=0"),
        hz => Reading::Known(1_000_000_000 / u64::from(hz)),
    })
}
