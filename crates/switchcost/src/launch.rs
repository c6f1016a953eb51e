//! Starts a worker for each case of each round and takes what it says.
//!
//! The program never times anything in its own process: a fresh worker has a fresh address space,
//! is small enough to fork rings from, and its crash costs one sample, not the run.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use model::sample::Sample;
use probe::ring::Assignment;
use serde::{Deserialize, Serialize};

use crate::interrupt::Interrupt;

/// What a worker says, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// A sample, proven.
    Sample(Sample),
    /// Why there are no more.
    Failure(String),
}

/// Why a worker gave no (further) samples.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LaunchError {
    /// Somebody asked to stop.
    Interrupted,
    /// The case cannot be measured: in words.
    Case(String),
}

/// Measures one case in one round.
pub(crate) trait Launch {
    /// Hands each sample to `sink` as it arrives.
    fn launch(
        &mut self,
        assignment: &Assignment,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<(), LaunchError>;
}

/// Workers that are this program, started again.
pub(crate) struct Workers {
    interrupt: Interrupt,
}

impl Workers {
    pub(crate) fn new(interrupt: Interrupt) -> Self {
        Self { interrupt }
    }

    fn start(&self) -> std::io::Result<(ChildStdin, ChildStdout)> {
        let mut slot = self.interrupt.worker();
        // /proc/self/exe is this very program, also when its file has been replaced meanwhile.
        let mut child = Command::new("/proc/self/exe")
            .args(["worker", "--parent", &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C comes to this program alone, which then ends the worker.
            .process_group(0)
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        *slot = Some(child);
        pipes.ok_or_else(|| std::io::Error::other("the worker has no pipes"))
    }

    fn finish(&self) -> std::io::Result<ExitStatus> {
        match self.interrupt.worker().take() {
            Some(mut child) => child.wait(),
            None => Err(std::io::Error::other("the worker is gone")),
        }
    }
}

impl Launch for Workers {
    fn launch(
        &mut self,
        assignment: &Assignment,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<(), LaunchError> {
        let case = |what: &str, error: &dyn std::fmt::Display| {
            LaunchError::Case(format!("{what}: {error}"))
        };
        let (mut stdin, stdout) =
            self.start().map_err(|error| case("cannot start a worker", &error))?;
        let told = serde_json::to_writer(&mut stdin, assignment).map_err(std::io::Error::from);
        let told = told.and_then(|()| stdin.flush());
        drop(stdin);
        let mut failure = None;
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(Word::Sample(sample)) => sink(sample),
                Ok(Word::Failure(message)) => failure = Some(message),
                // Cut off by a kill: the status below says so.
                Err(_) => {}
            }
        }
        let status = self.finish().map_err(|error| case("cannot wait for the worker", &error))?;
        if self.interrupt.signal().is_some() {
            return Err(LaunchError::Interrupted);
        }
        match (failure, status.success()) {
            (Some(message), _) => Err(LaunchError::Case(message)),
            (None, true) => told.map_err(|error| case("cannot tell the worker its case", &error)),
            (None, false) => Err(LaunchError::Case(end_in_words(status))),
        }
    }
}

fn end_in_words(status: ExitStatus) -> String {
    match status.signal() {
        Some(14) => {
            "the worker did not come to an end within its deadline and was ended".to_string()
        }
        Some(9) => "the worker was killed by signal 9; if nobody did that, the kernel ran out of \
                    memory (see dmesg): ask for fewer --members or less --work"
            .to_string(),
        Some(24) => "the worker ran under a real-time policy without ever waiting and was ended \
                     (RLIMIT_RTTIME)"
            .to_string(),
        Some(signal) => format!("the worker was killed by signal {signal}"),
        None => format!("the worker ended with {status} and without a word"),
    }
}
