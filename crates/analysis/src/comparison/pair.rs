//! Which cases belong to each other, the costs of a pair, and what is said of it.

use std::collections::BTreeMap;

use rundata::ring::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::ratio;

use super::answer::{CaseChange, ComparedSetting, ComparisonTerms, WantedCost, answer};
use super::clock::at_one_clock;
use super::costs::{BoundedCosts, PairCosts};
use super::names;
use crate::measures;
use crate::results::{CaseFigure, CaseResults, Origin, Quantity, Results};

/// A case that one side has and the other has not, or not with a figure to compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Unpaired")]
pub struct UnpairedCase {
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
pub(super) struct CasePair<'a> {
    base: &'a CaseResults,
    new: &'a CaseResults,
    of: Quantity,
    pub(super) costs: PairCosts,
    /// The case in words, with what both have of the setting in which they differ.
    title: String,
}

impl CasePair<'_> {
    pub(super) fn change(&self, terms: &ComparisonTerms, confidence: f64) -> CaseChange {
        let ratio = self.costs.of.ratio(confidence);
        let (base_ns, new_ns) = self.costs.of.both();
        let (base_launches, new_launches) = match &self.costs.of {
            ratio::CostPair::Separate(apart) => (apart.base.groups, apart.new.groups),
            ratio::CostPair::Paired(_) => (None, None),
        };
        let answer = answer(&self.costs, &ratio, terms.limit, confidence);
        CaseChange {
            title: self.title.clone(),
            labels: self.new.labels.iter().cloned().collect(),
            base_case: self.base.number,
            new_case: self.new.number,
            quantity: self.of,
            base_ns,
            new_ns,
            base_not_quotable: self.costs.why.0.map(|why| why.with_time_unit()),
            new_not_quotable: self.costs.why.1.map(|why| why.with_time_unit()),
            base_launches,
            new_launches,
            base_rounds: self.costs.rounds.0,
            new_rounds: self.costs.rounds.1,
            base_failure: self.base.failure.clone(),
            new_failure: self.new.failure.clone(),
            measures: measures::pairs(
                self.base.summary.as_deref(),
                self.new.summary.as_deref(),
                measures::exported_measures(),
            ),
            at_one_clock: self.costs.at_one_clock,
            ratio,
            answer,
            in_words: answer.in_words(&ratio, terms.limit),
        }
    }
}

/// Returns the title of a case, with what base and new have of a setting in which they differ:
/// `ring of 2, same to free`.
fn title(
    case: &CaseResults,
    [base, new]: [&CaseResults; 2],
    across: Option<ComparedSetting>,
) -> String {
    let values =
        across.and_then(|across| Some((base.label(across.name())?, new.label(across.name())?)));
    match values {
        Some((base, new)) => format!("{}, {base} to {new}", case.title),
        None => case.title.clone(),
    }
}

/// Whether these are the halves of one session.
pub(super) fn are_halves(base: &Results, new: &Results) -> bool {
    let sessions = base.session().zip(new.session());
    sessions.is_some_and(|(one, other)| one.id == other.id && one.arm != other.arm)
}

/// What a prefix may change: the halves of a session are the same cases in spite of it.
const OF_THE_PREFIX: &[&str] = &["policy"];

fn is_same(
    base: &CaseResults,
    new: &CaseResults,
    across: Option<ComparedSetting>,
    halves: bool,
) -> bool {
    let counts = |(name, _): &&(String, String)| {
        !(halves && OF_THE_PREFIX.contains(&&**name)) && across.is_none_or(|of| of.name() != name)
    };
    base.labels.iter().filter(counts).eq(new.labels.iter().filter(counts))
}

/// All pairs, in the order of the new side, and what is left over.
pub(super) fn pairs<'a>(
    base: &'a Results,
    new: &'a Results,
    terms: &ComparisonTerms,
    halves: bool,
) -> (Vec<CasePair<'a>>, Vec<UnpairedCase>) {
    let names = names(&base.side, &new.side);
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    let launch_scatter = |of_new: usize, of_base: usize| {
        f64::max(base.case_launch_scatter(of_base), new.case_launch_scatter(of_new))
    };
    let mut left: Vec<&CaseResults> = base.compared_cases().collect();
    for case in new.compared_cases() {
        let is_partner = |other: &&CaseResults| is_same(other, case, terms.across, halves);
        // Two experiments of one run may have the same case, each measured in its own way.
        let of_experiment =
            left.iter().position(|other| other.experiment == case.experiment && is_partner(other));
        let Some(partner) = of_experiment.or_else(|| left.iter().position(is_partner)) else {
            unpaired.push(left_over(false, case, format!("{} has no such case", names[0])));
            continue;
        };
        let partner = left.remove(partner);
        let seed =
            base.seed.wrapping_add(new.seed).wrapping_add((3 << 32) + 2 * case.number as u64);
        let costs = |base: &CaseFigure, new: &CaseFigure| {
            let (base, new, open) = at_one_clock(base, new);
            let scatter = launch_scatter(case.number, partner.number);
            let bound = BoundedCosts::from_values(&base, &new, scatter, open);
            let costs = match (&base, &new) {
                (CaseFigure::Measured(base), CaseFigure::Measured(new)) if halves => {
                    let halves = base.first().zip(new.first());
                    let costs = halves.and_then(|(base, new)| PairCosts::paired(base, new, seed));
                    costs.ok_or("no round measured it in both settings")
                }
                _ => PairCosts::separate(&base, &new, scatter)
                    .ok_or("one of its figures is not a number"),
            };
            let at_one_clock = base.quantum_ns().is_some() && new.quantum_ns().is_some();
            costs.map(|costs| PairCosts {
                of: costs.of.widened_by(open),
                at_one_clock,
                bound,
                ..costs
            })
        };
        match pair(partner, case, terms.wanted, names, costs) {
            Ok(pair) => {
                let title = title(case, [partner, case], terms.across);
                pairs.push(CasePair { title, ..pair });
            }
            Err(why) => {
                let lost = case.figures.is_empty() && !partner.figures.is_empty();
                unpaired.push(UnpairedCase { lost, ..left_over(false, case, why) });
            }
        }
    }
    let why = || format!("{} has no such case", names[1]);
    unpaired.extend(left.into_iter().map(|case| left_over(true, case, why())));
    if terms.across.is_none() {
        for pair in &mut pairs {
            take_published_by_fifo(pair, [base, new], terms.wanted, &mut unpaired);
        }
        pairs.extend(pairs_with_published(base, new, terms.wanted, &mut unpaired));
    }
    name_experiments(&mut pairs);
    (pairs, unpaired)
}

/// Adds the experiment to the titles of pairs that differ in nothing else: `ring of 2, in cost`.
fn name_experiments(pairs: &mut [CasePair]) {
    let mut alike = vec![false; pairs.len()];
    for (index, pair) in pairs.iter().enumerate() {
        let is_alike = |(other, with): (usize, &CasePair)| {
            other != index && with.title == pair.title && with.new.labels == pair.new.labels
        };
        alike[index] = pairs.iter().enumerate().any(is_alike);
    }
    for (pair, is_alike) in pairs.iter_mut().zip(alike) {
        if is_alike {
            pair.title += &format!(", in {}", pair.new.experiment);
        }
    }
}

/// Compares a published figure with the run's ring under fifo where the one under the normal policy
/// does not hold, and the publication has no figure under fifo. The title then tells both policies.
///
/// Two runs are never compared so: between them a policy may be all that differs.
fn take_published_by_fifo<'a>(
    pair: &mut CasePair<'a>,
    [base, new]: [&'a Results; 2],
    wanted: WantedCost,
    unpaired: &mut Vec<UnpairedCase>,
) {
    let (is_base, run) = match (&base.side.origin, &new.side.origin) {
        (Origin::Publication { .. }, Origin::Run { .. }) => (false, new),
        (Origin::Run { .. }, Origin::Publication { .. }) => (true, base),
        _ => return,
    };
    let normal = if is_base { pair.base } else { pair.new };
    let is_free = |case: &&CaseResults| {
        unpaired.iter().any(|left| left.in_base == is_base && left.case == case.number)
    };
    if pair.costs.holds() {
        return;
    }
    let Some(fifo) = run.cases.iter().filter(is_free).find(|case| is_under_fifo(case, normal))
    else {
        return;
    };
    let (one, other) = if is_base { (fifo, pair.new) } else { (pair.base, fifo) };
    let scatter = run.case_launch_scatter(fifo.number);
    let costs = |base: &CaseFigure, new: &CaseFigure| {
        PairCosts::separate(base, new, scatter).ok_or("one of its figures is not a number")
    };
    let names = names(&base.side, &new.side);
    let Ok(by_fifo) = self::pair(one, other, wanted, names, costs) else { return };
    if !by_fifo.costs.holds() {
        return;
    }
    *pair = CasePair { title: title_by_fifo(normal), ..by_fifo };
    unpaired.retain(|left| left.in_base != is_base || left.case != fifo.number);
    let why = "it does not hold; the same ring under fifo is compared".to_string();
    unpaired.push(left_over(is_base, normal, why));
}

/// Pairs each ring that was published under the normal policy with the run's same ring under fifo,
/// where both have no other partner, and takes them out of `unpaired`.
fn pairs_with_published<'a>(
    base: &'a Results,
    new: &'a Results,
    wanted: WantedCost,
    unpaired: &mut Vec<UnpairedCase>,
) -> Vec<CasePair<'a>> {
    let (publication, run, is_run_base) = match (&base.side.origin, &new.side.origin) {
        (Origin::Publication { .. }, Origin::Run { .. }) => (base, new, false),
        (Origin::Run { .. }, Origin::Publication { .. }) => (new, base, true),
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for fifo in &run.cases {
        let is_same_ring = |normal: &&CaseResults| is_under_fifo(fifo, normal);
        let Some(normal) = publication.cases.iter().find(is_same_ring) else { continue };
        let is_one = |left: &UnpairedCase| {
            let case = if left.in_base == is_run_base { fifo } else { normal };
            left.case == case.number
        };
        if unpaired.iter().filter(|left| is_one(left)).count() < 2 {
            continue;
        }
        let (one, other) = if is_run_base { (fifo, normal) } else { (normal, fifo) };
        let scatter = run.case_launch_scatter(fifo.number);
        let costs = |base: &CaseFigure, new: &CaseFigure| {
            let bound =
                BoundedCosts::from_values(base, new, scatter, ratio::ExtraUncertainty::default());
            let costs =
                PairCosts::separate(base, new, scatter).map(|costs| PairCosts { bound, ..costs });
            costs.ok_or("one of its figures is not a number")
        };
        let names = names(&base.side, &new.side);
        if let Ok(pair) = self::pair(one, other, wanted, names, costs) {
            found.push(CasePair { title: title_by_fifo(normal), ..pair });
            unpaired.retain(|left| !is_one(left));
        }
    }
    found
}

/// Returns the title of a ring that was published under the normal policy and is compared with one
/// under fifo.
fn title_by_fifo(published: &CaseResults) -> String {
    format!("{}, here fifo, published normal", published.title)
}

/// Whether `fifo` is under SCHED_FIFO and else the same as `normal`, which is not.
fn is_under_fifo(fifo: &CaseResults, normal: &CaseResults) -> bool {
    let policies = [fifo, normal].map(|case| case.label(ComparedSetting::Policy.name()));
    policies == [Some(Policy::Fifo.name()), Some(Policy::Other.name())]
        && is_same(fifo, normal, Some(ComparedSetting::Policy), false)
}

fn left_over(in_base: bool, case: &CaseResults, why: String) -> UnpairedCase {
    let labels = case.labels.iter().cloned().collect();
    UnpairedCase { in_base, case: case.number, title: case.title.clone(), labels, why, lost: false }
}

fn pair<'a>(
    base: &'a CaseResults,
    new: &'a CaseResults,
    wanted: WantedCost,
    names: [&str; 2],
    costs: impl Fn(&CaseFigure, &CaseFigure) -> Result<PairCosts, &'static str>,
) -> Result<CasePair<'a>, String> {
    let both = |of: &Quantity| Some((*of, base.figures.get(of)?, new.figures.get(of)?));
    let nothing = |whose: &str, case: &CaseResults| {
        let why = case.failure.iter().map(|failure| format!(": {failure}")).collect::<String>();
        Err(format!("nothing was measured of it in {whose}{why}"))
    };
    match wanted.quantities().iter().find_map(both) {
        Some((of, one, other)) => {
            let mut costs = costs(one, other)?;
            if !of.needs_full_speed() {
                costs.unfit = costs.unfit.filter(|reason| !reason.is_of_speed());
            }
            Ok(CasePair { base, new, of, costs, title: new.title.clone() })
        }
        None if base.figures.is_empty() => nothing(names[0], base),
        None if new.figures.is_empty() => nothing(names[1], new),
        None => Err("the two sides have no figure in common".to_string()),
    }
}
