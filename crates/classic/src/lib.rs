//! The nine programs of Sloan (1992), VenturCom (VENIX, 1984) and Hines et al. (2000), under their
//! own names: what they take, what they print and how they end is as it was. What they did wrong is
//! left out (docs/classic.md).
//!
//! They are what they measure: no worker, no run file, one thread.
#![forbid(unsafe_code)]

mod hines;
mod pipeline;
mod timed;
mod venix;

use std::ffi::{CString, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use rustix::io::Errno;

/// How a program was called.
struct Call {
    /// What it is called in its own messages: as typed.
    name: String,
    args: Vec<OsString>,
    /// The process that it must not outlive.
    parent: Option<i32>,
}

/// The exit code, either way; the error is that of a program that ends early and has said why.
type Ended = Result<ExitCode, ExitCode>;

type Program = (&'static str, fn(&Call) -> Ended);

const PROGRAMS: [Program; 9] = [
    ("pipeline", pipeline::run),
    ("getrusage", timed::getrusage),
    ("times", timed::times),
    ("simsyscall", venix::simsyscall),
    ("simsig", venix::simsig),
    ("twosig", venix::twosig),
    ("test_cycles", hines::test_cycles),
    ("primes", hines::primes),
    ("malloc_stats", hines::malloc_stats),
];

/// The programs' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.into_iter().map(|(name, _)| name)
}

/// Acts as the program whose name this one was called by, if it was: the name is that of a link.
pub fn by_link(mut words: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let name = words.next()?;
    let base = Path::new(&name).file_name()?;
    let (_, run) = PROGRAMS.iter().find(|(program, _)| base == *program)?;
    let name = name.to_string_lossy().into_owned();
    let ended = run(&Call { name, args: words.collect(), parent: None });
    Some(ended.unwrap_or_else(|code| code))
}

/// Acts as a program by its name. With `parent` it ends with that process.
pub fn by_name(name: &str, args: Vec<OsString>, parent: Option<i32>) -> ExitCode {
    let Some((_, run)) = PROGRAMS.iter().find(|(program, _)| *program == name) else {
        say(&format!("error: there is no program '{name}'"));
        return ExitCode::from(2);
    };
    // As if it had been called by a link.
    probe::set_own_name(&CString::new(name).unwrap_or_default());
    run(&Call { name: name.to_string(), args, parent }).unwrap_or_else(|code| code)
}

impl Call {
    /// A line on standard error that begins with the program's name; gives the exit code.
    fn fail(&self, message: &str, code: u8) -> ExitCode {
        say(&format!("{}: {message}", self.name));
        ExitCode::from(code)
    }

    /// A line on standard error that says what it takes; gives the exit code.
    fn usage(&self, words: &str, code: u8) -> ExitCode {
        say(&format!("usage: {} {words}", self.name));
        ExitCode::from(code)
    }

    /// Up to `N` counts above zero as (default, greatest). `words` says what they are.
    fn counts<const N: usize>(
        &self,
        words: &str,
        known: [(u32, u32); N],
    ) -> Result<[u32; N], ExitCode> {
        if self.args.len() > N {
            return Err(self.usage(words, 2));
        }
        let mut counts = known.map(|(default, _)| default);
        for ((count, word), (_, most)) in counts.iter_mut().zip(&self.args).zip(known) {
            let text = word.to_string_lossy();
            *count = text.parse().ok().filter(|number| (1..=most).contains(number)).ok_or_else(
                || {
                    self.fail(&format!("'{text}' (accepted: whole numbers from 1 to {most})"), 2);
                    self.usage(words, 2)
                },
            )?;
        }
        Ok(counts)
    }
}

/// A line on standard error, in one write: another process may be writing to the same place. Nobody
/// there to read it is no reason to fail.
fn say(line: &str) {
    let _ = io::stderr().write_all(printable(&format!("{line}\n")).as_bytes());
}

/// Without what a terminal would obey: control characters and marks of direction.
fn printable(text: &str) -> String {
    let directs = |c: char| {
        matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
            || matches!(c, '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
    };
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || directs(*c))).collect()
}

/// What perror(3) prints.
fn perror(call: &str, errno: Errno) {
    let error = io::Error::from(errno).to_string();
    let words = error.split_once(" (os error").map_or(&*error, |(words, _)| words);
    say(&format!("{call}: {words}"));
}

/// A step that failed, reported as perror(3) does; gives the exit code.
fn failed(call: &'static str, code: u8) -> impl Fn(Errno) -> ExitCode {
    move |errno| {
        perror(call, errno);
        ExitCode::from(code)
    }
}

/// Prints to standard output. The error is the exit code of a program that cannot: a reader that
/// has had enough (`| head`) ends it without a message.
fn print(text: &str) -> Ended {
    let mut out = io::stdout().lock();
    let written = match probe::output_was_closed() {
        true => Err(Errno::BADF.into()),
        false => out.write_all(text.as_bytes()).and_then(|()| out.flush()),
    };
    written.map(|()| ExitCode::SUCCESS).map_err(|error| {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return ExitCode::SUCCESS;
        }
        say(&format!("error: cannot write to standard output: {error}"));
        ExitCode::FAILURE
    })
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
        let mut all: Vec<&str> = names().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), PROGRAMS.len());
    }

    #[test]
    fn only_a_link_of_that_very_name_is_a_program() {
        for name in ["switchcost", "/usr/bin/switchcost", "pipelines", "pipeline/", "", "/"] {
            // "pipeline/" is no file's name, but Path takes it for one: nothing is called so.
            let is_one = names().any(|p| Path::new(name).file_name() == Some(p.as_ref()));
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
