//! What happened to the runs of commands and what their figures do not cover: facts, which become
//! words by what the commands are called where they are printed.

use launcher::{CommandRun, Ending};
use rundata::words::bytes;

use super::findings::Summary;
use super::plan::Plan;
use crate::programs::watch::command::{TRACED, left_behind};

/// A notice, and the command that it is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommandNotice {
    /// Number of the command; absent where it is about all.
    pub(super) command: Option<usize>,
    pub(super) fact: RunFact,
}

/// What a notice says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunFact {
    /// Not all runs ended alike: these are the endings other than success.
    BadEndings { runs: u32, endings: Vec<(Ending, u32)> },
    /// A signal arrived during the only run, which did not end by it.
    SignalSurvived { signal: u8 },
    /// The only run was interrupted.
    CutShort,
    /// The last of several runs was interrupted, and does not count.
    RunLeftOut { round: u32, rounds: u32 },
    /// The command asked to be traced.
    Traced,
    /// Descendants outlived their parents and ended.
    OrphansEnded { count: u32, are_counted: bool },
    /// Orphans may be those of an earlier run.
    OrphansUnknown { count: u32 },
    /// Processes still ran after the end, or nobody knows whether any did, and why.
    LeftBehind { pids: Vec<u32>, unknown: Option<String> },
    /// The run delay is that of threads with this share of the CPU time.
    RunDelayOfSome { cpu_share: f64 },
    /// The largest resident memory may be the launcher's, which had so many bytes at exec.
    ResidentOfLauncher { bytes: u64 },
    /// Times are so short that the start of the shell is a part of them.
    ShellSeen { shell: String },
}

impl CommandNotice {
    /// Returns whether it says what happened, and not what the figures of a command do not cover.
    pub(super) fn is_event(&self) -> bool {
        match self.fact {
            RunFact::RunDelayOfSome { .. } | RunFact::ResidentOfLauncher { .. } => false,
            RunFact::BadEndings { .. }
            | RunFact::SignalSurvived { .. }
            | RunFact::CutShort
            | RunFact::RunLeftOut { .. }
            | RunFact::Traced
            | RunFact::OrphansEnded { .. }
            | RunFact::OrphansUnknown { .. }
            | RunFact::LeftBehind { .. }
            | RunFact::ShellSeen { .. } => true,
        }
    }

    /// Returns the words, with what `plan` calls the command where there are several.
    pub(super) fn in_words(&self, plan: &Plan) -> String {
        match self.command {
            Some(number) => plan.prefix(number) + &self.fact.in_words(&plan.label(number)),
            None => self.fact.in_words(""),
        }
    }
}

impl RunFact {
    /// Returns the words; `label` is what the command is called.
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
            Self::Traced => TRACED.to_string(),
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
                left_behind(label, pids.iter(), unknown.as_ref()).unwrap_or_default()
            }
            Self::RunDelayOfSome { cpu_share } => format!(
                "run delay and migrations are of its first thread; run delay is also of threads \
                 that were seen, with {:.0} % of the CPU time",
                100.0 * cpu_share
            ),
            Self::ResidentOfLauncher { bytes: resident } => format!(
                "max resident may be the launcher's: {} were resident before the command began",
                bytes(*resident)
            ),
            Self::ShellSeen { shell } => {
                format!(
                    "the start of {shell} is part of times this short (-N runs without a shell)"
                )
            }
        }
    }
}

/// Returns what is to be said of the commands; `runs` are all, interrupted ones too.
pub(super) fn find_notices(
    plan: &Plan,
    runs: &[CommandRun],
    commands: &[Summary],
) -> Vec<CommandNotice> {
    let mut notices = Vec::new();
    for summary in commands {
        let of_command: Vec<&CommandRun> =
            runs.iter().filter(|run| run.command == summary.number).collect();
        let mut facts = find_events(summary, &of_command, plan);
        facts.extend(find_limits(summary));
        for fact in facts {
            notices.push(CommandNotice { command: Some(summary.number), fact });
        }
    }
    notices.extend(find_shell(plan, commands).map(|fact| CommandNotice { command: None, fact }));
    notices
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

/// Returns whether a shell is part of short times.
fn find_shell(plan: &Plan, commands: &[Summary]) -> Option<RunFact> {
    let shell = plan.shell.clone()?;
    let is_short = |of: &&Summary| of.median("real_ns").is_some_and(|ns| ns < SHORT_NS);
    commands.iter().find(is_short)?;
    Some(RunFact::ShellSeen { shell })
}

/// Returns what happened in all `runs` of one command.
fn find_events(summary: &Summary, runs: &[&CommandRun], plan: &Plan) -> Vec<RunFact> {
    let mut facts = Vec::new();
    if summary.endings.len() > 1 {
        let bad = summary.endings.iter().filter(|(end, _)| *end != Ending::Exited { code: 0 });
        let endings = bad.copied().collect();
        facts.push(RunFact::BadEndings { runs: summary.runs, endings });
    }
    if let Some(last) = runs.iter().find(|run| run.interrupted) {
        facts.push(match (runs.len(), last.signal, last.used.ending) {
            (1, Some(signal), Ending::Exited { .. }) => RunFact::SignalSurvived { signal },
            (1, ..) => RunFact::CutShort,
            _ => RunFact::RunLeftOut { round: last.round, rounds: plan.runs },
        });
    }
    if runs.iter().any(|run| run.used.asked_to_be_traced) {
        facts.push(RunFact::Traced);
    }
    let orphans = runs.iter().map(|run| &run.used.orphans);
    let count: u32 = orphans.clone().map(|orphans| orphans.ended).sum();
    if count > 0 {
        facts.push(RunFact::OrphansEnded { count, are_counted: plan.tree });
    }
    let count: u32 = orphans.clone().map(|orphans| orphans.of_unknown_origin).sum();
    if count > 0 {
        facts.push(RunFact::OrphansUnknown { count });
    }
    let unknown = orphans.clone().find_map(|orphans| orphans.left_behind.why());
    let unknown = unknown.map(str::to_string);
    let pids: Vec<u32> =
        orphans.filter_map(|orphans| orphans.left_behind.known()).flatten().copied().collect();
    if unknown.is_some() || !pids.is_empty() {
        facts.push(RunFact::LeftBehind { pids, unknown });
    }
    facts
}

/// Returns what the figures of a command do not cover.
fn find_limits(summary: &Summary) -> Vec<RunFact> {
    let mut facts = Vec::new();
    let covered = summary.median("run_delay_covered_cpu_ns").zip(summary.median("cpu_ns"));
    if let Some((covered, cpu)) = covered.filter(|(covered, cpu)| covered / cpu < MOST) {
        facts.push(RunFact::RunDelayOfSome { cpu_share: covered / cpu });
    }
    // Words are read by exec itself, and so come on top of what was there before it.
    let words: usize = summary.command.iter().map(|word| word.len() + POINTER + 1).sum();
    let resident =
        summary.median("max_resident_bytes").zip(summary.median("at_exec_resident_bytes"));
    let resident = resident.filter(|(most, before)| *most <= before + words as f64 + NEAR);
    facts.extend(resident.map(|(_, before)| RunFact::ResidentOfLauncher { bytes: before as u64 }));
    facts
}
