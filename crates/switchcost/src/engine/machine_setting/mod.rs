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

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rundata::run::MachineSetting;

use self::file::{SettingFile, check_value};
use self::guard::{GUARD, GuardAnswer, GuardRequest};
use self::leftover::SettingNote;
use super::guard_process::GuardProcess;
use crate::base::failure::{print_message, usage};

pub(crate) use self::guard::guard_if_asked;
pub(crate) use self::leftover::restore_leftovers;

/// Longest time for an answer of the guard.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Longest time until it has begun: it writes four values, and a note to the disk.
const BEGIN_PATIENCE: Duration = Duration::from_secs(20);

/// Time after a change of the setting before anything is measured: longer than a timer tick of 100
/// Hz, by which the scheduler of each CPU has run under the new one.
pub(crate) const SETTLING_TIME: Duration = Duration::from_millis(20);

/// A setting that is switched between two values. The old value comes back when it is dropped.
pub(crate) struct SettingSwitch {
    file: SettingFile,
    guard: GuardProcess,
    /// The value that is set.
    current: Option<String>,
    /// What puts the setting back; empty until the guard has tried it.
    note: SettingNote,
    /// Whether the old value was put back, or somebody was told that it was not.
    is_finished: bool,
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
        let file =
            SettingFile::find(typed).map_err(|error| usage(format!("--ab-setting: {error}")))?;
        let guard = GuardProcess::start(GUARD, "the guard of the setting")?;
        let mut switch =
            Self { file, guard, current: None, note: SettingNote::default(), is_finished: false };
        let (file, values) = (switch.file.path.clone(), values.to_vec());
        let request = GuardRequest::Begin { file: file.clone(), values: values.clone() };
        match switch.ask(&request, BEGIN_PATIENCE)? {
            GuardAnswer::Ready { old } => {
                switch.note = SettingNote { file, old, values, ..SettingNote::default() };
                Ok(switch)
            }
            GuardAnswer::Failed(why) => Err(usage(format!("--ab-setting: {why}"))),
            other => Err(anyhow!("the guard of the setting answered {other:?}")),
        }
    }

    /// Sets a value, if it is not set, and waits until the machine runs under it. Once that has
    /// failed, it fails for all that follows: what is measured then is of no known value.
    pub(crate) fn switch_to(&mut self, value: &str) -> Result<()> {
        self.check_unchanged()?;
        if self.current.as_deref() == Some(value) {
            return Ok(());
        }
        self.current = None;
        match self.ask(&GuardRequest::Set(value.to_string()), ANSWER_PATIENCE)? {
            GuardAnswer::Set(set) if set == value => {}
            GuardAnswer::Failed(why) => {
                self.give_up();
                bail!("{why}")
            }
            other => {
                self.give_up();
                bail!("the guard of the setting answered {other:?}")
            }
        }
        self.current = Some(value.to_string());
        sleep(SETTLING_TIME);
        Ok(())
    }

    /// Fails if the setting no longer has the value that was set: somebody else changed it, and what
    /// was measured since is of no known value.
    pub(crate) fn check_unchanged(&mut self) -> Result<()> {
        if !self.guard.is_asked() {
            bail!("{} is not changed any more: see above", self.file.path.display());
        }
        let Some(current) = &self.current else { return Ok(()) };
        let content = self.file.read()?;
        if file::has_value(&content, current) {
            return Ok(());
        }
        let why = format!(
            "{} was changed by somebody else while it was measured: it should be '{current}', and is \
             '{}'",
            self.file.path.display(),
            file::state_for(&content, current)
        );
        self.give_up();
        bail!("{why}")
    }

    /// Asks the guard for nothing any more: it puts the old value back.
    fn give_up(&mut self) {
        self.guard.close();
    }

    fn ask(&mut self, request: &GuardRequest, patience: Duration) -> Result<GuardAnswer> {
        let asked = self.guard.ask(request, patience, None);
        asked.with_context(|| self.file.path.display().to_string())
    }

    /// Ends the guard, which puts the old value back; where that was killed, it is put back by the
    /// guard's note. Once is enough.
    ///
    /// # Errors
    /// The setting is not as it was, or may not be.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if self.is_finished {
            return Ok(());
        }
        self.is_finished = true;
        self.give_up();
        let until = Instant::now() + ANSWER_PATIENCE;
        loop {
            match self.guard.answer(until, None) {
                Ok(Some(GuardAnswer::Restored)) => break,
                Ok(Some(GuardAnswer::NotRestored(why))) => bail!("{why}"),
                // Late answers to earlier requests.
                Ok(Some(_)) => {}
                // Its end of the pipe is closed: it has ended.
                Ok(None) => {
                    let _ = self.guard.wait();
                    restore_leftovers();
                    return self.check_restored();
                }
                Err(_) => bail!(
                    "{} may not be as it was: process {} still tries to put it back (else: {})",
                    self.file.path.display(),
                    self.guard.id(),
                    self.note.command()
                ),
            }
        }
        let _ = self.guard.wait();
        Ok(())
    }

    /// Fails if the setting does not have its old value.
    fn check_restored(&self) -> Result<()> {
        let content = self.file.read()?;
        if self.note.old.iter().all(|old| file::has_value(&content, old)) {
            return Ok(());
        }
        let name = self.file.path.display();
        bail!("{name} is not as it was; to put it back, type: {}", self.note.command())
    }
}

impl Drop for SettingSwitch {
    fn drop(&mut self) {
        // Where the session has finished, the guard has ended, and there is nothing to do.
        if let Err(error) = self.finish() {
            print_message(&format!("error: {error:#}"));
        }
    }
}

/// One of the two values of a setting that is switched.
#[derive(Clone)]
pub(crate) struct SettingArm {
    switch: Arc<Mutex<SettingSwitch>>,
    value: String,
}

impl SettingArm {
    /// Starts the guard of a setting, and returns both of its values.
    pub(crate) fn begin_both(file: &Path, values: &[String; 2]) -> Result<[Self; 2]> {
        let switch = Arc::new(Mutex::new(SettingSwitch::begin(file, values)?));
        Ok(values.clone().map(|value| Self { switch: switch.clone(), value }))
    }

    /// Returns the setting as a run's header has it.
    pub(crate) fn stored(&self) -> MachineSetting {
        let file = self.locked().file.path.display().to_string();
        MachineSetting { file, value: self.value.clone() }
    }

    /// Sets the value, if it is not set.
    pub(crate) fn establish(&self) -> Result<()> {
        self.locked().switch_to(&self.value)
    }

    /// Fails if the setting no longer has the value.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.locked().check_unchanged()
    }

    /// Puts the old value back.
    pub(crate) fn finish(&self) -> Result<()> {
        self.locked().finish()
    }

    fn locked(&self) -> MutexGuard<'_, SettingSwitch> {
        self.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
