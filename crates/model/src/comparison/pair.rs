//! Which cases belong to each other, the costs of a pair, and what is said of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::ratio;

use super::answer::{Across, Change, Terms, Wanted, answer};
use super::clock::at_one_clock;
use super::costs::Costs;
use crate::subject::{Quantity, Subcase, Subject, Values};

/// A case that one side has and the other has not, or not with a figure to compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unpaired {
    /// Whether it is the base's.
    pub in_base: bool,
    /// Its number in its plan.
    pub case: usize,
    /// In words.
    pub title: String,
    /// What tells it from others.
    pub labels: BTreeMap<String, String>,
    /// Why it has no partner.
    pub why: String,
    /// The base measured it, and the new one, which has it in its plan, did not.
    pub lost: bool,
}

/// Two cases that are compared.
pub(super) struct Pair<'a> {
    base: &'a Subcase,
    new: &'a Subcase,
    of: Quantity,
    pub(super) costs: Costs,
}

impl Pair<'_> {
    pub(super) fn change(&self, terms: &Terms, confidence: f64) -> Change {
        let ratio = self.costs.of.ratio(confidence);
        let (base_ns, new_ns) = self.costs.of.both();
        let (base_launches, new_launches) = match &self.costs.of {
            ratio::Costs::Apart(apart) => (apart.base.groups, apart.new.groups),
            ratio::Costs::Within(_) => (None, None),
        };
        let answer = answer(&self.costs, &ratio, terms.limit, confidence);
        Change {
            title: self.title(terms.across),
            labels: self.new.labels.iter().cloned().collect(),
            base_case: self.base.number,
            new_case: self.new.number,
            of: self.of,
            base_ns,
            new_ns,
            base_not_quotable: self.costs.why.0.map(|why| why.of_time()),
            new_not_quotable: self.costs.why.1.map(|why| why.of_time()),
            base_launches,
            new_launches,
            base_rounds: self.costs.rounds.0,
            new_rounds: self.costs.rounds.1,
            base_failure: self.base.failure.clone(),
            new_failure: self.new.failure.clone(),
            at_one_clock: self.costs.at_one_clock,
            ratio,
            answer,
            in_words: answer.in_words(&ratio, terms.limit),
        }
    }
}

impl Pair<'_> {
    /// The title of both, with what the base and the new one have of the setting that is compared.
    fn title(&self, across: Option<Across>) -> String {
        let values = across.and_then(|across| {
            Some((self.base.label(across.name())?, self.new.label(across.name())?))
        });
        let title = &self.new.title;
        values.map_or(title.clone(), |(base, new)| format!("{title}, {base} to {new}"))
    }
}

/// Whether these are the halves of one session.
pub(super) fn are_halves(base: &Subject, new: &Subject) -> bool {
    let sessions = base.session().zip(new.session());
    sessions.is_some_and(|(one, other)| one.id == other.id && one.arm != other.arm)
}

/// What a prefix may change: the halves of a session are the same cases in spite of it.
const OF_THE_PREFIX: &[&str] = &["policy"];

fn is_same(base: &Subcase, new: &Subcase, across: Option<Across>, halves: bool) -> bool {
    let counts = |(name, _): &&(String, String)| {
        !(halves && OF_THE_PREFIX.contains(&&**name)) && across.is_none_or(|of| of.name() != name)
    };
    base.labels.iter().filter(counts).eq(new.labels.iter().filter(counts))
}

/// All pairs, in the order of the new side, and what is left over.
pub(super) fn pairs<'a>(
    base: &'a Subject,
    new: &'a Subject,
    terms: &Terms,
    halves: bool,
) -> (Vec<Pair<'a>>, Vec<Unpaired>) {
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    let launch_scatter = |of_new: usize, of_base: usize| {
        f64::max(base.launch_scatter_of(of_base), new.launch_scatter_of(of_new))
    };
    let mut left: Vec<&Subcase> = base.compared().collect();
    for case in new.compared() {
        let is_partner = |other: &&Subcase| is_same(other, case, terms.across, halves);
        // Two experiments of one run may have the same case, each measured in its own way.
        let of_experiment =
            left.iter().position(|other| other.experiment == case.experiment && is_partner(other));
        let Some(partner) = of_experiment.or_else(|| left.iter().position(is_partner)) else {
            unpaired.push(left_over(false, case, "the base has no such case".to_string()));
            continue;
        };
        let partner = left.remove(partner);
        let seed =
            base.seed.wrapping_add(new.seed).wrapping_add((3 << 32) + 2 * case.number as u64);
        let costs = |base: &Values, new: &Values| {
            let (base, new, open) = at_one_clock(base, new);
            let costs = match (&base, &new) {
                (Values::Measured(base), Values::Measured(new)) if halves => {
                    let halves = base.first().zip(new.first());
                    let costs = halves.and_then(|(base, new)| Costs::paired(base, new, seed));
                    costs.ok_or("no round measured it in both settings")
                }
                _ => Costs::apart(&base, &new, launch_scatter(case.number, partner.number))
                    .ok_or("one of its figures is not a number"),
            };
            let at_one_clock = base.quantum_ns().is_some() && new.quantum_ns().is_some();
            costs.map(|costs| Costs { of: costs.of.with_open(open), at_one_clock, ..costs })
        };
        match pair(partner, case, terms.wanted, costs) {
            Ok(pair) => pairs.push(pair),
            Err(why) => {
                let lost = case.figures.is_empty() && !partner.figures.is_empty();
                unpaired.push(Unpaired { lost, ..left_over(false, case, why) });
            }
        }
    }
    let why = || "the new one has no such case".to_string();
    unpaired.extend(left.into_iter().map(|case| left_over(true, case, why())));
    (pairs, unpaired)
}

fn left_over(in_base: bool, case: &Subcase, why: String) -> Unpaired {
    let labels = case.labels.iter().cloned().collect();
    Unpaired { in_base, case: case.number, title: case.title.clone(), labels, why, lost: false }
}

fn pair<'a>(
    base: &'a Subcase,
    new: &'a Subcase,
    wanted: Wanted,
    costs: impl Fn(&Values, &Values) -> Result<Costs, &'static str>,
) -> Result<Pair<'a>, String> {
    let both = |of: &Quantity| Some((*of, base.figures.get(of)?, new.figures.get(of)?));
    let nothing = |whose: &str, case: &Subcase| {
        let why = case.failure.iter().map(|failure| format!(": {failure}")).collect::<String>();
        Err(format!("nothing was measured of it in the {whose}{why}"))
    };
    match wanted.quantities().iter().find_map(both) {
        Some((of, one, other)) => Ok(Pair { base, new, of, costs: costs(one, other)? }),
        None if base.figures.is_empty() => nothing("base", base),
        None if new.figures.is_empty() => nothing("new one", new),
        None => Err("the two sides have no figure in common".to_string()),
    }
}
