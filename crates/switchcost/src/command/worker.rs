//! The hidden worker: a case on standard input, samples on standard output, then the end.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use probe::ring::{self, Assignment};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::launch::Word;

pub(super) fn run(parent: i32) -> Result<ExitCode> {
    // Asked for first, then checked: a parent that went before the asking is noticed too.
    set_parent_process_death_signal(Some(Signal::KILL)).context("prctl(PR_SET_PDEATHSIG)")?;
    if getppid().map(|pid| pid.as_raw_pid()) != Some(parent) {
        bail!("the worker is started by switchcost itself, not by hand");
    }
    let assignment: Assignment =
        serde_json::from_reader(io::stdin()).context("the worker's case cannot be read")?;
    let mut lost = None;
    let measured = ring::run(&assignment, &mut |sample| {
        lost = lost.take().or(speak(&Word::Sample(sample)).err());
    });
    if let Err(error) = measured {
        speak(&Word::Failure { message: error.to_string(), exhausted: error.is_exhaustion() })?;
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
