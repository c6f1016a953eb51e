//! A command that is started, looked at until it ends, and accounted for.

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use analysis::program::WorkingSet;
use anyhow::{Error, Result, anyhow};
use launcher::{CommandRun, CommandSeries, Launcher, LauncherError, RunUsage};
use probe::executable;
use probe::program::WatchedProcess;
use rundata::reading::Reading;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::choice::ChosenProfile;
use super::counts::told;
use super::findings::{ProgramCostReport, SeenSet};
use super::reading::ProgramWatcher;
use super::seen::{MOSTLY_OWN, NotRead, ProgramObservation, Remedy};
use crate::base::failure::{Interrupted, print_message};
use crate::base::secrets::shown;
use crate::observe::live::account::TraceScope;
use crate::observe::live::session::{LOOK, TracerSession};
use crate::report::terminal::shortened;

/// One that runs.
pub(crate) struct WatchedCommand {
    launcher: Launcher,
    words: Vec<String>,
    pid: u32,
    /// Its time, and when that is over.
    time: Duration,
    end: Instant,
    watcher: Option<ProgramWatcher>,
    /// What it is sent a signal by; absent where the kernel has no such descriptors.
    handle: Option<OwnedFd>,
    /// How rarely its memory is looked at: only for windows and samples, where it is not traced.
    rarely: Option<Duration>,
}

/// A command that has not ended so long after SIGTERM is killed.
const PATIENCE: Duration = Duration::from_secs(4);

/// That a command asked whoever started it to trace it.
pub(crate) const TRACE_REQUEST_NOTICE: &str =
    "it asked to be traced (PTRACE_TRACEME), and went on without: what it waits for is not done";

/// One that has ended, and what was seen of it.
pub(crate) struct FinishedCommand {
    pub(crate) words: Vec<String>,
    pub(crate) pid: u32,
    watcher: Option<ProgramWatcher>,
    used: RunUsage,
    /// Its time, where that was over before its end.
    over: Option<Duration>,
    /// A signal that reached the launcher alone.
    stopped: Option<LauncherError>,
}

impl WatchedCommand {
    /// Starts it, for so long at most. The tracer looks from then on at what it is the root of, and
    /// at nothing before.
    pub(crate) fn start(
        words: &[OsString],
        time: Duration,
        anonymous: bool,
        session: Option<&mut TracerSession>,
    ) -> Result<Self> {
        let mut launcher = Launcher::start(CommandSeries::watched(words))?;
        let pid = match launcher.started() {
            Ok(Some(pid)) => pid,
            started => return Err(report_unmeasured(started.err(), launcher.signal())),
        };
        let end = Instant::now() + time;
        let rarely = session.is_some().then_some(LOOK);
        session.into_iter().for_each(|session| session.account.set_scope(TraceScope::Tree(pid)));
        // It may have ended already: then only its usage is known.
        let program = WatchedProcess::find(Path::new("/"), pid as i32).ok();
        let watcher = program.map(|program| ProgramWatcher::new(program, None));
        let id = Pid::from_raw(pid as i32);
        let handle = id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
        let words = shown_words(words, anonymous);
        Ok(Self { launcher, words, pid, time, end, watcher, handle, rarely })
    }

    /// Waits for its end or that of its time, so long at most; gives whether either has come. It is
    /// looked at only when that is due, as it may take a CPU from it.
    pub(crate) fn wait(&mut self, longest: Option<Duration>) -> bool {
        let left = || self.end.saturating_duration_since(Instant::now());
        let is_over = |longest: Duration| {
            self.launcher.wait_for_answer(Some(longest.min(left()))) || left().is_zero()
        };
        // What cannot be read is said in the figures.
        let watcher = self.watcher.as_mut();
        let until_look = watcher.and_then(|of| of.look_if_due(self.rarely, is_over));
        is_over(until_look.into_iter().chain(longest).min().unwrap_or(Duration::MAX))
    }

    /// What it used, once it has ended. Where its time is over before, it is asked to end, and
    /// killed where it does not.
    pub(crate) fn end(self) -> Result<FinishedCommand> {
        let Self { launcher, words, pid, time, watcher, handle, .. } = self;
        let over = (!launcher.wait_for_answer(Some(Duration::ZERO))).then_some(time);
        if over.is_some() {
            // It may have ended meanwhile. Without such a descriptor the launcher, which has not
            // reaped it, still holds its number.
            let send = |signal: Signal| {
                let _ = match (&handle, Pid::from_raw(pid as i32)) {
                    (Some(handle), _) => pidfd_send_signal(handle, signal),
                    (None, Some(pid)) => kill_process(pid, signal),
                    (None, None) => Ok(()),
                };
            };
            // One that stands would not end by the first alone.
            send(Signal::TERM);
            send(Signal::CONT);
            let end = Instant::now() + PATIENCE;
            let left = || end.saturating_duration_since(Instant::now());
            while !left().is_zero() && !launcher.wait_for_answer(Some(left())) {}
            if !launcher.wait_for_answer(Some(Duration::ZERO)) {
                send(Signal::KILL);
            }
        }
        let mut used = None;
        let SeriesEnd { failed, signal, stopped } =
            finish_series(launcher, |run| used = Some(run.used));
        let used = used.ok_or_else(|| report_unmeasured(failed, signal))?;
        Ok(FinishedCommand { words, pid, watcher, used, over, stopped })
    }
}

/// How a series ended.
pub(crate) struct SeriesEnd {
    pub(crate) failed: Option<LauncherError>,
    /// The last signal that asked to stop.
    pub(crate) signal: Option<u8>,
    /// One that reached the launcher alone.
    pub(crate) stopped: Option<LauncherError>,
}

/// Takes all runs of a series. Once it is over a signal ends this program again.
pub(crate) fn finish_series(mut launcher: Launcher, mut take: impl FnMut(CommandRun)) -> SeriesEnd {
    let failed = loop {
        match launcher.next_run() {
            Ok(Some(run)) => take(run),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    SeriesEnd { failed, signal: launcher.signal(), stopped: launcher.stopped_alone() }
}

/// The words of a command, as far as they may be shown.
pub(crate) fn shown_words(command: &[OsString], anonymous: bool) -> Vec<String> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    shown(&command.iter().map(text).collect::<Vec<String>>(), anonymous)
}

/// Process ids that are told of those that a command left behind.
const MOST_IDS: usize = 5;

/// Characters of a command in a sentence.
const MOST_CHARACTERS: usize = 48;

/// That the command `whose` left processes behind, or that this is not known, and why.
pub(crate) fn left_behind_notice<'a>(
    whose: &str,
    pids: impl Iterator<Item = &'a u32>,
    unknown: Option<impl Display>,
) -> Option<String> {
    if let Some(why) = unknown {
        return Some(format!("{whose} left processes behind that are unknown ({why})"));
    }
    let whose = shortened(whose, MOST_CHARACTERS);
    let pids: Vec<String> = pids.map(u32::to_string).collect();
    let named = pids[..pids.len().min(MOST_IDS)].join(", ");
    let more = if pids.len() > MOST_IDS { ", ..." } else { "" };
    match pids.len() {
        0 => None,
        1 => Some(format!("process {named} still ran after the end of {whose} and is not counted")),
        count => Some(format!(
            "{count} processes still ran after the end of {whose} and are not counted ({named}{more})"
        )),
    }
}

/// That a command was not measured, once the reason is said: an exit code.
pub(crate) fn report_unmeasured(error: Option<LauncherError>, signal: Option<u8>) -> Error {
    match (error, signal) {
        (Some(error), _) => {
            print_message(&format!("error: {error}"));
            Interrupted(error.exit_code).into()
        }
        (None, Some(signal)) => {
            print_message("interrupted before the command began");
            Interrupted(128 + signal).into()
        }
        (None, None) => anyhow!("the launcher reported no end of the command"),
    }
}

/// Exit code of a command that SIGTERM has ended.
const BY_TERM: u8 = 128 + 15;
/// The same of SIGKILL.
const BY_KILL: u8 = 128 + 9;

impl FinishedCommand {
    /// All that is known of it. Its counts are those of the tracer, or else what wait4(2) told: of
    /// all its threads and of the children that it waited for. Its time is the launcher's, from the
    /// start to the end.
    pub(crate) fn report(
        &mut self,
        traced: Result<ProgramObservation, String>,
        named: Option<&ChosenProfile>,
    ) -> ProgramCostReport {
        let most = self.used.usage.max_resident_bytes;
        let over = self.end_notices();
        let mut seen = traced.unwrap_or_else(|why| told(&self.used, &why));
        let own = match self.watcher.take().filter(|watcher| watcher.last_look.is_some()) {
            Some(watcher) => watcher.add_to(&mut seen),
            None => {
                let why = "it ended before its memory was looked at";
                seen.method.push(format!(
                    "{why}: its working set is only known to be at most the largest resident \
                        memory that the kernel saw"
                ));
                (Reading::Known(WorkingSet::within(most)), Some(NotRead::new(why, None)))
            }
        };
        let working_set = of_all(own, &self.used);
        seen.method.extend(working_set.1.as_ref().map(|not_read| not_read.why.clone()));
        seen.method.dedup();
        // What the figures are of stands first.
        seen.notices.splice(0..0, over);
        let seen = ProgramObservation {
            pid: self.pid,
            // Looked at before its exec was through, it may still have this program's name.
            name: self.words.first().cloned().unwrap_or_default(),
            command: Some(self.words.clone()),
            words: Some(self.words.clone()),
            executable: self.words.first().and_then(|program| {
                executable::find_for_command(program, &env::var("PATH").unwrap_or_default())
            }),
            watched_ns: self.used.real_ns,
            resident_bytes: Reading::Known(most),
            ..seen
        };
        ProgramCostReport::of(seen, working_set, named)
    }

    /// That it did not come to an end of its own, and who did not end with it.
    pub(crate) fn end_notices(&self) -> Vec<String> {
        let traced =
            self.used.asked_to_be_traced.then(|| TRACE_REQUEST_NOTICE.to_string()).into_iter();
        let Some(time) = self.over else { return traced.collect() };
        let late = Duration::from_nanos(self.used.real_ns).saturating_sub(time);
        let time = humantime::format_duration(time);
        let how = match self.used.ending.shell_code() {
            BY_TERM => format!("stopped by SIGTERM after {time}, as --budget says"),
            BY_KILL if late >= PATIENCE => format!(
                "got SIGTERM after {time}, as --budget says, did not end within {} s, and was \
                 killed",
                PATIENCE.as_secs()
            ),
            _ => format!(
                "got SIGTERM after {time}, as --budget says, and ended {:.1} s later with {}",
                late.as_secs_f64(),
                self.used.ending
            ),
        };
        let left = &self.used.orphans.left_behind;
        let words = shell_words::join(&self.words);
        let left = left_behind_notice(&words, left.known().into_iter().flatten(), left.why());
        [how].into_iter().chain(left).chain(traced).collect()
    }

    /// The exit code: the command's, or that of a signal that it did not get, which is said. It is
    /// no failure to end when the time is over; one that had to be killed for it is.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match &self.stopped {
            None if self.over.is_some() && self.used.ending.shell_code() == BY_TERM => {
                ExitCode::SUCCESS
            }
            Some(error) => {
                print_message(&format!("error: {error}"));
                error.exit_code.into()
            }
            None => self.used.ending.shell_code().into(),
        }
    }
}

/// The working set that goes with the switches of a command and its children: only the command's
/// own pages were looked at, and at moments only.
fn of_all((own, not_read): SeenSet, used: &RunUsage) -> SeenSet {
    let most = used.usage.max_resident_bytes;
    let share = used.own_cpu_ns.known().map(|own_ns| *own_ns as f64 / used.usage.cpu_ns() as f64);
    if share.is_some_and(|share| share >= MOSTLY_OWN) {
        return (
            own.map(|set| match set.sampled {
                Some(_) => set,
                None => WorkingSet { high_bytes: set.high_bytes.max(most), ..set },
            }),
            not_read,
        );
    }
    let part =
        share.map_or("an unknown part".to_string(), |share| format!("{:.0} %", 100.0 * share));
    let high = own.known().map_or(0, |set| set.high_bytes).max(most);
    let why =
        format!("{part} of the CPU time is its own; the memory of its children was not sampled");
    (Reading::Known(WorkingSet::within(high)), Some(NotRead::new(why, Some(Remedy::Child(None)))))
}

#[cfg(test)]
mod tests {
    use launcher::{Ending, ExecBaseline, OrphanCounts, ProcessUsage};

    use super::*;

    fn used(own_cpu_ns: Option<u64>) -> RunUsage {
        RunUsage {
            real_ns: 1,
            ending: Ending::from_status(0),
            usage: ProcessUsage {
                user_ns: 1000,
                max_resident_bytes: 5000,
                ..ProcessUsage::default()
            },
            delay: Reading::default(),
            threads: Reading::default(),
            own_cpu_ns: own_cpu_ns.ok_or("refused").into(),
            sampled: Reading::default(),
            migrations: Reading::default(),
            io: Reading::default(),
            orphans: OrphanCounts {
                ended: 0,
                usage: None,
                left_behind: Reading::default(),
                of_unknown_origin: 0,
            },
            at_exec: ExecBaseline { resident_bytes: 0, minor_faults: 0, cpu_ns: 0 },
            asked_to_be_traced: false,
        }
    }

    #[test]
    fn childrens_switches_do_not_go_with_their_parents_working_set() {
        let own = Reading::Known(WorkingSet { low_bytes: 10, high_bytes: 400, sampled: None });
        let range = |own_cpu_ns| {
            let (set, not_read) = of_all((own.clone(), None), &used(own_cpu_ns));
            let set = *set.known().unwrap();
            (set.low_bytes, set.high_bytes, not_read)
        };
        assert_eq!(range(Some(950)), (10, 5000, None));
        for (own_cpu_ns, part) in [(Some(120), "12 %"), (None, "unknown part")] {
            let (low, high, not_read) = range(own_cpu_ns);
            assert_eq!((low, high), (0, 5000));
            let not_read = not_read.unwrap();
            assert_eq!(not_read.remedy, Some(Remedy::Child(None)));
            assert!(not_read.why.contains(part), "{}", not_read.why);
        }
    }
}
