//! The answer for a program in words: first what switching costs it, then what refilling caches
//! takes, and the command that would tell more.

use analysis::marked;
use analysis::marked::MarkedText;
use analysis::program::{ProfilePoint, Program, ProgramCost, Range, count, percents, program_cost};
use rundata::reading::Reading;

use super::figure::{CostFigure, OpenEnd};
use super::observation::{
    CountSource, OmittedChildren, ProgramObservation, UnreadReason, UnreadRemedy,
};
use crate::report::terminal::figure;

/// Facts that the first sentence tells.
#[derive(Debug)]
pub(super) struct HeadlineFacts<'a> {
    pub(super) figure: Option<&'a CostFigure>,
    pub(super) cost: &'a ProgramCost,
    /// Reason why the working set was not read.
    pub(super) unread: Option<&'a UnreadReason>,
    pub(super) program: &'a Program,
    pub(super) source: CountSource,
    /// Source of the costs: `by profile x`.
    pub(super) priced_by: Option<&'a str>,
    /// Advice to narrow a wide range, from [`narrowing_advice`].
    pub(super) advice: &'a str,
}

/// Returns the answer in a sentence.
pub(super) fn headline(facts: &HeadlineFacts) -> MarkedText {
    if let Some(figure) = facts.figure {
        let switches = figure.switches_in_words(facts.program);
        let counted = facts.source.verb();
        let by = facts.priced_by.map_or(String::new(), |source| format!(", {source}"));
        let open = match figure.open {
            None | Some(OpenEnd::NotResolved) => String::new(),
            Some(OpenEnd::NoRefill) => "; what refilling caches adds is unknown".to_string(),
            Some(OpenEnd::TooWide) => format!("; the upper end is unknown: {}", facts.advice),
        };
        let details = format!(" of its CPU time: {switches}, {counted}{by}{open}.");
        let share = MarkedText::figure(figure.share_in_words());
        return marked!["Switching takes ", share, details];
    }
    if facts.program.switches_per_s() == Some(0.0) {
        return "It was not switched once while it was watched.".into();
    }
    let why = match (facts.cost, facts.unread) {
        (ProgramCost::Inconclusive { missing, .. }, _) => missing.join("; "),
        (_, Some(unread)) => format!("working set: {}", unread.why),
        (_, None) => format!("the range is too wide to be useful; {}", facts.advice),
    };
    format!("What switching costs this program is unknown: {why}.").into()
}

/// Returns a sentence on the children that are not in the figures, after a blank; empty if there
/// are none.
pub(super) fn omitted_in_words(omitted: Option<&OmittedChildren>) -> String {
    let Some(OmittedChildren { children, switches_per_s }) = omitted else { return String::new() };
    let (children, verb) = match children {
        1 => ("1 child".to_string(), "is"),
        count => (format!("{count} children"), "are"),
    };
    let rate = count(switches_per_s.round());
    format!(" Its {children} made {rate} switches a second, and {verb} left out (--no-children).")
}

/// Returns what would narrow the range of an estimate.
pub(super) fn narrowing_advice(observation: &ProgramObservation, program: &Program) -> String {
    let set = program.working_set.known();
    if set.is_none_or(|set| set.sampled.is_none()) {
        return "samples of its memory accesses would narrow it (needs root or CAP_PERFMON, and \
                some user time)"
            .to_string();
    }
    if program.is_loosely_sampled() {
        if observation.command.is_some() {
            return "a longer run would narrow it".to_string();
        }
        let seconds = longer_watch_s(observation);
        return format!("a longer watch would narrow it (--budget {seconds}s)");
    }
    let set_bytes = set.map_or(0, |set| set.high_bytes);
    let end = set_bytes.saturating_mul(2).max(1 << 16).checked_next_power_of_two();
    let end = rundata::words::bytes(end.unwrap_or(u64::MAX)).replace(' ', "");
    format!("costs of arrays of its size would narrow it (`switchcost cost --array 8K..{end}:x2`)")
}

/// Returns what is known while the program is watched: `5,300 switches a second, 45 % of a CPU, at
/// least 1.2 % of it for switching`.
pub(super) fn so_far_in_words(program: &Program, points: &[ProfilePoint]) -> String {
    let (Some(per_s), Some(cpu)) = (program.switches_per_s(), program.cpu_share.known()) else {
        return "watching".to_string();
    };
    let share = match program_cost(program, points).direct_share() {
        Some(share) => {
            let least = percents(Range { high: share.low, ..share });
            format!(", at least {least} of it for switching")
        }
        None => String::new(),
    };
    format!("{} switches a second, {} % of a CPU{share}", count(per_s.round()), figure(100.0 * cpu))
}

/// Returns the share of the CPU time that refilling caches takes: the whole less the direct cost.
pub(super) fn refill_share(cost: &ProgramCost, unread: Option<&UnreadReason>) -> Reading<Range> {
    if let Some(UnreadReason { why, remedy: Some(UnreadRemedy::Child(Some(_))) }) = unread {
        return Reading::unknown(why);
    }
    match (cost, unread) {
        (ProgramCost::Inconclusive { missing, .. }, unread) => {
            let mut reasons = missing.clone();
            if let Some(unread) = unread {
                reasons.push(unread.why.clone());
            }
            Reading::unknown(reasons.join("; "))
        }
        (ProgramCost::Estimated { .. }, Some(unread)) => Reading::unknown(&unread.why),
        (ProgramCost::Estimated { share, direct_share: Some(direct), .. }, None) => {
            Reading::Known(share.beside(*direct))
        }
        (ProgramCost::Estimated { direct_share: None, .. }, None) => {
            Reading::unknown("the direct cost was not measured with it")
        }
    }
}

/// Least time in seconds that is advised if ten were too few.
const MIN_LONGER_WATCH_S: u64 = 60;

fn longer_watch_s(observation: &ProgramObservation) -> u64 {
    MIN_LONGER_WATCH_S.max(2 * observation.watched_ns / 1_000_000_000)
}

/// Returns the command that would make an unknown share known: first costs are measured, then the
/// working set is read. `profile` is the file of the cost profile that was used.
pub(super) fn command_to_know(
    cost: &ProgramCost,
    unread: Option<&UnreadReason>,
    observation: &ProgramObservation,
    profile: Option<&str>,
) -> Option<String> {
    let switches = [&observation.voluntary, &observation.involuntary];
    if switches.iter().all(|count| count.known() == Some(&0)) {
        // No switches, no cost.
        return None;
    }
    let Some(profile) = profile else { return Some("switchcost cost".to_string()) };
    let remedy = unread.and_then(|unread| unread.remedy);
    // No cost of any array tells the working set of several processes.
    if let Some(remedy @ UnreadRemedy::Child(Some(_))) = remedy {
        return command_to_read(remedy, observation, profile);
    }
    if let ProgramCost::Inconclusive { command: Some(command), .. } = cost {
        return Some(command.clone());
    }
    command_to_read(remedy?, observation, profile)
}

/// Returns the command that would read the working set.
fn command_to_read(
    remedy: UnreadRemedy,
    observation: &ProgramObservation,
    profile: &str,
) -> Option<String> {
    match (remedy, &observation.command) {
        (UnreadRemedy::Privilege, command) => {
            let program = match command {
                None => typed_options(observation),
                Some(words) => format!("-- {}", shell_words::join(words)),
            };
            // The store of root is another one.
            let profile = shell_words::quote(profile);
            Some(format!("sudo switchcost cost --profile {profile} {program}"))
        }
        (UnreadRemedy::Longer, None) => {
            let seconds = longer_watch_s(observation);
            Some(format!("switchcost cost {} --budget {seconds}s", typed_options(observation)))
        }
        // The command has ended.
        (UnreadRemedy::Longer, Some(_)) => None,
        (UnreadRemedy::Child(Some(pid)), None) => {
            Some(format!("switchcost cost --pid {pid} --no-children"))
        }
        (UnreadRemedy::Child(_), _) => Some("switchcost cost --pid PID".to_string()),
    }
}

/// Returns the options that ask for the program.
pub(super) fn typed_options(observation: &ProgramObservation) -> String {
    observation.typed.clone().unwrap_or_else(|| format!("--pid {}", observation.pid))
}
