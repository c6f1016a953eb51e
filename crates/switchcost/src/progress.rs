//! The progress bar: on a terminal only, drawn between measurements, never by a thread of its own,
//! so that it cannot run while something is measured.

use std::time::Duration;

use charts::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::case::Case;
use model::experiment::Experiment;
use model::plan::Plan;

use crate::schedule::State;

/// One bar over several runs, one after the other.
pub(crate) struct Whole {
    bar: ProgressBar,
    budget: Duration,
}

impl Whole {
    /// A bar over all of `budget`; hidden when standard error is no terminal.
    pub(crate) fn new(budget: Duration, quiet: bool) -> Self {
        Self { bar: bar(budget, quiet), budget }
    }

    /// The part of it that `plan` has, which begins where `before` is spent.
    pub(crate) fn part(&self, plan: &Plan, before: Duration) -> Progress {
        let of_whole = Some((before, plan.experiment));
        Progress { of_whole, budget: self.budget, ..Progress::on(self.bar.clone(), plan) }
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        say_above(&self.bar, line);
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Shows how far a run is.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// What was spent on the bar before, and what this run is called, if it is one of several.
    of_whole: Option<(Duration, Experiment)>,
    budget: Duration,
    precision: f64,
    titles: Vec<String>,
}

impl Progress {
    /// A bar over the budget of `plan`; hidden when standard error is no terminal.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let budget = Duration::from_nanos(plan.stopping.budget_ns);
        Self::on(bar(budget, quiet), plan)
    }

    fn on(bar: ProgressBar, plan: &Plan) -> Self {
        let budget = Duration::from_nanos(plan.stopping.budget_ns);
        let titles = plan.cases.iter().map(Case::title).collect();
        Self { bar, of_whole: None, budget, precision: plan.stopping.precision, titles }
    }

    /// Draws the state before a case.
    pub(crate) fn show(&self, state: &State) {
        let reached = match state.precision {
            Some(reached) => {
                format!("+-{:.1} % of +-{:.1} %", reached * 100.0, self.precision * 100.0)
            }
            None => format!("+-? of +-{:.1} %", self.precision * 100.0),
        };
        let title = self.titles.get(state.case).map_or("", String::as_str);
        let round = state.round + 1;
        let (before, name) = match &self.of_whole {
            Some((before, name)) => (*before, format!("{name}, ")),
            None => (Duration::ZERO, String::new()),
        };
        let left = self.budget.saturating_sub(before + state.spent).as_secs();
        let message = format!("{name}round {round}, {title}, {reached}, {left} s left");
        self.bar.set_message(printable(&message));
        self.bar.set_position(millis(before + state.spent));
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        say_above(&self.bar, line);
    }

    /// Takes the bar away, unless others come after.
    pub(crate) fn end(&self) {
        if self.of_whole.is_none() {
            self.bar.finish_and_clear();
        }
    }
}

fn say_above(bar: &ProgressBar, line: &str) {
    if bar.is_hidden() {
        crate::failure::say(line);
    } else {
        bar.println(printable(line));
    }
}

fn bar(budget: Duration, quiet: bool) -> ProgressBar {
    let target = match quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(Some(millis(budget)), target);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
