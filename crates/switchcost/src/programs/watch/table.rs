//! `switchcost cost --pid` and `-- CMD` on the terminal.

use analysis::marked;
use analysis::program::{LIMITED, ProgramCost, Range, count, measure_with, old, percents};
use rundata::reading::Reading;
use rundata::words::byte_range;

use super::answer::typed_options;
use super::figure::CostConclusion;
use super::findings::ProgramCostReport;
use super::observation::ProgramObservation;
use crate::observe::processes::program_in_words;
use crate::report::printout::{Printout, printout};
use crate::report::terminal::{TO_FIND_OUT, counted, figure};

/// Lines below the table that are printed by default.
const MAX_LINES: usize = 3;

/// Returns the whole report, ending with a newline: the answer, the figures below it, the lines
/// that matter.
pub(crate) fn text(report: &ProgramCostReport, is_verbose: bool) -> Printout {
    let conclusion = conclusion(report).map_or(String::new(), |words| format!(" {words}"));
    let program = program_name(&report.seen);
    let seconds = figure(report.seen.watched_ns as f64 / 1e9);
    let heading = format!("{program}, watched for {seconds} s");
    let mut rows = String::new();
    for LabeledRow { name, words } in table_rows(report) {
        rows += &format!("{name:<12}  {words}\n");
    }
    let below = format!("{conclusion}\n\n{heading}\n\n{rows}");
    let mut text = printout![marked![&report.in_words, below]];
    let lines = lines(report, is_verbose);
    if !lines.is_empty() {
        text.push(printout!["\n", Printout::lines(lines), "\n"]);
    }
    text
}

/// Returns what to conclude; none without a figure.
fn conclusion(report: &ProgramCostReport) -> Option<String> {
    let program = &report.program;
    let voluntary = *program.voluntary_per_s.known().unwrap_or(&0.0);
    let involuntary = *program.involuntary_per_s.known().unwrap_or(&0.0);
    let to_trace = match &report.seen.command {
        None => Some(format!("switchcost trace {}", typed_options(&report.seen))),
        Some(_) => None,
    };
    let conclusion = CostConclusion {
        figure: report.figure?,
        refill: report.refill_share.known().copied(),
        involuntary_share: involuntary / (voluntary + involuntary).max(f64::MIN_POSITIVE),
        preempter: None,
        to_trace: to_trace.as_deref(),
    };
    Some(conclusion.in_words())
}

/// Returns `postgres (process 2075, 1 thread)`, or `postgres (pid 2075 and 13 children)`.
fn program_name(seen: &ProgramObservation) -> String {
    if seen.children > 0 || seen.pids.len() > 1 {
        return program_in_words(&seen.name, &seen.pids, seen.children);
    }
    let threads = match seen.threads {
        Some(count) => {
            format!(", {}", counted(usize::try_from(count).unwrap_or(usize::MAX), "thread"))
        }
        None => String::new(),
    };
    format!("{} (process {}{threads})", seen.name, seen.pid)
}

struct LabeledRow {
    name: &'static str,
    words: String,
}

impl LabeledRow {
    fn new(name: &'static str, words: String) -> Self {
        Self { name, words }
    }
}

fn table_rows(report: &ProgramCostReport) -> Vec<LabeledRow> {
    let program = &report.program;
    let switches = format!(
        "{} voluntary and {} involuntary a second, {}",
        rate_cell(&program.voluntary_per_s),
        rate_cell(&program.involuntary_per_s),
        report.seen.counted_by.in_words()
    );
    let cpu_time =
        known_or_why(&program.cpu_share, |share| format!("{} % of a CPU", figure(100.0 * share)));
    let working_set = known_or_why(&program.working_set, |set| {
        let range = byte_range(set.low_bytes, set.high_bytes);
        let windows = match report.seen.windows.len() {
            0 => String::new(),
            windows => format!(" ({})", counted(windows, "window")),
        };
        format!("{range} between two switches{windows}")
    });
    let mut rows = vec![
        LabeledRow::new("switches", switches),
        LabeledRow::new("CPU time", cpu_time),
        LabeledRow::new("working set", working_set),
    ];
    if let Some(direct) = report.cost.direct_share() {
        rows.push(LabeledRow::new("direct cost", share_cell(direct)));
    }
    if let Some(refill) = report.refill_share.known() {
        rows.push(LabeledRow::new("refill", share_cell(*refill)));
    }
    let why = report.profile_choice.as_ref().map_or(String::new(), |why| format!(": {why}"));
    let profile = known_or_why(&report.profile, |profile| {
        let costs = counted(profile.points.len(), "cost");
        let age = profile.age_s.map_or(String::new(), |age| format!(", {}", old(age)));
        format!("{}{why} ({costs}{age})", profile.run)
    });
    rows.push(LabeledRow::new("cost profile", profile));
    rows
}

fn rate_cell(rate: &Reading<f64>) -> String {
    rate.known().map_or("-".to_string(), |rate| count(*rate))
}

fn share_cell(share: Range) -> String {
    format!("{} of its CPU time", percents(share))
}

/// Returns what is unknown and how to learn it, then what happened; by default the first three
/// lines.
fn lines(report: &ProgramCostReport, is_verbose: bool) -> Vec<Printout> {
    let mut lines: Vec<Printout> = Vec::new();
    lines.extend(unknown_refill(report).map(Printout::from));
    if let Some(command) = &report.command_to_know {
        lines.push(Printout::command(TO_FIND_OUT, command));
    }
    let assumptions = match &report.cost {
        ProgramCost::Estimated { assumptions, .. } => &assumptions[..],
        ProgramCost::Inconclusive { .. } => &[],
    };
    if report.refill_share.known().is_some() {
        for assumption in assumptions {
            if assumption.contains(LIMITED) {
                lines.push(Printout::from(assumption));
            }
        }
    }
    for notice in &report.seen.notices {
        lines.push(format!("note: {notice}").into());
    }
    if !is_verbose {
        lines.truncate(MAX_LINES);
        return lines;
    }
    if !assumptions.is_empty() {
        lines.push(format!("assumed: {}", assumptions.join("; ")).into());
    }
    for method in &report.seen.method {
        lines.push(format!("note: {method}").into());
    }
    lines
}

/// Returns why the refill share is unknown, and what it is at most; none if the answer tells it.
fn unknown_refill(report: &ProgramCostReport) -> Option<String> {
    report.cost.direct_share()?;
    let mut why = report.refill_share.why()?.to_string();
    let most = match &report.cost {
        ProgramCost::Estimated { share, direct_share: Some(direct), .. } if share.high < 1.0 => {
            let high = share.beside(*direct).high;
            format!(" (at most {})", percents(Range { low: high, high }))
        }
        _ => String::new(),
    };
    // The command has a line of its own.
    if let Some(command) = &report.command_to_know {
        why = why.replace(&measure_with(command), "");
    }
    Some(format!("refill of caches: unknown{most}: {why}"))
}

fn known_or_why<T>(reading: &Reading<T>, words: impl Fn(&T) -> String) -> String {
    match reading {
        Reading::Known(value) => words(value),
        Reading::Unknown { why } => format!("not known: {why}"),
    }
}
