//! The case of the stored runs that is followed.

use std::collections::BTreeMap;

use rundata::experiment::{Experiment, suggest_name};
use rundata::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::results::{Labels, plan_cases};

/// The case that is followed where no word names one.
const DEFAULT_CASE: &str = "ring of 2";

/// Most cases that a message lists.
const MAX_TITLES: usize = 12;

/// A case that several runs have: by experiment and labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Case")]
pub struct FollowedCase {
    /// The experiment.
    pub experiment: Experiment,
    /// In words: `ring of 2`.
    pub title: String,
    /// The labels that tell it from other cases: names with their values.
    pub labels: BTreeMap<String, String>,
}

/// The cases of a run's plan, each once.
pub struct PlannedCases(Vec<FollowedCase>);

impl PlannedCases {
    /// Returns the cases of a plan, each with its experiment.
    pub fn from_plan(plan: &Plan) -> Self {
        let cases = plan_cases(plan);
        let mut distinct: Vec<FollowedCase> = Vec::new();
        for (experiment, numbers) in plan.spans() {
            // What others did at that time is no cost of the machine.
            if experiment == Experiment::Trace {
                continue;
            }
            for (title, labels) in &cases[numbers] {
                let labels = labels.iter().cloned().collect();
                let case = FollowedCase { experiment, title: title.clone(), labels };
                if !distinct.contains(&case) {
                    distinct.push(case);
                }
            }
        }
        Self(distinct)
    }

    /// Returns whether the run has the case.
    pub fn has(&self, case: &FollowedCase) -> bool {
        self.0.contains(case)
    }
}

impl FollowedCase {
    /// Returns whether a case of the same experiment with these labels is this one.
    pub(super) fn has(&self, labels: &Labels) -> bool {
        labels.len() == self.labels.len()
            && labels.iter().all(|(name, value)| self.labels.get(name) == Some(value))
    }

    /// Returns whether a word means the case: by its title, its experiment, the value of a label, or
    /// that with the label's name.
    fn matches(&self, word: &str) -> bool {
        self.title.eq_ignore_ascii_case(word)
            || self.experiment.name() == word
            || self.labels.iter().any(|(name, value)| label_matches(name, value, word))
    }

    fn matches_all(&self, words: &[String]) -> bool {
        words.iter().all(|word| self.matches(word))
    }
}

/// Returns whether a word means a label: its value, or that behind its name.
pub(crate) fn label_matches(name: &str, value: &str, word: &str) -> bool {
    word == value || word == format!("{name} {value}") || word == format!("{name}={value}")
}

/// A case with the number of runs that have it.
struct CountedCase<'a> {
    case: &'a FollowedCase,
    runs: usize,
}

/// Returns the case that all words mean and most runs have; without a word the ring of two if there
/// is one. Of equals it is the one that comes first in the oldest run. The error says what is wrong
/// with which word.
pub fn choose(runs: &[PlannedCases], words: &[String]) -> Result<FollowedCase, String> {
    let mut counted = count_cases(runs);
    for word in words {
        if !counted.iter().any(|counted| counted.case.matches(word)) {
            return Err(unknown_word(word, &counted));
        }
    }
    counted.retain(|counted| counted.case.matches_all(words));
    if words.is_empty() && counted.iter().any(|counted| counted.case.matches(DEFAULT_CASE)) {
        counted.retain(|counted| counted.case.matches(DEFAULT_CASE));
    }
    let most = counted.iter().map(|counted| counted.runs).max();
    match counted.iter().find(|counted| Some(counted.runs) == most) {
        Some(first) => Ok(first.case.clone()),
        None if words.is_empty() => Err("no stored run has a case".to_string()),
        None => Err(format!("no case of the stored runs is all of these: {}", words.join(", "))),
    }
}

fn count_cases(runs: &[PlannedCases]) -> Vec<CountedCase<'_>> {
    let mut counted: Vec<CountedCase> = Vec::new();
    for run in runs {
        for case in &run.0 {
            match counted.iter_mut().find(|known| known.case == case) {
                Some(known) => known.runs += 1,
                None => counted.push(CountedCase { case, runs: 1 }),
            }
        }
    }
    counted
}

fn unknown_word(word: &str, known: &[CountedCase]) -> String {
    let mut titles: Vec<&str> = Vec::new();
    for CountedCase { case, .. } in known {
        if !titles.contains(&&*case.title) {
            titles.push(&case.title);
        }
    }
    let suggestion = suggest_name(word, titles.iter().copied());
    let more = titles.len().saturating_sub(MAX_TITLES);
    titles.truncate(MAX_TITLES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "no run, case or label is called '{word}'{suggestion} (runs: `switchcost runs list`; cases: \
         {}{more})",
        titles.join(", ")
    )
}
