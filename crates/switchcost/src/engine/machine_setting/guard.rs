//! The guard: a process that changes the setting, and puts it back when it hears no more of the
//! program, however that ended.
//!
//! ```text
//! switchcost compare --ab-setting FILE A B        switchcost guard-setting     (its own session)
//!   {"file": FILE, "values": [A, B]}  ----------->  takes the lock, reads the old value, tries
//!                                                   old, A, B and old again, keeps a note of it
//!                                     <-----------  "Ready"
//!   {"set": A}                        ----------->  writes A, reads it back
//!                                     <-----------  "Set"
//!   end of the pipe, by close or kill ----------->  writes the old value, removes the note
//!                                     <-----------  "Restored"
//! ```
//!
//! The program writes nothing itself, so a file that blocks its writer holds up the guard alone.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::file::{SettingFile, has_value, state_for};
use super::leftover::{NoteFolder, SettingNote};
use crate::base::failure::print_message;

/// The hidden command of the guard.
pub(super) const GUARD: &str = "guard-setting";

/// What the program asks of the guard, a line each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum GuardRequest {
    /// Begins: the setting, and the values that will be set.
    Begin {
        /// The file of the setting.
        file: PathBuf,
        /// Both values.
        values: Vec<String>,
    },
    /// Sets one of the values.
    Set(String),
}

/// What the guard answers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum GuardAnswer {
    /// All values can be set and put back; the setting has its old value.
    Ready {
        /// What puts the setting back.
        old: Vec<String>,
    },
    /// This value is set.
    Set(String),
    /// What was asked for cannot be done.
    Failed(String),
    /// The guard ends; the setting has its old value.
    Restored,
    /// The guard ends, and the setting is not as it was.
    NotRestored(String),
}

/// Acts as the guard if this program was started as one.
pub(crate) fn guard_if_asked() -> Option<Result<ExitCode>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != GUARD || arguments.next().is_some() {
        return None;
    }
    Some(guard())
}

fn guard() -> Result<ExitCode> {
    // Anybody may start this command: it must not do for them what they may not do themselves.
    if probe::has_file_privileges() {
        return Err(internal());
    }
    // Ctrl-C, and what ends a whole session or is sent by name, must not keep it from putting the
    // setting back.
    let _ = rustix::process::setsid();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::new(AtomicBool::new(false))).context("sigaction")?;
    }
    probe::set_own_name(c"switchcost-set");
    let mut lines = io::stdin().lock().lines();
    let first = lines.next().ok_or_else(internal)?.context("standard input")?;
    let request = serde_json::from_str(&first).map_err(|_| internal())?;
    let GuardRequest::Begin { file, values } = request else { return Err(internal()) };
    let guarded = match GuardedSetting::begin(&file, &values) {
        Ok(guarded) => guarded,
        Err(error) => {
            answer(&GuardAnswer::Failed(format!("{error:#}")));
            return Ok(ExitCode::FAILURE);
        }
    };
    answer(&GuardAnswer::Ready { old: guarded.note.old.clone() });
    for line in lines {
        let Ok(Ok(GuardRequest::Set(value))) = line.map(|line| serde_json::from_str(&line)) else {
            break;
        };
        let set = match guarded.set(&value) {
            Ok(()) => GuardAnswer::Set(value),
            Err(error) => GuardAnswer::Failed(format!("{error:#}")),
        };
        answer(&set);
    }
    guarded.end()
}

fn internal() -> anyhow::Error {
    anyhow!("`{GUARD}` is an internal command of switchcost")
}

/// Answers the program; returns whether that is there to read it.
fn answer(answer: &GuardAnswer) -> bool {
    let Ok(mut line) = serde_json::to_vec(answer) else { return false };
    line.push(b'\n');
    let mut output = io::stdout();
    output.write_all(&line).and_then(|()| output.flush()).is_ok()
}

/// A setting that is put back when its guard ends.
struct GuardedSetting {
    file: SettingFile,
    note: SettingNote,
    notes: NoteFolder,
    /// Keeps other sessions away.
    _lock: std::fs::File,
}

impl GuardedSetting {
    /// Takes the lock and tries all values. The first writing is of the old value, which a file that
    /// does not take its own content back refuses; nothing else was changed then.
    fn begin(path: &Path, values: &[String]) -> Result<Self> {
        const NOT_ITS_OWN: &str = "it does not take its own value back";
        let file = SettingFile::find(path)?;
        let lock = file.lock()?;
        let notes = NoteFolder::of_user()?;
        let content = file.read()?;
        file.check_flags(values, &content)?;
        let note = SettingNote::new(&file, &content, values);
        for old in &note.old {
            file.set(old).context(NOT_ITS_OWN)?;
        }
        let written = file.read()?;
        ensure!(written == content, "{NOT_ITS_OWN}: it had '{content}', and has '{written}' now");
        notes.write(&note)?;
        let guarded = Self { file, note, notes, _lock: lock };
        let mut tried = Ok(());
        for value in values {
            tried = tried.and_then(|()| guarded.set(value));
        }
        if tried.is_err() {
            guarded.put_back()?;
            tried?;
        }
        guarded.note.restore(&guarded.file).context("it does not take its old value back")?;
        Ok(guarded)
    }

    /// Sets a value, and what the other value may have changed as it was before.
    fn set(&self, value: &str) -> Result<()> {
        ensure!(self.note.values.iter().any(|named| named == value), "'{value}' was not named");
        let is_flag = self.note.old.len() > 1;
        let content = self.file.read()?;
        for old in &self.note.old {
            if is_flag && state_for(&content, old) != *old {
                self.file.set(old)?;
            }
        }
        self.file.set(value)?;
        Ok(())
    }

    /// Puts the setting back, unless somebody else has set it meanwhile, and removes the note.
    fn put_back(&self) -> Result<()> {
        let content = self.file.read()?;
        let known = self.note.old.iter().chain(&self.note.values);
        if !known.into_iter().any(|value| has_value(&content, value)) {
            self.notes.remove(&self.note);
            bail!("somebody else has set it to '{content}', which is left as it is");
        }
        self.note.restore(&self.file)?;
        self.notes.remove(&self.note);
        Ok(())
    }

    /// Puts the setting back and answers.
    fn end(&self) -> Result<ExitCode> {
        match self.put_back() {
            Ok(()) => {
                answer(&GuardAnswer::Restored);
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => {
                let why = format!(
                    "{} is not as it was: {error:#}; to put it back, type: {}",
                    self.note.file.display(),
                    self.note.command()
                );
                if !answer(&GuardAnswer::NotRestored(why.clone())) {
                    print_message(&format!("error: {why}"));
                }
                Ok(ExitCode::FAILURE)
            }
        }
    }
}
