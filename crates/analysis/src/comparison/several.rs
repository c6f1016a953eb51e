//! Which of several runs is the odd one: each is compared with each other, and the odd one differs
//! from all others in a case in which these do not differ among themselves.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::median;

use super::answer::{CaseChange, ChangeAnswer, ComparisonTerms};
use super::{Comparison, ComparisonSide};
use crate::marked;
use crate::marked::MarkedText;
use crate::results::Results;

/// Version of its JSON form.
pub const SEVERAL_SCHEMA: u32 = 1;

/// Three runs or more, compared with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Several")]
pub struct PairwiseComparison {
    /// Version of this form.
    pub schema: u32,
    /// How; `confidence` is that of all intervals of all pairs together.
    pub terms: ComparisonTerms,
    /// The runs, in the order in which they were named.
    pub runs: Vec<ComparedRun>,
    /// Cases that every two runs have.
    pub cases: usize,
    /// Comparisons of two runs in a case, each pair once.
    pub pairs: usize,
    /// Those of them that are inconclusive.
    pub inconclusive: usize,
    /// Numbers in `runs` of those that are the odd one in a case.
    pub odd: Vec<usize>,
    /// The answer.
    pub in_words: MarkedText,
}

/// One of several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Member")]
pub struct ComparedRun {
    /// As it was named.
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
    /// Its cost by the median of the others' costs.
    pub ratio: f64,
    /// From the lowest to the highest end of its ratios' intervals to each of the others; absent
    /// where one of them has no interval.
    pub interval: Option<(f64, f64)>,
    /// Whether it differs from all others here, and these do not differ among themselves.
    pub is_odd: bool,
}

/// What a pair of runs says of a case: new by base, its interval, and whether that is a difference.
struct CaseRatio {
    ratio: f64,
    interval: Option<(f64, f64)>,
    differs: bool,
    is_inconclusive: bool,
    /// Whether something may be built on its ratio.
    is_tested: bool,
}

impl CaseRatio {
    fn of(change: &CaseChange) -> Option<Self> {
        Some(Self {
            ratio: change.ratio.value?,
            interval: change.ratio.interval(),
            differs: matches!(
                change.answer,
                ChangeAnswer::Changed { .. } | ChangeAnswer::Bounded { .. }
            ),
            is_inconclusive: matches!(change.answer, ChangeAnswer::CannotTell { .. }),
            is_tested: change.is_tested(),
        })
    }

    /// The same with base and new exchanged.
    fn reversed(&self) -> Self {
        let interval = self.interval.map(|(low, high)| (1.0 / high, 1.0 / low));
        Self { ratio: 1.0 / self.ratio, interval, ..*self }
    }
}

/// The pairs of a case by the numbers of base and new, both ways.
type Pairs = BTreeMap<(usize, usize), CaseRatio>;

/// Cases by what tells them from each other.
type Cases = BTreeMap<BTreeMap<String, String>, (String, Pairs)>;

impl PairwiseComparison {
    /// Compares each with each, by their names. Intervals of all pairs hold together.
    pub fn from_results(sides: &[(String, Results)], terms: ComparisonTerms) -> Self {
        let count = sides.len();
        let pairs = (count * count.saturating_sub(1) / 2).max(1);
        let each =
            ComparisonTerms { confidence: 1.0 - (1.0 - terms.confidence) / pairs as f64, ..terms };
        let mut by_case = Cases::new();
        for base in 0..count {
            for new in base + 1..count {
                for change in Comparison::from_results(&sides[base].1, &sides[new].1, each).changes
                {
                    let Some(pair) = CaseRatio::of(&change) else { continue };
                    let new_case = || (change.title.clone(), Pairs::new());
                    let (_, of_case) =
                        by_case.entry(change.labels.clone()).or_insert_with(new_case);
                    of_case.insert((new, base), pair.reversed());
                    of_case.insert((base, new), pair);
                }
            }
        }
        by_case.retain(|_, (_, of_case)| of_case.len() == 2 * pairs);
        let by_case = titled(by_case);
        let runs: Vec<ComparedRun> = (0..count)
            .map(|run| ComparedRun {
                name: sides[run].0.clone(),
                side: sides[run].1.side.clone(),
                differs_from: differs_from(run, count, &by_case),
                farthest: farthest(run, count, &by_case),
            })
            .collect();
        let is_odd = |run: &usize| runs[*run].farthest.as_ref().is_some_and(|found| found.is_odd);
        let odd: Vec<usize> = (0..count).filter(is_odd).collect();
        // Each pair is there both ways.
        let all = || by_case.values().flat_map(BTreeMap::values);
        let pairs = all().count() / 2;
        let inconclusive = all().filter(|pair| pair.is_inconclusive).count() / 2;
        let cases = by_case.len();
        let mut found = Self {
            schema: SEVERAL_SCHEMA,
            terms,
            runs,
            cases,
            pairs,
            inconclusive,
            odd,
            in_words: MarkedText::default(),
        };
        found.in_words = found.answer();
        found
    }
}

/// Each case's pairs by its title, with all of its labels where two have the same.
fn titled(cases: Cases) -> BTreeMap<String, Pairs> {
    let titles: Vec<String> = cases.values().map(|(title, _)| title.clone()).collect();
    let name = |labels: BTreeMap<String, String>, title: String| {
        let is_one = titles.iter().filter(|other| **other == title).count() == 1;
        let labels = labels.into_values().collect::<Vec<_>>().join(", ");
        if is_one { title } else { format!("{title} ({labels})") }
    };
    cases.into_iter().map(|(labels, (title, pairs))| (name(labels, title), pairs)).collect()
}

fn differs_from(run: usize, count: usize, by_case: &BTreeMap<String, Pairs>) -> Vec<usize> {
    let differs = |other: &usize| by_case.values().any(|pairs| is_different(pairs, run, *other));
    (0..count).filter(|other| *other != run).filter(differs).collect()
}

fn is_different(pairs: &Pairs, one: usize, other: usize) -> bool {
    pairs.get(&(one, other)).is_some_and(|pair| pair.differs)
}

/// A case in which the run is odd comes before all others.
fn farthest(run: usize, count: usize, by_case: &BTreeMap<String, Pairs>) -> Option<FarthestCase> {
    let found = by_case.iter().filter_map(|(title, pairs)| beside(run, count, title, pairs));
    let rank = |of: &FarthestCase| (of.is_odd, of.ratio.ln().abs());
    found.max_by(|one, other| {
        let ((one_odd, one), (other_odd, other)) = (rank(one), rank(other));
        one_odd.cmp(&other_odd).then(one.total_cmp(&other))
    })
}

fn beside(run: usize, count: usize, title: &str, pairs: &Pairs) -> Option<FarthestCase> {
    let others: Vec<usize> = (0..count).filter(|other| *other != run).collect();
    let own: Vec<&CaseRatio> =
        others.iter().filter_map(|other| pairs.get(&(*other, run))).collect();
    own.iter().all(|pair| pair.is_tested).then_some(())?;
    // By the median of the others' costs: the median of what they are of this one's, turned over.
    let of_own: Vec<f64> = own.iter().map(|pair| 1.0 / pair.ratio).collect();
    let agree = |one: &usize| others.iter().all(|other| !is_different(pairs, *one, *other));
    let ends: Option<Vec<(f64, f64)>> = own.iter().map(|pair| pair.interval).collect();
    Some(FarthestCase {
        title: title.to_string(),
        ratio: 1.0 / median(&of_own)?,
        interval: ends.map(|ends| {
            let low = ends.iter().map(|(low, _)| *low).fold(f64::INFINITY, f64::min);
            (low, ends.iter().map(|(_, high)| *high).fold(0.0, f64::max))
        }),
        is_odd: own.iter().all(|pair| pair.differs) && others.iter().all(agree),
    })
}

impl PairwiseComparison {
    fn answer(&self) -> MarkedText {
        let count = self.runs.len();
        let differ = self.runs.iter().filter(|run| !run.differs_from.is_empty()).count();
        let open = match self.inconclusive {
            0 => String::new(),
            many => format!("; {many} of {} comparisons are inconclusive", self.pairs),
        };
        match (&self.odd[..], self.cases, differ) {
            (_, 0, _) => {
                format!("the {count} runs have no case in common: nothing was compared").into()
            }
            (&[run], ..) => {
                let run = &self.runs[run];
                marked![format!("{} is the odd one out: ", run.name), far(run)]
            }
            (&[], _, 0) => {
                let cases = if self.cases == 1 { "case" } else { "cases" };
                format!(
                    "None of the {count} runs is shown to differ from another in {} {cases}{open}",
                    self.cases
                )
                .into()
            }
            (&[], ..) => format!(
                "No single run is the odd one out: {differ} of {count} differ from \
                        another{open}"
            )
            .into(),
            (several, ..) => {
                let each: Vec<&str> = several.iter().map(|run| &*self.runs[*run].name).collect();
                format!("{} are odd ones out, each in a case of its own", each.join(", ")).into()
            }
        }
    }
}

/// `38 % slower than the others (31 to 45 %) in ring of 2`.
fn far(run: &ComparedRun) -> MarkedText {
    let Some(far) = &run.farthest else { return MarkedText::default() };
    let more = |ratio: f64| 100.0 * (ratio - 1.0);
    let slower = far.ratio >= 1.0;
    let direction = if slower { "slower" } else { "faster" };
    let sign = if slower { 1.0 } else { -1.0 };
    let mut ends = far.interval.map(|(low, high)| (sign * more(low), sign * more(high)));
    if let (false, Some((low, high))) = (slower, ends) {
        ends = Some((high, low));
    }
    let ends = ends.map_or(String::new(), |(low, high)| format!(" ({low:.1} to {high:.1} %)"));
    let by = sign * more(far.ratio);
    let others = format!(" {direction} than the others{ends} in {}", far.title);
    marked![MarkedText::figure(format!("{by:.1} %")), others]
}
