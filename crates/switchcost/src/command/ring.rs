//! `switchcost ring`: Sloan's pipeline, generalised.

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::{Destination, RingArgs};
use crate::failure::{say, usage};
use crate::{measure, resolve};

pub(super) fn run(args: &RingArgs) -> Result<ExitCode> {
    let output = &args.output;
    if let (Some(json), Some(csv)) = (&output.json, &output.csv)
        && json == csv
    {
        let place = if *json == Destination::Stdout { "standard output" } else { "that file" };
        let both = format!("--json {json} and --csv {csv}");
        return Err(usage(format!("{both}: only one of them can have {place}")));
    }
    let (machine, allowed) = measure::look_around()?;
    let (plan, notices) = resolve::ring(args, &allowed, &machine)?;
    notices.iter().for_each(|notice| say(&format!("note: {notice}")));
    measure::new_run(plan, machine, &allowed, output)
}
