//! The progress bar: on a terminal only, drawn between measurements, never by a thread of its own,
//! so that it cannot run while something is measured.

use std::cell::RefCell;
use std::time::Duration;

use analysis::estimate::Estimate;
use analysis::quote::{NotQuotable, brief_cost};
use charts::printable;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rundata::plan::Plan;
use rundata::run::Run;
use rundata::words::{time, two_digits};

use crate::base::failure;
use crate::base::lines::{Layout, fitted};
use crate::engine::schedule::RunState;

/// Shows how far a run is.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The rows of the table so far, each a line above the bar.
    rows: RefCell<RowLines>,
    budget: Duration,
    /// The most time that the run may take: more than the budget where that may be extended.
    max_time: Duration,
    /// Set for a plan of several experiments.
    has_parts: bool,
    precision: f64,
    titles: Vec<String>,
    /// Makes the rows of a run so far; absent where none are drawn.
    pub(crate) row_builder: Option<RowBuilder>,
}

/// Returns the rows of a run's table: the title of each, and its figure in words.
pub(crate) type RowBuilder = fn(&Run) -> Vec<(String, String)>;

/// The lines above a bar.
#[derive(Default)]
struct RowLines {
    /// The lines and the bar; absent where there is never a row.
    group: Option<MultiProgress>,
    lines: Vec<RowLine>,
}

/// A line above a bar, and the title of its row.
struct RowLine {
    title: String,
    line: ProgressBar,
}

impl Progress {
    /// Returns a bar over the budget of `plan`; hidden when standard error is no terminal.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let mut progress = Self::for_budget(Duration::from_nanos(plan.stopping.budget_ns), quiet);
        progress.has_parts = !plan.parts.is_empty();
        progress.precision = plan.stopping.precision;
        progress.max_time = Duration::from_nanos(plan.stopping.most_budget_ns());
        for case in 0..plan.cases.len() {
            progress.titles.push(plan.title(case));
        }
        if progress.has_parts && progress.is_seen() {
            // A bar that was drawn by itself would stay where it was.
            let group = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
            group.add(progress.bar.clone());
            progress.rows.borrow_mut().group = Some(group);
        }
        progress
    }

    /// Returns a bar over a budget that is not extended.
    pub(crate) fn for_budget(budget: Duration, quiet: bool) -> Self {
        Self {
            bar: bar(millis(budget), quiet),
            rows: RefCell::default(),
            budget,
            max_time: budget,
            has_parts: false,
            precision: 0.0,
            titles: Vec::new(),
            row_builder: None,
        }
    }

    /// Draws the state before a case.
    pub(crate) fn show(&self, state: &RunState) {
        self.bar.set_message(printable(&self.message(state)));
        self.bar.set_position(millis(state.spent));
    }

    /// Returns the state before a case in words.
    fn message(&self, state: &RunState) -> String {
        let title = self.titles.get(state.case).map_or("", String::as_str);
        let (round, left) = (state.round + 1, self.time_left(state.spent));
        let estimate = state.estimate.as_ref();
        if !self.has_parts {
            let so_far = so_far(estimate, state.precision, self.precision);
            return format!("{so_far}, {left}, round {round}, {title}");
        }
        match estimate.and_then(switch_so_far) {
            Some(cost) => format!("{cost}; {left}, round {round}, {title}"),
            None => format!("{left}, round {round}, {title}"),
        }
    }

    /// Returns `12 s left`, or `12 s left (52 at most)` where the budget may be extended, and then
    /// `over time: 35 s left at most`.
    fn time_left(&self, spent: Duration) -> String {
        let left = self.budget.saturating_sub(spent).as_secs();
        let most = self.max_time.saturating_sub(spent).as_secs();
        if self.max_time <= self.budget {
            format!("{left} s left")
        } else if spent < self.budget {
            format!("{left} s left ({most} at most)")
        } else {
            format!("over time: {most} s left at most")
        }
    }

    /// Draws the rows of the table so far above the bar, each at the place that it has had.
    pub(crate) fn show_rows(&self, table: &[(String, String)]) {
        let mut rows = self.rows.borrow_mut();
        let RowLines { group: Some(group), lines } = &mut *rows else { return };
        let mut width = 0;
        for (title, _) in table {
            width = width.max(title.chars().count());
        }
        for (place, (title, figure)) in table.iter().enumerate() {
            if lines.get(place).is_none_or(|row| row.title != *title) {
                let line = group.insert(place, text_line());
                lines.insert(place, RowLine { title: title.clone(), line });
            }
            let text = printable(&format!("{title:<width$}  {figure}"));
            // Each message that is set draws all lines.
            if lines[place].line.message() != text {
                lines[place].line.set_message(text);
            }
        }
        for row in lines.drain(table.len()..) {
            group.remove(&row.line);
        }
    }

    /// Draws what was found of a program so far.
    pub(crate) fn tell(&self, spent: Duration, found: &str) {
        let left = self.budget.saturating_sub(spent).as_secs();
        self.bar.set_message(printable(&format!("{found}, {left} s left")));
        self.bar.set_position(millis(spent));
    }

    /// Returns whether the bar is drawn.
    pub(crate) fn is_seen(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        if self.bar.is_hidden() {
            failure::print_message(line);
        } else {
            self.bar.println(fitted(&printable(line), Layout::terminal().prose));
        }
    }

    /// Takes the bar and the rows above it away.
    pub(crate) fn end(&self) {
        if let Some(group) = self.rows.take().group {
            // A refusal leaves the lines above the summary.
            let _ = group.clear();
            group.set_draw_target(ProgressDrawTarget::hidden());
        }
        self.bar.finish_and_clear();
    }
}

/// Returns a line of text above a bar.
fn text_line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        line.set_style(style);
    }
    line
}

/// Returns a bar over so many steps, hidden when standard error is no terminal.
fn bar(steps: u64, quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(steps), target);
    // What does not fit is cut: a line that a terminal breaks would be left behind.
    if let Ok(style) = ProgressStyle::with_template("{bar:10} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

/// Returns the figure so far and its interval beside the one asked for: `2.10 us +-4 %, asked 1 %`.
/// `widest` is the interval that the run stops by, where others are wider. Intervals are shares;
/// 0 where none is asked for.
fn so_far(estimate: Option<&Estimate>, widest: Option<f64>, asked: f64) -> String {
    let half_width = estimate.and_then(Estimate::relative_half_width);
    let mut parts = Vec::new();
    if let Some(estimate) = estimate {
        parts.push(match (estimate.answer_cost(), half_width) {
            (Ok(cost), Some(half)) => format!("{} +-{}", cost.brief_time(), percent(half)),
            _ => about(estimate).unwrap_or_else(|| brief_cost(estimate)),
        });
    }
    if let Some(widest) = widest.map(percent) {
        if half_width.map(percent).as_ref() != Some(&widest) {
            parts.push(format!("widest +-{widest}"));
        }
    }
    if asked > 0.0 {
        parts.push(format!("asked {}", percent(asked)));
    }
    if parts.is_empty() { "no figure yet".to_string() } else { parts.join(", ") }
}

fn percent(share: f64) -> String {
    format!("{} %", two_digits(100.0 * share))
}

/// Returns `about 640 ns so far` for a figure that lacks nothing but rounds for an interval.
fn about(estimate: &Estimate) -> Option<String> {
    match estimate.quote_cost() {
        Err(NotQuotable::TooFewRounds(_)) if estimate.value > 0.0 => {
            Some(format!("about {} so far", time(estimate.value)))
        }
        _ => None,
    }
}

/// Returns `a switch costs 640 ns`, or about so much so far; nothing where what was measured does
/// not hold.
fn switch_so_far(estimate: &Estimate) -> Option<String> {
    let cost = match estimate.answer_cost() {
        Ok(cost) if cost.ends().is_some() => cost.brief_time(),
        _ => about(estimate)?,
    };
    Some(format!("a switch costs {cost}"))
}

/// Shows how far the runs of commands are.
pub(crate) struct RunsProgress(ProgressBar);

impl RunsProgress {
    /// Returns a bar over so many runs, where that is known; hidden when standard error is no
    /// terminal.
    pub(crate) fn new(runs: Option<u64>, quiet: bool) -> Self {
        let bar = bar(runs.unwrap_or_default(), quiet);
        if runs.is_none() {
            bar.unset_length();
        }
        Self(bar)
    }

    /// Returns whether the bar is not drawn.
    pub(crate) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// Draws the state after so many runs: time of the last command, half-width of its interval as
    /// a share (none below five runs), and its name.
    pub(crate) fn show(&self, runs: u64, ns: f64, half_width: Option<f64>, name: &str) {
        let time = time(ns);
        let half = half_width.map_or(String::new(), |half| format!(" +-{}", percent(half)));
        let count = self.0.length().map_or(String::new(), |count| format!(" of {count}"));
        self.0.set_message(printable(&format!("{time}{half}, run {runs}{count}, {name}")));
        self.0.set_position(runs);
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use analysis::estimate::Speed;
    use flate2::read::GzDecoder;
    use rundata::case::Sample;
    use rundata::plan::Stopping;
    use rundata::run::Run;

    use super::*;
    use crate::engine::schedule::RoundRules;

    /// A run of ring that was captured on a quiet machine.
    fn captured() -> Run {
        let packed = include_bytes!("../../tests/captured/ring.jsonl.gz");
        let mut text = String::new();
        GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        Run::parse(&text).unwrap()
    }

    #[test]
    fn of_several_experiments_what_a_switch_costs_is_told_from_the_first_round_on() {
        let run = captured();
        let plan = &run.header.plan;
        let own = (plan.clone(), Vec::new());
        let stopping = Stopping { budget_ns: 60_000_000_000, ..plan.stopping.clone() };
        let whole = Plan::from_parts(vec![own], plan.seed, stopping);
        let progress = Progress::new(&whole, true);
        let line = |rounds: u32| {
            let of_rounds = run.samples.iter().filter(|sample| sample.round() < rounds);
            let samples: Vec<Sample> = of_rounds.cloned().collect();
            let estimate = (RoundRules::for_plan(&whole).estimate)(&samples);
            let spent = Duration::from_secs(5);
            progress.message(&RunState { case: 0, round: rounds, spent, precision: None, estimate })
        };
        assert_eq!(line(0), "55 s left (175 at most), round 1, ring of 1");
        assert_eq!(line(1), "a switch costs 2.00 us; 55 s left (175 at most), round 2, ring of 1");
        let last = run.rounds();
        let told = "a switch costs 1.92 us; 55 s left (175 at most), round";
        assert_eq!(line(last), format!("{told} {}, ring of 1", last + 1));
        assert_eq!(progress.time_left(Duration::from_secs(70)), "over time: 110 s left at most");
        assert_eq!(
            Progress::for_budget(Duration::from_secs(60), true).time_left(Duration::from_secs(70)),
            "0 s left"
        );
    }

    #[test]
    fn the_figure_so_far_stands_beside_what_is_asked() {
        let few = Estimate::over(&[2100.0], 5, 0.95, 1).unwrap();
        let full = Estimate { low: Some(2016.0), high: Some(2184.0), ..few };
        let contended = Estimate { speed: Speed::Contended, ..few };
        for (figure, widest, asked, words) in [
            (None, None, 0.01, "asked 1 %"),
            (None, None, 0.0, "no figure yet"),
            (None, Some(0.05), 0.025, "widest +-5 %, asked 2.5 %"),
            (Some(&few), None, 0.01, "about 2.10 us so far, asked 1 %"),
            (Some(&contended), None, 0.01, "full speed not seen, asked 1 %"),
            (Some(&full), Some(0.04), 0.01, "2.10 us +-4 %, asked 1 %"),
            (Some(&full), Some(0.123), 0.01, "2.10 us +-4 %, widest +-12 %, asked 1 %"),
            (Some(&full), None, 0.0, "2.10 us +-4 %"),
        ] {
            assert_eq!(so_far(figure, widest, asked), words);
        }
        // What does not hold is no headline; what lacks rounds only is about so much.
        let told = [&few, &full, &contended].map(switch_so_far);
        let words = ["a switch costs about 2.10 us so far", "a switch costs 2.10 us"];
        assert_eq!(told, [Some(words[0].to_string()), Some(words[1].to_string()), None]);
        let below = Estimate { value: -5.0, ..few };
        assert_eq!(switch_so_far(&below), None);
    }
}
