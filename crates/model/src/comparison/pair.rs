//! Which cases belong to each other, and what is said of a pair.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Change, Terms, Wanted, answer};
use super::costs::Costs;
use super::words;
use crate::subject::{Figure, Labels, Quantity, Subcase, Subject, Values};

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
    costs: Costs,
}

impl Pair<'_> {
    pub(super) fn has_interval(&self) -> bool {
        self.costs.of.has_interval()
    }

    pub(super) fn change(&self, terms: &Terms, confidence: f64) -> Change {
        let ratio = self.costs.of.ratio(confidence);
        let (base_ns, new_ns) = self.costs.of.both();
        let (base_rounds, new_rounds) = self.costs.rounds;
        let (base_launches, new_launches) = self.costs.launches();
        let answer = answer(&self.costs, &ratio, terms.limit, confidence);
        Change {
            title: self.new.title.clone(),
            labels: by_name(&self.new.labels),
            base_case: self.base.number,
            new_case: self.new.number,
            of: self.of,
            base_ns,
            new_ns,
            base_launches,
            new_launches,
            base_rounds,
            new_rounds,
            base_failure: self.base.failure.clone(),
            new_failure: self.new.failure.clone(),
            ratio,
            answer,
            in_words: words::answer(&answer, &ratio, terms),
        }
    }
}

/// Whether these are the halves of one session.
pub(super) fn are_halves(base: &Subject, new: &Subject) -> bool {
    base.session()
        .zip(new.session())
        .is_some_and(|(one, other)| one.id == other.id && one.arm != other.arm)
}

/// What a prefix may change: the halves of a session are the same cases in spite of it.
const OF_THE_PREFIX: &[&str] = &["policy"];

fn is_same(base: &Subcase, new: &Subcase, halves: bool) -> bool {
    let counts = |(name, _): &&(String, String)| !(halves && OF_THE_PREFIX.contains(&&**name));
    base.labels.iter().filter(counts).eq(new.labels.iter().filter(counts))
}

/// All pairs, in the order of the new side, and what is left over.
pub(super) fn pairs<'a>(
    base: &'a Subject,
    new: &'a Subject,
    wanted: Wanted,
    halves: bool,
) -> (Vec<Pair<'a>>, Vec<Unpaired>) {
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    let mut taken = vec![false; base.cases.len()];
    for case in &new.cases {
        let partner = base
            .cases
            .iter()
            .enumerate()
            .position(|(index, candidate)| !taken[index] && is_same(candidate, case, halves));
        let Some(partner) = partner else {
            unpaired.push(left_over(false, case, "the base has no such case".to_string()));
            continue;
        };
        taken[partner] = true;
        let seed =
            base.seed.wrapping_add(new.seed).wrapping_add((3 << 32) + 2 * case.number as u64);
        let launch_scatter = base.launch_scatter.max(new.launch_scatter);
        let costs = |base: &Figure, new: &Figure| match (&base.values, &new.values) {
            (Values::Measured(base), Values::Measured(new)) if halves => {
                let halves = base.first().zip(new.first());
                let costs = halves.and_then(|(base, new)| Costs::paired(base, new, seed));
                costs.ok_or("no round has both halves of it")
            }
            (base, new) => {
                Costs::apart(base, new, launch_scatter).ok_or("a figure of it is no number")
            }
        };
        match pair(&base.cases[partner], case, wanted, costs) {
            Ok(pair) => pairs.push(pair),
            Err(why) => {
                let lost = case.figures.is_empty() && !base.cases[partner].figures.is_empty();
                unpaired.push(Unpaired { lost, ..left_over(false, case, why) });
            }
        }
    }
    let rest = base.cases.iter().zip(taken).filter(|(_, taken)| !taken);
    let why = || "the new one has no such case".to_string();
    unpaired.extend(rest.map(|(case, _)| left_over(true, case, why())));
    (pairs, unpaired)
}

fn by_name(labels: &Labels) -> BTreeMap<String, String> {
    labels.iter().cloned().collect()
}

fn left_over(in_base: bool, case: &Subcase, why: String) -> Unpaired {
    let (title, labels) = (case.title.clone(), by_name(&case.labels));
    Unpaired { in_base, case: case.number, title, labels, why, lost: false }
}

fn pair<'a>(
    base: &'a Subcase,
    new: &'a Subcase,
    wanted: Wanted,
    costs: impl Fn(&Figure, &Figure) -> Result<Costs, &'static str>,
) -> Result<Pair<'a>, String> {
    let both = |of: &Quantity| Some((*of, base.figure(*of)?, new.figure(*of)?));
    let Some((of, one, other)) = wanted.quantities().iter().find_map(both) else {
        return Err(match (base.figures.is_empty(), new.figures.is_empty()) {
            (true, _) => nothing("in the base", base),
            (_, true) => nothing("in the new one", new),
            _ => "there is no such figure that both have".to_string(),
        });
    };
    Ok(Pair { base, new, of, costs: costs(one, other)? })
}

fn nothing(whose: &str, case: &Subcase) -> String {
    match &case.failure {
        Some(failure) => format!("nothing was measured of it {whose}: {failure}"),
        None => format!("nothing was measured of it {whose}"),
    }
}
