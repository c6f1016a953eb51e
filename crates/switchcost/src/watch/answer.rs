//! What is said of a program: the answer first, what refilling caches takes, and the command that would tell more.

use model::reading::Reading;

use super::findings::{
    NotRead, Program, ProgramCost, Remedy, Seen, count, program_cost, switches_in_words,
};
use super::profile::ProfilePoint;
use crate::price::{Range, percents};
use crate::terminal::figure;

/// The answer in a sentence: the share of both costs where the working set was read and its costs are known, else
/// that of the switches themselves.
pub(super) fn headline(
    cost: &ProgramCost,
    not_read: Option<&NotRead>,
    program: &Program,
    direct: Option<Range>,
) -> String {
    if let (ProgramCost::Estimated { share, cost_ns, switches_per_s, .. }, None) = (cost, not_read)
    {
        let switches = switches_in_words(*switches_per_s, *cost_ns);
        return format!("Switching takes {} of its CPU time: {switches}.", percents(*share));
    }
    let rate = direct.zip(program.switches_per_s());
    if let Some((share, (direct, per_s))) = cost.direct_share().zip(rate) {
        let (share, switches) = (percents(share), switches_in_words(per_s, direct));
        return format!(
            "Switching itself takes {share} of its CPU time: {switches}; refill: not known."
        );
    }
    let why = match (cost, not_read) {
        (ProgramCost::Inconclusive { missing, .. }, _) => missing.join("; "),
        (_, Some(not_read)) => format!("working set: {}", not_read.why),
        (_, None) => String::new(),
    };
    format!("What switching costs it is not known: {why}.")
}

/// What is known while the program is watched: `5,300 switches a second, 45 % of a CPU, at least 1.2 %`.
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
    match (not_read, cost) {
        (Some(not_read), ProgramCost::Inconclusive { missing, .. }) => {
            Reading::unknown(format!("{}; {}", missing.join("; "), not_read.why))
        }
        (Some(not_read), ProgramCost::Estimated { .. }) => Reading::unknown(not_read.why.clone()),
        (None, ProgramCost::Inconclusive { missing, .. }) => Reading::unknown(missing.join("; ")),
        (None, ProgramCost::Estimated { direct_share: None, .. }) => {
            Reading::unknown("the direct cost was not measured beside it")
        }
        (None, ProgramCost::Estimated { share, direct_share: Some(direct), .. }) => {
            Reading::Known(share.beside(*direct))
        }
    }
}

/// Seconds for which a program is watched at least where ten were too few.
const LONGER_S: u64 = 60;

/// The command that would make an unknown share known: first the costs are measured, then the working set is read.
/// `profile` is the file of the one that was taken.
pub(super) fn command_to_know(
    cost: &ProgramCost,
    not_read: Option<&NotRead>,
    seen: &Seen,
    profile: Option<&str>,
) -> Option<String> {
    let Some(profile) = profile else { return Some("switchcost cost".to_string()) };
    let to_measure = match cost {
        ProgramCost::Inconclusive { command, .. } => command.clone(),
        ProgramCost::Estimated { .. } => None,
    };
    to_measure.or_else(|| to_read(not_read?.remedy?, seen, profile))
}

/// The command that would read the working set.
fn to_read(remedy: Remedy, seen: &Seen, profile: &str) -> Option<String> {
    match (remedy, &seen.command) {
        (Remedy::Privilege, command) => {
            let program = match command {
                None => format!("--pid {}", seen.pid),
                Some(words) => format!("-- {}", shell_words::join(words)),
            };
            // Root has other runs.
            let profile = shell_words::quote(profile);
            Some(format!("sudo switchcost cost --profile {profile} {program}"))
        }
        (Remedy::Longer, None) => {
            let seconds = LONGER_S.max(2 * seen.watched_ns / 1_000_000_000);
            Some(format!("switchcost cost --pid {} --seconds {seconds}", seen.pid))
        }
        // It has ended.
        (Remedy::Longer, Some(_)) => None,
        (Remedy::Child, _) => Some("switchcost cost --pid PID".to_string()),
    }
}
