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

use crate::effort::Effort;
use crate::execute;
use crate::output::Output;
use crate::setting::Here;
use args::InterferenceArgs;

pub(crate) fn run(
    args: &InterferenceArgs,
    laps: Option<u64>,
    effort: &Effort<55>,
    output: &Output,
) -> Result<ExitCode> {
    let here = Here::detect()?;
    let mut setup = plan::setup(args, &here)?;
    let laps = match laps {
        Some(laps) => laps,
        None => match measure_laps(setup.largest_ring(), setup.execution_ns(effort))? {
            Ok(laps) => laps,
            Err(interrupted) => return Ok(interrupted),
        },
    };
    let plan = setup.plan(laps, effort);
    execute::new_run((plan, setup.take_notices()), here, output)
}

/// Laps that last `execution_ns` with the largest array, found out once, so that all runs have the
/// same; or the exit code of a program that was interrupted meanwhile.
fn measure_laps(ring: Option<Case>, execution_ns: u64) -> Result<Result<u64, ExitCode>> {
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
        Err(code) => Ok(Err(code)),
        Ok(samples) => {
            let ns_per_lap = |s: &Sample| s.elapsed_ns as f64 / s.laps as f64;
            let Some(fastest) = rings(&samples).map(ns_per_lap).reduce(f64::min) else {
                bail!("the calibration gave no sample");
            };
            Ok(Ok((execution_ns as f64 / fastest).ceil().max(1.0) as u64))
        }
    }
}
