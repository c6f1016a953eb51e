//! Whether a change may pass: PASS, FAIL or UNDECIDED, with the reasons.

use rundata::experiment::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{CaseChange, ChangeAnswer, at_least, percent};
use super::costs::UndecidedReason;
use super::headline::asked;
use crate::marked;
use crate::marked::{MarkedText, SpanRole};

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Verdict")]
pub enum GateVerdict {
    /// Every case that both sides have is shown to be slower by no more than the limit, or not
    /// slower at all.
    Pass,
    /// A case is slower by more than the limit.
    Fail,
    /// No case is shown to be slower by more than the limit, and not every one is shown not to be.
    Undecided,
}

named!(GateVerdict, "verdict of a gate", Pass => "PASS", Fail => "FAIL", Undecided => "UNDECIDED");

impl GateVerdict {
    /// Returns the name, marked as what it means to a reader.
    pub fn marked(self) -> MarkedText {
        let role = match self {
            Self::Pass => SpanRole::Better,
            Self::Fail => SpanRole::Worse,
            Self::Undecided => SpanRole::Doubtful,
        };
        MarkedText::new(role, self.name())
    }
}

/// The verdict and its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Gate")]
pub struct ComparisonGate {
    /// The verdict.
    pub verdict: GateVerdict,
    /// The cases behind it, the worst first.
    pub reasons: Vec<String>,
    /// The verdict and what it rests on: `FAIL: 1 of 3 cases is slower by more than 3 %`.
    pub summary: MarkedText,
    /// The same with the worst case, in one line.
    pub in_words: MarkedText,
    /// The verdict and the worst case alone: `FAIL: ring of 64 is 4.9 % slower (4.1 to 5.7 %)`; the
    /// summary without cases.
    pub brief: MarkedText,
    /// The worst case alone and what would decide it, as `in_words` has it behind the summary;
    /// empty without cases, and in a verdict that was read from JSON.
    #[serde(skip)]
    pub worst: String,
}

impl ComparisonGate {
    /// `lost` are cases, each with the reason, that the base measured and the new side could not.
    pub(super) fn of(
        changes: &[CaseChange],
        lost: &[(&str, &str)],
        names: [&str; 2],
        limit: f64,
    ) -> Self {
        let (all, beyond) = (changes.len(), percent(limit));
        let all_measured = lost.is_empty();
        let lost = lost
            .iter()
            .map(|(title, why)| format!("{title} was measured in {} only: {why}", names[0]));
        let slower = worst_first(changes.iter().filter(|change| change.is_worse_beyond_limit()));
        let open = worst_first(changes.iter().filter(|change| !change.is_within(limit)));
        let open: Vec<&CaseChange> = open.collect();
        let are_all_wide = all_measured && open.iter().all(|change| change.is_tested());
        let aside = beside_the_answer(&open, changes);
        let next = open.first().filter(|_| all_measured).and_then(|worst| next_step(worst));
        let slower: Vec<String> =
            slower.map(|change| format!("{} is {}", change.title, how_slow(change))).collect();
        let open: Vec<String> = lost
            .chain(
                open.iter().map(|change| format!("{} {}", change.title, still_open(change, names))),
            )
            .collect();
        let (verdict, what, reasons) = match (all, slower.len(), open.len()) {
            (0, ..) => (GateVerdict::Undecided, "no case in common".to_string(), open),
            (1, 0, 0) => (GateVerdict::Pass, format!("not slower by more than {beyond}"), open),
            (_, 0, 0) => (
                GateVerdict::Pass,
                format!("none of {all} cases is slower by more than {beyond}"),
                open,
            ),
            (2.., 0, many) if !are_all_wide => {
                let verb = if many == 1 { "is" } else { "are" };
                (GateVerdict::Undecided, format!("{many} of {all} cases {verb} open{aside}"), open)
            }
            (_, 0, many) => {
                (GateVerdict::Undecided, some(many, all, "may be", &beyond) + &aside, open)
            }
            (_, 1, _) => (GateVerdict::Fail, some(1, all, "is", &beyond), slower),
            (_, many, _) => (GateVerdict::Fail, some(many, all, "are", &beyond), slower),
        };
        let more = match reasons.len() {
            0 | 1 => String::new(),
            2 => " (and 1 more case)".to_string(),
            many => format!(" (and {} more cases)", many - 1),
        };
        let next = next.filter(|_| verdict == GateVerdict::Undecided).unwrap_or_default();
        let worst = reasons.first().map_or(String::new(), |worst| format!("{worst}{more}{next}"));
        let summary = marked![verdict.marked(), format!(": {what}")];
        let (in_words, brief) = if worst.is_empty() {
            (summary.clone(), summary.clone())
        } else {
            (marked![&summary, ": ", &worst], marked![verdict.marked(), ": ", &worst])
        };
        Self { verdict, in_words, summary, brief, worst, reasons }
    }
}

/// Returns how many of the open cases the comparison's answer does not count: ` (2 rings of one among
/// them)`; empty where it counts all.
fn beside_the_answer(open: &[&CaseChange], changes: &[CaseChange]) -> String {
    let asked: Vec<&CaseChange> = asked(changes).collect();
    let (mut rings_of_one, mut answered) = (0, 0);
    for change in open {
        if asked.iter().any(|counted| std::ptr::eq(*counted, *change)) {
            continue;
        }
        let count = if change.is_ring_of_one() { &mut rings_of_one } else { &mut answered };
        *count += 1;
    }
    let mut parts = Vec::new();
    match rings_of_one {
        0 => {}
        1 => parts.push("1 ring of one".to_string()),
        many => parts.push(format!("{many} rings of one")),
    }
    if answered > 0 {
        parts.push(format!("{answered} answered under fifo"));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!(" ({} among them)", parts.join(", "))
}

/// `2 of 3 cases may be slower by more than 3 %`.
fn some(many: usize, all: usize, verb: &str, beyond: &str) -> String {
    match all {
        1 => format!("{verb} slower by more than {beyond}"),
        _ => format!("{many} of {all} cases {verb} slower by more than {beyond}"),
    }
}

/// Those of which least is known first, then by how much slower they may be.
fn worst_first<'a>(
    changes: impl Iterator<Item = &'a CaseChange>,
) -> impl Iterator<Item = &'a CaseChange> {
    let most =
        |change: &CaseChange| change.ratio.interval().map_or(f64::INFINITY, |(_, high)| high);
    let mut all: Vec<&CaseChange> = changes.collect();
    all.sort_by(|one, other| most(other).total_cmp(&most(one)));
    all.into_iter()
}

/// By how much a case is slower: `4.9 % slower (4.1 to 5.7 %)`.
fn how_slow(change: &CaseChange) -> String {
    let more = |ratio: f64| (ratio - 1.0) * 100.0;
    let by = change
        .ratio
        .value
        .map_or("slower".to_string(), |ratio| format!("{:.1} % slower", more(ratio)));
    match change.ratio.interval() {
        Some((low, high)) => format!("{by} ({:.1} to {:.1} %)", more(low), more(high)),
        None => by,
    }
}

/// What would decide a case whose interval is too wide, as a sentence of its own.
fn next_step(change: &CaseChange) -> Option<String> {
    match change.answer {
        ChangeAnswer::CannotTell { reason: UndecidedReason::TooWide, more } => {
            more.map(|more| format!("; {}", more.in_words()))
        }
        _ => None,
    }
}

/// Why it is not shown that a case keeps to the limit.
fn still_open(change: &CaseChange, [base, new]: [&str; 2]) -> String {
    let up_to = change.ratio.interval().map(|(_, high)| (high - 1.0) * 100.0);
    let up_to = match up_to {
        Some(most) => format!("may be up to {most:.1} % slower"),
        None => "may be slower".to_string(),
    };
    match change.answer {
        ChangeAnswer::CannotTell { reason: UndecidedReason::TooWide, .. } => up_to,
        ChangeAnswer::CannotTell { reason, .. } => match reason {
            UndecidedReason::TooWide | UndecidedReason::FewRounds => {
                "has too few rounds for an interval"
            }
            UndecidedReason::NoFullSpeed => "was not measured at full speed",
            UndecidedReason::NotAlone => "was measured while other tasks ran on its CPU",
            UndecidedReason::NotEnded => "is of a run that was interrupted or is not finished",
            UndecidedReason::BaseNotResolved => {
                return format!("is not resolved from zero in {base}");
            }
            UndecidedReason::NewNotResolved => {
                return format!("is not resolved from zero in {new}");
            }
            UndecidedReason::NoInterval => "has no interval: the figures are published ones",
        }
        .to_string(),
        // The figure of such a base is no measure of how much slower.
        ChangeAnswer::Bounded { ratio, .. } => {
            format!("is {}, with a base that was not at full speed", at_least(ratio))
        }
        _ => up_to,
    }
}

impl CaseChange {
    /// Whether the case is shown to be slower by no more than the limit: all of its interval lies
    /// below, or its bound shows that it is faster.
    fn is_within(&self, limit: f64) -> bool {
        if let ChangeAnswer::Bounded { worse, .. } = self.answer {
            return !worse;
        }
        let has_answer = self.reason().is_none_or(|reason| reason == UndecidedReason::TooWide);
        let below = self.ratio.interval().is_some_and(|(_, high)| high <= 1.0 + limit);
        (has_answer && below) || self.is_worse_beyond_limit()
    }
}
