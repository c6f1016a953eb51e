//! Failures as a user sees them: one message on standard error, exit 2 for what was typed, 1 for the
//! rest.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use charts::printable;
use thiserror::Error;

use super::lines::{Layout, fitted};

/// A typed request that cannot be done here.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// Somebody asked to stop before there was a run, or the reason why there is none was already
/// printed: the exit code alone is left to return.
#[derive(Debug, Error)]
#[error("interrupted")]
pub(crate) struct Interrupted(pub(crate) u8);

/// Builds a usage error with this message.
pub(crate) fn usage(message: impl fmt::Display) -> anyhow::Error {
    UsageError(message.to_string()).into()
}

/// Prints the error with its causes; returns the exit code.
pub(crate) fn print_error(error: &anyhow::Error) -> ExitCode {
    if let Some(Interrupted(code)) = error.downcast_ref() {
        return (*code).into();
    }
    print_message(&format!("error: {error:#}"));
    if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Exit code if a question could not be answered: 1 means no (as in diff(1), grep(1)).
const TROUBLE: u8 = 2;

/// Exit code of a gate that could not decide.
pub(crate) const UNDECIDED: u8 = 3;

/// Returns the exit code of a command that answers a question; prints an error.
pub(crate) fn exit_code_of_answer(answer: anyhow::Result<ExitCode>) -> ExitCode {
    match answer {
        Ok(code) => code,
        Err(error) => {
            let code = print_error(&error);
            if error.is::<Interrupted>() { code } else { TROUBLE.into() }
        }
    }
}

/// Prints a message on standard error. It is no failure if nobody is there to read it.
pub(crate) fn print_message(line: &str) {
    // In one write: another process may be writing to the same place.
    let line = fitted(&printable(&format!("{line}\n")), Layout::terminal().prose);
    let _ = io::stderr().write_all(line.as_bytes());
}
