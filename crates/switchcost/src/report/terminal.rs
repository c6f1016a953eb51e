//! What every report on the terminal is made of: tables, figures, intervals, charts, the machine,
//! the end.

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

/// What was measured on what: `ring on AMD EPYC, Linux 6.1`.
pub(crate) fn heading(header: &Header) -> String {
    format!("{} on {}", header.plan.experiment, cpu_and_kernel(&header.machine))
}

/// The last line: where the run is kept.
pub(crate) fn run_file_line(path: Option<&Path>) -> String {
    let file = path.map_or("not stored".to_string(), |path| path.display().to_string());
    format!("run file: {file}")
}

/// Three significant digits or all before the point; a dash for what is not known.
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

/// The best that is known of an estimate, or why nothing is; none without one.
pub(crate) type AnswerOrReason = Option<Result<BestEstimate, NotQuotable>>;

/// Stands before a figure by CPU time.
const BY_CPU_TIME: &str = "c~";

/// Stands behind a figure at full speed that rests on few rounds.
const FEW_ROUNDS: &str = "'";

/// Returns a figure with the mark of its kind: none at full speed, `~` on a shared core, `c~` by CPU
/// time, `'` in few rounds.
pub(crate) fn with_mark(answer: &BestEstimate, figure: &str) -> MarkedText {
    if answer.is_by_cpu_time() {
        return MarkedText::new(SpanRole::ByCpuTime, format!("{BY_CPU_TIME}{figure}"));
    }
    let figure = format!("{}{figure}", answer.mark());
    if answer.is_rough() {
        return MarkedText::new(SpanRole::NotAtFullSpeed, figure);
    }
    match answer.few_rounds() {
        Some(_) => MarkedText::new(SpanRole::FewRounds, figure + FEW_ROUNDS),
        None => figure.into(),
    }
}

/// Returns a figure alone, marked with its kind; a dash where nothing is known.
pub(crate) fn answer_value(told: AnswerOrReason) -> MarkedText {
    match told {
        Some(Ok(answer)) => with_mark(&answer, &figure(answer.value())),
        _ => figure(None).into(),
    }
}

/// Returns the interval of a figure, or why there is none; a dash without an estimate.
pub(crate) fn answer_interval(told: AnswerOrReason) -> String {
    match told {
        None => "-".to_string(),
        Some(Err(why)) => why.to_string(),
        Some(Ok(answer)) => match answer.ends() {
            Some((low, high)) => format!("{} to {}", figure(low), figure(high)),
            None => answer.few_rounds().unwrap_or_default(),
        },
    }
}

/// Returns a figure with its interval, or why there is no figure; a dash without an estimate.
pub(crate) fn answer_words(told: AnswerOrReason) -> MarkedText {
    let interval = answer_interval(told);
    match told {
        Some(Ok(_)) => marked![answer_value(told), format!(" ({interval})")],
        _ => interval.into(),
    }
}

/// Returns a cost alone, as [`answer_value`].
pub(crate) fn value(estimate: Option<Estimate>) -> MarkedText {
    answer_value(cost(estimate))
}

/// Returns the interval of a cost, as [`answer_interval`].
pub(crate) fn interval(estimate: Option<Estimate>) -> String {
    answer_interval(cost(estimate))
}

/// Returns a cost with its interval, as [`answer_words`].
pub(crate) fn estimate_words(estimate: Option<Estimate>) -> MarkedText {
    answer_words(cost(estimate))
}

/// Before a command that would tell what is not known.
pub(crate) const TO_FIND_OUT: &str = "to find out: ";

/// Returns the notices that a budget was too short, which are printed by default.
fn too_short(header: &Header) -> Vec<MarkedText> {
    let mut lines = Vec::new();
    for notice in &header.notices {
        if notice.kind == NoticeKind::TooShort {
            lines.push(notice.text.clone().into());
        }
    }
    lines
}

/// Heading of what `at_clock` gives, behind what the cycles are of.
pub(crate) const GHZ: &str = "GHz";

/// What `at_clock` gives.
pub(crate) const CLOCK_LEGEND: &str = "cycles, GHz: the figure in cycles of the core's clock, \
    and that clock; -: unknown, or not reliable\n";

/// A cost in cycles of the core's clock, and that clock in GHz: columns of `--wide`.
pub(crate) fn at_clock(cycles: Option<Estimate>, clock_ghz: Option<f64>) -> [MarkedText; 2] {
    [value(cycles), clock_ghz.map_or("-".to_string(), |ghz| format!("{ghz:.2}")).into()]
}

fn cost(estimate: Option<Estimate>) -> AnswerOrReason {
    estimate.map(|of| of.answer_cost())
}

/// A difference, which may be below zero.
pub(crate) fn difference(estimate: Option<Estimate>) -> AnswerOrReason {
    estimate.map(|of| of.answer())
}

/// A share or a rate, which may be zero.
pub(crate) fn count(estimate: Option<Estimate>) -> AnswerOrReason {
    estimate.map(|of| of.answer_count())
}

/// A sentence on a run: of one that did not end it begins with that.
pub(crate) fn sentence(unfinished: Option<&str>, words: impl Into<MarkedText>) -> MarkedText {
    match unfinished {
        Some(how) => marked![how, ": ", words],
        None => words.into(),
    }
}

/// `1 case`, `7 cases`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A text of at most so many characters, its middle left out.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_string();
    }
    let kept = most.saturating_sub(3);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}...{end}")
}

/// How much of a report is printed.
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
    /// Everything.
    pub(crate) const ALL: Self = Self { verbose: true, wide: true, history: true, strict: false };
}

/// What an experiment prints of its run, between what the reports of all have.
#[derive(Default)]
pub(crate) struct ReportText {
    /// The answer, in a sentence or two.
    pub(crate) headline: MarkedText,
    /// What follows the machine in the heading.
    pub(crate) heading: String,
    /// The table that the answer rests on, ending with a newline.
    pub(crate) table: Printout,
    /// Further tables and legends, ending with a newline, for --verbose.
    pub(crate) details: Printout,
    /// Lines of its own, what matters most first.
    pub(crate) findings: Vec<MarkedText>,
}

/// Lines below a table that are printed by default.
pub(crate) const MAX_LINES: usize = 3;

/// What the records of all experiments have beside their findings.
pub(crate) struct CommonFacts<'a> {
    pub(crate) header: &'a Header,
    pub(crate) noise: &'a NoiseVerdict,
    pub(crate) speed: &'a [CpuSpeed],
    pub(crate) ns_per_tick: Option<f64>,
    /// Widest relative half-width; none as long as a case has no interval.
    pub(crate) precision: Option<f64>,
}

impl<'a> CommonFacts<'a> {
    /// Makes it of a record that says nothing of the CPUs' speed and of ticks.
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

/// Returns the report of a run, ending with a newline: the answer, the table, the lines that matter;
/// with `verbose` all that is known.
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
        lines.extend(doubt(run, common));
        parts.push(details);
        lines.extend(findings);
        lines.extend(machine_lines(run, common));
        lines.push(run_file_line(path).into());
    } else {
        lines.extend(change_warning(run).map(|warning| format!("warning: {warning}").into()));
        lines.extend(stopped_line(run, common));
        let (header, company) = (&run.header, run.company.as_ref());
        lines.extend(machine_line(&header.plan, &header.machine, company, common.noise));
        lines.extend(too_short(&run.header));
        lines.extend(run.warnings.iter().map(|warning| format!("warning: {warning}").into()));
        lines.extend(findings);
        lines.truncate(MAX_LINES);
    }
    parts.push(MarkedText::join(lines, "\n").into());
    Printout::paragraphs(parts)
}

/// Returns what the marks of figures mean, below a table that has such, as `has` says.
fn legend_of_marks(has: impl Fn(SpanRole) -> bool) -> String {
    let mut legend = String::new();
    if has(SpanRole::NotAtFullSpeed) {
        legend += ROUGH_LEGEND;
    }
    let others = [(SpanRole::ByCpuTime, CPU_TIME_LEGEND), (SpanRole::FewRounds, FEW_ROUNDS_LEGEND)];
    for (role, meaning) in others {
        if has(role) {
            legend += if legend.is_empty() { "\n" } else { "" };
            legend += meaning;
        }
    }
    legend
}

/// Said once, below a table with marked figures.
pub(crate) const ROUGH_LEGEND: &str =
    "\n~ not at full speed, as the core was shared: no comparison uses it\n";

/// Said once, below a table with such figures.
const CPU_TIME_LEGEND: &str =
    "c~ by CPU time, which other tasks do not enter: no comparison uses it\n";

/// Said once, below a table with such figures.
const FEW_ROUNDS_LEGEND: &str = "' at full speed in few rounds: raise --budget\n";

/// Returns the cases that could not be measured, always or in some rounds.
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

/// Returns why the figures are to be taken with care: how the run ended, and what the machine was
/// like.
fn doubt(run: &Run, common: &CommonFacts) -> Vec<MarkedText> {
    let is_noisy = matches!(common.noise.level, NoiseLevel::Noisy | NoiseLevel::Unusable);
    let mut lines: Vec<MarkedText> = stopped_line(run, common).into_iter().collect();
    if is_noisy {
        lines.push(marked!["machine: ", common.noise.in_words()]);
    }
    lines
}

/// Returns why a run ended that is short of something.
fn stopped_line(run: &Run, common: &CommonFacts) -> Option<MarkedText> {
    let is_short = match run.end.as_ref().map(|end| end.reason) {
        Some(StopReason::Precise | StopReason::RoundsDone | StopReason::BudgetSpent) => {
            common.precision.is_none() && run.header.plan.stopping.precision > 0.0
        }
        Some(StopReason::Interrupted | StopReason::Failed) | None => true,
    };
    is_short.then(|| stop_words(run, common).into())
}

/// Returns what is known of the machine, of the run's end and of what was asked for, without what
/// [`doubt`] says.
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
    if !matches!(common.noise.level, NoiseLevel::Noisy | NoiseLevel::Unusable) {
        lines.push(marked!["machine: ", common.noise.in_words()]);
    }
    for speed in common.speed {
        lines.push(speed_words(speed).into());
    }
    lines.extend(run.company.as_ref().and_then(CompetingTasks::line).map(MarkedText::from));
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

/// A unit of time for figures that are to have the same one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeUnit {
    pub(crate) name: &'static str,
    /// Nanoseconds in it.
    pub(crate) ns: f64,
}

impl TimeUnit {
    /// The one that a time in nanoseconds is printed in.
    pub(crate) fn for_time(ns: f64) -> Self {
        let (ns, name) = words::time_unit(ns);
        Self { name, ns }
    }

    /// A time in it, without its name.
    pub(crate) fn figure(self, ns: f64) -> String {
        figure(ns / self.ns)
    }

    /// A time in it.
    pub(crate) fn words(self, ns: f64) -> String {
        format!("{} {}", self.figure(ns), self.name)
    }
}

/// How fast the CPU was, and how sure its full speed is.
fn speed_words(speed: &CpuSpeed) -> String {
    let clock = speed.clock_ghz.map_or(String::new(), |ghz| format!(" at {ghz:.2} GHz"));
    let known = match speed.level.established {
        true => "its full speed is known (from the table or three earlier runs)",
        false => "its full speed is provisional (fewer than three runs have seen it)",
    };
    format!("speed: CPU {}{clock}; {known}", cpu_list(&speed.cpus))
}

/// Why a run ended, after how many rounds, and how precise it is.
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
    // A plan of so many rounds asks for none.
    let precision = match stopping.precision > 0.0 {
        true => format!("; {widest} (asked: +-{:.1} %)", stopping.precision * 100.0),
        false => String::new(),
    };
    let rounds = counted(run.rounds() as usize, "round");
    let seconds = (end.spent_ns / 1_000_000) as f64 / 1e3;
    let extended = extension_words(stopping, end.spent_ns);
    let reason = stop_reason_words(end.reason);
    format!("stopped: {reason}, after {rounds} in {seconds:.1} s{extended}{precision}")
}

/// Why a run took clearly longer than its budget; nothing of one that did not.
fn extension_words(stopping: &Stopping, spent_ns: u64) -> String {
    let budget_ns = stopping.budget_ns;
    if stopping.fixed_budget || (spent_ns as f64) < OVER_BUDGET * budget_ns as f64 {
        return String::new();
    }
    let [asked, most] = [budget_ns, stopping.most_budget_ns()].map(|ns| plain(ns as f64 / 1e9));
    format!(
        "; {asked}s+ may take up to {most} s: some cases had too few undisturbed slices after \
         {asked} s"
    )
}

/// The last round of a budget may end so many times as late without being told.
const OVER_BUDGET: f64 = 1.2;

/// Why a run ended.
pub(crate) fn stop_reason_words(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Precise => "precise enough",
        StopReason::BudgetSpent => "time is up",
        StopReason::RoundsDone => "all rounds are done",
        StopReason::Interrupted => "interrupted",
        StopReason::Failed => "nothing could be measured",
    }
}

/// A chart within a report, wherever that goes, and an empty line below it; nothing without one.
pub(crate) fn chart_printout(figure: Option<Figure>) -> Printout {
    let columns = Layout::terminal().prose.min(WIDTH);
    let look = PlotStyle { columns, colour: false, unicode: true };
    let lines =
        figure.map_or(String::new(), |figure| charts::render_text(&figure, &[], &look) + "\n");
    Printout::drawing(lines)
}

#[cfg(test)]
mod tests {
    use analysis::estimate::Speed;

    use super::*;
    use crate::report::table::Table;

    #[test]
    fn each_kind_of_figure_has_its_mark_and_its_legend() {
        let full = Estimate::at_full_speed(1500.0, 10.0, 20, 0.0, 0.95).expect("an estimate");
        let shown = |speed: Speed| value(Some(Estimate { speed, ..full }));
        let legend = |figures: &[MarkedText]| {
            let table = Printout::from(Table::new(["ns"], figures.iter().map(|of| [of.clone()])));
            legend_of_marks(|role| table.has_cell(role))
        };
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
