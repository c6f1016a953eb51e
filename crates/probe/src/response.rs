//! The instrument of `switchcost response`: hands each case to the ring or to the trials.

use model::response::{Case, Response, Sample};
use model::ring::Ring;
use model::trial::Trials;

use crate::assignment::{Assignment, Measure, Unmeasured};

impl Measure for Response {
    fn measure(
        assignment: &Assignment<Self>,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<(), Unmeasured> {
        let Assignment { case_number, case, round, batching, unshared_ratio } = assignment.clone();
        match case {
            Case::Ring(case) => {
                let batching = batching.ring;
                let told = Assignment { case_number, case, round, batching, unshared_ratio };
                Ring::measure(&told, &mut |sample| sink(Sample::Ring(sample)))
            }
            Case::Trial(case) => {
                let batching = batching.trial;
                let told = Assignment { case_number, case, round, batching, unshared_ratio };
                Trials::measure(&told, &mut |sample| sink(Sample::Trial(sample)))
            }
        }
    }

    fn environment(case: &Case) -> Vec<(&'static str, Option<String>)> {
        match case {
            Case::Ring(case) => Ring::environment(case),
            Case::Trial(case) => Trials::environment(case),
        }
    }
}
