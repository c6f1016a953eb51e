//! `switchcost cost --pid` and `-- CMD` on the terminal.

use analysis::marked;
use analysis::program::{LIMITED, ProgramCost, Range, count, measure_with, old, percents};
use rundata::reading::Reading;
use rundata::words::byte_range;

use super::answer::typed;
use super::figure::CostConclusion;
use super::findings::ProgramCostReport;
use super::seen::ProgramObservation;
use crate::observe::processes::program_in_words;
use crate::report::printout::{Printout, printout};
use crate::report::terminal::{TO_FIND_OUT, counted, figure};

/// Lines below the table that are printed by default.
const MOST_LINES: usize = 3;

/// The whole report, ending with a newline: the answer, what it rests on, the lines that matter.
pub(crate) fn text(report: &ProgramCostReport, is_verbose: bool) -> Printout {
    let seen = &report.seen;
    let heading =
        format!("{}, watched for {} s", program(seen), figure(seen.watched_ns as f64 / 1e9));
    let rows: String = rows(report).into_iter().map(|(name, words)| row(name, &words)).collect();
    let conclusion = conclusion(report).map_or(String::new(), |words| format!(" {words}"));
    let below = format!("{conclusion}\n\n{heading}\n\n{rows}");
    let mut text = printout![marked![&report.in_words, below]];
    let lines = lines(report, is_verbose);
    if !lines.is_empty() {
        text.push(printout!["\n", Printout::lines(lines), "\n"]);
    }
    text
}

/// What to conclude; nothing without a figure.
fn conclusion(report: &ProgramCostReport) -> Option<String> {
    let ProgramCostReport { seen, program, .. } = report;
    let [voluntary, involuntary] =
        [&program.voluntary_per_s, &program.involuntary_per_s].map(|rate| rate.known().copied());
    let (voluntary, involuntary) = (voluntary.unwrap_or(0.0), involuntary.unwrap_or(0.0));
    let traced = (seen.command.is_none()).then(|| format!("switchcost trace {}", typed(seen)));
    let conclusion = CostConclusion {
        figure: report.figure?,
        refill: report.refill_share.known().copied(),
        involuntary_share: involuntary / (voluntary + involuntary).max(f64::MIN_POSITIVE),
        preempter: None,
        to_trace: traced.as_deref(),
    };
    Some(conclusion.in_words())
}

/// `postgres (process 2075, 1 thread)`, or `postgres (pid 2075 and 13 children)`.
fn program(seen: &ProgramObservation) -> String {
    if seen.children > 0 || seen.pids.len() > 1 {
        return program_in_words(&seen.name, &seen.pids, seen.children);
    }
    let threads = seen.threads.map_or(String::new(), |count| {
        format!(", {}", counted(usize::try_from(count).unwrap_or(usize::MAX), "thread"))
    });
    format!("{} (process {}{threads})", seen.name, seen.pid)
}

fn rows(report: &ProgramCostReport) -> Vec<(&'static str, String)> {
    let ProgramCostReport { seen, program, profile, refill_share, .. } = report;
    let rate = |reading: &Reading<f64>| reading.known().map_or("-".to_string(), |of| count(*of));
    let switches = format!(
        "{} voluntary and {} involuntary a second, {}",
        rate(&program.voluntary_per_s),
        rate(&program.involuntary_per_s),
        seen.counted_by.in_words()
    );
    let set = known(&program.working_set, |set| {
        let windows = match seen.windows.len() {
            0 => String::new(),
            windows => format!(" ({})", counted(windows, "window")),
        };
        let range = byte_range(set.low_bytes, set.high_bytes);
        format!("{range} between two switches{windows}")
    });
    let mut rows = vec![
        ("switches", switches),
        (
            "CPU time",
            known(&program.cpu_share, |share| format!("{} % of a CPU", figure(100.0 * share))),
        ),
        ("working set", set),
    ];
    rows.extend(report.cost.direct_share().map(|direct| ("direct cost", of_cpu_time(direct))));
    rows.extend(refill_share.known().map(|refill| ("refill", of_cpu_time(*refill))));
    let why = report.profile_choice.as_ref().map_or(String::new(), |why| format!(": {why}"));
    let profile = known(profile, |profile| {
        let costs = counted(profile.points.len(), "cost");
        let age = profile.age_s.map_or(String::new(), |age| format!(", {}", old(age)));
        format!("{}{why} ({costs}{age})", profile.run)
    });
    rows.push(("cost profile", profile));
    rows
}

fn of_cpu_time(share: Range) -> String {
    format!("{} of its CPU time", percents(share))
}

/// A row of the table, ending with a newline.
fn row(name: &str, words: &str) -> String {
    format!("{name:<12}  {words}\n")
}

/// What is not known and how to know it, then what happened; by default the first three.
fn lines(report: &ProgramCostReport, is_verbose: bool) -> Vec<Printout> {
    let mut lines: Vec<Printout> = Vec::new();
    lines.extend(refill_line(report).map(Printout::from));
    let to_know = report.command_to_know.as_ref();
    lines.extend(to_know.map(|words| Printout::command(TO_FIND_OUT, words)));
    let assumed = match &report.cost {
        ProgramCost::Estimated { assumptions, .. } => &assumptions[..],
        ProgramCost::Inconclusive { .. } => &[],
    };
    // Of a share that is told.
    let is_told = report.refill_share.known().is_some();
    let limited = assumed.iter().filter(|of| is_told && of.contains(LIMITED));
    lines.extend(limited.map(Printout::from));
    let notices = report.seen.notices.iter();
    lines.extend(notices.map(|notice| Printout::from(format!("note: {notice}"))));
    if !is_verbose {
        lines.truncate(MOST_LINES);
        return lines;
    }
    if !assumed.is_empty() {
        lines.push(format!("assumed: {}", assumed.join("; ")).into());
    }
    for method in &report.seen.method {
        lines.push(format!("note: {method}").into());
    }
    lines
}

/// Why the refill share is not known, and what it is at most; nothing where the answer says it.
fn refill_line(report: &ProgramCostReport) -> Option<String> {
    report.cost.direct_share()?;
    let why = report.refill_share.why()?;
    let most = match &report.cost {
        ProgramCost::Estimated { share, direct_share: Some(direct), .. } if share.high < 1.0 => {
            let high = share.beside(*direct).high;
            format!(" (at most {})", percents(Range { low: high, high }))
        }
        _ => String::new(),
    };
    // The command has a line of its own.
    let command = report.command_to_know.as_ref();
    let why = command.map_or(why.to_string(), |of| why.replace(&measure_with(of), ""));
    Some(format!("refill of caches: unknown{most}: {why}"))
}

fn known<T>(reading: &Reading<T>, words: impl Fn(&T) -> String) -> String {
    match reading {
        Reading::Known(value) => words(value),
        Reading::Unknown { why } => format!("not known: {why}"),
    }
}
