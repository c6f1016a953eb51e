//! The progress of `switchcost run` while its commands run.

use std::time::{Duration, Instant};

use launcher::CommandRun;
use stats::{median, median_interval};

use super::plan::CommandPlan;
use crate::engine::progress::RunsProgress;

/// Time between two drawings of the bar: each takes some CPU time while a command runs.
const REDRAW_PERIOD: Duration = Duration::from_millis(200);

/// A bar with the number of runs, and the median so far of the command that ran last.
pub(super) struct RunsDisplay {
    bar: RunsProgress,
    last_drawn: Instant,
}

impl RunsDisplay {
    /// Starts the display; `is_hidden` if the commands may print.
    pub(super) fn new(plan: &CommandPlan, is_hidden: bool) -> Self {
        // The runs of a budget are not known in advance.
        let mut count = None;
        if plan.runs < u32::MAX {
            count = Some(u64::from(plan.runs) * plan.commands.len() as u64);
        }
        Self { bar: RunsProgress::new(count, is_hidden), last_drawn: Instant::now() }
    }

    /// Draws the bar after these runs, unless it was drawn just before.
    pub(super) fn show(&mut self, runs: &[CommandRun], plan: &CommandPlan) {
        let Some(last_run) = runs.last() else { return };
        if self.bar.is_hidden() || self.last_drawn.elapsed() < REDRAW_PERIOD {
            return;
        }
        self.last_drawn = Instant::now();
        let mut times = Vec::new();
        for run in runs {
            if run.command == last_run.command && !run.interrupted {
                times.push(run.used.real_ns as f64);
            }
        }
        let Some(middle) = median(&times) else { return };
        let interval = median_interval(&times, plan.confidence);
        let half_width = interval.map(|interval| interval.half_width() / middle);
        self.bar.show(runs.len() as u64, middle, half_width, &plan.label(last_run.command));
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        self.bar.end();
    }
}
