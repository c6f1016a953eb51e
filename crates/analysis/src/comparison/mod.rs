//! Did it change? The cases of two results in pairs, each with the ratio of its costs, an interval,
//! and an answer.
//!
//! Example: a ring of 2 took 1.46 us a hop in the base and 1.52 us in the new side, one launch each,
//! both known to 5 ns. The ratio is 1.52 / 1.46 = 1.041. Its logarithm has the variance
//! (5 / 1460)^2 + (5 / 1520)^2 + 2 * 0.01^2 = 0.015^2, where 0.01 is tau, the scatter between
//! launches. At 95 % the interval is 1.041 * exp(+-1.96 * 0.015) = 1.011 to 1.072. It excludes 1:
//! "4.1 % slower", but with a limit of 3 % only "perhaps beyond" it. Ten launches of each side
//! narrow it to 1.032 to 1.051, all of it beyond the limit.
//!
//! The intervals of a comparison hold together with the confidence of its terms, however many cases
//! there are: each is taken at 1 - (1 - confidence) / pairs (Dunn 1961). `docs/method.md` has the
//! formulas, `docs/validation.md` their measured error rates.

mod answer;
mod clock;
mod costs;
mod differences;
mod fair;
mod gate;
mod headline;
mod pair;
mod prefix;
mod several;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::{
    CaseChange, ChangeAnswer, ComparedSetting, ComparisonTerms, MoreNeeded, WantedCost, percent,
    round_bound,
};
pub use clock::ClockDifference;
pub use costs::UndecidedReason;
pub(crate) use differences::{machine_differences, value_in_words};
pub use fair::Conditions;
pub(crate) use fair::bearing_kind;
pub use gate::{CaseJudgement, CaseVerdict, ComparisonGate, GateVerdict};
pub use pair::UnpairedCase;
pub use several::{ComparedRun, FarthestCase, PairwiseComparison};

use crate::estimate::widest;
use crate::marked;
use crate::marked::MarkedText;
use crate::results::{ComparisonSide, Origin, Results, with_common_preempters};

/// Version of the comparison's JSON form. 2: by launches at full speed, `more` in place of
/// `more_rounds`. 3: `gate`. 4: times at one clock, `clocks`. 5: labels of the
/// sides, `same_kernel`. 6: the answer `bounded`.
pub const SCHEMA: u32 = 6;

/// Limit of a change that counts where none is given: 3 %.
pub const LIMIT: f64 = 0.03;

/// The comparison of two results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of this form.
    pub schema: u32,
    /// The side with which the new one is compared.
    pub base: ComparisonSide,
    /// The side that is compared.
    pub new: ComparisonSide,
    /// Limit, confidence, and cost that is compared.
    pub terms: ComparisonTerms,
    /// True if both were measured in one session and are compared round by round.
    pub paired: bool,
    /// Differences in machine and program, and whether the comparison is fair.
    pub conditions: Conditions,
    /// The core's clocks of both sides, where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockDifference>,
    /// Confidence of each single interval, so that all together hold with `terms.confidence`.
    pub confidence_each: f64,
    /// Cases that both sides have, in the order of the new one.
    pub changes: Vec<CaseChange>,
    /// Cases that one side has.
    pub unpaired: Vec<UnpairedCase>,
    /// The answer in words, in the labels of the sides.
    pub in_words: MarkedText,
    /// The verdict as a gate at the limit of the terms.
    pub gate: ComparisonGate,
}

/// A case that the base measured and the new side was to measure and could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostCase<'a> {
    /// The case in words.
    pub title: &'a str,
    /// The reason.
    pub why: &'a str,
}

impl Comparison {
    /// Compares `new` with `base`. Traces have the same preempters on both sides.
    pub fn from_results(base: &Results, new: &Results, terms: ComparisonTerms) -> Self {
        match with_common_preempters(&[base, new]).as_deref() {
            Some([base, new]) => Self::from_cases(base, new, terms),
            _ => Self::from_cases(base, new, terms),
        }
    }

    /// Compares the cases that both sides have.
    fn from_cases(base: &Results, new: &Results, terms: ComparisonTerms) -> Self {
        let names = names(&base.side, &new.side);
        let paired = pair::are_halves(base, new);
        let (pairs, unpaired) = pair::pair_cases(base, new, &terms);
        let measurable = pairs.iter().filter(|pair| pair.costs.values.has_interval()).count();
        let confidence_each = 1.0 - (1.0 - terms.confidence) / measurable.max(1) as f64;
        let mut changes = Vec::new();
        for pair in &pairs {
            changes.push(pair.change(&terms, confidence_each));
        }
        let lost = lost_cases(&changes, &unpaired);
        let gate = ComparisonGate::from_changes(&changes, &lost, names, terms.limit);
        Self {
            schema: SCHEMA,
            base: base.side.clone(),
            new: new.side.clone(),
            terms,
            paired,
            conditions: Conditions::from_results(base, new, terms.across, paired),
            clocks: ClockDifference::from_results(base, new, &changes),
            confidence_each,
            in_words: in_words(&changes, names, terms.limit),
            changes,
            unpaired,
            gate,
        }
    }

    /// Returns the names of base and new in sentences: their labels, unless these are the same.
    pub fn names(&self) -> [&str; 2] {
        names(&self.base, &self.new)
    }

    /// Returns whether a case has become slower beyond the limit: all of its ratio's interval is
    /// above it.
    pub fn is_worse_beyond_limit(&self) -> bool {
        self.changes.iter().any(CaseChange::is_worse_beyond_limit)
    }

    /// Returns whether the sides are two states of the whole machine, measured in one session.
    pub fn is_of_machine(&self) -> bool {
        match &self.new.origin {
            Origin::Run { session: Some(session), .. } => self.paired && session.is_of_machine(),
            _ => false,
        }
    }

    /// Returns the cases, the worst first by their ratios; those without an answer last.
    pub fn worst_first(&self) -> Vec<&CaseChange> {
        let mut sorted: Vec<&CaseChange> = self.changes.iter().collect();
        sorted.sort_by(|one, other| told_ratio(other).total_cmp(&told_ratio(one)));
        sorted
    }

    /// Returns the cases that the base measured and the new side was to measure and could not. A
    /// gate that ignored them would pass a change that breaks a case.
    pub fn lost_cases(&self) -> Vec<LostCase<'_>> {
        lost_cases(&self.changes, &self.unpaired)
    }

    /// Returns the widest relative half-width of the ratios' intervals, by which a session stops;
    /// absent while a case has no interval. Cases that failed are left out, as in a run: they must
    /// not keep the others going.
    pub fn worst_precision(&self) -> Option<f64> {
        let mut widths = Vec::new();
        for change in &self.changes {
            if change.base_failure.is_none() && change.new_failure.is_none() {
                widths.push(change.ratio.relative_half_width());
            }
        }
        widest(widths.into_iter())
    }
}

/// Returns the ratio of a case by which it is sorted; 0 without an answer.
fn told_ratio(change: &CaseChange) -> f64 {
    if change.is_tested() { change.ratio.value.unwrap_or(0.0) } else { 0.0 }
}

/// Returns the names of the sides in sentences: their labels, unless these are the same.
fn names<'a>(base: &'a ComparisonSide, new: &'a ComparisonSide) -> [&'a str; 2] {
    if base.label == new.label { ["base", "new"] } else { [&base.label, &new.label] }
}

/// Returns the answer of all cases; where parts of a switch are compared, behind the part that
/// changed most.
fn in_words(changes: &[CaseChange], names: [&str; 2], limit: f64) -> MarkedText {
    let headline = headline::headline(changes, names, limit);
    match answer::largest_part_change(changes) {
        Some(part) => marked![part, "; ", headline],
        None => headline,
    }
}

fn lost_cases<'a>(changes: &'a [CaseChange], unpaired: &'a [UnpairedCase]) -> Vec<LostCase<'a>> {
    let mut lost = Vec::new();
    for case in unpaired {
        if case.lost {
            lost.push(LostCase { title: &case.title, why: &case.why });
        }
    }
    for change in changes {
        if let (true, Some(why)) = (change.is_lost(), &change.new_failure) {
            lost.push(LostCase { title: &change.title, why });
        }
    }
    lost
}

#[cfg(test)]
mod tests;
