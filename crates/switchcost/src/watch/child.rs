//! A command that is started to be watched: its streams are its own, its end is told as a shell does.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::program_cost::{Report, WorkingSet};
use model::reading::Reading;
use probe::program::{
    ChildUsage, Switches, do_not_ignore_children, hand_on, is_ignored, own_cpu_ns, reap,
};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;

use super::known::{Known, Seen};
use super::{Ended, Watcher};
use crate::bell::Bell;

/// Signals that are handed on to the command.
const HANDED_ON: [i32; 4] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];

/// Share of the CPU time from which on a command's working set is taken for that of all of it.
const MOSTLY_OWN: f64 = 0.9;

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

/// How a command ended.
#[derive(Clone)]
pub(crate) struct End {
    /// What it and the children that it waited for used.
    pub(crate) used: ChildUsage,
    /// When.
    pub(crate) at: Instant,
    /// CPU time of its own threads; absent where its clock could not be read.
    pub(crate) own_cpu_ns: Option<u64>,
}

/// A running command.
pub(crate) struct Running {
    pid: u32,
    bell: Bell,
    end: Arc<Mutex<Option<io::Result<End>>>>,
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
    // Before the start: a signal in between must not end this program alone. Handlers, unlike signals
    // that are ignored, do not outlive the command's exec: what is ignored (nohup) has to stay so.
    let caught = HANDED_ON.into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = SignalsInfo::<WithRawSiginfo>::new(caught).map_err(told)?;
    do_not_ignore_children();
    let mut child = Command::new(program).args(args).spawn().map_err(told)?;
    // Held while a signal is handed on, so that none goes to another process with the same id.
    let is_there = Arc::new(Mutex::new(true));
    let (shared, pid) = (Arc::clone(&is_there), child.id());
    let hand_on_all = move || {
        for info in signals.forever() {
            let there = shared.lock().unwrap_or_else(PoisonError::into_inner);
            // The terminal's own signals (si_code above 0: the kernel's) have reached the command too.
            if *there && info.si_code <= 0 {
                hand_on(pid, info.si_signo);
            }
        }
    };
    let running = Running { pid, bell: Bell::default(), end: Arc::default() };
    let (bell, end) = (running.bell.clone(), Arc::clone(&running.end));
    let wait = move || {
        let ended = wait_for(pid, &is_there);
        *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        bell.ring();
    };
    let thread = |name: &str| thread::Builder::new().name(name.into());
    let threads = thread("signals").spawn(hand_on_all).and_then(|_| thread("wait").spawn(wait));
    if let Err(error) = threads {
        // Nobody would learn of its end.
        let _ = child.kill();
        let _ = child.wait();
        return Err(told(error));
    }
    Ok(running)
}

/// Waits for a command's end, notes when that was, and reaps it.
fn wait_for(pid: u32, is_there: &Mutex<bool>) -> io::Result<End> {
    let id = Pid::from_raw(pid.cast_signed()).ok_or(Errno::INVAL)?;
    // Not reaped yet: its clock can still be read, and its id is its own.
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(WaitId::Pid(id), how) {}
    let at = Instant::now();
    let own_cpu_ns = own_cpu_ns(pid.cast_signed()).ok();
    let mut there = is_there.lock().unwrap_or_else(PoisonError::into_inner);
    *there = false;
    let used = reap(pid, true)?.ok_or(Errno::CHILD)?;
    Ok(End { used, at, own_cpu_ns })
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Rung by its end.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> io::Result<Option<End>> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.take().transpose()
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
    pid: u32,
    watched: Duration,
    end: &End,
    watcher: Option<Watcher>,
) -> Report {
    let mut notices = Vec::new();
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let used = &end.used;
    let most = used.most_resident_bytes;
    let (voluntary, involuntary) = (used.voluntary, used.involuntary);
    let seen = Seen {
        switches: Switches { voluntary, involuntary },
        cpu_ns: Reading::Known(used.cpu_ns),
        watched,
    };
    let looked = watcher.filter(Watcher::has_looked);
    let (threads, working_set, windows) = match looked {
        Some(mut watcher) => {
            // Its end is no finding here.
            watcher.ended = Ended::No;
            let threads = watcher.count.threads as u64;
            (Some(threads), watcher.working_set(&mut notices), watcher.windows)
        }
        None => {
            notices.push(
                "it ended before its memory was looked at: its working set may be anything up to the greatest resident memory that the kernel saw (its parent's included)"
                    .to_string(),
            );
            (None, Reading::Known(WorkingSet::within(most)), Vec::new())
        }
    };
    let (working_set, whose) = of_all(working_set, end);
    notices.insert(0, whose);
    let known = Known {
        pid,
        // Looked at before its exec was through, it may still have this program's name.
        name: words.first().map(text).unwrap_or_default(),
        threads,
        seen,
        working_set,
        resident_bytes: Reading::Known(most),
        windows,
        notices,
    };
    Report { command: Some(words.iter().map(text).collect()), ..known.report() }
}

/// The working set that goes with the switches of a command and its children, and a word on whose it
/// is: only the command's own pages were looked at, and at moments only.
fn of_all(own: Reading<WorkingSet>, end: &End) -> (Reading<WorkingSet>, String) {
    let ChildUsage { cpu_ns, most_resident_bytes: most, .. } = end.used;
    let share = end.own_cpu_ns.map(|own_ns| own_ns as f64 / cpu_ns as f64);
    match share {
        Some(share) if share >= MOSTLY_OWN => {
            let whose = "switches and CPU time are those of the command and of all children that it waited for; nearly all of the CPU time is its own, and so is the working set";
            let set = own.map(|set| WorkingSet { high_bytes: set.high_bytes.max(most), ..set });
            (set, whose.to_string())
        }
        _ => {
            let part = share
                .map_or("an unknown part".to_string(), |share| format!("{:.0} %", 100.0 * share));
            let whose = format!(
                "switches and CPU time are those of the command and of all children that it waited for, and {part} of the CPU time is its own: the working set may be anything up to the greatest resident memory of any of them"
            );
            let high = own.known().map_or(0, |set| set.high_bytes).max(most);
            (Reading::Known(WorkingSet::within(high)), whose)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use model::program_cost::WorkingSet;
    use model::reading::Reading;
    use probe::program::ChildUsage;

    use super::{End, code, of_all, start};

    #[test]
    fn childrens_switches_do_not_go_with_their_parents_working_set() {
        let end = |own_cpu_ns| End {
            used: ChildUsage {
                status: 0,
                voluntary: 1,
                involuntary: 1,
                cpu_ns: 1000,
                most_resident_bytes: 5000,
            },
            at: Instant::now(),
            own_cpu_ns,
        };
        let own = Reading::Known(WorkingSet { low_bytes: 10, high_bytes: 400 });
        let range = |own_cpu_ns| {
            let (set, whose) = of_all(own.clone(), &end(own_cpu_ns));
            let set = *set.known().unwrap();
            (set.low_bytes, set.high_bytes, whose)
        };
        let (low, high, whose) = range(Some(950));
        assert_eq!((low, high), (10, 5000), "{whose}");
        for (own_cpu_ns, part) in [(Some(120), "12 %"), (None, "unknown part")] {
            let (low, high, whose) = range(own_cpu_ns);
            assert_eq!((low, high), (0, 5000));
            assert!(whose.contains(part), "{whose}");
        }
    }

    #[test]
    fn the_end_is_stamped_when_it_comes_not_when_it_is_asked_for() {
        let child = start(&["true".into()]).expect("true");
        assert!(child.bell().wait(None));
        let rung = Instant::now();
        let end = child.ended().expect("a child").expect("its end");
        assert!(end.at <= rung);
        assert!(end.own_cpu_ns.is_some_and(|ns| ns > 0), "read before it was reaped");
        assert_eq!(end.used.status, 0);
    }

    #[test]
    fn codes_are_the_shells() {
        // wait(2): the exit status is in the second byte, a signal in the low seven bits.
        assert_eq!((code(0), code(7 << 8), code(255 << 8)), (0, 7, 255));
        assert_eq!((code(2), code(9), code(11 | 0x80)), (130, 137, 139));
    }
}
