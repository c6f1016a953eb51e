//! A command that is started, looked at until it ends, and accounted for.

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};
use launcher::{CommandRun, CommandSeries, FailedWarmup, Launcher, LauncherError, RunUsage};
use probe::executable;
use probe::program::WatchedProcess;
use rundata::reading::Reading;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::findings::ProgramCostReport;
use super::observation::{
    MIN_WATCHED_SHARE, ProgramObservation, UnreadReason, UnreadRemedy, WorkingSetReading,
};
use super::profile_choice::ChosenProfile;
use super::watcher::ProgramWatcher;
use crate::base::failure::{Interrupted, print_message};
use crate::base::secrets::shown;
use crate::observe::live::account::TraceScope;
use crate::observe::live::session::{LOOK, TracerSession};
use crate::report::terminal::shortened;

/// A running command.
pub(crate) struct WatchedCommand {
    launcher: Launcher,
    words: Vec<String>,
    pid: u32,
    /// Time that the command may take, and when it is over.
    time: Duration,
    end: Instant,
    watcher: Option<ProgramWatcher>,
    /// Descriptor that signals are sent by; absent on kernels without pidfd_open(2).
    pidfd: Option<OwnedFd>,
    /// Time between two looks at its memory; absent without a tracer, when only windows and samples
    /// make a look due.
    look_interval: Option<Duration>,
}

/// Time from SIGTERM to SIGKILL, if the command does not end.
const MAX_TERM_TIME: Duration = Duration::from_secs(4);

/// Notice of a command that asked whoever started it to trace it.
pub(crate) const TRACE_REQUEST_NOTICE: &str =
    "it asked to be traced (PTRACE_TRACEME), and went on without: what it waits for is not done";

/// A command that has ended, and what was seen of it.
pub(crate) struct FinishedCommand {
    pub(crate) words: Vec<String>,
    pub(crate) pid: u32,
    watcher: Option<ProgramWatcher>,
    used: RunUsage,
    /// Time that the command was given, if it did not end within.
    exceeded: Option<Duration>,
    /// Signal that reached the launcher alone.
    stopped: Option<LauncherError>,
}

impl WatchedCommand {
    /// Starts a command that may take so long. The tracer counts its processes from then on, and
    /// nothing before.
    ///
    /// # Errors
    /// Fails if the command cannot be started.
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
        let look_interval = session.is_some().then_some(LOOK);
        if let Some(session) = session {
            session.account.set_scope(TraceScope::Tree(pid));
        }
        // It may have ended already: then only its usage is known.
        let program = WatchedProcess::find(Path::new("/"), pid as i32).ok();
        let watcher = program.map(|program| ProgramWatcher::new(program, None));
        let id = Pid::from_raw(pid as i32);
        let pidfd = id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
        let words = shown_words(words, anonymous);
        Ok(Self { launcher, words, pid, time, end, watcher, pidfd, look_interval })
    }

    /// Waits for the command's end or that of its time, but no longer than `longest`; returns
    /// whether either has come. Looks at the command only when that is due, as a look may take a
    /// CPU from it.
    pub(crate) fn wait(&mut self, longest: Option<Duration>) -> bool {
        let (launcher, end) = (&self.launcher, self.end);
        let until_look = match &mut self.watcher {
            Some(watcher) => {
                watcher.look_if_due(self.look_interval, |time| wait_for_end(launcher, end, time))
            }
            None => None,
        };
        let longest = until_look.into_iter().chain(longest).min().unwrap_or(Duration::MAX);
        wait_for_end(launcher, end, longest)
    }

    /// Waits for the end of the command, and returns what it used. A command that exceeds its time
    /// gets SIGTERM, and SIGKILL if it does not end.
    ///
    /// # Errors
    /// Fails if the launcher did not report its end.
    pub(crate) fn end(self) -> Result<FinishedCommand> {
        let has_ended = self.launcher.wait_for_answer(Some(Duration::ZERO));
        let exceeded = if has_ended { None } else { Some(self.time) };
        if exceeded.is_some() {
            self.stop();
        }
        let Self { launcher, words, pid, watcher, .. } = self;
        let mut used = None;
        let SeriesEnd { failed, signal, stopped, .. } =
            finish_series(launcher, |run| used = Some(run.used));
        let used = used.ok_or_else(|| report_unmeasured(failed, signal))?;
        Ok(FinishedCommand { words, pid, watcher, used, exceeded, stopped })
    }

    /// Asks the command to end, and kills it if it does not.
    fn stop(&self) {
        // A stopped command would not end by SIGTERM alone.
        self.send(Signal::TERM);
        self.send(Signal::CONT);
        let end = Instant::now() + MAX_TERM_TIME;
        while !wait_for_end(&self.launcher, end, Duration::MAX) {}
        if !self.launcher.wait_for_answer(Some(Duration::ZERO)) {
            self.send(Signal::KILL);
        }
    }

    /// Sends a signal, if the command has not ended. Without a descriptor the launcher, which has
    /// not reaped the command, still holds its process id.
    fn send(&self, signal: Signal) {
        let _ = match (&self.pidfd, Pid::from_raw(self.pid as i32)) {
            (Some(pidfd), _) => pidfd_send_signal(pidfd, signal),
            (None, Some(pid)) => kill_process(pid, signal),
            (None, None) => Ok(()),
        };
    }
}

/// Waits until the launcher answers that its command has ended, but not beyond `end` and no longer
/// than `longest`; returns whether the answer or `end` has come.
fn wait_for_end(launcher: &Launcher, end: Instant, longest: Duration) -> bool {
    let left = end.saturating_duration_since(Instant::now());
    launcher.wait_for_answer(Some(longest.min(left)))
        || end.saturating_duration_since(Instant::now()).is_zero()
}

/// End of a series of commands.
#[derive(Default)]
pub(crate) struct SeriesEnd {
    pub(crate) failed: Option<LauncherError>,
    /// Last signal that asked to stop.
    pub(crate) signal: Option<u8>,
    /// Signal that reached the launcher alone.
    pub(crate) stopped: Option<LauncherError>,
    /// Runs of the warm-up that did not end with exit code 0.
    pub(crate) failed_warmups: Vec<FailedWarmup>,
}

/// Takes all runs of a series. Once it is over, a signal ends this program again.
pub(crate) fn finish_series(mut launcher: Launcher, mut take: impl FnMut(CommandRun)) -> SeriesEnd {
    let failed = loop {
        match launcher.next_run() {
            Ok(Some(run)) => take(run),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    SeriesEnd {
        failed,
        signal: launcher.signal(),
        stopped: launcher.stopped_alone(),
        failed_warmups: launcher.take_failed_warmups(),
    }
}

/// Returns the words of a command, as far as they may be shown.
pub(crate) fn shown_words(command: &[OsString], anonymous: bool) -> Vec<String> {
    let mut words = Vec::new();
    for word in command {
        words.push(word.to_string_lossy().into_owned());
    }
    shown(&words, anonymous)
}

/// Process ids that a notice names.
const MAX_NAMED_IDS: usize = 5;

/// Characters of a command in a sentence.
const MAX_COMMAND_CHARS: usize = 48;

/// Returns a notice that the command `name` left processes behind, or that this is `unknown`, with
/// the reason; none if it left none.
pub(crate) fn left_behind_notice<'a>(
    name: &str,
    pids: impl Iterator<Item = &'a u32>,
    unknown: Option<impl Display>,
) -> Option<String> {
    if let Some(why) = unknown {
        return Some(format!("{name} left processes behind that are unknown ({why})"));
    }
    let name = shortened(name, MAX_COMMAND_CHARS);
    let pids: Vec<String> = pids.map(u32::to_string).collect();
    let named = pids[..pids.len().min(MAX_NAMED_IDS)].join(", ");
    let more = if pids.len() > MAX_NAMED_IDS { ", ..." } else { "" };
    match pids.len() {
        0 => None,
        1 => Some(format!("process {named} still ran after the end of {name} and is not counted")),
        count => Some(format!(
            "{count} processes still ran after the end of {name} and are not counted ({named}{more})"
        )),
    }
}

/// Prints why a command was not measured, and returns the error that only has the exit code.
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
const SIGTERM_CODE: u8 = 128 + 15;
/// Exit code of a command that SIGKILL has ended.
const SIGKILL_CODE: u8 = 128 + 9;

impl FinishedCommand {
    /// Builds the report. The counts are those of the tracer, or else of wait4(2): of all threads
    /// of the command and of the children that it waited for. The time is the launcher's, from the
    /// start to the end.
    pub(crate) fn report(
        &mut self,
        traced: Result<ProgramObservation, String>,
        named: Option<&ChosenProfile>,
    ) -> ProgramCostReport {
        let mut observation =
            traced.unwrap_or_else(|why| ProgramObservation::from_wait4(&self.used, &why));
        let own_set = self.own_working_set(&mut observation);
        let working_set = command_working_set(own_set, &self.used);
        if let Some(unread) = &working_set.unread {
            observation.method.push(unread.why.clone());
        }
        observation.method.dedup();
        // The first notice says what the figures cover.
        observation.notices.splice(0..0, self.end_notices());
        let observation = ProgramObservation {
            pid: self.pid,
            // Looked at before its execve(2), it may still have this program's name.
            name: self.words.first().cloned().unwrap_or_default(),
            command: Some(self.words.clone()),
            words: Some(self.words.clone()),
            executable: self.words.first().and_then(|program| {
                executable::find_for_command(program, &env::var("PATH").unwrap_or_default())
            }),
            watched_ns: self.used.real_ns,
            resident_bytes: Reading::Known(self.used.usage.max_resident_bytes),
            ..observation
        };
        ProgramCostReport::from_observation(observation, working_set, named)
    }

    /// Returns the working set of the command's own process, and adds how it was read to an
    /// observation.
    fn own_working_set(&mut self, observation: &mut ProgramObservation) -> WorkingSetReading {
        let watcher = self.watcher.take().filter(|watcher| watcher.last_look.is_some());
        if let Some(watcher) = watcher {
            return watcher.add_to(observation);
        }
        let why = "it ended before its memory was looked at";
        observation.method.push(format!(
            "{why}: its working set is only known to be at most the largest resident memory that \
             the kernel saw"
        ));
        let max_bytes = self.used.usage.max_resident_bytes;
        WorkingSetReading::at_most(max_bytes, UnreadReason::new(why, None))
    }

    /// Returns notices of a command that did not end by itself: who ended it, and which processes
    /// did not end with it.
    pub(crate) fn end_notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if let Some(time) = self.exceeded {
            notices.push(self.stop_notice(time));
            let left_behind = &self.used.orphans.left_behind;
            let name = shell_words::join(&self.words);
            let pids = left_behind.known().into_iter().flatten();
            notices.extend(left_behind_notice(&name, pids, left_behind.why()));
        }
        if self.used.asked_to_be_traced {
            notices.push(TRACE_REQUEST_NOTICE.to_string());
        }
        notices
    }

    /// Says how a command ended that exceeded its time.
    fn stop_notice(&self, time: Duration) -> String {
        let late = Duration::from_nanos(self.used.real_ns).saturating_sub(time);
        let time = humantime::format_duration(time);
        match self.used.ending.shell_code() {
            SIGTERM_CODE => format!("stopped by SIGTERM after {time}, as --budget says"),
            SIGKILL_CODE if late >= MAX_TERM_TIME => format!(
                "got SIGTERM after {time}, as --budget says, did not end within {} s, and was \
                 killed",
                MAX_TERM_TIME.as_secs()
            ),
            _ => format!(
                "got SIGTERM after {time}, as --budget says, and ended {:.1} s later with {}",
                late.as_secs_f64(),
                self.used.ending
            ),
        }
    }

    /// Returns the exit code: the command's, or that of a signal that it did not get, of which a
    /// message tells. To end by SIGTERM when the time is over is no failure; to be killed is.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let code = self.used.ending.shell_code();
        if let Some(error) = &self.stopped {
            print_message(&format!("error: {error}"));
            return error.exit_code.into();
        }
        if self.exceeded.is_some() && code == SIGTERM_CODE {
            return ExitCode::SUCCESS;
        }
        code.into()
    }
}

/// Returns the working set that goes with the switches of a command and its children. Only the
/// command's own pages were looked at, and only now and then.
fn command_working_set(own_set: WorkingSetReading, used: &RunUsage) -> WorkingSetReading {
    let max_bytes = used.usage.max_resident_bytes;
    let own_cpu_ns = used.own_cpu_ns.known();
    let own_share = own_cpu_ns.map(|own_ns| *own_ns as f64 / used.usage.cpu_ns() as f64);
    if own_share.is_some_and(|share| share >= MIN_WATCHED_SHARE) {
        let WorkingSetReading { mut set, unread } = own_set;
        if let Reading::Known(set) = &mut set {
            if set.sampled.is_none() {
                set.high_bytes = set.high_bytes.max(max_bytes);
            }
        }
        return WorkingSetReading { set, unread };
    }
    let part = match own_share {
        Some(share) => format!("{:.0} %", 100.0 * share),
        None => "an unknown part".to_string(),
    };
    let why =
        format!("{part} of the CPU time is its own; the memory of its children was not sampled");
    let unread = UnreadReason::new(why, Some(UnreadRemedy::Child(None)));
    WorkingSetReading::at_most(own_set.high_bytes().max(max_bytes), unread)
}

#[cfg(test)]
mod tests {
    use analysis::program::WorkingSet;
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
    fn switches_of_children_do_not_go_with_the_working_set_of_their_parent() {
        let own_set = WorkingSet { low_bytes: 10, high_bytes: 400, sampled: None };
        let reading =
            |own_cpu_ns| command_working_set(WorkingSetReading::read(own_set), &used(own_cpu_ns));
        let single = reading(Some(950));
        let expected = WorkingSet { low_bytes: 10, high_bytes: 5000, sampled: None };
        assert_eq!(single, WorkingSetReading::read(expected));
        for (own_cpu_ns, part) in [(Some(120), "12 %"), (None, "unknown part")] {
            let WorkingSetReading { set, unread } = reading(own_cpu_ns);
            let set = *set.known().unwrap();
            assert_eq!((set.low_bytes, set.high_bytes), (0, 5000));
            let unread = unread.unwrap();
            assert_eq!(unread.remedy, Some(UnreadRemedy::Child(None)));
            assert!(unread.why.contains(part), "{}", unread.why);
        }
    }
}
