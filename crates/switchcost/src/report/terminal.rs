//! Reports of runs on the terminal: figures and their marks, the lines below a table, and the order
//! of all parts.
//!
//! ```text
//! A switch costs 1.54 us (1.52 to 1.57) ...        the answer
//!
//! ring on AMD EPYC, Linux 6.18                     with --verbose
//!
//! members  ns/switch  interval                     the table, and what its marks mean
//! -----------------------------
//!       2       1540  1520 to 1570
//!       8      ~1922  1878 to 1966
//!
//! ~ not at full speed, as the core was shared: no comparison uses it
//!
//! machine: noisy: ...                              at most three lines; all with --verbose
//! ```
//!
//! A figure is printed with the mark of its kind: none at full speed, `~` on a shared core, `c~` by
//! CPU time, `'` in few rounds.

use std::path::Path;

use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::{MarkedText, SpanRole};
use analysis::noise::{NoiseLevel, NoiseVerdict};
use analysis::quote::{BestEstimate, NotQuotable};
use analysis::record::{CpuSpeed, Record};
use analysis::setting_changes::{change_warning, run_warnings};
use charts::{Figure, PlotStyle};
use clap::Args;
use rundata::competing::CompetingTasks;
use rundata::notice::NoticeKind;
use rundata::plan::Stopping;
use rundata::run::{Header, Run, StopReason};
pub(crate) use rundata::words::list as cpu_list;
use rundata::words::{self, plain};

use super::machine_line::{cpu_and_kernel, machine_line};
use super::printout::{Printout, printout};
use crate::base::lines::Layout;
pub(crate) use crate::base::lines::WIDTH;

/// Names the experiment and the machine: `ring on AMD EPYC, Linux 6.18`.
pub(crate) fn heading(header: &Header) -> String {
    format!("{} on {}", header.plan.experiment, cpu_and_kernel(&header.machine))
}

/// Returns the last line of a report, with the path of the stored run.
pub(crate) fn run_file_line(path: Option<&Path>) -> String {
    match path {
        Some(path) => format!("run file: {}", path.display()),
        None => "run file: not stored".to_string(),
    }
}

/// Writes a figure with three significant digits, or with all digits before the point; a dash if it
/// is unknown.
pub(crate) fn figure(value: impl Into<Option<f64>>) -> String {
    let Some(value) = value.into() else { return "-".to_string() };
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// The best answer that an estimate gives, or the reason why it gives none; absent without an
/// estimate.
pub(crate) type AnswerOrReason = Option<Result<BestEstimate, NotQuotable>>;

/// Stands before a figure by CPU time.
const CPU_TIME_MARK: &str = "c~";

/// Stands behind a figure at full speed in few rounds.
const FEW_ROUNDS_MARK: &str = "'";

/// Adds to a figure the mark of its kind.
pub(crate) fn with_mark(answer: &BestEstimate, figure: &str) -> MarkedText {
    if answer.is_by_cpu_time() {
        return MarkedText::new(SpanRole::ByCpuTime, format!("{CPU_TIME_MARK}{figure}"));
    }
    let figure = format!("{}{figure}", answer.mark());
    if answer.is_rough() {
        return MarkedText::new(SpanRole::NotAtFullSpeed, figure);
    }
    match answer.few_rounds() {
        Some(_) => MarkedText::new(SpanRole::FewRounds, figure + FEW_ROUNDS_MARK),
        None => figure.into(),
    }
}

/// Returns the figure of an answer with its mark; a dash without an answer.
pub(crate) fn answer_value(answer: AnswerOrReason) -> MarkedText {
    match answer {
        Some(Ok(answer)) => with_mark(&answer, &figure(answer.value())),
        _ => figure(None).into(),
    }
}

/// Returns the interval of an answer, or why there is none; a dash without an estimate.
pub(crate) fn answer_interval(answer: AnswerOrReason) -> String {
    match answer {
        None => "-".to_string(),
        Some(Err(why)) => why.to_string(),
        Some(Ok(answer)) => match answer.ends() {
            Some((low, high)) => format!("{} to {}", figure(low), figure(high)),
            None => answer.few_rounds().unwrap_or_default(),
        },
    }
}

/// Returns the figure of an answer with its interval, or why there is no figure; a dash without an
/// estimate.
pub(crate) fn answer_words(answer: AnswerOrReason) -> MarkedText {
    let interval = answer_interval(answer);
    match answer {
        Some(Ok(_)) => marked![answer_value(answer), format!(" ({interval})")],
        _ => interval.into(),
    }
}

/// Returns the figure of a cost with its mark, like [`answer_value`].
pub(crate) fn value(estimate: Option<Estimate>) -> MarkedText {
    answer_value(cost(estimate))
}

/// Returns the interval of a cost, like [`answer_interval`].
pub(crate) fn interval(estimate: Option<Estimate>) -> String {
    answer_interval(cost(estimate))
}

/// Returns a cost with its interval, like [`answer_words`].
pub(crate) fn estimate_words(estimate: Option<Estimate>) -> MarkedText {
    answer_words(cost(estimate))
}

/// Label of a command that measures what is unknown.
pub(crate) const TO_FIND_OUT: &str = "to find out: ";

/// Returns the notices of a budget that was too short, which are printed by default.
fn too_short(header: &Header) -> Vec<MarkedText> {
    let mut lines = Vec::new();
    for notice in &header.notices {
        if notice.kind == NoticeKind::TooShort {
            lines.push(notice.text.clone().into());
        }
    }
    lines
}

/// Head of the second column of [`at_clock`]; that of the first says what the cycles are of.
pub(crate) const GHZ: &str = "GHz";

/// Legend of the columns of [`at_clock`].
pub(crate) const CLOCK_LEGEND: &str = "cycles, GHz: the figure in cycles of the core's clock, \
    and that clock; -: unknown, or not reliable\n";

/// Returns two cells of `--wide`: a cost in cycles of the core's clock, and that clock in GHz.
pub(crate) fn at_clock(cycles: Option<Estimate>, clock_ghz: Option<f64>) -> [MarkedText; 2] {
    let clock = match clock_ghz {
        Some(ghz) => format!("{ghz:.2}"),
        None => "-".to_string(),
    };
    [value(cycles), clock.into()]
}

/// Returns the answer of a cost, which is above zero.
fn cost(estimate: Option<Estimate>) -> AnswerOrReason {
    estimate.map(|estimate| estimate.answer_cost())
}

/// Returns the answer of a difference, which may be below zero.
pub(crate) fn difference(estimate: Option<Estimate>) -> AnswerOrReason {
    estimate.map(|estimate| estimate.answer())
}

/// Returns the answer of a share or a rate, which may be zero.
pub(crate) fn count(estimate: Option<Estimate>) -> AnswerOrReason {
    estimate.map(|estimate| estimate.answer_count())
}

/// Returns a sentence on a run; that of an unfinished run begins with how it ended.
pub(crate) fn sentence(unfinished: Option<&str>, words: impl Into<MarkedText>) -> MarkedText {
    match unfinished {
        Some(how) => marked![how, ": ", words],
        None => words.into(),
    }
}

/// Writes a count with its noun: `1 case`, `7 cases`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Returns a text of at most `max` characters; the middle of a longer one is left out.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_string();
    }
    let kept = max.saturating_sub(3);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}...{end}")
}

/// Options for how much of a report is printed.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct View {
    /// Print all that is known: legends, the machine, notes, where the run is stored
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Print all columns of tables, also cycles and the core's clock; of `ring` also Sloan's
    /// seconds for a million laps, and the share of undisturbed time
    #[arg(long)]
    pub(crate) wide: bool,

    /// Print the figures of the machines of 1984 to 2007 next to this one's
    #[arg(long)]
    pub(crate) history: bool,

    /// Print only figures that were seen at full speed in 8 rounds or more, and for others the
    /// reason
    #[arg(long, hide_short_help = true)]
    pub(crate) strict: bool,
}

impl View {
    /// Prints everything.
    pub(crate) const ALL: Self = Self { verbose: true, wide: true, history: true, strict: false };
}

/// The parts of a report that an experiment writes itself.
#[derive(Default)]
pub(crate) struct ReportText {
    /// Answer in a sentence or two.
    pub(crate) headline: MarkedText,
    /// Setting, which follows the machine in the heading.
    pub(crate) heading: String,
    /// Table that the answer rests on, ending with a newline.
    pub(crate) table: Printout,
    /// Further tables and legends, ending with a newline, for --verbose.
    pub(crate) details: Printout,
    /// Lines below the table, the most important first.
    pub(crate) findings: Vec<MarkedText>,
}

/// Most lines below a table without --verbose.
pub(crate) const MAX_LINES: usize = 3;

/// Facts that the record of every experiment has beside its findings.
pub(crate) struct CommonFacts<'a> {
    pub(crate) header: &'a Header,
    pub(crate) noise: &'a NoiseVerdict,
    pub(crate) speed: &'a [CpuSpeed],
    pub(crate) ns_per_tick: Option<f64>,
    /// Widest half-width of an interval, relative to its estimate; absent if a case has no interval.
    pub(crate) precision: Option<f64>,
}

impl<'a> CommonFacts<'a> {
    /// Takes the facts of a record that knows neither the CPUs' speed nor ticks.
    pub(crate) fn from_record<Case, Found>(record: &'a Record<Case, Found>) -> Self {
        Self {
            header: &record.header,
            noise: &record.noise,
            speed: &[],
            ns_per_tick: None,
            precision: record.worst_precision,
        }
    }
}

/// Returns the report of a run, ending with a newline: the answer, the table and the most important
/// lines; with `view.verbose` all that is known.
pub(crate) fn report(
    run: &Run,
    text: ReportText,
    common: &CommonFacts,
    path: Option<&Path>,
    view: View,
) -> Printout {
    let ReportText { headline, heading: setting, table, details, findings } = text;
    let mut parts = vec![Printout::from(sentence(run.unfinished(), headline))];
    if view.verbose {
        parts.push(format!("{}{setting}", heading(&run.header)).into());
    }
    let legend = legend_of_marks(|role| table.has_cell(role));
    parts.push(printout![table, legend]);
    let mut lines = failures(run);
    if view.verbose {
        parts.push(details);
        lines.extend(doubts(run, common));
        lines.extend(findings);
        lines.extend(machine_lines(run, common));
        lines.push(run_file_line(path).into());
    } else {
        lines.extend(short_lines(run, common));
        lines.extend(findings);
        lines.truncate(MAX_LINES);
    }
    parts.push(MarkedText::join(lines, "\n").into());
    Printout::paragraphs(parts)
}

/// Returns the lines of a report without --verbose that stand above the experiment's own: settings
/// that changed, how the run ended, the machine, warnings.
fn short_lines(run: &Run, common: &CommonFacts) -> Vec<MarkedText> {
    let header = &run.header;
    let mut lines: Vec<MarkedText> = Vec::new();
    if let Some(warning) = change_warning(run) {
        lines.push(format!("warning: {warning}").into());
    }
    lines.extend(stopped_line(run, common));
    let competing = run.competing_tasks.as_ref();
    lines.extend(machine_line(&header.plan, &header.machine, competing, common.noise));
    lines.extend(too_short(header));
    for warning in &run.warnings {
        lines.push(format!("warning: {warning}").into());
    }
    lines
}

/// Returns what the marks mean that a table has.
fn legend_of_marks(has_mark: impl Fn(SpanRole) -> bool) -> String {
    let mut legend = String::new();
    if has_mark(SpanRole::NotAtFullSpeed) {
        legend += ROUGH_LEGEND;
    }
    let others = [(SpanRole::ByCpuTime, CPU_TIME_LEGEND), (SpanRole::FewRounds, FEW_ROUNDS_LEGEND)];
    for (role, meaning) in others {
        if has_mark(role) {
            legend += if legend.is_empty() { "\n" } else { "" };
            legend += meaning;
        }
    }
    legend
}

/// Legend below a table with figures marked `~`.
pub(crate) const ROUGH_LEGEND: &str =
    "\n~ not at full speed, as the core was shared: no comparison uses it\n";

/// Legend below a table with figures marked `c~`.
const CPU_TIME_LEGEND: &str =
    "c~ by CPU time, which other tasks do not enter: no comparison uses it\n";

/// Legend below a table with figures marked `'`.
const FEW_ROUNDS_LEGEND: &str = "' at full speed in few rounds: raise --budget\n";

/// Returns a line for each case that could not be measured, or not in all rounds.
fn failures(run: &Run) -> Vec<MarkedText> {
    let mut lines = Vec::new();
    for number in 0..run.header.plan.cases.len() {
        let failure = run.failures.iter().rev().find(|failure| failure.case == number);
        let Some(failure) = failure else { continue };
        let is_measured = run.samples.iter().any(|sample| sample.case() == number);
        let what = if is_measured { "failed in some rounds" } else { "not measured" };
        let title = run.header.plan.title(number);
        lines.push(format!("{what}: {title}: {}", failure.message).into());
    }
    lines
}

/// Returns the reasons to take the figures with care: a run that was cut short, a noisy machine.
fn doubts(run: &Run, common: &CommonFacts) -> Vec<MarkedText> {
    let mut lines: Vec<MarkedText> = stopped_line(run, common).into_iter().collect();
    if is_noisy(common) {
        lines.push(marked!["machine: ", common.noise.in_words()]);
    }
    lines
}

fn is_noisy(common: &CommonFacts) -> bool {
    matches!(common.noise.level, NoiseLevel::Noisy | NoiseLevel::Unusable)
}

/// Returns why a run ended if it was cut short: it did not end by itself, or a case has no interval.
fn stopped_line(run: &Run, common: &CommonFacts) -> Option<MarkedText> {
    let is_short = match run.end.as_ref().map(|end| end.reason) {
        Some(StopReason::Precise | StopReason::RoundsDone | StopReason::BudgetSpent) => {
            common.precision.is_none() && run.header.plan.stopping.precision > 0.0
        }
        Some(StopReason::Interrupted | StopReason::Failed) | None => true,
    };
    if is_short { Some(stop_words(run, common).into()) } else { None }
}

/// Returns the lines on the machine and on the run's end that [`doubts`] does not return, and all
/// notes and warnings.
fn machine_lines(run: &Run, common: &CommonFacts) -> Vec<MarkedText> {
    let mut lines: Vec<MarkedText> = Vec::new();
    if let Some(ns) = common.ns_per_tick {
        let mhz = 1000.0 / ns;
        lines.push(
            format!(
                "ticks: of the time-stamp counter, {ns:.4} ns each ({mhz:.0} MHz), independent of \
                 the core's clock"
            )
            .into(),
        );
    }
    if !is_noisy(common) {
        lines.push(marked!["machine: ", common.noise.in_words()]);
    }
    for speed in common.speed {
        lines.push(speed_words(speed).into());
    }
    lines.extend(run.competing_tasks.as_ref().and_then(CompetingTasks::line).map(MarkedText::from));
    if stopped_line(run, common).is_none() {
        lines.push(stop_words(run, common).into());
    }
    for notice in &run.header.notices {
        lines.push(format!("note: {notice}").into());
    }
    for warning in run_warnings(run) {
        lines.push(format!("warning: {warning}").into());
    }
    lines
}

/// A unit of time that several figures share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeUnit {
    pub(crate) name: &'static str,
    /// Nanoseconds in the unit.
    pub(crate) ns: f64,
}

impl TimeUnit {
    /// Returns the unit that a time in nanoseconds is printed in.
    pub(crate) fn for_time(ns: f64) -> Self {
        let (ns, name) = words::time_unit(ns);
        Self { name, ns }
    }

    /// Writes a time in the unit, without the unit's name.
    pub(crate) fn figure(self, ns: f64) -> String {
        figure(ns / self.ns)
    }

    /// Writes a time in the unit, with the unit's name.
    pub(crate) fn words(self, ns: f64) -> String {
        format!("{} {}", self.figure(ns), self.name)
    }
}

/// Says how fast the CPUs were, and how sure their full speed is.
fn speed_words(speed: &CpuSpeed) -> String {
    let clock = match speed.clock_ghz {
        Some(ghz) => format!(" at {ghz:.2} GHz"),
        None => String::new(),
    };
    let known = if speed.level.established {
        "its full speed is known (from the table or three earlier runs)"
    } else {
        "its full speed is provisional (fewer than three runs have seen it)"
    };
    format!("speed: CPU {}{clock}; {known}", cpu_list(&speed.cpus))
}

/// Says why a run ended, after how many rounds, and how precise it is.
fn stop_words(run: &Run, common: &CommonFacts) -> String {
    let stopping = &run.header.plan.stopping;
    let Some(end) = &run.end else {
        return "stopped: the run was killed or is still going on (it has no end line)".to_string();
    };
    if end.reason == StopReason::Failed {
        return format!("stopped: {}", stop_reason_words(end.reason));
    }
    let widest = match common.precision {
        Some(widest) => format!("widest interval +-{:.1} %", widest * 100.0),
        None => "some cases have no interval: raise --budget".to_string(),
    };
    // A plan with a number of rounds asks for no precision.
    let precision = if stopping.precision > 0.0 {
        format!("; {widest} (asked: +-{:.1} %)", stopping.precision * 100.0)
    } else {
        String::new()
    };
    let rounds = counted(run.rounds() as usize, "round");
    let seconds = (end.spent_ns / 1_000_000) as f64 / 1e3;
    let extended = extension_words(stopping, end.spent_ns);
    let reason = stop_reason_words(end.reason);
    format!("stopped: {reason}, after {rounds} in {seconds:.1} s{extended}{precision}")
}

/// Says why a run took clearly longer than its budget; empty if it did not.
fn extension_words(stopping: &Stopping, spent_ns: u64) -> String {
    let budget_ns = stopping.budget_ns;
    if stopping.fixed_budget || (spent_ns as f64) < MIN_OVERRUN * budget_ns as f64 {
        return String::new();
    }
    let [asked, most] = [budget_ns, stopping.most_budget_ns()].map(|ns| plain(ns as f64 / 1e9));
    format!(
        "; {asked}s+ may take up to {most} s: some cases had too few undisturbed slices after \
         {asked} s"
    )
}

/// Shortest run that is said to have taken longer, as a multiple of its budget: the last round
/// often ends a little late.
const MIN_OVERRUN: f64 = 1.2;

/// Says why a run ended.
pub(crate) fn stop_reason_words(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Precise => "precise enough",
        StopReason::BudgetSpent => "time is up",
        StopReason::RoundsDone => "all rounds are done",
        StopReason::Interrupted => "interrupted",
        StopReason::Failed => "nothing could be measured",
    }
}

/// Returns a chart within a report, with an empty line below it; empty without a chart.
pub(crate) fn chart_printout(figure: Option<Figure>) -> Printout {
    let columns = Layout::terminal().prose.min(WIDTH);
    let style = PlotStyle { columns, colour: false, unicode: true };
    Printout::drawing(match figure {
        Some(figure) => charts::render_text(&figure, &[], &style) + "\n",
        None => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use analysis::estimate::Speed;

    use super::*;
    use crate::report::table::Table;

    /// Returns the legend below a table of the figures.
    fn legend(figures: &[MarkedText]) -> String {
        let rows = figures.iter().map(|figure| [figure.clone()]);
        let table = Printout::from(Table::new(["ns"], rows));
        legend_of_marks(|role| table.has_cell(role))
    }

    #[test]
    fn each_kind_of_figure_has_its_mark_and_its_legend() {
        let full = Estimate::at_full_speed(1500.0, 10.0, 20, 0.0, 0.95).expect("an estimate");
        let shown = |speed: Speed| value(Some(Estimate { speed, ..full }));
        let [full, few, shared, competing, by_cpu_time] =
            [Speed::Full, Speed::FewRounds, Speed::Contended, Speed::NotAlone, Speed::CpuTime]
                .map(shown);
        assert_eq!((&*full, &*few, &*shared), ("1500", "1500'", "~1500"));
        assert_eq!((&*competing, &*by_cpu_time), ("~1500", "c~1500"));
        assert_eq!(legend(std::slice::from_ref(&full)), "");
        assert_eq!(legend(std::slice::from_ref(&shared)), ROUGH_LEGEND);
        assert_eq!(legend(std::slice::from_ref(&by_cpu_time)), format!("\n{CPU_TIME_LEGEND}"));
        let all = legend(&[full, few, shared, competing, by_cpu_time]);
        assert_eq!(all, format!("{ROUGH_LEGEND}{CPU_TIME_LEGEND}{FEW_ROUNDS_LEGEND}"));
    }

    #[test]
    fn a_run_that_took_longer_than_its_budget_says_why() {
        let stopping = |fixed_budget| Stopping {
            precision: 0.025,
            budget_ns: 55_000_000_000,
            rounds: None,
            confidence: 0.95,
            fixed_budget,
        };
        let words = extension_words(&stopping(false), 166_000_000_000);
        assert!(words.starts_with("; 55s+ may take up to 165 s: "), "{words}");
        assert_eq!(extension_words(&stopping(false), 56_000_000_000), "");
        assert_eq!(extension_words(&stopping(true), 166_000_000_000), "");
    }
}
