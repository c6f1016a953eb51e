//! Runs of rings and trials together.

use super::{Comparable, Subcase, Subject, rings, trials};
use crate::instrument::Instrument;
use crate::pairing::Grouped;
use crate::response::{Half, Response, Split, noise_of};
use crate::run::Run;

impl Comparable for Response {
    fn subject(run: &Run<Self>) -> Subject {
        let split = Split::of(&run.header.plan, &run.samples, &run.failures);
        let tried = split.trials.clone().into_run(&run.header);
        let rings = &split.rings;
        let mut cases =
            rings::cases(&rings.plan, &Grouped::new(&rings.plan, &rings.samples), &rings.failures);
        renumber(&mut cases, &split.rings);
        let mut of_trials = trials::cases(&tried);
        renumber(&mut of_trials, &split.trials);
        cases.extend(of_trials);
        cases.sort_by_key(|case| case.number);
        Subject::of_run(run, noise_of(&split, &tried), cases)
    }
}

/// Gives the cases of one half their numbers in the whole plan.
fn renumber<I: Instrument>(cases: &mut [Subcase], half: &Half<I>) {
    for case in cases {
        case.number = half.numbers.get(case.number).copied().unwrap_or(case.number);
    }
}
