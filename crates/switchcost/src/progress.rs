//! The progress bar: on a terminal only, drawn between measurements, never by a thread of its own,
//! so that it cannot run while something is measured.

use std::time::Duration;

use charts::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::case::Case;
use model::plan::Plan;

use crate::failure;
use crate::schedule::State;

/// Shows how far a run is, or several, one after the other.
pub(crate) struct Progress {
    bar: ProgressBar,
    budget: Duration,
    /// What was spent on the bar before, and what this run is called, if it is one of several.
    of_whole: Option<(Duration, String)>,
    precision: f64,
    titles: Vec<String>,
}

impl Progress {
    /// A bar over the budget of `plan`; hidden when standard error is no terminal.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let budget = Duration::from_nanos(plan.stopping.budget_ns);
        Self { of_whole: None, ..Self::whole(budget, quiet).part(plan, Duration::ZERO) }
    }

    /// A bar over all of `budget`, for several runs.
    pub(crate) fn whole(budget: Duration, quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(millis(budget)), target);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg}") {
            bar.set_style(style);
        }
        Self { bar, budget, of_whole: None, precision: 0.0, titles: Vec::new() }
    }

    /// The part of it that `plan` has, which begins where `before` is spent.
    pub(crate) fn part(&self, plan: &Plan, before: Duration) -> Self {
        Self {
            bar: self.bar.clone(),
            budget: self.budget,
            of_whole: Some((before, format!("{}, ", plan.experiment))),
            precision: plan.stopping.precision,
            titles: plan.cases.iter().map(Case::title).collect(),
        }
    }

    /// Draws the state before a case.
    pub(crate) fn show(&self, state: &State) {
        let reached = state.precision.map_or("?".to_string(), |of| format!("{:.1} %", of * 100.0));
        let title = self.titles.get(state.case).map_or("", String::as_str);
        let (before, name) =
            self.of_whole.as_ref().map_or((Duration::ZERO, ""), |of| (of.0, &of.1));
        let spent = before + state.spent;
        let message = format!(
            "{name}round {}, {title}, +-{reached} of +-{:.1} %, {} s left",
            state.round + 1,
            self.precision * 100.0,
            self.budget.saturating_sub(spent).as_secs()
        );
        self.bar.set_message(printable(&message));
        self.bar.set_position(millis(spent));
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        match self.bar.is_hidden() {
            true => failure::say(line),
            false => self.bar.println(printable(line)),
        }
    }

    /// Takes the bar away, unless others come after.
    pub(crate) fn end(&self) {
        if self.of_whole.is_none() {
            self.bar.finish_and_clear();
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
