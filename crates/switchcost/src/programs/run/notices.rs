//! Notices about the runs of commands: events, like an interruption, and limits of the figures, like
//! threads whose run delay is unknown.
//!
//! A notice is data, and becomes words only where it is printed: the stored record may label commands
//! by a hash, where the terminal shows their words.

use launcher::{CommandRun, Ending};
use rundata::words::bytes;

use super::findings::{CommandSummary, runs_of_command};
use super::plan::CommandPlan;
use crate::programs::watch::command::{TRACE_REQUEST_NOTICE, left_behind_notice};

/// A fact about the runs of one command, or of all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommandNotice {
    /// Number of the command; absent for a fact about all.
    pub(super) command: Option<usize>,
    pub(super) fact: RunFact,
}

/// An event during runs, or a limit of their figures.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunFact {
    /// Runs ended in different ways; the endings other than success, each with its count.
    BadEndings { runs: u32, endings: Vec<(Ending, u32)> },
    /// A signal arrived during the only run, which exited nevertheless.
    SignalSurvived { signal: u8 },
    /// The only run was interrupted.
    CutShort,
    /// A run was interrupted, and is left out as there are others.
    RunLeftOut { round: u32, rounds: u32 },
    /// The command asked to be traced.
    Traced,
    /// Descendants outlived their parents and ended.
    OrphansEnded { count: u32, are_counted: bool },
    /// Orphans may be those of an earlier run.
    OrphansUnknown { count: u32 },
    /// Processes still ran after the end; `unknown` is the reason if they could not be listed.
    LeftBehind { pids: Vec<u32>, unknown: Option<String> },
    /// The run delay covers only threads with this share of the CPU time.
    RunDelayPartial { cpu_share: f64 },
    /// The largest resident memory may be the launcher's; the bytes that it had at exec.
    ResidentOfLauncher { bytes: u64 },
    /// Times are so short that the start of the shell is a visible part of them.
    ShellVisible { shell: String },
}

impl CommandNotice {
    /// Returns whether it is an event; other notices limit what the figures cover.
    pub(super) fn is_event(&self) -> bool {
        match self.fact {
            RunFact::RunDelayPartial { .. } | RunFact::ResidentOfLauncher { .. } => false,
            RunFact::BadEndings { .. }
            | RunFact::SignalSurvived { .. }
            | RunFact::CutShort
            | RunFact::RunLeftOut { .. }
            | RunFact::Traced
            | RunFact::OrphansEnded { .. }
            | RunFact::OrphansUnknown { .. }
            | RunFact::LeftBehind { .. }
            | RunFact::ShellVisible { .. } => true,
        }
    }

    /// Returns the notice in words; `plan` labels its command where there are several.
    pub(super) fn in_words(&self, plan: &CommandPlan) -> String {
        match self.command {
            Some(number) => plan.prefix(number) + &self.fact.in_words(&plan.label(number)),
            None => self.fact.in_words(""),
        }
    }
}

impl RunFact {
    /// Returns the fact in words; `label` is that of its command.
    fn in_words(&self, label: &str) -> String {
        match self {
            Self::BadEndings { runs, endings } => {
                let mut parts = Vec::new();
                for (ending, count) in endings {
                    parts.push(format!("{count} with {ending}"));
                }
                format!("of {runs} runs ended {}", parts.join(", "))
            }
            Self::SignalSurvived { signal } => {
                format!("signal {signal} arrived during the run, which continued to its end")
            }
            Self::CutShort => "interrupted: the figures cover the time until then".to_string(),
            Self::RunLeftOut { round, rounds } => {
                format!("interrupted in round {} of {rounds}, which is left out", round + 1)
            }
            Self::Traced => TRACE_REQUEST_NOTICE.to_string(),
            Self::OrphansEnded { count, are_counted } => {
                let counted = if *are_counted {
                    "counted with it"
                } else {
                    "not counted (--tree counts them)"
                };
                format!("{count} of its descendants outlived their parents and ended: {counted}")
            }
            Self::OrphansUnknown { count } => format!(
                "{count} orphans are not counted: processes of earlier runs were still there, so \
                 their run is unknown"
            ),
            Self::LeftBehind { pids, unknown } => {
                left_behind_notice(label, pids.iter(), unknown.as_ref()).unwrap_or_default()
            }
            Self::RunDelayPartial { cpu_share } => format!(
                "run delay and migrations are of its first thread; run delay is also of threads \
                 that were seen, with {:.0} % of the CPU time",
                100.0 * cpu_share
            ),
            Self::ResidentOfLauncher { bytes: resident } => format!(
                "max resident may be the launcher's: {} were resident before the command began",
                bytes(*resident)
            ),
            Self::ShellVisible { shell } => {
                format!(
                    "the start of {shell} is part of times this short (-N runs without a shell)"
                )
            }
        }
    }
}

/// Finds the notices of all commands, each with its summary; `runs` has the interrupted ones too.
pub(super) fn find_notices(
    plan: &CommandPlan,
    runs: &[CommandRun],
    commands: &[CommandSummary],
) -> Vec<CommandNotice> {
    let all_runs: Vec<&CommandRun> = runs.iter().collect();
    let mut notices = Vec::new();
    for summary in commands {
        let mut facts = find_events(summary, &runs_of_command(&all_runs, summary.number), plan);
        facts.extend(find_limits(summary));
        for fact in facts {
            notices.push(CommandNotice { command: Some(summary.number), fact });
        }
    }
    if let Some(fact) = find_shell(plan, commands) {
        notices.push(CommandNotice { command: None, fact });
    }
    notices
}

/// Share of the CPU time from which on a run delay is taken to cover all threads.
const MIN_COVERED_SHARE: f64 = 0.99;

/// Distance from the memory at exec up to which the largest resident memory may be the launcher's:
/// the kernel counts pages for each CPU, and sums them only above a few dozen
/// (lib/percpu_counter.c).
const MAX_RESIDENT_ERROR: f64 = (256 << 10) as f64;

/// Bytes of a pointer to a word of the command.
const POINTER_BYTES: usize = size_of::<usize>();

/// Real time below which the start of a shell is a visible part of it.
const MAX_SHELL_VISIBLE_NS: f64 = 5e6;

fn find_shell(plan: &CommandPlan, commands: &[CommandSummary]) -> Option<RunFact> {
    let shell = plan.shell.clone()?;
    for summary in commands {
        if summary.median("real_ns").is_some_and(|ns| ns < MAX_SHELL_VISIBLE_NS) {
            return Some(RunFact::ShellVisible { shell });
        }
    }
    None
}

/// Finds the events in all `runs` of one command.
fn find_events(summary: &CommandSummary, runs: &[&CommandRun], plan: &CommandPlan) -> Vec<RunFact> {
    let mut facts = Vec::new();
    if summary.endings.len() > 1 {
        let mut endings = summary.endings.clone();
        endings.retain(|(ending, _)| *ending != Ending::Exited { code: 0 });
        facts.push(RunFact::BadEndings { runs: summary.runs, endings });
    }
    if let Some(interrupted) = runs.iter().find(|run| run.interrupted) {
        facts.push(match (runs.len(), interrupted.signal, interrupted.used.ending) {
            (1, Some(signal), Ending::Exited { .. }) => RunFact::SignalSurvived { signal },
            (1, ..) => RunFact::CutShort,
            _ => RunFact::RunLeftOut { round: interrupted.round, rounds: plan.runs },
        });
    }
    if runs.iter().any(|run| run.used.asked_to_be_traced) {
        facts.push(RunFact::Traced);
    }
    facts.extend(find_orphans(runs, plan));
    facts
}

/// Finds the processes that outlived their parents in the runs of one command.
fn find_orphans(runs: &[&CommandRun], plan: &CommandPlan) -> Vec<RunFact> {
    let (mut ended, mut of_unknown_origin) = (0, 0);
    let mut pids = Vec::new();
    let mut unknown = None;
    for run in runs {
        let orphans = &run.used.orphans;
        ended += orphans.ended;
        of_unknown_origin += orphans.of_unknown_origin;
        if let Some(left_behind) = orphans.left_behind.known() {
            pids.extend(left_behind);
        }
        unknown = unknown.or(orphans.left_behind.why().map(str::to_string));
    }
    let mut facts = Vec::new();
    if ended > 0 {
        facts.push(RunFact::OrphansEnded { count: ended, are_counted: plan.tree });
    }
    if of_unknown_origin > 0 {
        facts.push(RunFact::OrphansUnknown { count: of_unknown_origin });
    }
    if unknown.is_some() || !pids.is_empty() {
        facts.push(RunFact::LeftBehind { pids, unknown });
    }
    facts
}

/// Finds the limits of a command's figures.
fn find_limits(summary: &CommandSummary) -> Vec<RunFact> {
    let mut facts = Vec::new();
    let covered_ns = summary.median("run_delay_covered_cpu_ns");
    if let (Some(covered_ns), Some(cpu_ns)) = (covered_ns, summary.median("cpu_ns")) {
        let cpu_share = covered_ns / cpu_ns;
        if cpu_share < MIN_COVERED_SHARE {
            facts.push(RunFact::RunDelayPartial { cpu_share });
        }
    }
    // Exec itself reads the words: they come on top of the memory before it.
    let words: usize = summary.command.iter().map(|word| word.len() + POINTER_BYTES + 1).sum();
    let most = summary.median("max_resident_bytes");
    if let (Some(most), Some(at_exec)) = (most, summary.median("at_exec_resident_bytes")) {
        if most <= at_exec + words as f64 + MAX_RESIDENT_ERROR {
            facts.push(RunFact::ResidentOfLauncher { bytes: at_exec as u64 });
        }
    }
    facts
}
