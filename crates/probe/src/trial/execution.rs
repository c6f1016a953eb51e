//! One run of the two-process program of Li, Ding and Shen (2007, section 3.3): a ring of two for a
//! fixed number of laps, with a noise beside it or without.

use std::cell::Cell;

use model::interference::Environment;
use model::ring::{Batching, Case as RingCase, Kind, Placement, Sample as RingSample};
use model::trial::interference::{
    EXECUTION_NS, Execution, INVOLUNTARY, NOISE_EVENTS, Noise, VOLUNTARY, Wire,
};
use model::trial::{Case, Tally, Trial};

use super::noise::Noisy;
use super::{Assignment, Outcome, TrialError};
use crate::ring;
use crate::sys::monotonic_raw_ns;

/// The ring of an execution.
fn ring_of(case: &Case, execution: &Execution) -> RingCase {
    RingCase {
        members: 2,
        kind: Kind::Process,
        link: "pipe".to_string(),
        work: Some(execution.work),
        placement: Placement::Same { cpu: case.cpu },
        policy: case.policy,
        priority: execution.priority,
        state: None,
    }
}

fn has_wire(execution: &Execution) -> bool {
    (execution.noise, execution.wire) == (Noise::Net, Wire::Veth)
}

pub(super) fn run(assignment: &Assignment) -> Result<Outcome, TrialError> {
    let case = &assignment.case;
    let Trial::Execution(execution) = &case.trial else { return Err(TrialError::WrongTrial) };
    // Before the ring: it takes its policy and its place for all that is forked afterwards.
    let mut noise = match execution.environment {
        // Making and unmaking the wire has work of its own for the kernel: quiet runs have that too.
        Environment::Quiet if has_wire(execution) => Some(Noisy::silent(execution)?),
        Environment::Quiet => None,
        Environment::Disturbed => Some(Noisy::start(execution, assignment.round)?),
    };
    let told = ring::Assignment {
        case_number: assignment.case_number,
        case: ring_of(case, execution),
        round: assignment.round,
        batching: Batching {
            laps: Some(execution.laps),
            samples_per_round: 1,
            // A noise runs beside the whole of it: nothing comes between.
            slice_ns: None,
            ..Batching::default()
        },
        unshared_ratio: None,
    };
    let mut outcome = Outcome::default();
    // Of the noise, at the two readings of the clock that the sample lies between.
    let events = Cell::new([0, 0]);
    let mut clock = || {
        let now_ns = monotonic_raw_ns();
        if let Some(noise) = &noise {
            events.set([events.get()[1], noise.events()]);
        }
        now_ns
    };
    let ran = ring::run_by_clock(&told, &mut clock, &mut |sample: RingSample| {
        let elapsed_ns = i64::try_from(sample.elapsed_ns).unwrap_or(i64::MAX);
        let tally: Tally = [elapsed_ns].into_iter().collect();
        outcome.tallies.insert(EXECUTION_NS.to_string(), tally);
        outcome.elapsed_ns = Some(sample.elapsed_ns);
        outcome.count(VOLUNTARY, sample.counters.voluntary as i64);
        outcome.count(INVOLUNTARY, sample.counters.involuntary as i64);
        if execution.environment == Environment::Disturbed {
            let [start, end] = events.get();
            outcome.count(NOISE_EVENTS, end - start);
        }
    });
    // Asked first: a noise that has ended takes the ring with it, whose own error says less.
    noise.as_mut().map_or(Ok(()), Noisy::check)?;
    ran.map_err(|error| TrialError::Ring(error.to_string()))?;
    Ok(outcome)
}
