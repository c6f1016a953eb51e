//! `pipeline chars count`: a token that goes `chars` times round a ring of `count` processes (Sloan
//! 1992, appendix 2).
//!
//! The ring ends by end of file: the first process leaves after its last character and closes its
//! ends, the next one finds nothing more to read and does the same, and so on.

use std::os::fd::OwnedFd;
use std::process::ExitCode;

use probe::classic::{ForkSide, exit_now, fork, wait_for};
use rustix::io::{Errno, read, write};
use rustix::pipe::pipe;
use rustix::process::Pid;

use crate::{Call, Ended, end_in_words, failed, perror, say};

const CANNOT_MAKE_LOOP: u8 = 4;
const CANNOT_MAKE_PIPE: u8 = 5;
const CANNOT_FORK_OR_START: u8 = 6;
const CANNOT_READ: u8 = 12;
const CANNOT_WRITE: u8 = 13;
const WROTE_NOTHING: u8 = 14;

/// How a process left the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// All its characters are passed on.
    Done,
    /// Nobody will write any more: there are so many characters that never came.
    EndOfFile(i64),
    CannotRead(Errno),
    CannotWrite(Errno),
    WroteNothing,
}

impl Left {
    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::EndOfFile(_) | Self::CannotRead(_) => CANNOT_READ,
            Self::CannotWrite(_) => CANNOT_WRITE,
            Self::WroteNothing => WROTE_NOTHING,
        }
    }
}

pub(crate) fn run(call: &Call) -> Ended {
    let [chars, count] = call.args.as_slice() else {
        return Err(call.usage("chars count", 1));
    };
    let number = |name: &str, word: &std::ffi::OsStr, least: i64, code: u8| {
        let text = word.to_string_lossy();
        match text.trim_start().parse::<i64>() {
            Ok(number) if number >= least => Ok(number),
            Ok(number) => Err(call.fail(&format!("{name} {number}<{least}"), code)),
            Err(_) => Err(call.fail(&format!("{name} '{text}' is not a whole number"), code)),
        }
    };
    let (chars, count) = (number("chars", chars, 1, 2)?, number("count", count, 2, 3)?);
    ring(call, chars, count)
}

/// Makes the ring, is its first process and waits for the others.
fn ring(call: &Call, chars: i64, count: i64) -> Ended {
    let mut others = Vec::new();
    let left = build(count, &mut others).and_then(|(input, output)| {
        write(&output, b"A").map_err(failed("write", CANNOT_FORK_OR_START))?;
        Ok(pass(chars, input, output))
    });
    // The ends of what was built are closed: its processes end.
    let all_well = reap(call, &others);
    let left = left?;
    match left {
        Left::EndOfFile(missing) => {
            say(&format!("{}: the token was lost in lap {}", call.name, chars - missing + 1));
        }
        Left::CannotRead(errno) => perror("read", errno),
        Left::CannotWrite(errno) => perror("write", errno),
        Left::Done if !all_well => return Err(ExitCode::from(CANNOT_READ)),
        Left::Done | Left::WroteNothing => {}
    }
    Ok(ExitCode::from(left.code()))
}

/// Starts all but the first process, each with its two ends alone; gives the first one's.
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

/// Any process but the first, to its end.
fn follow(input: OwnedFd, output: OwnedFd) -> u8 {
    match pass(i64::MAX, input, output) {
        Left::EndOfFile(_) => 0,
        left => left.code(),
    }
}

/// Reads a character and passes it on, `count` times, but the last, which it keeps. Measured code.
#[inline(never)]
fn pass(mut count: i64, input: OwnedFd, output: OwnedFd) -> Left {
    let mut ch = [0_u8];
    while count > 0 {
        match read(&input, &mut ch) {
            Ok(0) => return Left::EndOfFile(count),
            Ok(_) => {}
            Err(errno) => return Left::CannotRead(errno),
        }
        if count > 1 {
            match write(&output, &ch) {
                Ok(0) => return Left::WroteNothing,
                Ok(_) => {}
                Err(errno) => return Left::CannotWrite(errno),
            }
        }
        count -= 1;
    }
    Left::Done
}

/// Waits for all; false, and a line for the first that did not end well, if one did not. Those that
/// only noticed its end come after it.
fn reap(call: &Call, others: &[Pid]) -> bool {
    let ends = others.iter().map(|pid| (pid, wait_for(pid.as_raw_pid()).map(|end| end.status)));
    let bad: Vec<_> = ends.filter(|(_, status)| *status != Ok(0)).collect();
    let killed = bad.iter().find(|(_, status)| status.is_ok_and(|status| status & 0x7f != 0));
    if let Some((pid, status)) = killed.or(bad.first()) {
        let how = match status {
            Ok(status) => end_in_words(*status),
            Err(errno) => format!("cannot be waited for: {errno}"),
        };
        say(&format!("{}: process {pid} of the ring {how}", call.name, pid = pid.as_raw_pid()));
    }
    bad.is_empty()
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
        assert_eq!(pass(3, input, second_output), Left::Done);
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
        assert_eq!(pass(10, input, second_output), Left::EndOfFile(9));
    }

    #[test]
    fn a_reader_that_is_gone_is_told() {
        let (input, output) = pipe().unwrap();
        let (gone, second_output) = pipe().unwrap();
        drop(gone);
        write(&output, b"x").unwrap();
        assert_eq!(pass(10, input, second_output), Left::CannotWrite(Errno::PIPE));
    }
}
