//! Runs of trials.

use serde_json::Value;

use super::{Figure, Labels, Quantity, Subcase, failure_of};
use crate::findings::headlines_ns;
use crate::run::Run;
use crate::trial::{self, Trial};

/// What a trial was given that says nothing of what was tried: how long, how often, with which luck.
const NOT_LABELS: &[&str] = &["duration_ns", "laps", "seed", "noise_cpu"];

/// All trials whose figure is a time.
pub(super) fn cases(run: &Run) -> Vec<Subcase> {
    let plan = &run.header.plan;
    let by_round = headlines_ns(run);
    let subcase = |(number, case): (usize, &trial::Case)| {
        let figures = by_round[number].figures().collect();
        let estimate = by_round[number].estimate(plan);
        Subcase {
            number,
            title: case.trial.to_string(),
            labels: labels(case),
            details: vec![("CPU".to_string(), case.cpu.to_string())],
            figures: Figure::measured(Quantity::TrialNs, figures, estimate).into_iter().collect(),
            failure: failure_of(&run.failures, number),
            iterations: by_round[number].of_all().map(|(round, _)| (round, 1)).collect(),
        }
    };
    // What a sleeper's share of the ticks is, is no cost.
    let is_time = |(_, case): &(usize, &trial::Case)| !matches!(case.trial, Trial::Sampling { .. });
    plan.trials().filter(is_time).map(subcase).collect()
}

fn labels(case: &trial::Case) -> Labels {
    let mut labels = Labels::new();
    // Cannot fail: every key is a string.
    flatten("", &serde_json::to_value(&case.trial).unwrap_or_default(), &mut labels);
    labels.push(("policy".to_string(), case.policy.name().to_string()));
    labels
}

fn flatten(name: &str, value: &Value, labels: &mut Labels) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields.iter().filter(|(name, _)| !NOT_LABELS.contains(&&***name))
            {
                flatten(&field.replace('_', "-"), value, labels);
            }
        }
        Value::Null => {}
        Value::String(text) => labels.push((name.to_string(), text.clone())),
        other => labels.push((name.to_string(), other.to_string())),
    }
}
