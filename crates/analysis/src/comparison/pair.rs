//! Finds the cases that are the same on both sides, and their costs.

use std::collections::BTreeMap;

use rundata::ring::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::ratio::{CostPair, ExtraUncertainty};

use super::answer::{
    CaseChange, ChangeAnswer, ComparedSetting, ComparisonTerms, WantedCost, answer,
};
use super::clock::{PairAtOneClock, at_one_clock};
use super::costs::{BoundedCosts, PairCosts};
use super::names;
use crate::measures;
use crate::results::{CaseFigure, CaseResults, LaunchFigure, Origin, Quantity, Results};

/// Said of a figure that a damaged file or a table has.
const NOT_A_NUMBER: &str = "one of its figures is not a number";

/// A case that one side has and the other has not, or not with a figure to compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Unpaired")]
pub struct UnpairedCase {
    /// True for a case of the base.
    pub in_base: bool,
    /// Number of the case in its plan.
    pub case: usize,
    /// The case in words.
    pub title: String,
    /// The labels that identify it.
    pub labels: BTreeMap<String, String>,
    /// The reason why it has no partner.
    pub why: String,
    /// True if the base measured it, and the new side, which has it in its plan, did not.
    pub lost: bool,
}

impl UnpairedCase {
    fn from_case(in_base: bool, case: &CaseResults, why: String) -> Self {
        Self {
            in_base,
            case: case.number,
            title: case.title.clone(),
            labels: case.labels.iter().cloned().collect(),
            why,
            lost: false,
        }
    }

    /// Returns whether it is this case of the base or of the new side.
    fn is_case(&self, in_base: bool, case: &CaseResults) -> bool {
        self.in_base == in_base && self.case == case.number
    }
}

/// Two cases that are compared.
pub(super) struct CasePair<'a> {
    base: &'a CaseResults,
    new: &'a CaseResults,
    quantity: Quantity,
    pub(super) costs: PairCosts,
    /// The case in words, with the values of the setting in which both differ.
    title: String,
}

impl<'a> CasePair<'a> {
    /// Builds a pair by the quantity that both have; a program's times do not need full speed.
    fn new(figures: CommonFigures<'a>, mut costs: PairCosts, title: String) -> Self {
        let CommonFigures { base, new, quantity, .. } = figures;
        if !quantity.needs_full_speed() {
            costs.unfit = costs.unfit.filter(|reason| !reason.is_of_speed());
        }
        if quantity.is_above_zero() {
            costs = costs.on_logarithms(figures.base_figure, figures.new_figure);
        }
        costs.are_of_traces = quantity.is_of_trace();
        Self { base, new, quantity, costs, title }
    }

    /// Returns whether two pairs have the same title and the same labels.
    fn is_named_like(&self, other: &Self) -> bool {
        self.title == other.title && self.new.labels == other.new.labels
    }

    /// Returns the change of the case, with an interval of this confidence.
    pub(super) fn change(&self, terms: &ComparisonTerms, confidence: f64) -> CaseChange {
        let ratio = self.costs.values.ratio(confidence);
        let (base_ns, new_ns) = self.costs.values.both();
        let (base_launches, new_launches) = match &self.costs.values {
            CostPair::Separate(costs) => (costs.base.groups, costs.new.groups),
            CostPair::Paired(_) => (None, None),
        };
        let mut answer = answer(&self.costs, &ratio, terms.limit, confidence);
        if self.quantity.is_of_trace() && (base_ns, new_ns) == (0.0, 0.0) {
            // What never happened has no ratio, and is the same.
            answer = ChangeAnswer::NotChanged;
        }
        let (base, new) = (self.base.summary.as_deref(), self.new.summary.as_deref());
        CaseChange {
            title: self.title.clone(),
            labels: self.new.labels.iter().cloned().collect(),
            base_case: self.base.number,
            new_case: self.new.number,
            quantity: self.quantity,
            base_ns,
            new_ns,
            base_not_quotable: self.costs.base_not_quotable.map(|why| self.quantity.why_not(&why)),
            new_not_quotable: self.costs.new_not_quotable.map(|why| self.quantity.why_not(&why)),
            base_launches,
            new_launches,
            base_rounds: self.costs.base_rounds,
            new_rounds: self.costs.new_rounds,
            base_failure: self.base.failure.clone(),
            new_failure: self.new.failure.clone(),
            measures: measures::pairs(base, new, measures::exported_measures()),
            at_one_clock: self.costs.at_one_clock,
            ratio,
            answer,
            in_words: answer.in_words(self.quantity, [base_ns, new_ns], &ratio, terms.limit),
        }
    }
}

/// Returns whether these are the two halves of a session.
pub(super) fn are_halves(base: &Results, new: &Results) -> bool {
    let (Some(base), Some(new)) = (base.session(), new.session()) else { return false };
    base.id == new.id && base.arm != new.arm
}

/// Labels that a session's prefix may change: its halves are the same cases in spite of it.
const PREFIX_LABELS: &[&str] = &["policy"];

/// Returns whether two cases have the same labels, but for the setting that is compared and, in the
/// halves of a session, for what its prefix may change.
fn is_same_case(
    base: &CaseResults,
    new: &CaseResults,
    across: Option<ComparedSetting>,
    are_halves: bool,
) -> bool {
    let counts = |(name, _): &&(String, String)| {
        let is_of_prefix = are_halves && PREFIX_LABELS.contains(&name.as_str());
        !is_of_prefix && across.is_none_or(|setting| setting.name() != name)
    };
    base.labels.iter().filter(counts).eq(new.labels.iter().filter(counts))
}

/// Pairs the cases of two results, in the order of the new side, and returns those that are left.
pub(super) fn pair_cases<'a>(
    base: &'a Results,
    new: &'a Results,
    terms: &ComparisonTerms,
) -> (Vec<CasePair<'a>>, Vec<UnpairedCase>) {
    let mut pairing = Pairing {
        base,
        new,
        names: names(&base.side, &new.side),
        terms: *terms,
        are_halves: are_halves(base, new),
        pairs: Vec::new(),
        unpaired: Vec::new(),
    };
    pairing.pair_same_cases();
    if terms.across.is_none() {
        if let Some(rings) = PublishedRings::from_results(base, new) {
            for index in 0..pairing.pairs.len() {
                pairing.replace_by_fifo(index, &rings);
            }
            pairing.pair_with_fifo(&rings);
        }
    }
    name_experiments(&mut pairing.pairs);
    (pairing.pairs, pairing.unpaired)
}

/// Returns the costs of the two halves of a session, each of which is one launch.
fn halves_costs(base: &[LaunchFigure], new: &[LaunchFigure], seed: u64) -> Option<PairCosts> {
    PairCosts::paired(base.first()?, new.first()?, seed)
}

/// Pairs of cases as they are found.
struct Pairing<'a> {
    base: &'a Results,
    new: &'a Results,
    names: [&'a str; 2],
    terms: ComparisonTerms,
    /// True if base and new are the halves of a session.
    are_halves: bool,
    pairs: Vec<CasePair<'a>>,
    unpaired: Vec<UnpairedCase>,
}

impl<'a> Pairing<'a> {
    fn pair_same_cases(&mut self) {
        let [base_name, new_name] = self.names;
        let mut left: Vec<&CaseResults> = self.base.compared_cases().collect();
        for case in self.new.compared_cases() {
            let Some(partner) = self.take_partner(&mut left, case) else {
                let why = format!("{base_name} has no such case");
                self.unpaired.push(UnpairedCase::from_case(false, case, why));
                continue;
            };
            match self.same_case_pair(partner, case) {
                Ok(pair) => self.pairs.push(pair),
                Err(why) => {
                    let lost = case.figures.is_empty() && !partner.figures.is_empty();
                    let unpaired = UnpairedCase::from_case(false, case, why);
                    self.unpaired.push(UnpairedCase { lost, ..unpaired });
                }
            }
        }
        for case in left {
            let why = format!("{new_name} has no such case");
            self.unpaired.push(UnpairedCase::from_case(true, case, why));
        }
    }

    /// Removes the base's same case from those that are left: of two experiments of a run that both
    /// have it the one of the same experiment, as each measures it in its own way.
    fn take_partner(
        &self,
        left: &mut Vec<&'a CaseResults>,
        case: &CaseResults,
    ) -> Option<&'a CaseResults> {
        let is_partner = |candidate: &CaseResults| {
            is_same_case(candidate, case, self.terms.across, self.are_halves)
        };
        let same_experiment = left
            .iter()
            .position(|candidate| candidate.experiment == case.experiment && is_partner(candidate));
        let index = match same_experiment {
            Some(index) => index,
            None => left.iter().position(|candidate| is_partner(candidate))?,
        };
        Some(left.remove(index))
    }

    fn same_case_pair(
        &self,
        base: &'a CaseResults,
        new: &'a CaseResults,
    ) -> Result<CasePair<'a>, String> {
        let figures = CommonFigures::from_cases(base, new, self.terms.wanted, self.names)?;
        let costs = self.same_case_costs(&figures)?;
        Ok(CasePair::new(figures, costs, title(base, new, self.terms.across)))
    }

    /// Returns the costs of a pair at one clock, round by round for the halves of a session.
    fn same_case_costs(&self, figures: &CommonFigures) -> Result<PairCosts, &'static str> {
        let PairAtOneClock { base, new, uncertainty } =
            at_one_clock(figures.base_figure, figures.new_figure);
        let scatter = f64::max(
            self.base.case_launch_scatter(figures.base.number),
            self.new.case_launch_scatter(figures.new.number),
        );
        let [base_scatter, new_scatter] = [figures.base_figure, figures.new_figure]
            .map(|figure| figure.launch_scatter().unwrap_or(scatter));
        let scatter = base_scatter.max(new_scatter);
        let costs = match (&base, &new) {
            (CaseFigure::Measured(base), CaseFigure::Measured(new)) if self.are_halves => {
                let seed = self.seed(figures.new.number);
                halves_costs(base, new, seed).ok_or("no round measured it in both settings")?
            }
            _ => PairCosts::separate(&base, &new, scatter).ok_or(NOT_A_NUMBER)?,
        };
        Ok(PairCosts {
            values: costs.values.widened_by(uncertainty),
            at_one_clock: base.quantum_ns().is_some() && new.quantum_ns().is_some(),
            bound: BoundedCosts::from_figures(&base, &new, scatter, uncertainty),
            ..costs
        })
    }

    /// Returns the seed for the resampling of a case's rounds.
    fn seed(&self, case: usize) -> u64 {
        let seed = self.base.seed.wrapping_add(self.new.seed);
        seed.wrapping_add((3 << 32) + 2 * case as u64)
    }

    /// Compares a published figure with the run's ring under fifo where the one under the normal
    /// policy does not hold, and the publication has no figure under fifo. The title then names both
    /// policies.
    ///
    /// Two runs are never compared so: between them a policy may be all that differs.
    fn replace_by_fifo(&mut self, index: usize, rings: &PublishedRings<'a>) {
        let (pair, in_base) = (&self.pairs[index], rings.is_run_base);
        if pair.costs.holds() {
            return;
        }
        let (normal, published) =
            if in_base { (pair.base, pair.new) } else { (pair.new, pair.base) };
        let is_free = |case: &CaseResults| {
            self.unpaired.iter().any(|unpaired| unpaired.is_case(in_base, case))
        };
        let fifo = rings.run.cases.iter().find(|case| is_free(case) && is_under_fifo(case, normal));
        let Some(fifo) = fifo else { return };
        let Some(figures) = self.published_figures(rings, fifo, published) else { return };
        let scatter = rings.run.case_launch_scatter(fifo.number);
        let costs = PairCosts::separate(figures.base_figure, figures.new_figure, scatter);
        let Some(costs) = costs else { return };
        let by_fifo = CasePair::new(figures, costs, fifo_title(normal));
        if !by_fifo.costs.holds() {
            return;
        }
        self.pairs[index] = by_fifo;
        self.unpaired.retain(|unpaired| !unpaired.is_case(in_base, fifo));
        let why = "it does not hold; the same ring under fifo is compared".to_string();
        self.unpaired.push(UnpairedCase::from_case(in_base, normal, why));
    }

    /// Pairs each ring that was published under the normal policy with the run's same ring under
    /// fifo, where both have no other partner.
    fn pair_with_fifo(&mut self, rings: &PublishedRings<'a>) {
        for fifo in &rings.run.cases {
            let mut published_cases = rings.publication.cases.iter();
            let Some(normal) = published_cases.find(|normal| is_under_fifo(fifo, normal)) else {
                continue;
            };
            let is_either = |unpaired: &UnpairedCase| {
                unpaired.is_case(rings.is_run_base, fifo)
                    || unpaired.is_case(!rings.is_run_base, normal)
            };
            let without_partner = self.unpaired.iter().filter(|unpaired| is_either(unpaired));
            if without_partner.count() < 2 {
                continue;
            }
            let Some(figures) = self.published_figures(rings, fifo, normal) else { continue };
            let scatter = rings.run.case_launch_scatter(fifo.number);
            let (base, new) = (figures.base_figure, figures.new_figure);
            let Some(costs) = PairCosts::separate(base, new, scatter) else { continue };
            let uncertainty = ExtraUncertainty::default();
            let bound = BoundedCosts::from_figures(base, new, scatter, uncertainty);
            let costs = PairCosts { bound, ..costs };
            self.pairs.push(CasePair::new(figures, costs, fifo_title(normal)));
            self.unpaired.retain(|unpaired| !is_either(unpaired));
        }
    }

    /// Returns the figures that a ring of the run and a published one have in common.
    fn published_figures(
        &self,
        rings: &PublishedRings<'a>,
        fifo: &'a CaseResults,
        published: &'a CaseResults,
    ) -> Option<CommonFigures<'a>> {
        let (base, new) = if rings.is_run_base { (fifo, published) } else { (published, fifo) };
        CommonFigures::from_cases(base, new, self.terms.wanted, self.names).ok()
    }
}

/// A run and a publication that are compared.
struct PublishedRings<'a> {
    run: &'a Results,
    publication: &'a Results,
    is_run_base: bool,
}

impl<'a> PublishedRings<'a> {
    /// Returns which side is the run; `None` where both are of one kind.
    fn from_results(base: &'a Results, new: &'a Results) -> Option<Self> {
        match (&base.side.origin, &new.side.origin) {
            (Origin::Publication { .. }, Origin::Run { .. }) => {
                Some(Self { run: new, publication: base, is_run_base: false })
            }
            (Origin::Run { .. }, Origin::Publication { .. }) => {
                Some(Self { run: base, publication: new, is_run_base: true })
            }
            _ => None,
        }
    }
}

/// Returns whether `fifo` is under SCHED_FIFO and else the same case as `normal`, which is not.
fn is_under_fifo(fifo: &CaseResults, normal: &CaseResults) -> bool {
    let policies = [fifo, normal].map(|case| case.label(ComparedSetting::Policy.name()));
    policies == [Some(Policy::Fifo.name()), Some(Policy::Other.name())]
        && is_same_case(fifo, normal, Some(ComparedSetting::Policy), false)
}

/// The first wanted quantity that two cases have in common, and its figures.
struct CommonFigures<'a> {
    base: &'a CaseResults,
    new: &'a CaseResults,
    quantity: Quantity,
    base_figure: &'a CaseFigure,
    new_figure: &'a CaseFigure,
}

impl<'a> CommonFigures<'a> {
    /// Finds it; fails with the reason why there is none, in the names of the sides.
    fn from_cases(
        base: &'a CaseResults,
        new: &'a CaseResults,
        wanted: WantedCost,
        [base_name, new_name]: [&str; 2],
    ) -> Result<Self, String> {
        for quantity in wanted.quantities() {
            if let (Some(base_figure), Some(new_figure)) =
                (base.figures.get(quantity), new.figures.get(quantity))
            {
                return Ok(Self { base, new, quantity: *quantity, base_figure, new_figure });
            }
        }
        if base.figures.is_empty() {
            return Err(nothing_measured(base, base_name));
        }
        if new.figures.is_empty() {
            return Err(nothing_measured(new, new_name));
        }
        Err("the two sides have no figure in common".to_string())
    }
}

fn nothing_measured(case: &CaseResults, side: &str) -> String {
    match &case.failure {
        Some(failure) => format!("nothing was measured of it in {side}: {failure}"),
        None => format!("nothing was measured of it in {side}"),
    }
}

/// Returns the title of the new case, with the values of the compared setting on both sides:
/// `ring of 2, same to free`.
fn title(base: &CaseResults, new: &CaseResults, across: Option<ComparedSetting>) -> String {
    if let Some(setting) = across {
        if let (Some(from), Some(to)) = (base.label(setting.name()), new.label(setting.name())) {
            return format!("{}, {from} to {to}", new.title);
        }
    }
    new.title.clone()
}

/// Returns the title of a ring that was published under the normal policy and is compared with one
/// under fifo.
fn fifo_title(published: &CaseResults) -> String {
    format!("{}, here fifo, published normal", published.title)
}

/// Adds the experiment to the titles of pairs that differ in nothing else: `ring of 2, in cost`.
fn name_experiments(pairs: &mut [CasePair]) {
    let mut titles = Vec::new();
    for pair in pairs.iter() {
        let alike = pairs.iter().filter(|other| pair.is_named_like(other)).count();
        titles.push(if alike > 1 {
            format!("{}, in {}", pair.title, pair.new.experiment)
        } else {
            pair.title.clone()
        });
    }
    for (pair, title) in pairs.iter_mut().zip(titles) {
        pair.title = title;
    }
}
