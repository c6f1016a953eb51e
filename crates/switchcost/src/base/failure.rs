//! How failures are told: one message on standard error, exit 2 for what was typed, 1 for the rest.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use charts::printable;
use thiserror::Error;

use super::lines::{Layout, fitted};

/// Something typed that cannot be done here.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct Usage(String);

/// Somebody asked to stop before there was a run, or why there is none was said: the exit code that
/// tells of it, and nothing else does.
#[derive(Debug, Error)]
#[error("interrupted")]
pub(crate) struct Interrupted(pub(crate) u8);

/// A usage error from anything that can be said.
pub(crate) fn usage(message: impl fmt::Display) -> anyhow::Error {
    Usage(message.to_string()).into()
}

/// Prints the error with its causes; gives the exit code.
pub(crate) fn tell(error: &anyhow::Error) -> ExitCode {
    if let Some(Interrupted(code)) = error.downcast_ref() {
        return (*code).into();
    }
    say(&format!("error: {error:#}"));
    match error.downcast_ref::<Usage>() {
        Some(_) => ExitCode::from(2),
        None => ExitCode::FAILURE,
    }
}

/// Exit code where there is nothing to answer a question by: 1 means no (as in diff(1), grep(1)).
const TROUBLE: u8 = 2;

/// Exit code of a gate that could not decide.
pub(crate) const UNDECIDED: u8 = 3;

/// The exit code of a command that answers a question; an error is told.
pub(crate) fn or_trouble(answered: anyhow::Result<ExitCode>) -> ExitCode {
    answered.unwrap_or_else(|error| {
        let code = tell(&error);
        if error.is::<Interrupted>() { code } else { TROUBLE.into() }
    })
}

/// A message on standard error. Nobody there to read it is no reason to fail.
pub(crate) fn say(line: &str) {
    // In one write: another process may be writing to the same place.
    let line = fitted(&printable(&format!("{line}\n")), Layout::terminal().prose);
    let _ = io::stderr().write_all(line.as_bytes());
}
