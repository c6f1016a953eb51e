//! Finds the odd one of several runs: each is compared with each other, and the odd one differs
//! from all others in a case in which these do not differ among themselves.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;

use super::answer::{CaseChange, ChangeAnswer, ComparisonTerms};
use super::{Comparison, ComparisonSide};
use crate::marked;
use crate::marked::MarkedText;
use crate::results::{Results, with_common_preempters};

/// Version of its JSON form.
pub const SEVERAL_SCHEMA: u32 = 1;

/// Three runs or more, compared with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Several")]
pub struct PairwiseComparison {
    /// Version of this form.
    pub schema: u32,
    /// The terms; `confidence` is that of all intervals of all pairs together.
    pub terms: ComparisonTerms,
    /// The runs, in the order in which they were named.
    pub runs: Vec<ComparedRun>,
    /// Cases that every two runs have.
    pub cases: usize,
    /// Comparisons of two runs in a case, each pair once.
    pub pairs: usize,
    /// Comparisons that are inconclusive.
    pub inconclusive: usize,
    /// Numbers in `runs` of those that are the odd one in a case.
    pub odd: Vec<usize>,
    /// The answer.
    pub in_words: MarkedText,
}

/// A run among several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Member")]
pub struct ComparedRun {
    /// Name of the run as it was given.
    pub name: String,
    /// The run.
    pub side: ComparisonSide,
    /// Numbers of the runs from which it differs in some case.
    pub differs_from: Vec<usize>,
    /// The case in which it is farthest from the median of the others; absent if no case is in all,
    /// with costs that may be compared.
    pub farthest: Option<FarthestCase>,
}

/// A case of a run beside the same case of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Farthest")]
pub struct FarthestCase {
    /// The case in words.
    pub title: String,
    /// Cost of the run by the median of the others' costs.
    pub ratio: f64,
    /// From the lowest to the highest end of its ratios' intervals to each of the others; absent
    /// where one of them has no interval.
    pub interval: Option<(f64, f64)>,
    /// True if it differs from all others here, and these do not differ among themselves.
    pub is_odd: bool,
}

/// The ratio of two runs in a case, new by base.
struct CaseRatio {
    ratio: f64,
    interval: Option<(f64, f64)>,
    /// True if the interval or a bound shows a difference.
    differs: bool,
    is_inconclusive: bool,
    /// True if an interval was tested.
    is_tested: bool,
}

impl CaseRatio {
    fn from_change(change: &CaseChange) -> Option<Self> {
        use ChangeAnswer::{Bounded, CannotTell, Changed};
        Some(Self {
            ratio: change.ratio.value?,
            interval: change.ratio.interval(),
            differs: matches!(change.answer, Changed { .. } | Bounded { .. }),
            is_inconclusive: matches!(change.answer, CannotTell { .. }),
            is_tested: change.is_tested(),
        })
    }

    /// Returns the ratio with base and new exchanged.
    fn reversed(&self) -> Self {
        let interval = self.interval.map(|(low, high)| (1.0 / high, 1.0 / low));
        Self { ratio: 1.0 / self.ratio, interval, ..*self }
    }
}

/// The ratios of all pairs of runs in a case, by the numbers of base and new, both ways.
type RunRatios = BTreeMap<(usize, usize), CaseRatio>;

/// A case of several runs.
struct ComparedCase {
    title: String,
    ratios: RunRatios,
}

/// Cases by their labels.
type CasesByLabels = BTreeMap<BTreeMap<String, String>, ComparedCase>;

impl PairwiseComparison {
    /// Compares each of the named results with each. Intervals of all pairs hold together.
    pub fn from_results(sides: &[(String, Results)], terms: ComparisonTerms) -> Self {
        let by_case = with_titles(compare_pairs(sides, terms));
        let mut runs = Vec::new();
        for (number, (name, results)) in sides.iter().enumerate() {
            runs.push(ComparedRun {
                name: name.clone(),
                side: results.side.clone(),
                differs_from: differs_from(number, sides.len(), &by_case),
                farthest: farthest_case(number, sides.len(), &by_case),
            });
        }
        let mut odd = Vec::new();
        for (number, run) in runs.iter().enumerate() {
            if run.farthest.as_ref().is_some_and(|case| case.is_odd) {
                odd.push(number);
            }
        }
        let (mut ratios, mut inconclusive) = (0, 0);
        for case in by_case.values() {
            ratios += case.len();
            inconclusive += case.values().filter(|ratio| ratio.is_inconclusive).count();
        }
        let mut comparison = Self {
            schema: SEVERAL_SCHEMA,
            terms,
            runs,
            cases: by_case.len(),
            // Each pair is there both ways.
            pairs: ratios / 2,
            inconclusive: inconclusive / 2,
            odd,
            in_words: MarkedText::default(),
        };
        comparison.in_words = comparison.answer();
        comparison
    }

    fn answer(&self) -> MarkedText {
        let count = self.runs.len();
        let differ = self.runs.iter().filter(|run| !run.differs_from.is_empty()).count();
        let open = match self.inconclusive {
            0 => String::new(),
            many => format!("; {many} of {} comparisons are inconclusive", self.pairs),
        };
        if self.cases == 0 {
            return format!("the {count} runs have no case in common: nothing was compared").into();
        }
        match &self.odd[..] {
            &[run] => {
                let run = &self.runs[run];
                marked![format!("{} is the odd one out: ", run.name), distance_words(run)]
            }
            [] if differ == 0 => {
                let cases = if self.cases == 1 { "case" } else { "cases" };
                format!(
                    "None of the {count} runs is shown to differ from another in {} {cases}{open}",
                    self.cases
                )
                .into()
            }
            [] => format!(
                "No single run is the odd one out: {differ} of {count} differ from \
                        another{open}"
            )
            .into(),
            several => {
                let names: Vec<&str> = several.iter().map(|run| &*self.runs[*run].name).collect();
                format!("{} are odd ones out, each in a case of its own", names.join(", ")).into()
            }
        }
    }
}

/// Compares each run with each other, and returns the cases that all of them have.
fn compare_pairs(sides: &[(String, Results)], terms: ComparisonTerms) -> CasesByLabels {
    let count = sides.len();
    let pairs = (count * count.saturating_sub(1) / 2).max(1);
    let confidence = 1.0 - (1.0 - terms.confidence) / pairs as f64;
    let terms = ComparisonTerms { confidence, ..terms };
    let mut results: Vec<&Results> = sides.iter().map(|(_, results)| results).collect();
    let traces = with_common_preempters(&results);
    if let Some(traces) = &traces {
        results = traces.iter().collect();
    }
    let mut cases = CasesByLabels::new();
    for base in 0..count {
        for new in base + 1..count {
            let comparison = Comparison::from_cases(results[base], results[new], terms);
            for change in comparison.changes {
                let Some(ratio) = CaseRatio::from_change(&change) else { continue };
                let case = cases.entry(change.labels).or_insert_with(|| ComparedCase {
                    title: change.title,
                    ratios: RunRatios::new(),
                });
                case.ratios.insert((new, base), ratio.reversed());
                case.ratios.insert((base, new), ratio);
            }
        }
    }
    cases.retain(|_, case| case.ratios.len() == 2 * pairs);
    cases
}

/// Returns each case's ratios by its title, with its labels where two cases have the same title.
fn with_titles(cases: CasesByLabels) -> BTreeMap<String, RunRatios> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for case in cases.values() {
        *counts.entry(case.title.clone()).or_default() += 1;
    }
    let mut by_title = BTreeMap::new();
    for (labels, ComparedCase { mut title, ratios }) in cases {
        if counts[&title] > 1 {
            let labels: Vec<String> = labels.into_values().collect();
            title += &format!(" ({})", labels.join(", "));
        }
        by_title.insert(title, ratios);
    }
    by_title
}

/// Returns the numbers of the runs from which a run differs in some case.
fn differs_from(run: usize, count: usize, by_case: &BTreeMap<String, RunRatios>) -> Vec<usize> {
    let mut different = Vec::new();
    for other in 0..count {
        if other != run && by_case.values().any(|ratios| is_different(ratios, run, other)) {
            different.push(other);
        }
    }
    different
}

fn is_different(ratios: &RunRatios, one: usize, other: usize) -> bool {
    ratios.get(&(one, other)).is_some_and(|ratio| ratio.differs)
}

/// Returns the case in which a run is farthest from the others; one in which it is odd comes before
/// all others.
fn farthest_case(
    run: usize,
    count: usize,
    by_case: &BTreeMap<String, RunRatios>,
) -> Option<FarthestCase> {
    let mut farthest: Option<FarthestCase> = None;
    for (title, ratios) in by_case {
        let Some(case) = case_beside_others(run, count, title, ratios) else { continue };
        if farthest.as_ref().is_none_or(|known| !is_nearer(&case, known)) {
            farthest = Some(case);
        }
    }
    farthest
}

fn is_nearer(case: &FarthestCase, known: &FarthestCase) -> bool {
    if case.is_odd != known.is_odd {
        return known.is_odd;
    }
    let (distance, known_distance) = (case.ratio.ln().abs(), known.ratio.ln().abs());
    distance.total_cmp(&known_distance).is_lt()
}

/// Compares a case of a run with the same case of all others; absent where one of these comparisons
/// was not tested.
fn case_beside_others(
    run: usize,
    count: usize,
    title: &str,
    ratios: &RunRatios,
) -> Option<FarthestCase> {
    let (mut inverse_ratios, mut is_odd) = (Vec::new(), true);
    let mut interval = Some((f64::INFINITY, 0.0));
    for other in 0..count {
        let Some(ratio) = ratios.get(&(other, run)) else { continue };
        if !ratio.is_tested {
            return None;
        }
        inverse_ratios.push(1.0 / ratio.ratio);
        interval = match (interval, ratio.interval) {
            (Some((lowest, highest)), Some((low, high))) => {
                Some((f64::min(lowest, low), f64::max(highest, high)))
            }
            _ => None,
        };
        is_odd &= ratio.differs;
    }
    // The others must not differ among themselves.
    for (base, new) in ratios.keys() {
        let are_others = *base != run && *new != run;
        is_odd &= !(are_others && is_different(ratios, *base, *new));
    }
    // The cost by the median of the others' costs is 1 / the median of their costs by this one's.
    let ratio = 1.0 / median(&inverse_ratios)?;
    Some(FarthestCase { title: title.to_string(), ratio, interval, is_odd })
}

/// Returns how far a run is from the others: `38 % slower than the others (31 to 45 %) in ring of 2`.
fn distance_words(run: &ComparedRun) -> MarkedText {
    let Some(case) = &run.farthest else { return MarkedText::default() };
    let is_slower = case.ratio >= 1.0;
    let (direction, sign) = if is_slower { ("slower", 1.0) } else { ("faster", -1.0) };
    let ends = match case.interval {
        Some((low, high)) => {
            let (near, far) = if is_slower { (low, high) } else { (high, low) };
            let (near, far) = (sign * percent_more(near), sign * percent_more(far));
            format!(" ({near:.1} to {far:.1} %)")
        }
        None => String::new(),
    };
    let amount = format!("{:.1} %", sign * percent_more(case.ratio));
    let others = format!(" {direction} than the others{ends} in {}", case.title);
    marked![MarkedText::figure(amount), others]
}

/// Returns by how many percent a cost of this ratio is higher.
fn percent_more(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}
