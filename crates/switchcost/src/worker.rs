//! The hidden worker: a case on standard input, samples on standard output, then the end.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use probe::assignment::Assignment;
use probe::policy::Standing;

use crate::launch::Word;

pub(crate) fn run(parent: i32) -> Result<ExitCode> {
    if !probe::set_parent_death_signal(parent).context("prctl(PR_SET_PDEATHSIG)")? {
        bail!("the worker: it is started by switchcost itself, not by hand");
    }
    take_samples()
}

/// Says as what it was started. It ends at once, so that nothing has to see to its end.
pub(crate) fn look() -> Result<ExitCode> {
    let own = Standing::own().context("the worker cannot read its own state")?;
    let mut line = serde_json::to_vec(&own)?;
    line.push(b'\n');
    io::stdout().lock().write_all(&line).context("cannot report")?;
    Ok(ExitCode::SUCCESS)
}

fn take_samples() -> Result<ExitCode> {
    let assignment: Assignment =
        serde_json::from_reader(io::stdin()).context("the worker's case cannot be read")?;
    let mut lost = None;
    let measured = assignment.measure(&mut |sample| {
        lost = lost.take().or(speak(&Word::Sample(Box::new(sample))).err());
    });
    if let Err(error) = measured {
        let (message, exhausted) = (error.message, error.exhausted);
        speak(&Word::Failure { message, exhausted })?;
        return Ok(ExitCode::FAILURE);
    }
    match lost {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn speak(word: &Word) -> Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line).and_then(|()| stdout.flush()).context("cannot report a sample")
}
