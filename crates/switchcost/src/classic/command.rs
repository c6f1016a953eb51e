//! What getrusage and times have in common: a command is started by fork(2) and execve(2), without a
//! search of PATH, and the lines of its start and end go to standard error.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use probe::classic::{Account, Forked, execute, exit_now, fork, local_time, wait_for};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use super::{Call, perror};
use crate::failure::say;

/// The exit code for all that goes wrong before and in the command's start, and for its being killed.
pub(super) const FAILED: u8 = 127;

/// A command that has ended.
pub(super) struct Ended {
    pub(super) pid: i32,
    pub(super) real: Duration,
    pub(super) account: Account,
}

/// Runs the command that the arguments are, and tells of its start, its end and its exit.
pub(super) fn run(call: &Call) -> Result<Ended, ExitCode> {
    let failed = || ExitCode::from(FAILED);
    if call.args.is_empty() {
        say(&format!("usage: {} program [argument ...]", call.name));
        return Err(failed());
    }
    if call.parent.is_some_and(|parent| !end_with(parent)) {
        return Err(call.fail("--parent is for the sweep, not for use by hand", FAILED));
    }
    let (started_at, clock) = (SystemTime::now(), Instant::now());
    let own = getpid().as_raw_pid();
    let pid = match fork() {
        Err(errno) => {
            perror("fork", errno);
            return Err(failed());
        }
        Ok(Forked::Child) => {
            if call.parent.is_some() && !end_with(own) {
                exit_now(i32::from(FAILED));
            }
            become_command(call);
        }
        Ok(Forked::Parent(pid)) => pid.as_raw_pid(),
    };
    say(&format!("{pid}: start      {}", local(started_at)));
    let account = wait_for(pid).map_err(|errno| {
        perror("wait4", errno);
        failed()
    })?;
    let real = clock.elapsed();
    say(&format!("{pid}: stop          {}", local(SystemTime::now())));
    let ended = Ended { pid, real, account };
    let (word, number) = ended.exit();
    say(&format!("{pid}: {word} {number}"));
    Ok(ended)
}

impl Ended {
    fn signal(&self) -> Option<i32> {
        Some(self.account.status & 0x7f).filter(|signal| *signal != 0)
    }

    fn exit(&self) -> (&'static str, i32) {
        match self.signal() {
            Some(signal) => ("signal", signal),
            None => ("exit ", (self.account.status >> 8) & 0xff),
        }
    }

    /// The command's own code; that a signal ended it is no code of its own.
    pub(super) fn code(&self) -> ExitCode {
        match self.signal() {
            Some(_) => ExitCode::from(FAILED),
            None => ExitCode::from(self.exit().1 as u8),
        }
    }
}

fn local(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(seconds).ok().and_then(local_time).unwrap_or_else(|| seconds.to_string())
}

/// Ends the calling process with `parent`; false if that is gone already, or another one.
fn end_with(parent: i32) -> bool {
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    asked.is_ok() && getppid().map(|pid| pid.as_raw_pid()) == Some(parent)
}

/// Becomes the command.
fn become_command(call: &Call) -> ! {
    let words: Vec<&OsStr> = call.args.iter().map(OsString::as_os_str).collect();
    // Arguments come from an execve: none has a zero in it.
    let strings = words.iter().filter_map(|word| CString::new(word.as_bytes()).ok());
    let strings: Vec<CString> = strings.collect();
    let errno = strings.first().map_or(Errno::NOENT, |path| execute(path, &strings));
    let name = words.first().copied().unwrap_or_default();
    perror("execve", errno);
    let hint = hint(name, errno);
    say(&format!("{}: '{}' was not run{hint}", call.name, name.to_string_lossy()));
    exit_now(i32::from(FAILED));
}

/// What to do about it, as far as it is known.
fn hint(name: &OsStr, errno: Errno) -> String {
    let elsewhere = || {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let all: Vec<PathBuf> =
            std::env::split_paths(&search).map(|folder| folder.join(name)).collect();
        all.into_iter().find(|file| file.is_file())
    };
    let path = Path::new(name);
    match errno {
        Errno::NOENT if !name.is_empty() && !name.as_bytes().contains(&b'/') => {
            let only = ": without a / it is looked for in this folder only, not in PATH";
            elsewhere().map_or(only.to_string(), |file| format!("{only}; try {}", file.display()))
        }
        Errno::ACCESS if path.is_dir() => ": it is a directory".to_string(),
        Errno::ACCESS if path.is_file() => ": it is not executable (chmod +x)".to_string(),
        Errno::NOEXEC => {
            ": it is neither a program for this machine nor a script that begins with #!"
                .to_string()
        }
        _ => String::new(),
    }
}
