//! The hidden worker: a case on standard input, samples on standard output, then the end.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use probe::assignment::Assignment;
use probe::policy::Standing;
use serde::Serialize;

use crate::launch::Message;

pub(crate) fn run(parent: i32) -> Result<ExitCode> {
    if !probe::set_parent_death_signal(parent).context("prctl(PR_SET_PDEATHSIG)")? {
        bail!("the worker: it is started by switchcost itself, not by hand");
    }
    let assignment: Assignment =
        serde_json::from_reader(io::stdin()).context("the worker's case cannot be read")?;
    let mut lost = Ok(());
    let measured = assignment.measure(&mut |sample| {
        if lost.is_ok() {
            lost = report(&Message::Ok(Box::new(sample)));
        }
    });
    match measured {
        Err(error) => report(&Message::Err(error)).map(|()| ExitCode::FAILURE),
        Ok(()) => lost.map(|()| ExitCode::SUCCESS),
    }
}

/// Says as what it was started. It ends at once, so that nothing has to see to its end.
pub(crate) fn look() -> Result<ExitCode> {
    report(&Standing::own().context("the worker cannot read its own state")?)?;
    Ok(ExitCode::SUCCESS)
}

fn report(message: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line).and_then(|()| stdout.flush()).context("cannot report a sample")
}
