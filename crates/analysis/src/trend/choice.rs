//! Which case of the stored runs is followed.

use std::collections::BTreeMap;

use rundata::experiment::{Experiment, suggest_name};
use rundata::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::results::{Labels, plan_cases};

/// The case that goes without saying.
const USUAL: &str = "ring of 2";

/// Cases that a message lists.
const MOST_TITLES: usize = 12;

/// A case that several runs have: by experiment and labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// The experiment.
    pub experiment: Experiment,
    /// In words: `ring of 2`.
    pub title: String,
    /// What tells it from others: names with what they stand at.
    pub labels: BTreeMap<String, String>,
}

/// The cases of a run's plan.
pub struct Planned(Vec<Case>);

impl Planned {
    /// Each once, with the experiment that it is of.
    pub fn of(plan: &Plan) -> Self {
        let cases = plan_cases(plan);
        let mut all: Vec<Case> = Vec::new();
        for (experiment, numbers) in plan.spans() {
            for (title, labels) in &cases[numbers] {
                let labels = labels.iter().cloned().collect();
                let case = Case { experiment, title: title.clone(), labels };
                if !all.contains(&case) {
                    all.push(case);
                }
            }
        }
        Self(all)
    }

    /// Whether the run has the case.
    pub fn has(&self, case: &Case) -> bool {
        self.0.contains(case)
    }
}

impl Case {
    /// Whether a case of its experiment is the same.
    pub(super) fn has(&self, labels: &Labels) -> bool {
        let is_own = |(name, value): &(String, String)| self.labels.get(name) == Some(value);
        labels.len() == self.labels.len() && labels.iter().all(is_own)
    }

    /// Whether a word means it: its title, what one of its labels stands at, or that with the
    /// label's name.
    fn is(&self, word: &str) -> bool {
        let is = |name: &str, value: &str| {
            word == value || word == format!("{name} {value}") || word == format!("{name}={value}")
        };
        let word_is_title = self.title.eq_ignore_ascii_case(word);
        word_is_title
            || self.experiment.name() == word
            || self.labels.iter().any(|(name, value)| is(name, value))
    }
}

/// The case that all words mean and most runs have; without a word the ring of two if there is one.
/// Of equals the one that is first in the oldest run. An error says what is wrong with which word.
pub fn choose(runs: &[Planned], wanted: &[String]) -> Result<Case, String> {
    let mut counted: Vec<(&Case, usize)> = Vec::new();
    for case in runs.iter().flat_map(|run| &run.0) {
        match counted.iter_mut().find(|(known, _)| *known == case) {
            Some((_, count)) => *count += 1,
            None => counted.push((case, 1)),
        }
    }
    for word in wanted {
        if !counted.iter().any(|(case, _)| case.is(word)) {
            return Err(not_known(word, &counted));
        }
    }
    let mut left = counted;
    left.retain(|(case, _)| wanted.iter().all(|word| case.is(word)));
    if wanted.is_empty() && left.iter().any(|(case, _)| case.is(USUAL)) {
        left.retain(|(case, _)| case.is(USUAL));
    }
    let most = left.iter().map(|(_, count)| *count).max();
    let first = left.iter().find(|(_, count)| Some(*count) == most);
    first.map(|(case, _)| (*case).clone()).ok_or_else(|| match wanted {
        [] => "no stored run has a case".to_string(),
        words => format!("no case of the stored runs is all of these: {}", words.join(", ")),
    })
}

fn not_known(word: &str, known: &[(&Case, usize)]) -> String {
    let mut titles: Vec<&str> = Vec::new();
    for (case, _) in known {
        if !titles.contains(&&*case.title) {
            titles.push(&case.title);
        }
    }
    let suggestion = suggest_name(word, titles.iter().copied());
    let more = titles.len().saturating_sub(MOST_TITLES);
    titles.truncate(MOST_TITLES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "no run, case or label is called '{word}'{suggestion} (runs: `switchcost runs list`; cases: \
         {}{more})",
        titles.join(", ")
    )
}
