//! `pipeline chars count`: a token that goes `chars` times round a ring of `count` processes (Sloan
//! 1992, appendix 2).
//!
//! The ring ends by end of file: the first process leaves after its last character and closes its
//! ends of the pipes, the next one reads end of file and does the same, and so on.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use probe::classic::{ForkSide, exit_now, fork, wait_for};
use rustix::io::{Errno, read, write};
use rustix::pipe::pipe;
use rustix::process::Pid;

use crate::{ProgramCall, ProgramResult, describe_status, failed, perror, print_error};

const CANNOT_MAKE_LOOP: u8 = 4;
const CANNOT_MAKE_PIPE: u8 = 5;
const CANNOT_FORK_OR_START: u8 = 6;
const CANNOT_READ: u8 = 12;
const CANNOT_WRITE: u8 = 13;
const WROTE_NOTHING: u8 = 14;

/// The reason why a process left the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RingExit {
    /// Every character was passed on.
    Done,
    /// The process before has closed its pipe: this many characters never came.
    EndOfFile(i64),
    CannotRead(Errno),
    CannotWrite(Errno),
    WroteNothing,
}

impl RingExit {
    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::EndOfFile(_) | Self::CannotRead(_) => CANNOT_READ,
            Self::CannotWrite(_) => CANNOT_WRITE,
            Self::WroteNothing => WROTE_NOTHING,
        }
    }
}

pub(crate) fn run(call: &ProgramCall) -> ProgramResult {
    let [chars, count] = call.args.as_slice() else {
        return Err(call.usage("chars count", 1));
    };
    let chars = Argument { name: "chars", min: 1, code: 2 }.parse(call, chars)?;
    let count = Argument { name: "count", min: 2, code: 3 }.parse(call, count)?;
    run_ring(call, chars, count)
}

/// An argument that is a whole number.
struct Argument {
    name: &'static str,
    min: i64,
    /// The exit code if it is not valid.
    code: u8,
}

impl Argument {
    fn parse(&self, call: &ProgramCall, word: &OsStr) -> Result<i64, ExitCode> {
        let Self { name, min, code } = *self;
        let text = word.to_string_lossy();
        match text.trim_start().parse::<i64>() {
            Ok(number) if number >= min => Ok(number),
            Ok(number) => Err(call.fail(&format!("{name} {number}<{min}"), code)),
            Err(_) => Err(call.fail(&format!("{name} '{text}' is not a whole number"), code)),
        }
    }
}

/// Makes the ring, is its first process and waits for the others.
fn run_ring(call: &ProgramCall, chars: i64, count: i64) -> ProgramResult {
    let mut others = Vec::new();
    let result = lead_ring(chars, count, &mut others);
    // The ends of the pipes are closed by now, also if it failed: the other processes end.
    let all_succeeded = reap(call, &others);
    let exit = result?;
    match exit {
        RingExit::EndOfFile(missing) => {
            print_error(&format!(
                "{}: the token was lost in lap {}",
                call.name,
                chars - missing + 1
            ));
        }
        RingExit::CannotRead(errno) => perror("read", errno),
        RingExit::CannotWrite(errno) => perror("write", errno),
        RingExit::Done if !all_succeeded => return Err(ExitCode::from(CANNOT_READ)),
        RingExit::Done | RingExit::WroteNothing => {}
    }
    Ok(ExitCode::from(exit.code()))
}

/// Makes the ring and is its first process.
fn lead_ring(chars: i64, count: i64, others: &mut Vec<Pid>) -> Result<RingExit, ExitCode> {
    let (input, output) = build(count, others)?;
    write(&output, b"A").map_err(failed("write", CANNOT_FORK_OR_START))?;
    Ok(pass(chars, input, output))
}

/// Starts all processes but the first, each with only its two ends of the pipes. Returns those of the
/// first one.
fn build(count: i64, others: &mut Vec<Pid>) -> Result<(OwnedFd, OwnedFd), ExitCode> {
    let (mut input, loop_output) = pipe().map_err(failed("pipe", CANNOT_MAKE_LOOP))?;
    for _ in 1..count {
        let (next_input, output) = pipe().map_err(failed("pipe", CANNOT_MAKE_PIPE))?;
        match fork().map_err(failed("fork", CANNOT_FORK_OR_START))? {
            ForkSide::Child => {
                drop((loop_output, next_input));
                exit_now(i32::from(follow(input, output)));
            }
            ForkSide::Parent(pid) => others.push(pid),
        }
        input = next_input;
    }
    Ok((input, loop_output))
}

/// Is any process but the first, until it leaves. Returns its exit code.
fn follow(input: OwnedFd, output: OwnedFd) -> u8 {
    match pass(i64::MAX, input, output) {
        RingExit::EndOfFile(_) => 0,
        exit => exit.code(),
    }
}

/// Reads a character and passes it on, `count` times, but the last, which it keeps. Measured code.
#[inline(never)]
fn pass(mut count: i64, input: OwnedFd, output: OwnedFd) -> RingExit {
    let mut ch = [0_u8];
    while count > 0 {
        match read(&input, &mut ch) {
            Ok(0) => return RingExit::EndOfFile(count),
            Ok(_) => {}
            Err(errno) => return RingExit::CannotRead(errno),
        }
        if count > 1 {
            match write(&output, &ch) {
                Ok(0) => return RingExit::WroteNothing,
                Ok(_) => {}
                Err(errno) => return RingExit::CannotWrite(errno),
            }
        }
        count -= 1;
    }
    RingExit::Done
}

/// Waits for all other processes. If some failed, returns false, and prints a line for one that was
/// killed, else for the first: the others have failed because of it.
fn reap(call: &ProgramCall, others: &[Pid]) -> bool {
    let mut failures = Vec::new();
    for pid in others {
        let status = wait_for(pid.as_raw_pid()).map(|end| end.status);
        if status != Ok(0) {
            failures.push((pid, status));
        }
    }
    let killed = failures.iter().find(|(_, status)| status.is_ok_and(|status| status & 0x7f != 0));
    if let Some((pid, status)) = killed.or(failures.first()) {
        let how = match status {
            Ok(status) => describe_status(*status),
            Err(errno) => format!("cannot be waited for: {errno}"),
        };
        print_error(&format!(
            "{}: process {pid} of the ring {how}",
            call.name,
            pid = pid.as_raw_pid()
        ));
    }
    failures.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is its own neighbour sees every character but the last it keeps.
    #[test]
    fn the_last_character_is_kept() {
        let (input, output) = pipe().unwrap();
        let (second_input, second_output) = pipe().unwrap();
        write(&output, b"xyz").unwrap();
        assert_eq!(pass(3, input, second_output), RingExit::Done);
        let mut seen = [0; 8];
        assert_eq!(read(&second_input, &mut seen), Ok(2));
        assert_eq!(&seen[..2], b"xy");
    }

    #[test]
    fn an_end_of_file_says_what_is_missing() {
        let (input, output) = pipe().unwrap();
        let (_kept, second_output) = pipe().unwrap();
        write(&output, b"x").unwrap();
        drop(output);
        assert_eq!(pass(10, input, second_output), RingExit::EndOfFile(9));
    }

    #[test]
    fn a_reader_that_is_gone_is_told() {
        let (input, output) = pipe().unwrap();
        let (gone, second_output) = pipe().unwrap();
        drop(gone);
        write(&output, b"x").unwrap();
        assert_eq!(pass(10, input, second_output), RingExit::CannotWrite(Errno::PIPE));
    }
}
