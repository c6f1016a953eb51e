//! What is said of a program: the answer first, what refilling caches takes, and the command that
//! would tell more.

use analysis::marked;
use analysis::marked::MarkedText;
use analysis::program::{ProfilePoint, Program, ProgramCost, Range, count, percents, program_cost};
use rundata::reading::Reading;

use super::figure::{CostFigure, OpenEnd};
use super::seen::{CountSource, LeftOut, NotRead, ProgramObservation, Remedy};
use crate::report::terminal::figure;

/// The answer in a sentence. `by` is what prices the switches (`by profile x`), `narrower` what
/// would narrow a wide range.
pub(super) fn headline(
    figure: Option<&CostFigure>,
    (cost, not_read): (&ProgramCost, Option<&NotRead>),
    (program, source): (&Program, CountSource),
    (by, narrower): (Option<&str>, &str),
) -> MarkedText {
    if let Some(figure) = figure {
        let (share, switches) = (figure.share_in_words(), figure.switches_in_words(program));
        let by = by.map_or(String::new(), |profile| format!(", {profile}"));
        let open = match figure.open {
            None => String::new(),
            Some(OpenEnd::NoRefill) => "; what refilling caches adds is unknown".to_string(),
            Some(OpenEnd::TooWide) => format!("; the upper end is unknown: {narrower}"),
            Some(OpenEnd::NotResolved) => String::new(),
        };
        let counted = source.verb();
        let behind = format!(" of its CPU time: {switches}, {counted}{by}{open}.");
        return marked!["Switching takes ", MarkedText::figure(share), behind];
    }
    if program.switches_per_s() == Some(0.0) {
        return "It was not switched once while it was watched.".into();
    }
    let why = match (cost, not_read) {
        (ProgramCost::Inconclusive { missing, .. }, _) => missing.join("; "),
        (_, Some(not_read)) => format!("working set: {}", not_read.why),
        (_, None) => format!("the range is too wide to be useful; {narrower}"),
    };
    format!("What switching costs this program is unknown: {why}.").into()
}

/// What the program's children did that were left out of the figures: nothing where there are none.
pub(super) fn left_out_in_words(left_out: Option<&LeftOut>) -> String {
    let Some(LeftOut { children, switches_per_s }) = left_out else { return String::new() };
    let (children, who) = match children {
        1 => ("1 child".to_string(), "is"),
        count => (format!("{count} children"), "are"),
    };
    let rate = count(switches_per_s.round());
    format!(" Its {children} made {rate} switches a second, and {who} left out (--no-children).")
}

/// What would narrow the range of an estimate.
pub(super) fn narrower(seen: &ProgramObservation, program: &Program) -> String {
    let is_sampled = program.working_set.known().is_some_and(|set| set.sampled.is_some());
    match (is_sampled, &seen.command) {
        (false, _) => {
            "samples of its memory accesses would narrow it (needs root or CAP_PERFMON, and some \
                user time)"
                .into()
        }
        (true, None) if program.is_loosely_sampled() => {
            let seconds = longer_s(seen);
            format!("a longer watch would narrow it (--budget {seconds}s)")
        }
        (true, Some(_)) if program.is_loosely_sampled() => {
            "a longer run would narrow it".to_string()
        }
        (true, _) => {
            let most = program.working_set.known().map_or(0, |set| set.high_bytes);
            let end = most.saturating_mul(2).max(1 << 16).checked_next_power_of_two();
            let end = rundata::words::bytes(end.unwrap_or(u64::MAX)).replace(' ', "");
            format!(
                "costs of arrays of its size would narrow it (`switchcost cost --array \
                 8K..{end}:x2`)"
            )
        }
    }
}

/// What is known while the program is watched: `5,300 switches a second, 45 % of a CPU, at least
/// 1.2 %`.
pub(super) fn so_far(program: &Program, points: &[ProfilePoint]) -> String {
    let (Some(per_s), Some(cpu)) = (program.switches_per_s(), program.cpu_share.known()) else {
        return "watching".to_string();
    };
    let share = program_cost(program, points).direct_share();
    let share = share.map_or(String::new(), |share| {
        let least = Range { high: share.low, ..share };
        format!(", at least {} of it for switching", percents(least))
    });
    format!("{} switches a second, {} % of a CPU{share}", count(per_s.round()), figure(100.0 * cpu))
}

/// Share of the CPU time that refilling caches takes: the whole less the direct cost.
pub(super) fn refill(cost: &ProgramCost, not_read: Option<&NotRead>) -> Reading<Range> {
    if let Some(NotRead { why, remedy: Some(Remedy::Child(Some(_))) }) = not_read {
        return Reading::unknown(why);
    }
    match (cost, not_read.map(|not_read| &not_read.why)) {
        (ProgramCost::Inconclusive { missing, .. }, why) => {
            let why: Vec<&str> = missing.iter().chain(why).map(String::as_str).collect();
            Reading::unknown(why.join("; "))
        }
        (ProgramCost::Estimated { .. }, Some(why)) => Reading::unknown(why),
        (ProgramCost::Estimated { share, direct_share: Some(direct), .. }, None) => {
            Reading::Known(share.beside(*direct))
        }
        (ProgramCost::Estimated { direct_share: None, .. }, None) => {
            Reading::unknown("the direct cost was not measured with it")
        }
    }
}

/// Seconds for which a program is watched at least where ten were too few.
const LONGER_S: u64 = 60;

fn longer_s(seen: &ProgramObservation) -> u64 {
    LONGER_S.max(2 * seen.watched_ns / 1_000_000_000)
}

/// The command that would make an unknown share known: first the costs are measured, then the
/// working set is read. `profile` is the file of the one that was taken.
pub(super) fn command_to_know(
    cost: &ProgramCost,
    not_read: Option<&NotRead>,
    seen: &ProgramObservation,
    profile: Option<&str>,
) -> Option<String> {
    let switches = [&seen.voluntary, &seen.involuntary];
    if switches.iter().all(|count| count.known() == Some(&0)) {
        // Nothing makes a cost of no switches.
        return None;
    }
    let Some(profile) = profile else { return Some("switchcost cost".to_string()) };
    // No cost of any array makes the memory of several processes known.
    if let Some(remedy @ Remedy::Child(Some(_))) = not_read.and_then(|not_read| not_read.remedy) {
        return to_read(remedy, seen, profile);
    }
    let to_measure = match cost {
        ProgramCost::Inconclusive { command, .. } => command.clone(),
        ProgramCost::Estimated { .. } => None,
    };
    to_measure.or_else(|| to_read(not_read?.remedy?, seen, profile))
}

/// The command that would read the working set.
fn to_read(remedy: Remedy, seen: &ProgramObservation, profile: &str) -> Option<String> {
    match (remedy, &seen.command) {
        (Remedy::Privilege, command) => {
            let program = match command {
                None => typed(seen),
                Some(words) => format!("-- {}", shell_words::join(words)),
            };
            // Root has other runs.
            let profile = shell_words::quote(profile);
            Some(format!("sudo switchcost cost --profile {profile} {program}"))
        }
        (Remedy::Longer, None) => {
            let seconds = longer_s(seen);
            Some(format!("switchcost cost {} --budget {seconds}s", typed(seen)))
        }
        // It has ended.
        (Remedy::Longer, Some(_)) => None,
        (Remedy::Child(Some(pid)), None) => {
            Some(format!("switchcost cost --pid {pid} --no-children"))
        }
        (Remedy::Child(_), _) => Some("switchcost cost --pid PID".to_string()),
    }
}

/// The options that ask for the program.
pub(super) fn typed(seen: &ProgramObservation) -> String {
    seen.typed.clone().unwrap_or_else(|| format!("--pid {}", seen.pid))
}
