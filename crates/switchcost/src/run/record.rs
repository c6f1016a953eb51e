//! All that `switchcost run` says, as it is written in JSON.

use launcher::{Ending, Run};
use model::machine::{CpuAccounting, Machine};
use model::reading::Reading;
use model::run::Build;
use model::words::bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::findings::{Ratio, Summary};
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
        let notices = notices_of(&plan, &commands, &runs);
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

/// Part of the CPU time below which a run delay is said to be of a part only.
const MOST: f64 = 0.99;

/// Process ids that are named one by one.
const MOST_IDS: usize = 5;

/// Of all commands of a plan.
fn notices_of(plan: &Plan, commands: &[Summary], runs: &[Run]) -> Vec<String> {
    let mut told = Vec::new();
    for summary in commands {
        let name = match plan.commands.len() {
            1 => String::new(),
            _ => format!("command {}: ", summary.number + 1),
        };
        let own: Vec<&Run> = runs.iter().filter(|run| run.command == summary.number).collect();
        let notices = [
            bad_ends(summary),
            interrupted(&own, plan),
            orphans(&own, plan.tree),
            of_unknown_origin(&own),
            left_behind(&own),
            covered(summary),
            launchers_own(summary),
        ];
        told.extend(notices.into_iter().flatten().map(|notice| format!("{name}{notice}")));
    }
    told
}

fn bad_ends(summary: &Summary) -> Option<String> {
    let bad = summary.endings.iter().filter(|(end, _)| *end != Ending::Exited { code: 0 });
    let bad: Vec<String> = bad.map(|(end, count)| format!("{count} with {end}")).collect();
    let told = format!("of {} runs ended {}", summary.runs, bad.join(", "));
    (summary.endings.len() > 1).then_some(told)
}

fn interrupted(runs: &[&Run], plan: &Plan) -> Option<String> {
    let last = runs.iter().find(|run| run.interrupted)?;
    Some(match (runs.len(), last.signal, last.used.ending) {
        (1, Some(signal), Ending::Exited { .. }) => {
            format!("signal {signal} came while it ran, and it went on to its end")
        }
        (1, ..) => "interrupted: these are the figures up to then".to_owned(),
        _ => format!("interrupted in round {} of {}, which is left out", last.round + 1, plan.runs),
    })
}

fn orphans(runs: &[&Run], tree: bool) -> Option<String> {
    let ended: u32 = runs.iter().map(|run| run.used.orphans.ended).sum();
    let counted = if tree { "counted with it" } else { "not counted (--tree counts them)" };
    (ended > 0).then(|| {
        format!("{ended} of its descendants outlived their parents and have ended: {counted}")
    })
}

fn of_unknown_origin(runs: &[&Run]) -> Option<String> {
    let ended: u32 = runs.iter().map(|run| run.used.orphans.of_unknown_origin).sum();
    (ended > 0).then(|| {
        format!(
            "{ended} orphans have ended while processes of earlier runs were still there: whose they were is not known, and they are not counted"
        )
    })
}

fn left_behind(runs: &[&Run]) -> Option<String> {
    if let Some(why) = runs.iter().find_map(|run| run.used.orphans.left_behind.why()) {
        return Some(format!("it left processes behind, which ones is not known ({why})"));
    }
    let known = runs.iter().filter_map(|run| run.used.orphans.left_behind.known());
    let pids: Vec<String> = known.flatten().map(u32::to_string).collect();
    let more = if pids.len() > MOST_IDS { ", ..." } else { "" };
    let named = pids.iter().take(MOST_IDS).cloned().collect::<Vec<_>>().join(", ");
    match pids.len() {
        0 => None,
        1 => Some(format!(
            "it left process {named} behind, which ran on when it had ended: not counted"
        )),
        count => Some(format!(
            "it left {count} processes behind, which ran on when it had ended ({named}{more}): not counted"
        )),
    }
}

fn covered(summary: &Summary) -> Option<String> {
    let (covered, cpu) = (summary.median("run_delay_covered_cpu_ns")?, summary.median("cpu_ns")?);
    let part = covered / cpu;
    (part < MOST).then(|| {
        format!(
            "run delay and migrations are those of its first thread, the run delay also of threads that were seen: of {:.0} % of the CPU time",
            100.0 * part
        )
    })
}

/// So much above what was there at exec the command's own memory must have been: the kernel counts pages
/// for each CPU, and adds up what is more than a few dozen (lib/percpu_counter.c).
const NEAR: f64 = (256 << 10) as f64;

/// Bytes of what points at a word.
const POINTER: usize = size_of::<usize>();

fn launchers_own(summary: &Summary) -> Option<String> {
    let most = summary.median("max_resident_bytes")?;
    let before = summary.median("at_exec_resident_bytes")?;
    // They are read by exec itself, and so come on top of what was there before it.
    let words: usize = summary.command.iter().map(|word| word.len() + POINTER + 1).sum();
    (most <= before + words as f64 + NEAR).then(|| {
        format!(
            "max resident may be the launcher's: {} were there before the command began, its own may be less",
            bytes(before as u64)
        )
    })
}
