//! What `sensitivity` prints.

use analysis::findings::TrialSummary;
use analysis::findings::sensitivity::{SensitivityFindings, SensitivityPoint};
use analysis::marked::MarkedText;
use analysis::record::TrialRecord;
use rundata::trial::Trial;
use rundata::trial::command::{CommandSubject, DONE, NeighbourKind, PREEMPTIONS, neighbour_words};
use rundata::words;

use super::answer;
use crate::base::secrets::masked;
use crate::report::printout::printout;
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    ReportText, TimeUnit, answer_words, difference, estimate_words, figure as digits, interval,
    value,
};

pub(crate) fn text(record: &TrialRecord, found: &SensitivityFindings) -> ReportText {
    ReportText {
        headline: answer::headline(found),
        table: printout![costs(found), "\n"],
        details: printout![rates(record, found), "\n", LEGEND, subject(found)],
        findings: proportions(found)
            .chain(timer(found))
            .chain(core(found))
            .chain(alone(record, found))
            .map(MarkedText::from)
            .collect(),
        ..ReportText::default()
    }
}

/// How often the program ran alone, and for how long.
fn alone(record: &TrialRecord, found: &SensitivityFindings) -> Option<String> {
    let ns = found.alone_cpu_ns?.quote_cost().ok()?.value();
    let CommandSubject::Command(_) = &found.subject else { return None };
    let is_alone = |of: &&TrialSummary| match &of.case.trial {
        Trial::Command(of) => of.neighbour == NeighbourKind::Nobody,
        _ => false,
    };
    let runs = record.cases.iter().find(is_alone)?.counts.get(DONE)?;
    Some(format!("alone: {} of CPU time a run, {runs} runs", TimeUnit::for_time(ns).words(ns)))
}

fn us(of: Option<analysis::estimate::Estimate>) -> Option<analysis::estimate::Estimate> {
    of?.scaled(1e-3)
}

/// What neighbours differ in.
fn beside(found: &SensitivityFindings) -> Vec<&'static str> {
    let stays = found.points.iter().any(|of| of.stays_ns > 0);
    let all = [Some("neighbour KiB"), stays.then_some("stays ms")];
    all.into_iter().flatten().collect()
}

fn who(found: &SensitivityFindings, of: &SensitivityPoint) -> Vec<MarkedText> {
    let all = [of.bytes as f64 / 1024.0, of.stays_ns as f64 / 1e6];
    beside(found).iter().zip(all).map(|(_, value)| digits(value).into()).collect()
}

/// What a preemption costs by what the neighbour uses.
fn costs(found: &SensitivityFindings) -> Table {
    let columns =
        [&*beside(found), &["us a preemption", "interval", "per CPU second", "more CPU time %"]];
    let row = |of: &SensitivityPoint| {
        let ns = us(of.ns_per_preemption);
        let most = of.rates.last();
        let more = most.and_then(|of| of.more_cpu_share?.scaled(100.0));
        let cells = cells![
            value(ns),
            interval(ns),
            digits(most.and_then(|of| of.preemptions_per_cpu_second)),
            answer_words(difference(more)),
        ];
        who(found, of).into_iter().chain(cells)
    };
    Table::new(columns.concat(), found.points.iter().map(row)).first_to_go(&["per CPU second"])
}

/// The same at each rate.
fn rates(record: &TrialRecord, found: &SensitivityFindings) -> Table {
    let columns =
        [&*beside(found), &["wakes/s", "us a preemption", "samples", "preemptions/sample"]];
    let rows = found.points.iter().flat_map(|point| {
        point.rates.iter().map(|of| {
            let summary = record.cases.get(of.case);
            let all = summary.and_then(|of| of.counts.get(PREEMPTIONS));
            let samples = summary.map_or(0, |of| of.rounds);
            let cells = cells![
                of.rate_hz.to_string(),
                estimate_words(us(of.ns_per_preemption)),
                samples.to_string(),
                digits(all.map(|all| *all as f64 / f64::from(samples.max(1)))),
            ];
            who(found, point).into_iter().chain(cells)
        })
    });
    Table::new(columns.concat(), rows)
}

const LEGEND: &str = "us a preemption: CPU time above that of the program alone in the same round, over \
     the preemptions that the kernel counted more, less a timer's interrupt\nper CPU second, more CPU \
     time: at the highest rate, with the timer's interrupts\n";

fn subject(found: &SensitivityFindings) -> String {
    match &found.subject {
        CommandSubject::Command(words) => {
            format!("command: {}\n", shell_words::join(masked(words)))
        }
        CommandSubject::Process { pid, window_ns, .. } => {
            format!("process: {pid}, in windows of {}\n", words::time(*window_ns as f64))
        }
    }
}

/// Where the loss does not grow with the count.
fn proportions(found: &SensitivityFindings) -> impl Iterator<Item = String> {
    let differs = |of: &SensitivityPoint| {
        let apart = of.highest_above_lowest_ns?.quote().ok()?;
        let how = if apart.value() > 0.0 { "more" } else { "less" };
        let size = words::time(apart.value().abs());
        Some(format!(
            "not proportional: by {} a preemption costs {size} {how} at the highest rate than at the \
             lowest",
            neighbour_words("a neighbour", of.bytes, of.stays_ns)
        ))
    };
    found.points.iter().filter_map(differs)
}

/// How often the core was shared, and what is left of the scatter when that is taken out.
fn core(found: &SensitivityFindings) -> Option<String> {
    let of = found.core_speed?;
    let percent = |share: f64| words::two_digits(100.0 * share);
    let [measured, left] = of.scatter.map(percent);
    let shared = format!("core: shared for {} % of the time", percent(of.shared));
    Some(match of.fitted {
        true => format!(
            "{shared}; runs scatter by {measured} % of the CPU time, by {left} % with the core's speed \
             and slow changes taken out"
        ),
        false => format!("{shared}; the runs are too few to take that out"),
    })
}

fn timer(found: &SensitivityFindings) -> Option<String> {
    Some(match found.timer_ns.map(|of| of.answer_cost()) {
        None => "timer interrupts: not measured, so not subtracted".to_string(),
        Some(Ok(of)) => {
            format!("timer: an interrupt without a switch costs {}, which is subtracted", of.time())
        }
        Some(Err(why)) => format!(
            "timer: the cost of an interrupt is {}; it is subtracted, with that error",
            why.with_time_unit()
        ),
    })
}
