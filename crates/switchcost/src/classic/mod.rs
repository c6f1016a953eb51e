//! The programs of the papers, under their own names and in one file each: what they take, what they
//! print and how they end is as it was. What they did wrong is left out (docs/classic.md).
//!
//! They are what they measure: no worker, no run file, one thread.

mod argument;
mod command;
mod display;
mod getrusage;
pub(crate) mod install;
mod malloc_stats;
mod pipeline;
mod primes;
mod simsig;
mod simsyscall;
pub(crate) mod sweep;
mod test_cycles;
mod times;
mod twosig;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use rustix::io::Errno;
use threadclock::ThreadClock;

use crate::failure::say;

/// How a program was called.
pub(crate) struct Call {
    /// What it is called in its own messages: as typed.
    name: String,
    /// What stands behind the name.
    args: Vec<OsString>,
    /// Whoever must not be outlived.
    parent: Option<i32>,
}

/// One of the original programs.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    run: fn(&Call) -> ExitCode,
}

/// Every program there is. A new one is a file and a line here and in `cli::classic`.
pub(crate) const PROGRAMS: &[Program] = &[
    Program { name: "pipeline", run: pipeline::run },
    Program { name: "getrusage", run: getrusage::run },
    Program { name: "times", run: times::run },
    Program { name: "simsyscall", run: simsyscall::run },
    Program { name: "simsig", run: simsig::run },
    Program { name: "twosig", run: twosig::run },
    Program { name: "test_cycles", run: test_cycles::run },
    Program { name: "primes", run: primes::run },
    Program { name: "malloc_stats", run: malloc_stats::run },
];

/// Acts as the program whose name this one was called by, if it was: the name is that of a link.
pub(crate) fn by_link(mut words: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let name = words.next()?;
    let base = Path::new(&name).file_name()?;
    let program = PROGRAMS.iter().find(|program| base == program.name)?;
    let name = name.to_string_lossy().into_owned();
    Some((program.run)(&Call { name, args: words.collect(), parent: None }))
}

/// Acts as a program by its name, which is known to be one. With `parent` it ends with that process.
pub(crate) fn by_name(name: &str, args: Vec<OsString>, parent: Option<i32>) -> ExitCode {
    match PROGRAMS.iter().find(|program| program.name == name) {
        Some(program) => (program.run)(&Call { name: name.to_string(), args, parent }),
        None => {
            say(&format!("error: there is no program '{name}'"));
            ExitCode::from(2)
        }
    }
}

impl Call {
    /// A line on standard error that begins with the program's name; gives the exit code.
    fn fail(&self, message: &str, code: u8) -> ExitCode {
        say(&format!("{}: {message}", self.name));
        ExitCode::from(code)
    }
}

/// What perror(3) prints.
fn perror(call: &str, error: impl Into<io::Error>) {
    let error = error.into().to_string();
    let words = error.split_once(" (os error").map_or(&*error, |(words, _)| words);
    say(&format!("{call}: {words}"));
}

/// Prints to standard output. The error is the exit code of a program that cannot: a reader that has
/// had enough (`| head`) ends it without a word.
fn print(text: &str) -> Result<(), ExitCode> {
    let written = match probe::output_was_closed() {
        true => Err(Errno::BADF.into()),
        false => {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        }
    };
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ExitCode::SUCCESS),
        Err(error) => {
            say(&format!("error: cannot write to standard output: {error}"));
            Err(ExitCode::FAILURE)
        }
    }
}

/// Lets getpinfo() be off by up to 10 ms before it asks the kernel again. By default it asks every
/// 50 us, which would fall into some of what is timed.
fn ask_the_kernel_rarely() {
    ThreadClock::for_this_thread().set_error_bound_ns(10_000_000);
}

/// A figure with so many decimals; a dash for what is not known.
fn or_dash(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_string(), |value| format!("{value:.decimals$}"))
}

/// A wait status in words (wait(2)).
fn end_in_words(status: i32) -> String {
    match status & 0x7f {
        0 => format!("ended with {}", (status >> 8) & 0xff),
        signal => format!("was killed by signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_one_name() {
        let mut names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
    }

    #[test]
    fn only_a_link_of_that_very_name_is_a_program() {
        for name in ["switchcost", "/usr/bin/switchcost", "pipelines", "pipeline/", "", "/"] {
            // "pipeline/" is no file's name, but Path takes it for one: nothing is called so.
            let is_one =
                PROGRAMS.iter().any(|p| Path::new(name).file_name() == Some(p.name.as_ref()));
            assert_eq!(is_one, name == "pipeline/", "{name}");
        }
        assert!(by_link(std::iter::empty()).is_none());
        assert!(by_link([OsString::from("/bin/switchcost")].into_iter()).is_none());
    }

    #[test]
    fn ends_are_told_as_wait_gives_them() {
        assert_eq!(end_in_words(12 << 8), "ended with 12");
        assert_eq!(end_in_words(9), "was killed by signal 9");
        assert_eq!(end_in_words(11 | 0x80), "was killed by signal 11");
    }
}
