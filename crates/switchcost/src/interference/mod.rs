//! `switchcost cost --interference`: does a disturbance reach the measurement?

pub(crate) mod args;
pub(crate) mod figures;
pub(crate) mod plan;
pub(crate) mod table;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use model::ring::{Batching, Case, Sample};
use model::sample::rings;
use probe::assignment::Assignment;

use crate::cost::args::CostArgs;
use crate::execute::{self, Rehearsal};
use crate::setting::Here;

pub(crate) fn run(args: &CostArgs) -> Result<ExitCode> {
    let (machine, allowed) = execute::look_around()?;
    let here = Here { allowed: &allowed, machine: &machine };
    let mut setup = plan::setup(&args.interference, &here)?;
    let laps = match args.laps {
        Some(laps) => laps,
        None => match laps(setup.largest_ring(), setup.execution_ns(&args.effort))? {
            Ok(laps) => laps,
            Err(interrupted) => return Ok(interrupted),
        },
    };
    let plan = setup.plan(laps, &args.effort);
    execute::new_run(plan, machine, &allowed, setup.take_notices(), &args.output)
}

/// Laps that last `execution_ns` with the largest array, found out once, so that all runs have the
/// same; or the exit code of a program that was interrupted meanwhile.
fn laps(ring: Option<Case>, execution_ns: u64) -> Result<Result<u64, ExitCode>> {
    let case = ring.context("no array size")?;
    // Three samples of a tenth: the fastest says what an undisturbed run lasts.
    let batching = Batching { sample_ns: execution_ns.div_ceil(10), ..Batching::default() };
    let told = Assignment {
        case_number: 0,
        case: case.into(),
        round: 0,
        batching: model::plan::Batching::of_rings(batching),
        unshared_ratio: None,
    };
    match execute::rehearse(&told)? {
        Rehearsal::Interrupted(code) => Ok(Err(code)),
        Rehearsal::Samples(samples) => {
            let ns_per_lap = |s: &Sample| s.elapsed_ns as f64 / s.laps as f64;
            let Some(fastest) = rings(&samples).map(ns_per_lap).reduce(f64::min) else {
                bail!("the calibration gave no sample");
            };
            Ok(Ok((execution_ns as f64 / fastest).ceil().max(1.0) as u64))
        }
    }
}
