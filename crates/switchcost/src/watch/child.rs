//! A command that is started to be watched: its streams are its own, its end is told as a shell does.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use model::program_cost::{Report, WorkingSet};
use model::reading::Reading;
use probe::program::{ChildUsage, Switches, hand_on, reap};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;

use super::{Ended, Known, Seen, Watcher};

/// A command that could not be started.
#[derive(Debug)]
pub(crate) struct NotStarted {
    command: String,
    error: io::Error,
    /// The exit code that says so (env(1)).
    pub(crate) code: u8,
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot run '{}': {}", self.command, self.error)
    }
}

/// A running command.
pub(crate) struct Running {
    child: Child,
    /// Held while a signal is handed on, so that none goes to another process with the same id.
    is_there: Arc<Mutex<bool>>,
}

/// Starts a command.
pub(crate) fn start(words: &[OsString]) -> Result<Running, NotStarted> {
    let told = |error: io::Error| {
        let command = words.first().map(|word| word.to_string_lossy().into_owned());
        let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
        NotStarted { command: command.unwrap_or_default(), error, code }
    };
    let (program, args) =
        words.split_first().ok_or_else(|| told(io::ErrorKind::NotFound.into()))?;
    // Before the start: a signal in between must not end this program alone. Handlers, unlike
    // signals that are ignored, do not outlive the command's exec.
    let mut signals =
        SignalsInfo::<WithRawSiginfo>::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).map_err(told)?;
    let child = Command::new(program).args(args).spawn().map_err(told)?;
    let is_there = Arc::new(Mutex::new(true));
    let (shared, pid) = (Arc::clone(&is_there), child.id());
    let watch = move || {
        for info in signals.forever() {
            let there = shared.lock().unwrap_or_else(PoisonError::into_inner);
            // The terminal's own signals (si_code above 0: the kernel's) have reached the command too.
            if *there && info.si_code <= 0 {
                hand_on(pid, info.si_signo);
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(watch).map_err(told)?;
    Ok(Running { child, is_there })
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it used, if it has ended.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ChildUsage>> {
        let mut there = self.is_there.lock().unwrap_or_else(PoisonError::into_inner);
        let used = reap(self.child.id(), false)?;
        *there = used.is_none();
        Ok(used)
    }
}

/// The exit code by which a shell tells of a wait status (wait(2)).
pub(crate) fn code(status: i32) -> u8 {
    match status & 0x7f {
        0 => ((status >> 8) & 0xff) as u8,
        signal => 128 + signal as u8,
    }
}

/// All that is known of a command that has ended: its own counts are the kernel's, of all its threads
/// and of the children that it waited for.
pub(crate) fn report(
    words: &[OsString],
    pid: i32,
    watched: Duration,
    used: &ChildUsage,
    watcher: Option<Watcher>,
) -> Report {
    let mut notices = vec![
        "switches and CPU time are those of the command and of all children that it waited for; the working set is its own"
            .to_string(),
    ];
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let (voluntary, involuntary) = (used.voluntary, used.involuntary);
    let seen = Seen {
        switches: Switches { voluntary, involuntary },
        cpu_ns: Reading::Known(used.cpu_ns),
        watched,
    };
    let looked = watcher.filter(|watcher| watcher.last_look.is_some());
    let known = match looked {
        Some(mut watcher) => {
            // Its end is no finding here.
            watcher.ended = Ended::No;
            Known {
                pid: pid.unsigned_abs(),
                // Looked at before its exec was through, it may still have this program's name.
                name: words.first().map(text).unwrap_or_default(),
                threads: Some(watcher.count.threads as u64),
                seen,
                working_set: watcher.working_set(&mut notices),
                resident_bytes: watcher.resident_bytes,
                windows: watcher.windows,
                notices,
            }
        }
        None => {
            notices.push(
                "it ended before its memory was looked at: its working set may be anything up to the greatest resident memory that the kernel saw (its parent's included)"
                    .to_string(),
            );
            Known {
                pid: pid.unsigned_abs(),
                name: words.first().map(text).unwrap_or_default(),
                threads: None,
                seen,
                working_set: Reading::Known(WorkingSet::within(used.most_resident_bytes)),
                resident_bytes: Reading::Known(used.most_resident_bytes),
                windows: Vec::new(),
                notices,
            }
        }
    };
    Report { command: Some(words.iter().map(text).collect()), ..known.report() }
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn codes_are_the_shells() {
        // wait(2): the exit status is in the second byte, a signal in the low seven bits.
        assert_eq!((code(0), code(7 << 8), code(255 << 8)), (0, 7, 255));
        assert_eq!((code(2), code(9), code(11 | 0x80)), (130, 137, 139));
    }
}
