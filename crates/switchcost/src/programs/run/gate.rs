//! The gate of `--fail-above`: PASS, FAIL or UNDECIDED, by the ratios to the first command within
//! rounds.
//!
//! Answers, limit and exit codes are those of `compare` (docs/method.md). With a limit of 3 %, a
//! ratio whose interval is 1.05 to 1.08 fails, one of 0.98 to 1.02 passes, and one of 1.01 to 1.06
//! is undecided, as the command may take more than the limit allows, or less.

use analysis::comparison::{ChangeAnswer, GateVerdict, MoreNeeded, UndecidedReason, percent};
use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::MarkedText;
use clap::ValueEnum;
use launcher::CommandRun;
use rundata::plan::MIN_ROUNDS;
use rundata::words::{time, whole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Interval, median};

use super::findings::{CommandPair, complete_runs, estimate_ratio, runs_of_command};
use super::plan::CommandPlan;
use crate::base::failure::UNDECIDED;
use crate::report::output::judgements::{FigureJudgement, JudgementOutcome};

/// Exit code if commands cannot be compared.
pub(super) const TROUBLE: u8 = 2;

/// Switches that are added to both counts before they are divided. Without them, 2 switches would
/// be twice as many as 1, and no number a multiple of 0.
const ADDED_SWITCHES: u64 = 10;

/// A figure that the gate compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[schemars(rename = "Gated")]
#[serde(rename_all = "snake_case")]
pub(crate) enum GatedFigure {
    /// Real time
    Real,
    /// CPU time, of all processes that were waited for
    Cpu,
    /// Switches of both kinds
    Switches,
    /// Voluntary switches: how often it waited; others' load does not add to them
    Voluntary,
}

impl GatedFigure {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Real => "real time",
            Self::Cpu => "CPU time",
            Self::Switches => "switches",
            Self::Voluntary => "voluntary switches",
        }
    }

    /// Reads the figure of a run: nanoseconds or a count.
    fn read(self, run: &CommandRun) -> u64 {
        let total = run.used.total();
        match self {
            Self::Real => run.used.real_ns,
            Self::Cpu => total.cpu_ns(),
            Self::Switches => total.voluntary + total.involuntary,
            Self::Voluntary => total.voluntary,
        }
    }

    /// Returns the number that is added to both sides of a ratio.
    fn added_count(self) -> u64 {
        match self {
            Self::Real | Self::Cpu => 0,
            Self::Switches | Self::Voluntary => ADDED_SWITCHES,
        }
    }

    /// Formats a value with its unit.
    pub(super) fn format_value(self, value: f64) -> String {
        match self {
            Self::Real | Self::Cpu => time(value),
            Self::Switches | Self::Voluntary => whole(value),
        }
    }

    /// Returns the word for a ratio above 1 (`is_worse`) or below it.
    pub(super) fn direction(self, is_worse: bool) -> &'static str {
        match (self, is_worse) {
            (Self::Real, true) => "slower",
            (Self::Real, false) => "faster",
            (_, true) => "more",
            (_, false) => "less",
        }
    }
}

/// A figure of a command, compared with that of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Change")]
pub(crate) struct GatedChange {
    /// Number of the command, from 1.
    pub(crate) command: usize,
    /// Figure that is compared.
    #[serde(rename = "of")]
    pub(crate) figure: GatedFigure,
    /// Median of the first command: nanoseconds or a count.
    pub(crate) base: f64,
    /// Median of this command.
    pub(crate) new: f64,
    /// New / base within rounds, at the confidence at which all intervals hold together; absent
    /// without a round. Ten are added to each count of switches.
    pub(crate) ratio: Option<Estimate>,
    /// Answer by the interval of the ratio.
    #[serde(flatten)]
    pub(crate) answer: ChangeAnswer,
}

impl GatedChange {
    pub(super) fn interval(&self) -> Option<Interval> {
        self.ratio?.interval()
    }

    /// Returns whether all of the interval is above the limit.
    fn is_above_limit(&self) -> bool {
        self.answer == ChangeAnswer::Changed { worse: true, beyond_limit: true }
    }

    /// Returns whether the figure is at most `limit` above that of the first command.
    fn is_within(&self, limit: f64) -> bool {
        self.interval().is_some_and(|interval| interval.high <= 1.0 + limit)
    }
}

/// Verdict on all commands but the first, with the changes that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Gate")]
pub(crate) struct CommandGate {
    /// A figure within this share of the first command's is not changed: 0.03 is 3 %.
    pub(crate) limit: f64,
    /// Changes of each figure of each command but the first.
    pub(crate) changes: Vec<GatedChange>,
    /// Commands that did not succeed in all runs: then nothing is compared.
    pub(crate) failed: Vec<String>,
    /// Verdict.
    pub(crate) verdict: GateVerdict,
    /// Verdict with its reason.
    pub(crate) in_words: MarkedText,
}

impl CommandGate {
    /// Compares `figures` of all commands with those of the first, by their complete runs.
    pub(super) fn judge(
        plan: &CommandPlan,
        runs: &[CommandRun],
        figures: &[GatedFigure],
        limit: f64,
    ) -> Self {
        let runs = complete_runs(runs);
        let count = plan.commands.len().saturating_sub(1) * figures.len();
        // All intervals hold together (Dunn 1961).
        let confidence = 1.0 - (1.0 - plan.confidence) / count.max(1) as f64;
        let plan_of_each = CommandPlan { confidence, ..plan.clone() };
        let mut changes = Vec::new();
        for command in 1..plan.commands.len() {
            for figure in figures {
                changes.push(compare_to_first(&plan_of_each, &runs, command, *figure, limit));
            }
        }
        let failed = find_failed(plan, &runs);
        let (verdict, reason) = decide(plan, &changes, &failed, limit);
        let in_words = marked![verdict.marked(), format!(": {reason}")];
        Self { limit, changes, failed, verdict, in_words }
    }

    /// Returns the judgement on each figure of each command but the first. Where a command failed, none
    /// is judged, nor for an `unjudged` reason. `plan` has the names of the commands.
    pub(super) fn judgements(
        &self,
        plan: &CommandPlan,
        unjudged: Option<&str>,
    ) -> Vec<FigureJudgement> {
        let limit = percent(self.limit);
        let mut judgements = Vec::new();
        for change in &self.changes {
            let words = change_words(plan, change);
            let (outcome, words) = if let Some(reason) = unjudged {
                (JudgementOutcome::Unjudged, reason.to_string())
            } else if !self.failed.is_empty() {
                (JudgementOutcome::Unjudged, not_compared_words(&self.failed))
            } else if change.is_above_limit() {
                (JudgementOutcome::Fail, format!("more than {limit} above the base: {words}"))
            } else if change.is_within(self.limit) {
                (JudgementOutcome::Pass, format!("not more than {limit} above the base"))
            } else {
                let words = format!("may be more than {limit} above the base: {words}");
                (JudgementOutcome::Undecided, words)
            };
            let (label, figure) = (plan.label(change.command), change.figure.title());
            let name = format!("{label}: {figure}");
            judgements.push(FigureJudgement { name, outcome, words });
        }
        judgements
    }

    /// Returns the exit code of `--fail-above`.
    pub(super) fn exit_code(&self, allow_undecided: bool) -> u8 {
        match self.verdict {
            _ if !self.failed.is_empty() => TROUBLE,
            GateVerdict::Fail => 1,
            GateVerdict::Undecided if !allow_undecided => UNDECIDED,
            GateVerdict::Undecided | GateVerdict::Pass => 0,
        }
    }
}

fn compare_to_first(
    plan: &CommandPlan,
    runs: &[&CommandRun],
    command: usize,
    figure: GatedFigure,
    limit: f64,
) -> GatedChange {
    let pair = CommandPair { base: 0, command };
    let read = |run: &CommandRun| figure.read(run) + figure.added_count();
    let ratio = estimate_ratio(runs, pair, read, plan);
    GatedChange {
        command,
        figure,
        base: median_of_command(runs, 0, figure),
        new: median_of_command(runs, command, figure),
        ratio,
        answer: answer_by_interval(ratio.as_ref(), limit),
    }
}

/// Returns the median of a figure over the runs of a command; 0 without any.
fn median_of_command(runs: &[&CommandRun], number: usize, figure: GatedFigure) -> f64 {
    let mut values = Vec::new();
    for run in runs_of_command(runs, number) {
        values.push(figure.read(run) as f64);
    }
    median(&values).unwrap_or_default()
}

fn answer_by_interval(ratio: Option<&Estimate>, limit: f64) -> ChangeAnswer {
    let interval = ratio.and_then(Estimate::interval);
    let Some(interval) = interval else {
        let rounds = ratio.map_or(0, |ratio| ratio.rounds);
        let more = MoreNeeded::Rounds(MIN_ROUNDS.saturating_sub(rounds).max(1));
        return ChangeAnswer::CannotTell { reason: UndecidedReason::FewRounds, more: Some(more) };
    };
    ChangeAnswer::from_interval([interval.low, interval.high], limit)
        .unwrap_or(ChangeAnswer::CannotTell { reason: UndecidedReason::TooWide, more: None })
}

/// Finds the commands that failed in some runs: `sh test: 2 of 10 runs did not succeed (exit code
/// 1)`.
fn find_failed(plan: &CommandPlan, runs: &[&CommandRun]) -> Vec<String> {
    let mut failed = Vec::new();
    for number in 0..plan.commands.len() {
        let runs = runs_of_command(runs, number);
        let (mut count, mut first_ending) = (0, None);
        for run in &runs {
            if plan.is_failure(run.used.ending) {
                count += 1;
                first_ending = first_ending.or(Some(run.used.ending));
            }
        }
        if let Some(ending) = first_ending {
            let label = plan.label(number);
            let all = runs.len();
            failed.push(format!("{label}: {count} of {all} runs did not succeed ({ending})"));
        }
    }
    failed
}

/// Returns the verdict and its reason.
fn decide(
    plan: &CommandPlan,
    changes: &[GatedChange],
    failed: &[String],
    limit: f64,
) -> (GateVerdict, String) {
    let (mut above_limit, mut undecided) = (Vec::new(), Vec::new());
    for change in changes {
        if change.is_above_limit() {
            above_limit.push(change_words(plan, change));
        } else if !change.is_within(limit) {
            undecided.push(change_words(plan, change));
        }
    }
    let limit = percent(limit);
    if !failed.is_empty() {
        (GateVerdict::Undecided, not_compared_words(failed))
    } else if !above_limit.is_empty() {
        let above_limit = above_limit.join("; ");
        (GateVerdict::Fail, format!("more than {limit} above the base: {above_limit}"))
    } else if !undecided.is_empty() {
        let undecided = undecided.join("; ");
        (GateVerdict::Undecided, format!("may be more than {limit} above the base: {undecided}"))
    } else {
        (GateVerdict::Pass, format!("not more than {limit} above the base"))
    }
}

/// Returns the reason why nothing was compared.
fn not_compared_words(failed: &[String]) -> String {
    format!("nothing was compared, as {}", failed.join("; "))
}

/// Returns a change in words, with the command's label if several are compared with the first:
/// `real time by 12.3 % (10.1 to 14.9 %)`.
fn change_words(plan: &CommandPlan, change: &GatedChange) -> String {
    let mut name = change.figure.title().to_string();
    if plan.commands.len() != 2 {
        name = format!("{}, {name}", plan.label(change.command));
    }
    let (Some(ratio), Some(interval)) = (change.ratio, change.interval()) else {
        return format!("{name} has too few rounds for an interval (-n 5 or more)");
    };
    let (low, high) = (percent_above(interval.low), percent_above(interval.high));
    if let ChangeAnswer::Changed { .. } = change.answer {
        format!("{name} by {} % ({low} to {high} %)", percent_above(ratio.value))
    } else {
        format!("{name} by up to {high} %")
    }
}

/// Returns how much a ratio is above 1, in percent with one decimal.
fn percent_above(ratio: f64) -> String {
    format!("{:.1}", (ratio - 1.0) * 100.0)
}
