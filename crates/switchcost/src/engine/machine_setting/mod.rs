//! A setting of the whole machine that is changed while two of its values are compared, and that is
//! as it was afterwards, whatever happens.
//!
//! ```text
//! SettingSwitch   what a session holds: asks the guard for a value before each case
//!   guard         a process of its own that alone writes to the setting; when the session is gone,
//!                 killed or not, it puts the old value back
//!   leftover      a note on disk, for the case that both are killed: the next start of the program
//!                 puts the old value back
//!   file          a file below /proc/sys or /sys
//! ```

mod file;
mod guard;
mod leftover;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rundata::run::MachineSetting;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::file::{SettingFile, check_value};
use self::guard::{GUARD, GuardAnswer, GuardRequest};
use self::leftover::SettingNote;
use crate::base::failure::{print_message, usage};

pub(crate) use self::guard::guard_if_asked;
pub(crate) use self::leftover::restore_leftovers;

/// Longest time for an answer of the guard.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Time after a change of the setting before anything is measured: longer than a timer tick of 100
/// Hz, by which the scheduler of each CPU has run under the new one.
const SETTLING_TIME: Duration = Duration::from_millis(20);

/// A setting that is switched between two values. The old value comes back when it is dropped.
pub(crate) struct SettingSwitch {
    file: SettingFile,
    note: SettingNote,
    guard: Child,
    /// The pipe to the guard; closed, it ends.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The value that is set.
    current: Option<String>,
}

impl SettingSwitch {
    /// Starts the guard, which tries both values and the old one.
    ///
    /// # Errors
    /// Says which file or value is refused, and why; nothing is changed then.
    pub(crate) fn begin(typed: &Path, values: &[String]) -> Result<Self> {
        if probe::has_file_privileges() {
            return Err(usage(
                "--ab-setting: this program runs with more rights than its user (set-user-ID or \
                 file capabilities) and changes no setting of the machine for others (run it as \
                 root instead)",
            ));
        }
        for value in values {
            check_value(value).map_err(|why| usage(format!("--ab-setting: {why}")))?;
        }
        let in_option = |error| usage(format!("--ab-setting: {error}"));
        let file = SettingFile::find(typed).map_err(in_option)?;
        let notes = leftover::folder()?;
        let mut guard = Command::new("/proc/self/exe")
            .arg(GUARD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the guard of the setting")?;
        let (Some(requests), Some(answers)) = (guard.stdin.take(), guard.stdout.take()) else {
            bail!("the guard of the setting has no pipes");
        };
        let note = SettingNote::unknown(&file, values);
        let answers = BufReader::new(answers);
        let mut switch =
            Self { file, note, guard, requests: Some(requests), answers, current: None };
        let request =
            GuardRequest::Begin { file: switch.file.path.clone(), values: values.to_vec(), notes };
        match switch.ask(&request)? {
            GuardAnswer::Ready { old } => {
                switch.note.old = old;
                Ok(switch)
            }
            GuardAnswer::Failed(why) => Err(usage(format!("--ab-setting: {why}"))),
            other => Err(anyhow!("the guard of the setting answered {other:?}")),
        }
    }

    /// Sets a value, if it is not set, and waits until the machine runs under it.
    pub(crate) fn switch_to(&mut self, value: &str) -> Result<()> {
        if self.current.as_deref() == Some(value) {
            return Ok(());
        }
        self.check_unchanged()?;
        self.current = None;
        match self.ask(&GuardRequest::Set(value.to_string()))? {
            GuardAnswer::Set => {}
            GuardAnswer::Failed(why) => bail!("{why}"),
            other => bail!("the guard of the setting answered {other:?}"),
        }
        self.current = Some(value.to_string());
        sleep(SETTLING_TIME);
        Ok(())
    }

    /// Fails if the setting no longer has the value that was set: somebody else changed it, and what
    /// was measured since is of no known value.
    fn check_unchanged(&self) -> Result<()> {
        let Some(current) = &self.current else { return Ok(()) };
        let content = self.file.read()?;
        if file::has_value(&content, current) {
            return Ok(());
        }
        bail!(
            "{} was changed by somebody else while it was measured: it should be '{current}', and is \
             '{}'",
            self.file.path.display(),
            file::state_for(&content, current)
        )
    }

    /// Asks the guard, and returns its answer.
    fn ask(&mut self, request: &GuardRequest) -> Result<GuardAnswer> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let sent = match &mut self.requests {
            Some(requests) => requests.write_all(&line).and_then(|()| requests.flush()),
            None => bail!("the guard of the setting has ended"),
        };
        // Where it was killed, the answer is missing, too.
        match self.answer()? {
            Some(answer) => Ok(answer),
            None => {
                sent.context("the guard of the setting cannot be asked")?;
                bail!("the guard of the setting was killed")
            }
        }
    }

    /// Returns the next answer; `None` where the guard has ended without one.
    fn answer(&mut self) -> Result<Option<GuardAnswer>> {
        let until = Instant::now() + ANSWER_PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!(
                    "{} did not take or give a value within {} s",
                    self.file.path.display(),
                    ANSWER_PATIENCE.as_secs()
                );
            }
            let timeout = Timespec::try_from(left).ok();
            let mut fds = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(errno) => return Err(errno).context("poll"),
            }
        }
        let mut line = String::new();
        self.answers.read_line(&mut line).context("the guard of the setting")?;
        Ok(serde_json::from_str(&line).ok())
    }

    /// Ends the guard, which puts the old value back; does it by the guard's note where that was
    /// killed.
    fn put_back(&mut self) {
        drop(self.requests.take());
        match self.answer() {
            // It has said itself what it could not put back.
            Ok(Some(_)) => {
                let _ = self.guard.wait();
            }
            // Its end of the pipe is closed: it has ended.
            Ok(None) => {
                let _ = self.guard.wait();
                restore_leftovers();
            }
            Err(_) => print_message(&format!(
                "warning: {} may not be as it was yet: process {} still tries to put it back; else \
                 type: {}",
                self.file.path.display(),
                self.guard.id(),
                self.note.command()
            )),
        }
    }
}

impl Drop for SettingSwitch {
    fn drop(&mut self) {
        self.put_back();
    }
}

/// One of the two values of a setting that is switched.
#[derive(Clone)]
pub(crate) struct SettingArm {
    pub(crate) switch: Arc<Mutex<SettingSwitch>>,
    pub(crate) value: String,
}

impl SettingArm {
    /// Returns the setting as a run's header has it.
    pub(crate) fn stored(&self) -> MachineSetting {
        let switch = self.switch.lock().unwrap_or_else(PoisonError::into_inner);
        let file = switch.file.path.display().to_string();
        MachineSetting { file, value: self.value.clone() }
    }

    /// Sets the value, if it is not set.
    pub(crate) fn establish(&self) -> Result<()> {
        self.switch.lock().unwrap_or_else(PoisonError::into_inner).switch_to(&self.value)
    }
}
