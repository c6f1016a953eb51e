//! `switchcost ring`: Sloan's pipeline, generalised.

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::{Destination, RingArgs};
use crate::failure::usage;
use crate::{measure, resolve};

pub(super) fn run(args: &RingArgs) -> Result<ExitCode> {
    let output = &args.output;
    if output.json == Some(Destination::Stdout) && output.csv == Some(Destination::Stdout) {
        return Err(usage("--json - and --csv -: only one of them can have standard output"));
    }
    let (machine, allowed) = measure::look_around()?;
    let plan = resolve::ring(args, &allowed, &machine)?;
    measure::new_run(plan, machine, &allowed, output)
}
