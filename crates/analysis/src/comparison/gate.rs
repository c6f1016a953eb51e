//! The gate that a change may pass: PASS, FAIL or UNDECIDED, with the reasons.

use std::collections::BTreeMap;

use rundata::experiment::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{CaseChange, ChangeAnswer, at_least, percent};
use super::costs::UndecidedReason;
use super::headline::answered_cases;
use super::{Comparison, LostCase};
use crate::marked;
use crate::marked::{MarkedText, SpanRole};

/// The verdict of a gate.
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
    /// The summary with the worst case, in one line.
    pub in_words: MarkedText,
    /// The verdict and the worst case alone: `FAIL: ring of 64 is 4.9 % slower (4.1 to 5.7 %)`; the
    /// summary without cases.
    pub brief: MarkedText,
    /// The worst case alone and what would decide it, as `in_words` has it behind the summary;
    /// empty without cases, and in a verdict that was read from JSON.
    #[serde(skip)]
    pub worst: String,
}

/// What a gate finds of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseVerdict {
    /// The case is shown to keep to the limit.
    Pass,
    /// The case is slower by more than the limit.
    Fail,
    /// Neither is shown.
    Undecided,
    /// The base measured the case, and the new side could not.
    Lost,
}

/// The judgement of a gate on one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseJudgement<'a> {
    /// The case in words.
    pub title: &'a str,
    /// The labels of the case.
    pub labels: &'a BTreeMap<String, String>,
    /// Number of the case in the plan of the new side.
    pub case: usize,
    /// The verdict.
    pub verdict: CaseVerdict,
    /// The reason in words, without the title: `is 4.9 % slower (4.1 to 5.7 %)`.
    pub in_words: String,
}

impl Comparison {
    /// Judges each case at the limit of the terms, as the gate does for all together: first those
    /// that both sides have, then those that only the base has and the new side was to measure.
    pub fn judgements(&self) -> Vec<CaseJudgement<'_>> {
        let (names, limit) = (self.names(), self.terms.limit);
        let mut judgements = Vec::new();
        for change in &self.changes {
            let (verdict, in_words) = judge_change(change, names, limit);
            let (title, labels, case) = (&change.title, &change.labels, change.new_case);
            judgements.push(CaseJudgement { title, labels, case, verdict, in_words });
        }
        for case in self.unpaired.iter().filter(|case| case.lost) {
            judgements.push(CaseJudgement {
                title: &case.title,
                labels: &case.labels,
                case: case.case,
                verdict: CaseVerdict::Lost,
                in_words: lost_words(&case.why, names),
            });
        }
        judgements
    }
}

/// Returns the verdict on a case with its reason. `names` are those of base and new.
fn judge_change(change: &CaseChange, names: [&str; 2], limit: f64) -> (CaseVerdict, String) {
    if change.is_worse_beyond_limit() {
        return (CaseVerdict::Fail, format!("is {}", slower_by(change)));
    }
    if let (true, Some(why)) = (change.is_lost(), &change.new_failure) {
        return (CaseVerdict::Lost, lost_words(why, names));
    }
    if change.is_within(limit) {
        return (CaseVerdict::Pass, format!("is not {}", slower_beyond(change, limit)));
    }
    (CaseVerdict::Undecided, open_reason(change, names))
}

/// Returns `slower by more than 3 %`.
fn slower_beyond(change: &CaseChange, limit: f64) -> String {
    format!("{} by more than {}", change.quantity.direction(true), percent(limit))
}

/// Returns why a case that only the base has was not judged.
fn lost_words(why: &str, [base, _]: [&str; 2]) -> String {
    format!("was measured in {base} only: {why}")
}

/// The cases of a gate by what is known of them, the worst first.
struct GateCases<'a> {
    /// Cases that both sides have.
    changes: &'a [CaseChange],
    /// Cases that are slower beyond the limit.
    slower: Vec<&'a CaseChange>,
    /// Cases that are not shown to keep to the limit.
    open: Vec<&'a CaseChange>,
    /// Cases that the base measured and the new side could not.
    lost: &'a [LostCase<'a>],
    limit: f64,
}

/// A verdict with what it rests on.
struct GateConclusion {
    verdict: GateVerdict,
    summary: String,
}

impl GateCases<'_> {
    fn conclude(&self) -> GateConclusion {
        let (total, beyond) = (self.changes.len(), percent(self.limit));
        let (slower, open) = (self.slower.len(), self.open.len() + self.lost.len());
        let (verdict, summary) = if total == 0 {
            (GateVerdict::Undecided, "no case in common".to_string())
        } else if slower == 0 && open == 0 {
            let pass = match total {
                1 => format!("not {} by more than {beyond}", self.slower_word()),
                _ => {
                    format!("none of {total} cases is {} by more than {beyond}", self.slower_word())
                }
            };
            (GateVerdict::Pass, pass)
        } else if slower == 0 {
            (GateVerdict::Undecided, self.undecided_summary(open, &beyond))
        } else {
            let verb = if slower == 1 { "is" } else { "are" };
            (GateVerdict::Fail, self.count_slower(slower, verb, &beyond))
        };
        GateConclusion { verdict, summary }
    }

    /// Returns `slower`, of traces `higher`.
    fn slower_word(&self) -> &'static str {
        self.changes.first().map_or("slower", |change| change.quantity.direction(true))
    }

    /// Returns how many cases are slower: `2 of 3 cases may be slower by more than 3 %`.
    fn count_slower(&self, count: usize, verb: &str, beyond: &str) -> String {
        let (total, slower) = (self.changes.len(), self.slower_word());
        if total == 1 {
            return format!("{verb} {slower} by more than {beyond}");
        }
        format!("{count} of {total} cases {verb} {slower} by more than {beyond}")
    }

    /// Returns how many cases are open; where all of them have an interval, that they may be slower.
    fn undecided_summary(&self, open: usize, beyond: &str) -> String {
        let total = self.changes.len();
        let have_intervals =
            self.lost.is_empty() && self.open.iter().all(|change| change.is_tested());
        let not_counted = self.cases_beside_the_answer();
        if total >= 2 && !have_intervals {
            let verb = if open == 1 { "is" } else { "are" };
            return format!("{open} of {total} cases {verb} open{not_counted}");
        }
        self.count_slower(open, "may be", beyond) + &not_counted
    }

    /// Returns how many of the open cases the comparison's answer does not count: ` (2 rings of one
    /// among them)`; empty where it counts all.
    fn cases_beside_the_answer(&self) -> String {
        let counted = answered_cases(self.changes);
        let (mut rings_of_one, mut answered) = (0, 0);
        for change in &self.open {
            if counted.iter().any(|counted| std::ptr::eq(*counted, *change)) {
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

    /// Returns the cases behind a verdict in words: those that are slower, else those that are open.
    fn reasons(&self, verdict: GateVerdict, names: [&str; 2]) -> Vec<String> {
        let mut reasons = Vec::new();
        if verdict == GateVerdict::Fail {
            for change in &self.slower {
                reasons.push(format!("{} is {}", change.title, slower_by(change)));
            }
            return reasons;
        }
        for LostCase { title, why } in self.lost {
            reasons.push(format!("{title} {}", lost_words(why, names)));
        }
        for change in &self.open {
            reasons.push(format!("{} {}", change.title, open_reason(change, names)));
        }
        reasons
    }

    /// Returns the advice that would decide the worst open case; empty where there is none.
    fn advice(&self) -> String {
        let Some(worst) = self.open.first().filter(|_| self.lost.is_empty()) else {
            return String::new();
        };
        match worst.answer {
            ChangeAnswer::CannotTell { reason: UndecidedReason::TooWide, more: Some(more) } => {
                format!("; {}", more.in_words())
            }
            _ => String::new(),
        }
    }
}

impl ComparisonGate {
    /// Builds the gate of a comparison. `names` are those of base and new.
    pub(super) fn from_changes(
        changes: &[CaseChange],
        lost: &[LostCase],
        names: [&str; 2],
        limit: f64,
    ) -> Self {
        let slower = changes.iter().filter(|change| change.is_worse_beyond_limit());
        let open = changes.iter().filter(|change| !change.is_within(limit));
        let (slower, open) = (worst_first(slower), worst_first(open));
        let cases = GateCases { changes, slower, open, lost, limit };
        let GateConclusion { verdict, summary } = cases.conclude();
        let reasons = cases.reasons(verdict, names);
        let more = match reasons.len() {
            0 | 1 => String::new(),
            2 => " (and 1 more case)".to_string(),
            many => format!(" (and {} more cases)", many - 1),
        };
        let advice = if verdict == GateVerdict::Undecided { cases.advice() } else { String::new() };
        let summary = marked![verdict.marked(), format!(": {summary}")];
        let (worst, in_words, brief) = match reasons.first() {
            None => (String::new(), summary.clone(), summary.clone()),
            Some(reason) => {
                let worst = format!("{reason}{more}{advice}");
                let in_words = marked![&summary, ": ", &worst];
                let brief = marked![verdict.marked(), ": ", &worst];
                (worst, in_words, brief)
            }
        };
        Self { verdict, in_words, summary, brief, worst, reasons }
    }
}

/// Sorts cases by how much slower they may be, those without an interval first.
fn worst_first<'a>(changes: impl Iterator<Item = &'a CaseChange>) -> Vec<&'a CaseChange> {
    let mut sorted: Vec<&CaseChange> = changes.collect();
    sorted.sort_by(|one, other| highest_ratio(other).total_cmp(&highest_ratio(one)));
    sorted
}

fn highest_ratio(change: &CaseChange) -> f64 {
    change.ratio.interval().map_or(f64::INFINITY, |(_, high)| high)
}

/// Returns by how many percent a cost of this ratio is slower.
fn percent_slower(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// Returns by how much a case is slower: `4.9 % slower (4.1 to 5.7 %)`.
fn slower_by(change: &CaseChange) -> String {
    let slower = change.quantity.direction(true);
    let amount = match change.ratio.value {
        Some(ratio) => format!("{:.1} % {slower}", percent_slower(ratio)),
        None => slower.to_string(),
    };
    match change.ratio.interval() {
        Some((low, high)) => {
            format!("{amount} ({:.1} to {:.1} %)", percent_slower(low), percent_slower(high))
        }
        None => amount,
    }
}

/// Returns why a case is not shown to keep to the limit.
fn open_reason(change: &CaseChange, [base, new]: [&str; 2]) -> String {
    use UndecidedReason::{
        BaseNotResolved, FewRounds, NewNotResolved, NoFullSpeed, NoInterval, NotAlone, NotEnded,
        TooWide,
    };
    let slower = change.quantity.direction(true);
    match (change.answer, change.reason()) {
        // The figure of such a base does not say how much slower.
        (ChangeAnswer::Bounded { ratio, .. }, _) => {
            format!(
                "is {}, with a base that was not at full speed",
                at_least(change.quantity, ratio)
            )
        }
        (_, None | Some(TooWide)) => match change.ratio.interval() {
            Some((_, high)) => format!("may be up to {:.1} % {slower}", percent_slower(high)),
            None => format!("may be {slower}"),
        },
        (_, Some(FewRounds)) => "has too few rounds for an interval".to_string(),
        (_, Some(NoFullSpeed)) => "was not measured at full speed".to_string(),
        (_, Some(NotAlone)) => "was measured while other tasks ran on its CPU".to_string(),
        (_, Some(NotEnded)) => "is of a run that was interrupted or is not finished".to_string(),
        (_, Some(BaseNotResolved | NewNotResolved)) if change.is_none_on_one_side() => {
            let side = if change.base_ns == 0.0 { base } else { new };
            format!("was not counted in {side} at all")
        }
        (_, Some(BaseNotResolved)) => format!("is not resolved from zero in {base}"),
        (_, Some(NewNotResolved)) => format!("is not resolved from zero in {new}"),
        (_, Some(NoInterval)) => "has no interval: the figures are published ones".to_string(),
    }
}

impl CaseChange {
    /// Returns whether the case is shown to be slower by no more than the limit: all of its interval
    /// lies below, or its bound shows that it is faster. A case that is worse beyond the limit is
    /// within it, too, so that it is not counted as open.
    fn is_within(&self, limit: f64) -> bool {
        if let ChangeAnswer::Bounded { worse, .. } = self.answer {
            return !worse;
        }
        let has_answer = self.reason().is_none_or(|reason| reason == UndecidedReason::TooWide);
        let below = self.ratio.interval().is_some_and(|(_, high)| high <= 1.0 + limit);
        (has_answer && below) || self.is_worse_beyond_limit()
    }
}
