//! Whether a command takes more than the first: PASS, FAIL or UNDECIDED by the ratios within
//! rounds.
//!
//! Answers and limit are those of `compare` (docs/method.md).

use analysis::comparison::{ChangeAnswer, GateVerdict, MoreNeeded, UndecidedReason, percent};
use analysis::estimate::Estimate;
use analysis::marked;
use analysis::marked::MarkedText;
use clap::ValueEnum;
use launcher::{CommandRun, Ending};
use rundata::plan::MIN_ROUNDS;
use rundata::words::{time, whole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;

use super::findings::ratio;
use super::plan::Plan;

/// Exit code where commands cannot be compared, as `compare` has it.
pub(super) const TROUBLE: u8 = 2;

/// Exit code of a gate that could not decide.
const UNDECIDED: u8 = 3;

/// Added to both counts of switches: so few come by chance, and of none there is no multiple.
const BY_CHANCE: u64 = 10;

/// A figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Gated {
    /// Real time
    Real,
    /// CPU time, of all processes that were waited for
    Cpu,
    /// Switches of both kinds
    Switches,
    /// Voluntary switches: how often it waited; others' load does not add to them
    Voluntary,
}

impl Gated {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Real => "real time",
            Self::Cpu => "CPU time",
            Self::Switches => "switches",
            Self::Voluntary => "voluntary switches",
        }
    }

    fn of(self, run: &CommandRun) -> u64 {
        let used = run.used.total();
        match self {
            Self::Real => run.used.real_ns,
            Self::Cpu => used.cpu_ns(),
            Self::Switches => used.voluntary + used.involuntary,
            Self::Voluntary => used.voluntary,
        }
    }

    /// What is added before it is divided.
    fn by_chance(self) -> u64 {
        match self {
            Self::Real | Self::Cpu => 0,
            Self::Switches | Self::Voluntary => BY_CHANCE,
        }
    }

    pub(super) fn shown(self, value: f64) -> String {
        match self {
            Self::Real | Self::Cpu => time(value),
            Self::Switches | Self::Voluntary => whole(value),
        }
    }

    /// What a ratio above 1 and one below it is.
    pub(super) fn words(self, worse: bool) -> &'static str {
        match (self, worse) {
            (Self::Real, true) => "slower",
            (Self::Real, false) => "faster",
            (_, true) => "more",
            (_, false) => "less",
        }
    }
}

/// A figure of a command beside that of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Change {
    /// Which command, from 1.
    pub(crate) command: usize,
    /// Which figure.
    pub(crate) of: Gated,
    /// Median of the first command: nanoseconds or a count.
    pub(crate) base: f64,
    /// Median of this one.
    pub(crate) new: f64,
    /// New / base within rounds, at the confidence at which all intervals hold together; absent
    /// without a round. Ten are added to each count of switches.
    pub(crate) ratio: Option<Estimate>,
    /// What follows.
    #[serde(flatten)]
    pub(crate) answer: ChangeAnswer,
}

/// What the gate says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Gate {
    /// A figure within this share of the first command's is not changed: 0.03 is 3 %.
    pub(crate) limit: f64,
    /// Each figure of each command but the first.
    pub(crate) changes: Vec<Change>,
    /// Commands that did not succeed in all runs: then nothing is compared.
    pub(crate) failed: Vec<String>,
    /// The verdict.
    pub(crate) verdict: GateVerdict,
    /// The verdict with its reason.
    pub(crate) in_words: MarkedText,
}

impl Gate {
    pub(super) fn of(plan: &Plan, runs: &[CommandRun], figures: &[Gated], limit: f64) -> Self {
        let whole: Vec<&CommandRun> = runs.iter().filter(|run| !run.interrupted).collect();
        let others = 1..plan.commands.len();
        let count = others.len() * figures.len();
        // All intervals hold together (Dunn 1961).
        let each = 1.0 - (1.0 - plan.confidence) / count.max(1) as f64;
        let plan_of_each = Plan { confidence: each, ..plan.clone() };
        let change = |command: usize, of: Gated| {
            let middle = |number: usize| {
                let own = whole.iter().filter(|run| run.command == number);
                median(&own.map(|run| of.of(run) as f64).collect::<Vec<_>>()).unwrap_or_default()
            };
            let figure = |run: &CommandRun| of.of(run) + of.by_chance();
            let ratio = ratio(&whole, [0, command], figure, &plan_of_each);
            let answer = answer(ratio.as_ref(), limit);
            Change { command, of, base: middle(0), new: middle(command), ratio, answer }
        };
        let changes: Vec<Change> = others
            .flat_map(|command| figures.iter().map(move |of| (command, *of)))
            .map(|(c, of)| change(c, of))
            .collect();
        let failed = if plan.ignore_failure { Vec::new() } else { failed(plan, &whole) };
        let (verdict, in_words) = verdict(plan, &changes, &failed, limit);
        Self { limit, changes, failed, verdict, in_words }
    }

    /// The exit code of who asked for a gate.
    pub(super) fn exit_code(&self, allow_undecided: bool) -> u8 {
        match self.verdict {
            _ if !self.failed.is_empty() => TROUBLE,
            GateVerdict::Fail => 1,
            GateVerdict::Undecided if !allow_undecided => UNDECIDED,
            GateVerdict::Undecided | GateVerdict::Pass => 0,
        }
    }
}

fn answer(ratio: Option<&Estimate>, limit: f64) -> ChangeAnswer {
    let few = |rounds: u32| ChangeAnswer::CannotTell {
        reason: UndecidedReason::FewRounds,
        more: Some(MoreNeeded::Rounds(MIN_ROUNDS.saturating_sub(rounds).max(1))),
    };
    let Some(ratio) = ratio else { return few(0) };
    let Some(ends) = ratio.interval() else { return few(ratio.rounds) };
    ChangeAnswer::from_interval([ends.low, ends.high], limit)
        .unwrap_or(ChangeAnswer::CannotTell { reason: UndecidedReason::TooWide, more: None })
}

/// `sh test: 2 of 10 runs did not succeed (exit code 1)`
fn failed(plan: &Plan, runs: &[&CommandRun]) -> Vec<String> {
    let bad = |number: usize| {
        let own = || runs.iter().filter(move |run| run.command == number);
        let bad = || own().filter(|run| run.used.ending != Ending::Exited { code: 0 });
        let ending = bad().next()?.used.ending;
        let (some, all) = (bad().count(), own().count());
        Some(format!("{}: {some} of {all} runs did not succeed ({ending})", plan.label(number)))
    };
    (0..plan.commands.len()).filter_map(bad).collect()
}

fn verdict(
    plan: &Plan,
    changes: &[Change],
    failed: &[String],
    limit: f64,
) -> (GateVerdict, MarkedText) {
    let beyond = percent(limit);
    let told = |change: &&Change| {
        let name = match plan.commands.len() {
            2 => String::new(),
            _ => format!("{}, ", plan.label(change.command)),
        };
        let more = |ratio: f64| format!("{:.1}", (ratio - 1.0) * 100.0);
        let of = format!("{name}{}", change.of.name());
        let ends = change.ratio.and_then(|ratio| Some((ratio.value, ratio.interval()?)));
        match (ends, change.answer) {
            (None, _) => format!("{of} has too few rounds for an interval (-n 5 or more)"),
            (Some((value, ends)), ChangeAnswer::Changed { .. }) => {
                let (low, high) = (more(ends.low), more(ends.high));
                format!("{of} by {} % ({low} to {high} %)", more(value))
            }
            (Some((_, ends)), _) => format!("{of} by up to {} %", more(ends.high)),
        }
    };
    let list = |some: Vec<&Change>| some.iter().map(told).collect::<Vec<_>>().join("; ");
    let (worse, rest): (Vec<&Change>, Vec<&Change>) = changes
        .iter()
        .partition(|of| of.answer == ChangeAnswer::Changed { worse: true, beyond_limit: true });
    let is_within = |of: &&Change| {
        let ends = of.ratio.and_then(|ratio| ratio.interval());
        ends.is_some_and(|ends| ends.high <= 1.0 + limit)
    };
    let open: Vec<&Change> = rest.into_iter().filter(|of| !is_within(of)).collect();
    let (verdict, why) = match (failed, &worse[..], &open[..]) {
        ([_, ..], ..) => {
            (GateVerdict::Undecided, format!("nothing was compared, as {}", failed.join("; ")))
        }
        (_, [_, ..], _) => {
            (GateVerdict::Fail, format!("more than {beyond} above the base: {}", list(worse)))
        }
        (_, _, [_, ..]) => (
            GateVerdict::Undecided,
            format!("may be more than {beyond} above the base: {}", list(open)),
        ),
        _ => (GateVerdict::Pass, format!("not more than {beyond} above the base")),
    };
    (verdict, marked![verdict.marked(), format!(": {why}")])
}
