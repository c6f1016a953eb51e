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
    /// The rows of the table so far, each a line above the bar, by what they are of.
    rows: RefCell<Rows>,
    budget: Duration,
    /// The most time that the run may take: more than the budget where that may be extended.
    most: Duration,
    /// Whether the cases are those of several experiments.
    has_parts: bool,
    precision: f64,
    titles: Vec<String>,
    /// What gives the rows of a run so far; absent where none are drawn.
    pub(crate) rows_of: Option<RowBuilder>,
}

/// Gives the rows of a run's table: what each is of, and its figure in words.
pub(crate) type RowBuilder = fn(&Run) -> Vec<(String, String)>;

/// The lines above a bar.
#[derive(Default)]
struct Rows {
    /// They and the bar; absent where there is never a row.
    all: Option<MultiProgress>,
    lines: Vec<(String, ProgressBar)>,
}

impl Progress {
    /// A bar over the budget of `plan`; hidden when standard error is no terminal.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let budget = Duration::from_nanos(plan.stopping.budget_ns);
        let progress = Self {
            has_parts: !plan.parts.is_empty(),
            precision: plan.stopping.precision,
            most: Duration::from_nanos(plan.stopping.most_budget_ns()),
            titles: (0..plan.cases.len()).map(|case| plan.title(case)).collect(),
            ..Self::whole(budget, quiet)
        };
        if progress.has_parts && progress.is_seen() {
            // A bar that was drawn by itself would stay where it was.
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
            all.add(progress.bar.clone());
            progress.rows.borrow_mut().all = Some(all);
        }
        progress
    }

    /// A bar over all of `budget`.
    pub(crate) fn whole(budget: Duration, quiet: bool) -> Self {
        let (bar, rows) = (bar(millis(budget), quiet), RefCell::default());
        let titles = Vec::new();
        let (has_parts, precision) = (false, 0.0);
        Self { bar, rows, budget, most: budget, has_parts, precision, titles, rows_of: None }
    }

    /// Draws the state before a case.
    pub(crate) fn show(&self, state: &RunState) {
        self.bar.set_message(printable(&self.message(state)));
        self.bar.set_position(millis(state.spent));
    }

    /// What is told of the state before a case.
    fn message(&self, state: &RunState) -> String {
        let title = self.titles.get(state.case).map_or("", String::as_str);
        let (round, left) = (state.round + 1, self.time_left(state.spent));
        if self.has_parts {
            let found = state.figure.as_ref().and_then(switch_so_far);
            let found = found.map_or(String::new(), |found| format!("{found}; "));
            return format!("{found}{left}, round {round}, {title}");
        }
        let so_far = so_far(state.figure.as_ref(), state.precision, self.precision);
        format!("{so_far}, {left}, round {round}, {title}")
    }

    /// `12 s left`, `12 s left (52 at most)` where the budget may be extended, and then `over time:
    /// 35 s left at most`.
    fn time_left(&self, spent: Duration) -> String {
        let left = self.budget.saturating_sub(spent).as_secs();
        let most = self.most.saturating_sub(spent).as_secs();
        if self.most <= self.budget {
            format!("{left} s left")
        } else if spent < self.budget {
            format!("{left} s left ({most} at most)")
        } else {
            format!("over time: {most} s left at most")
        }
    }

    /// Draws the rows of the table so far above the bar, each at the place that it has had.
    pub(crate) fn show_rows(&self, told: &[(String, String)]) {
        let mut rows = self.rows.borrow_mut();
        let Rows { all: Some(all), lines } = &mut *rows else { return };
        let width = told.iter().map(|(what, _)| what.chars().count()).max().unwrap_or_default();
        for (place, (what, figure)) in told.iter().enumerate() {
            if lines.get(place).is_none_or(|(known, _)| known != what) {
                let line = all.insert(place, row());
                lines.insert(place, (what.clone(), line));
            }
            let text = printable(&format!("{what:<width$}  {figure}"));
            // Each message that is set draws all lines.
            if lines[place].1.message() != text {
                lines[place].1.set_message(text);
            }
        }
        for (_, line) in lines.drain(told.len()..) {
            all.remove(&line);
        }
    }

    /// Draws what was found of a program so far.
    pub(crate) fn tell(&self, spent: Duration, found: &str) {
        let left = self.budget.saturating_sub(spent).as_secs();
        self.bar.set_message(printable(&format!("{found}, {left} s left")));
        self.bar.set_position(millis(spent));
    }

    /// Whether anybody sees it.
    pub(crate) fn is_seen(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        match self.bar.is_hidden() {
            true => failure::say(line),
            false => self.bar.println(fitted(&printable(line), Layout::terminal().prose)),
        }
    }

    /// Takes the bar and the rows above it away.
    pub(crate) fn end(&self) {
        if let Some(all) = self.rows.take().all {
            // A refusal leaves the lines above the summary.
            let _ = all.clear();
            all.set_draw_target(ProgressDrawTarget::hidden());
        }
        self.bar.finish_and_clear();
    }
}

/// A line of text above a bar.
fn row() -> ProgressBar {
    let row = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        row.set_style(style);
    }
    row
}

/// A bar over so many steps, hidden when standard error is no terminal.
fn bar(steps: u64, quiet: bool) -> ProgressBar {
    let target = match quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(Some(steps), target);
    // What does not fit is cut: a line that a terminal breaks would be left behind.
    if let Ok(style) = ProgressStyle::with_template("{bar:10} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

/// The figure so far and its interval beside the one asked for: `2.10 us +-4 %, asked 1 %`.
/// `widest` is the interval that the run stops by, where others are wider; shares, 0 where none is
/// asked for.
fn so_far(figure: Option<&Estimate>, widest: Option<f64>, asked: f64) -> String {
    let percent = |share: f64| format!("{} %", two_digits(100.0 * share));
    let own = figure.and_then(Estimate::relative_half_width);
    let told = figure.map(|of| match (of.answer_cost(), own) {
        (Ok(of), Some(own)) => format!("{} +-{}", of.brief_time(), percent(own)),
        _ => about(of).unwrap_or_else(|| brief_cost(of)),
    });
    let is_wider = |widest: &f64| own.is_none_or(|own| percent(own) != percent(*widest));
    let widest = widest.filter(is_wider).map(|widest| format!("widest +-{}", percent(widest)));
    let asked = (asked > 0.0).then(|| format!("asked {}", percent(asked)));
    let parts: Vec<String> = [told, widest, asked].into_iter().flatten().collect();
    if parts.is_empty() { "no figure yet".to_string() } else { parts.join(", ") }
}

/// `about 640 ns so far`: a figure that lacks nothing but rounds for an interval.
pub(crate) fn about(figure: &Estimate) -> Option<String> {
    let lacks_rounds = matches!(figure.quote_cost(), Err(NotQuotable::TooFewRounds(_)));
    (lacks_rounds && figure.value > 0.0).then(|| format!("about {} so far", time(figure.value)))
}

/// `a switch costs 640 ns`, or about so much so far; nothing where what was measured does not hold.
pub(crate) fn switch_so_far(figure: &Estimate) -> Option<String> {
    let known = figure.answer_cost().ok().filter(|cost| cost.ends().is_some());
    let known = known.map(|cost| cost.brief_time());
    Some(format!("a switch costs {}", known.or_else(|| about(figure))?))
}

/// Shows how far the runs of commands are.
pub(crate) struct RunsProgress(ProgressBar);

impl RunsProgress {
    /// A bar over so many runs, where that is known; hidden when standard error is no terminal.
    pub(crate) fn new(runs: Option<u64>, quiet: bool) -> Self {
        let bar = bar(runs.unwrap_or_default(), quiet);
        if runs.is_none() {
            bar.unset_length();
        }
        Self(bar)
    }

    /// Whether nobody sees it.
    pub(crate) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// Draws what is known after so many runs: of the last command its time, a share of it to
    /// either side (none below five runs), and what it is called.
    pub(crate) fn show(&self, runs: u64, (ns, half_width): (f64, Option<f64>), name: &str) {
        let half = half_width.map(|half| format!(" +-{} %", two_digits(100.0 * half)));
        let (time, half) = (time(ns), half.unwrap_or_default());
        let all = self.0.length().map_or(String::new(), |all| format!(" of {all}"));
        self.0.set_message(printable(&format!("{time}{half}, run {runs}{all}, {name}")));
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
            let figure = (RoundRules::of(&whole).figure)(&samples);
            let spent = Duration::from_secs(5);
            progress.message(&RunState { case: 0, round: rounds, spent, precision: None, figure })
        };
        assert_eq!(line(0), "55 s left (175 at most), round 1, ring of 1");
        assert_eq!(line(1), "a switch costs 2.00 us; 55 s left (175 at most), round 2, ring of 1");
        let last = run.rounds();
        let told = "a switch costs 1.92 us; 55 s left (175 at most), round";
        assert_eq!(line(last), format!("{told} {}, ring of 1", last + 1));
        assert_eq!(progress.time_left(Duration::from_secs(70)), "over time: 110 s left at most");
        assert_eq!(
            Progress::whole(Duration::from_secs(60), true).time_left(Duration::from_secs(70)),
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
