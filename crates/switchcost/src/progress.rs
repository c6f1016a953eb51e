//! The progress bar: on a terminal only, drawn between measurements, never by a thread of its own,
//! so that it cannot run while something is measured.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::instrument::Instrument;
use model::plan::Plan;

use crate::schedule::State;

/// Shows how far a run is.
pub(crate) struct Progress {
    bar: ProgressBar,
    budget: Duration,
    precision: f64,
    titles: Vec<String>,
}

impl Progress {
    /// A bar over the budget of `plan`; hidden when standard error is no terminal.
    pub(crate) fn new<I: Instrument>(plan: &Plan<I>, quiet: bool) -> Self {
        let budget = Duration::from_nanos(plan.stopping.budget_ns);
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let length = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg}") {
            bar.set_style(style);
        }
        let titles = plan.cases.iter().map(I::title).collect();
        Self { bar, budget, precision: plan.stopping.precision, titles }
    }

    /// Draws the state before a case.
    pub(crate) fn show(&self, state: &State) {
        let left = self.budget.saturating_sub(state.spent);
        let reached = match state.precision {
            Some(reached) => {
                format!("+-{:.1} % of +-{:.1} %", reached * 100.0, self.precision * 100.0)
            }
            None => format!("+-? of +-{:.1} %", self.precision * 100.0),
        };
        let title = self.titles.get(state.case).map_or("", String::as_str);
        let round = state.round + 1;
        self.bar
            .set_message(format!("round {round}, {title}, {reached}, {} s left", left.as_secs()));
        self.bar.set_position(u64::try_from(state.spent.as_millis()).unwrap_or(u64::MAX));
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        if self.bar.is_hidden() {
            crate::failure::say(line);
        } else {
            self.bar.println(line);
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
