//! Did it change? Cases of two results in pairs, each with the ratio of its costs, an interval and
//! an answer.
//!
//! All intervals hold together with the asked confidence, however many cases there are: each is
//! taken at 1 - (1 - confidence) / pairs (Dunn 1961). `docs/method.md` has the formulas,
//! `docs/validation.md` their measured error rates.

mod answer;
mod clock;
mod costs;
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
pub use fair::Conditions;
pub(crate) use fair::bears;
pub use gate::{ComparisonGate, GateVerdict};
pub use pair::UnpairedCase;
pub use several::{ComparedRun, FarthestCase, PairwiseComparison};

use crate::estimate::widest;
use crate::marked;
use crate::marked::MarkedText;
use crate::results::{ComparisonSide, Results};

/// Version of the comparison's JSON form. 2: by launches at full speed, `more` in place of
/// `more_rounds`. 3: `gate`. 4: times at one clock, `clocks`. 5: labels of the
/// sides, `same_kernel`. 6: the answer `bounded`.
pub const SCHEMA: u32 = 6;

/// The limit where none is given: 3 %.
pub const LIMIT: f64 = 0.03;

/// All that a comparison says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of this form.
    pub schema: u32,
    /// What the other is compared with.
    pub base: ComparisonSide,
    /// What is compared.
    pub new: ComparisonSide,
    /// How.
    pub terms: ComparisonTerms,
    /// Whether both were measured in one session and are compared round by round.
    pub paired: bool,
    /// What differs in machine and program, and whether the comparison is fair.
    pub conditions: Conditions,
    /// The core's clocks of both, where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockDifference>,
    /// Confidence of each single interval, so that all together hold with `terms.confidence`.
    pub confidence_each: f64,
    /// Cases that both have, in the order of the new one.
    pub changes: Vec<CaseChange>,
    /// Cases that one of them has.
    pub unpaired: Vec<UnpairedCase>,
    /// The answer in words, in the sides' labels.
    pub in_words: MarkedText,
    /// Whether it passes as a gate at the limit of the terms.
    pub gate: ComparisonGate,
}

impl Comparison {
    /// Compares `new` with `base`.
    pub fn from_results(base: &Results, new: &Results, terms: ComparisonTerms) -> Self {
        let names = names(&base.side, &new.side);
        let paired = pair::are_halves(base, new);
        let (pairs, unpaired) = pair::pairs(base, new, &terms, paired);
        let measurable = pairs.iter().filter(|pair| pair.costs.of.has_interval()).count();
        let confidence_each = 1.0 - (1.0 - terms.confidence) / measurable.max(1) as f64;
        let changes: Vec<CaseChange> =
            pairs.iter().map(|pair| pair.change(&terms, confidence_each)).collect();
        let gate = ComparisonGate::of(&changes, &lost(&changes, &unpaired), names, terms.limit);
        Self {
            schema: SCHEMA,
            base: base.side.clone(),
            new: new.side.clone(),
            terms,
            paired,
            conditions: Conditions::of(base, new, terms.across, paired),
            clocks: ClockDifference::of(base, new, &changes),
            confidence_each,
            in_words: in_words(&changes, names, terms.limit),
            changes,
            unpaired,
            gate,
        }
    }

    /// Returns what base and new are called in sentences: their labels, unless these are the same.
    pub fn names(&self) -> [&str; 2] {
        names(&self.base, &self.new)
    }

    /// Whether a case has become slower beyond the limit: changed, and its ratio above it.
    pub fn is_worse_beyond_limit(&self) -> bool {
        self.changes.iter().any(CaseChange::is_worse_beyond_limit)
    }

    /// What the base measured and the new side was to measure and could not: title and reason of
    /// each. A gate that passed over it would pass a change that breaks the case.
    pub fn lost(&self) -> Vec<(&str, &str)> {
        lost(&self.changes, &self.unpaired)
    }

    /// The widest relative half-width of the ratios' intervals, for a session to stop by; absent as
    /// long as one of them has none. What failed is left out, as in a run: it must not keep the
    /// others going.
    pub fn worst_precision(&self) -> Option<f64> {
        let has_failed =
            |change: &&CaseChange| change.base_failure.is_some() || change.new_failure.is_some();
        let open = self.changes.iter().filter(|change| !has_failed(change));
        widest(open.map(|change| change.ratio.relative_half_width()))
    }
}

/// What the sides are called in words: by their labels, unless these are the same.
fn names<'a>(base: &'a ComparisonSide, new: &'a ComparisonSide) -> [&'a str; 2] {
    if base.label == new.label { ["base", "new"] } else { [&base.label, &new.label] }
}

/// The answer of all cases, of parts of a switch behind the one that changed most.
fn in_words(changes: &[CaseChange], names: [&str; 2], limit: f64) -> MarkedText {
    let headline = headline::headline(changes, names, limit);
    match answer::moved_most(changes) {
        Some(most) => marked![most, "; ", headline],
        None => headline,
    }
}

fn lost<'a>(changes: &'a [CaseChange], unpaired: &'a [UnpairedCase]) -> Vec<(&'a str, &'a str)> {
    let whole = unpaired.iter().filter(|left| left.lost);
    let partly = changes.iter().filter(|change| change.is_lost());
    let whole = whole.map(|left| (&*left.title, &*left.why));
    let partly = partly.filter_map(|lost| Some((&*lost.title, lost.new_failure.as_deref()?)));
    whole.chain(partly).collect()
}

#[cfg(test)]
mod tests;
