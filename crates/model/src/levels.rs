//! How fast the CPUs of a run were without a neighbour on the core, by the reference quanta of rings and trials
//! together.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::experiment::Takes;
use crate::plan::Plan;
use crate::sample::{Sample, rings, trials};
use crate::speed::{self, Level, Reference, quanta_by_place};
use crate::trial::quanta_by_cpu;

/// The level of an unshared core, by the CPUs that the quanta ran on.
pub fn levels(plan: &Plan, samples: &[Sample]) -> BTreeMap<Vec<u32>, Level> {
    let mut quanta = quanta_by_place(&plan.cases, rings(samples));
    for (place, of_trials) in quanta_by_cpu(plan, trials(samples)) {
        quanta.entry(place).or_default().add(of_trials);
    }
    speed::levels(&quanta, &plan.reference)
}

/// A plan of rings and trials, which ran on the same CPU, with what both together say of its level: so that each
/// is judged by it. Other plans as they are.
pub(crate) fn with_shared_level<'a>(plan: &'a Plan, samples: &[Sample]) -> Cow<'a, Plan> {
    if plan.experiment.takes() != Takes::Both {
        return Cow::Borrowed(plan);
    }
    let levels = levels(plan, samples);
    let [level] = levels.values().collect::<Vec<_>>()[..] else { return Cow::Borrowed(plan) };
    let unshared_ratio = Some(level.unshared_ratio);
    let established = level.established;
    let reference = Reference { unshared_ratio, established, ..plan.reference };
    Cow::Owned(Plan { reference, ..plan.clone() })
}
