//! All that `switchcost run` says, as it is written in JSON.

use launcher::{Ending, Run};
use model::machine::{CpuAccounting, Machine};
use model::reading::Reading;
use model::run::Build;
use model::words::bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::findings::{Ratio, Summary, ratio};
use super::gate::Gate;
use super::plan::Plan;
use crate::observe::watch::Source;
use crate::observe::watch::command::{TRACED, left_behind};

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
    pub(crate) build: Build,
    /// What was asked for.
    pub(crate) plan: Plan,
    /// The machine.
    pub(crate) machine: Machine,
    /// Every run, in order.
    pub(crate) runs: Vec<Run>,
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
    /// The notices of what happened: those that say what the figures do not cover left out.
    pub(super) fn events(&self) -> impl Iterator<Item = &String> {
        let limits = self.commands.iter().flat_map(|summary| {
            let prefix = self.plan.prefix(summary.number);
            limits_of(summary).into_iter().map(move |limit| prefix.clone() + &limit)
        });
        let limits: Vec<String> = limits.collect();
        self.notices.iter().filter(move |notice| !limits.contains(notice))
    }

    /// Takes commands, and what they are called, from another plan.
    pub(super) fn store_as(&mut self, (plan, gate): (Plan, Option<Gate>)) {
        for summary in &mut self.commands {
            summary.command.clone_from(&plan.commands[summary.number]);
        }
        for notice in &mut self.notices {
            let of = (0..plan.commands.len()).map(|number| (self.plan.prefix(number), number));
            // A label may begin with another.
            let of = of.filter(|(old, _)| !old.is_empty() && notice.starts_with(old));
            if let Some((old, number)) = of.max_by_key(|(old, _)| old.len()) {
                *notice = plan.prefix(number) + &notice[old.len()..];
            }
        }
        (self.plan, self.gate) = (plan, gate);
    }

    /// The record of `runs`. A run that was interrupted counts only if its command has no other.
    pub(super) fn new(
        plan: Plan,
        runs: Vec<Run>,
        (machine, accounting): (Machine, Reading<CpuAccounting>),
        (started, host, invocation, build): (String, Option<String>, Vec<String>, Build),
    ) -> Self {
        let tick_ns = machine.kernel.hz.clone().and_then(|hz| match hz {
            0 => Reading::unknown("the kernel says CONFIG_HZ=0"),
            hz => Reading::Known(1_000_000_000 / u64::from(hz)),
        });
        let whole: Vec<&Run> = runs.iter().filter(|run| !run.interrupted).collect();
        let (mut commands, mut notices) = (Vec::new(), Vec::new());
        for number in 0..plan.commands.len() {
            let all: Vec<&Run> = runs.iter().filter(|run| run.command == number).collect();
            let own: Vec<&Run> =
                whole.iter().copied().filter(|run| run.command == number).collect();
            let kept = if own.is_empty() { &all } else { &own };
            let of = (accounting.clone(), tick_ns.clone());
            let Some(summary) = Summary::of(number, kept, &plan, of) else { continue };
            let of_runs = notices_of(&summary, &all, &plan);
            let own = of_runs.into_iter().chain(limits_of(&summary));
            notices.extend(own.map(|notice| plan.prefix(number) + &notice));
            commands.push(summary);
        }
        notices.extend(shell_is_seen(&plan, &commands));
        let mut ratios = Vec::new();
        for command in 1..plan.commands.len() {
            let mut over = |name: &str, of: fn(&Run) -> u64| {
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
            notices,
            runs,
            plan,
        }
    }
}

/// Part of the CPU time below which a run delay is said to be of a part only.
const MOST: f64 = 0.99;

/// So much above what was there at exec the command's own memory must have been: the kernel counts
/// pages for each CPU, and adds up what is more than a few dozen (lib/percpu_counter.c).
const NEAR: f64 = (256 << 10) as f64;

/// Bytes of what points at a word.
const POINTER: usize = size_of::<usize>();

/// Real time below which the start of a shell is a part of it that can be seen.
const SHORT_NS: f64 = 5e6;

/// That a shell is part of short times.
fn shell_is_seen(plan: &Plan, commands: &[Summary]) -> Option<String> {
    let shell = plan.shell.as_ref()?;
    let is_short = |of: &&Summary| of.median("real_ns").is_some_and(|ns| ns < SHORT_NS);
    commands.iter().find(is_short)?;
    Some(format!("the start of {shell} is part of times this short (-N runs without a shell)"))
}

/// What is said of all `runs` of one command.
fn notices_of(summary: &Summary, runs: &[&Run], plan: &Plan) -> Vec<String> {
    let mut notices = Vec::new();
    if summary.endings.len() > 1 {
        let bad = summary.endings.iter().filter(|(end, _)| *end != Ending::Exited { code: 0 });
        let bad: Vec<String> = bad.map(|(end, count)| format!("{count} with {end}")).collect();
        notices.push(format!("of {} runs ended {}", summary.runs, bad.join(", ")));
    }
    if let Some(last) = runs.iter().find(|run| run.interrupted) {
        notices.push(match (runs.len(), last.signal, last.used.ending) {
            (1, Some(signal), Ending::Exited { .. }) => {
                format!("signal {signal} arrived during the run, which continued to its end")
            }
            (1, ..) => "interrupted: the figures cover the time until then".to_owned(),
            _ => format!(
                "interrupted in round {} of {}, which is left out",
                last.round + 1,
                plan.runs
            ),
        });
    }
    if runs.iter().any(|run| run.used.asked_to_be_traced) {
        notices.push(TRACED.to_string());
    }
    let orphans = runs.iter().map(|run| &run.used.orphans);
    let ended: u32 = orphans.clone().map(|orphans| orphans.ended).sum();
    if ended > 0 {
        let counted =
            if plan.tree { "counted with it" } else { "not counted (--tree counts them)" };
        notices.push(format!(
            "{ended} of its descendants outlived their parents and ended: {counted}"
        ));
    }
    let ended: u32 = orphans.clone().map(|orphans| orphans.of_unknown_origin).sum();
    if ended > 0 {
        notices.push(format!(
            "{ended} orphans are not counted: processes of earlier runs were still there, so \
                their run is unknown"
        ));
    }
    let unknown = orphans.clone().find_map(|orphans| orphans.left_behind.why());
    let pids = orphans.filter_map(|orphans| orphans.left_behind.known()).flatten();
    notices.extend(left_behind(&plan.label(summary.number), pids, unknown));
    notices
}

/// What the figures of a command do not cover.
fn limits_of(summary: &Summary) -> Vec<String> {
    let mut notices = Vec::new();
    let median = |name: &str| summary.median(name);
    let covered = median("run_delay_covered_cpu_ns").zip(median("cpu_ns"));
    let covered = covered.filter(|(covered, cpu)| covered / cpu < MOST);
    notices.extend(covered.map(|(covered, cpu)| {
        format!(
            "run delay and migrations are of its first thread; run delay is also of threads that \
                were seen, with {:.0} % of the CPU time",
            100.0 * covered / cpu
        )
    }));
    // Words are read by exec itself, and so come on top of what was there before it.
    let words: usize = summary.command.iter().map(|word| word.len() + POINTER + 1).sum();
    let resident = median("max_resident_bytes").zip(median("at_exec_resident_bytes"));
    let resident = resident.filter(|(most, before)| *most <= before + words as f64 + NEAR);
    notices.extend(resident.map(|(_, before)| {
        format!(
            "max resident may be the launcher's: {} were resident before the command began",
            bytes(before as u64)
        )
    }));
    notices
}
