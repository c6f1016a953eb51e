//! The nine programs of Sloan (1992), VenturCom (VENIX, 1984) and Hines et al. (2000), under their
//! own names: arguments, output and exit codes are those of the originals. Their mistakes are
//! corrected (docs/classic.md).
//!
//! Each measures itself: no worker, no run file, one thread.
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

/// The call of a program: its name and arguments.
struct ProgramCall {
    /// The name as it was typed, for the program's own messages.
    name: String,
    args: Vec<OsString>,
    /// The process with which it must end.
    parent: Option<i32>,
}

/// The exit code of a program. `Err` if it ends early; it has then printed why.
type ProgramResult = Result<ExitCode, ExitCode>;

/// The name of a program, and its function.
type NamedProgram = (&'static str, fn(&ProgramCall) -> ProgramResult);

const PROGRAMS: [NamedProgram; 9] = [
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

/// Returns the names of the programs.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.into_iter().map(|(name, _)| name)
}

/// Runs the program whose name this process was called by, if there is one: the name of a link.
/// Returns its exit code.
pub fn by_link(mut words: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let name = words.next()?;
    let base = Path::new(&name).file_name()?;
    let (_, run) = PROGRAMS.iter().find(|(program, _)| base == *program)?;
    let name = name.to_string_lossy().into_owned();
    let result = run(&ProgramCall { name, args: words.collect(), parent: None });
    Some(result.unwrap_or_else(|code| code))
}

/// Runs a program by its name. With `parent` it ends with that process.
pub fn by_name(name: &str, args: Vec<OsString>, parent: Option<i32>) -> ExitCode {
    let Some((_, run)) = PROGRAMS.iter().find(|(program, _)| *program == name) else {
        print_error(&format!("error: there is no program '{name}'"));
        return ExitCode::from(2);
    };
    // The process then has the name that it would have if it had been called by a link.
    probe::set_own_name(&CString::new(name).unwrap_or_default());
    run(&ProgramCall { name: name.to_string(), args, parent }).unwrap_or_else(|code| code)
}

impl ProgramCall {
    /// Prints a message with the program's name to standard error. Returns the exit code.
    fn fail(&self, message: &str, code: u8) -> ExitCode {
        print_error(&format!("{}: {message}", self.name));
        ExitCode::from(code)
    }

    /// Prints which arguments the program takes to standard error. Returns the exit code.
    fn usage(&self, words: &str, code: u8) -> ExitCode {
        print_error(&format!("usage: {} {words}", self.name));
        ExitCode::from(code)
    }

    /// Parses up to `N` arguments that are numbers from 1; for one that is missing returns its
    /// default. `words` are the arguments' names in the usage.
    fn counts<const N: usize>(
        &self,
        words: &str,
        ranges: [CountRange; N],
    ) -> Result<[u32; N], ExitCode> {
        if self.args.len() > N {
            return Err(self.usage(words, 2));
        }
        let mut counts = ranges.map(|range| range.default);
        for (number, word) in self.args.iter().enumerate() {
            let text = word.to_string_lossy();
            let max = ranges[number].max;
            counts[number] = match text.parse() {
                Ok(count) if (1..=max).contains(&count) => count,
                _ => {
                    self.fail(&format!("'{text}' (accepted: whole numbers from 1 to {max})"), 2);
                    return Err(self.usage(words, 2));
                }
            };
        }
        Ok(counts)
    }
}

/// The range of an argument that is a number from 1.
#[derive(Clone, Copy)]
struct CountRange {
    /// The number if the argument is missing; 0 means that there is no default.
    default: u32,
    max: u32,
}

/// Prints a line to standard error, in one write: another process may be writing to the same file.
/// Failures are ignored.
fn print_error(line: &str) {
    let _ = io::stderr().write_all(printable(&format!("{line}\n")).as_bytes());
}

/// Removes characters that a terminal would obey: control characters and marks of direction.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for character in text.chars() {
        let is_layout = matches!(character, '\n' | '\t');
        if is_layout || !(character.is_control() || is_format_mark(character)) {
            printable.push(character);
        }
    }
    printable
}

/// Returns whether a character is invisible and changes the direction or joining of others.
fn is_format_mark(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(character, '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Prints the failure of a call as perror(3) does.
fn perror(call: &str, errno: Errno) {
    let error = io::Error::from(errno).to_string();
    let words = error.split_once(" (os error").map_or(&*error, |(words, _)| words);
    print_error(&format!("{call}: {words}"));
}

/// Returns a function that prints the failure of a call as perror(3) does, and returns the exit code.
fn failed(call: &'static str, code: u8) -> impl Fn(Errno) -> ExitCode {
    move |errno| {
        perror(call, errno);
        ExitCode::from(code)
    }
}

/// Prints to standard output. The error is the exit code of a program that cannot: if the reader has
/// closed the pipe (`| head`), it ends without a message.
fn print(text: &str) -> ProgramResult {
    let mut out = io::stdout().lock();
    let written = if probe::output_was_closed() {
        Err(Errno::BADF.into())
    } else {
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    match written {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ExitCode::SUCCESS),
        Err(error) => {
            print_error(&format!("error: cannot write to standard output: {error}"));
            Err(ExitCode::FAILURE)
        }
    }
}

/// Describes a wait status (wait(2)).
fn describe_status(status: i32) -> String {
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
        assert_eq!(describe_status(12 << 8), "ended with 12");
        assert_eq!(describe_status(9), "was killed by signal 9");
        assert_eq!(describe_status(11 | 0x80), "was killed by signal 11");
    }
}
