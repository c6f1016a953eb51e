//! `compare --ab-commands`: two commands, each of which brings the whole machine into a state; a
//! scheduler that is started, say, or settings that are written.
//!
//! ```text
//! CommandSwitch   what a session holds: asks the guard for a side before each case, and waits until
//!                 the machine shows the settings of that side
//!   guard         two processes that alone run the commands; what runs is ended when the session is
//!                 gone, killed or not
//!   running       a command from its start to its end, with all that it starts
//! ```

mod guard;
mod running;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use rundata::machine::{FieldDifference, Machine};

use self::guard::{CommandAnswer, CommandRequest, KEEPER, RUN_PATIENCE};
use self::running::END_PATIENCE;
use super::guard_process::GuardProcess;
use super::interrupt::Interrupt;
use super::machine_setting::SETTLING_TIME;
use crate::base::failure::{print_message, usage};
use crate::base::secrets::{kept_line, masked};

pub(crate) use self::guard::guard_if_asked;

/// Stands for an empty command.
pub(crate) const NO_COMMAND: &str = "no command";

/// Longest time for an answer: a command is ended, and one is run.
const ANSWER_PATIENCE: Duration =
    Duration::from_secs(2 * END_PATIENCE.as_secs() + RUN_PATIENCE.as_secs() + 10);

/// Longest time until the machine shows the settings of a side.
const SEEN_PATIENCE: Duration = Duration::from_secs(10);

/// Time between two looks at the settings.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// Time for which the settings must not change when they are seen for the first time.
const STABLE_TIME: Duration = Duration::from_millis(200);

/// Two commands of which one at a time is in force. What runs is ended when it is dropped.
pub(crate) struct CommandSwitch {
    guard: GuardProcess,
    interrupt: Interrupt,
    /// The side in force.
    current: Option<usize>,
    /// Settings of the machine before the first command.
    before: Machine,
    /// Settings of each side, as they were when it was first in force.
    seen: [Option<Machine>; 2],
    is_finished: bool,
}

impl CommandSwitch {
    /// Starts the guard; no command is run.
    ///
    /// # Errors
    /// Says why no session can begin.
    pub(crate) fn begin(commands: &[String; 2], interrupt: &Interrupt) -> Result<Self> {
        if probe::has_file_privileges() {
            return Err(usage(
                "--ab-commands: this program runs with more rights than its user (set-user-ID or \
                 file capabilities) and runs no commands for others (run it as root instead)",
            ));
        }
        let guard = GuardProcess::start(KEEPER, "the guard of the commands")?;
        let mut switch = Self {
            guard,
            interrupt: interrupt.clone(),
            current: None,
            before: read_settings(),
            seen: [None, None],
            is_finished: false,
        };
        match switch.ask(&CommandRequest::Begin(commands.clone()))? {
            CommandAnswer::Ready => Ok(switch),
            CommandAnswer::Failed(why) => {
                // The guard has ended, and nothing was run.
                switch.is_finished = true;
                switch.guard.close();
                let _ = switch.guard.wait();
                Err(usage(format!("--ab-commands: {why}")))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Brings the machine into the state of a side, if it is not in it. Once that has failed, it
    /// fails for all that follows.
    fn switch_to(&mut self, side: usize) -> Result<()> {
        self.check_unchanged()?;
        if self.current == Some(side) {
            return Ok(());
        }
        self.current = None;
        let is_shown = !self.changed_fields().is_empty();
        match self.ask(&CommandRequest::Switch { side, is_shown })? {
            CommandAnswer::Switched(switched) if switched == side => {}
            other => return Err(self.fail(other)),
        }
        if self.seen[side].is_none() {
            self.seen[side] = Some(self.settle()?);
        } else {
            self.wait_until_seen(side)?;
        }
        self.current = Some(side);
        sleep(SETTLING_TIME);
        Ok(())
    }

    /// Waits until the settings have not changed for a while, and returns them.
    fn settle(&self) -> Result<Machine> {
        let (mut settings, mut since) = (read_settings(), Instant::now());
        let until = since + SEEN_PATIENCE;
        while since.elapsed() < STABLE_TIME {
            if self.interrupt.wait_until(until, LOOK_PAUSE) {
                bail!("the settings of the machine go on changing under it");
            }
            let now = read_settings();
            if !settings.changed_settings(&now).is_empty() {
                (settings, since) = (now, Instant::now());
            }
        }
        Ok(settings)
    }

    /// Waits until the machine has the settings again that this side had at first.
    fn wait_until_seen(&mut self, side: usize) -> Result<()> {
        let until = Instant::now() + SEEN_PATIENCE;
        loop {
            let Some(difference) = self.difference(side) else { return Ok(()) };
            if self.interrupt.wait_until(until, LOOK_PAUSE) {
                // An end of the command says more.
                self.check_running()?;
                self.guard.close();
                bail!("{}", difference_in_words(&difference, "it does not come about again"));
            }
        }
    }

    /// Fails if the machine is no longer in the state of the side: the command that was to go on has
    /// ended, or somebody else has changed what it sets.
    fn check_unchanged(&mut self) -> Result<()> {
        if !self.guard.is_asked() {
            bail!("the commands are not run any more: see above");
        }
        let Some(side) = self.current else { return Ok(()) };
        self.check_running()?;
        let Some(difference) = self.difference(side) else { return Ok(()) };
        self.guard.close();
        bail!("{}", difference_in_words(&difference, "it changed while it was measured"))
    }

    fn check_running(&mut self) -> Result<()> {
        match self.ask(&CommandRequest::Check)? {
            CommandAnswer::Unchanged => Ok(()),
            other => Err(self.fail(other)),
        }
    }

    /// Returns the first setting that the commands change and that is not as it was when this side
    /// was first in force.
    fn difference(&self, side: usize) -> Option<FieldDifference> {
        let seen = self.seen[side].as_ref()?;
        let fields = self.changed_fields();
        if fields.is_empty() {
            return None;
        }
        let mut differences = seen.changed_settings(&read_settings());
        differences.retain(|difference| fields.contains(&difference.field));
        differences.into_iter().next()
    }

    /// Returns the names of the settings that the commands change.
    fn changed_fields(&self) -> Vec<String> {
        let mut fields = Vec::new();
        let [a, b] = &self.seen;
        for (one, other) in [(Some(&self.before), a.as_ref()), (a.as_ref(), b.as_ref())] {
            let (Some(one), Some(other)) = (one, other) else { continue };
            for difference in one.changed_settings(other) {
                fields.push(difference.field);
            }
        }
        fields
    }

    fn ask(&mut self, request: &CommandRequest) -> Result<CommandAnswer> {
        self.guard.ask(request, ANSWER_PATIENCE, Some(&self.interrupt))
    }

    /// Gives up after such an answer, and returns it as an error.
    fn fail(&mut self, answer: CommandAnswer) -> anyhow::Error {
        self.guard.close();
        match answer {
            CommandAnswer::Failed(why) => usage(format!("--ab-commands: {why}")),
            other => unexpected(&other),
        }
    }

    /// Ends what runs, and runs what has to be run at the end. Once is enough.
    ///
    /// # Errors
    /// The machine is not as it was to be, or may not be.
    fn finish(&mut self) -> Result<()> {
        if self.is_finished {
            return Ok(());
        }
        self.is_finished = true;
        self.guard.close();
        let until = Instant::now() + ANSWER_PATIENCE;
        loop {
            match self.guard.answer(until, None) {
                Ok(Some(CommandAnswer::Restored)) => break,
                Ok(Some(CommandAnswer::NotRestored(why))) => bail!("{why}"),
                // Late answers to earlier requests.
                Ok(Some(_)) => {}
                // Its end of the pipe is closed: the guard was killed, and its keeper has cleaned up.
                Ok(None) => {
                    let has_cleaned_up = self.guard.wait().is_some_and(|status| status.success());
                    if has_cleaned_up {
                        return Ok(());
                    }
                    bail!("the guard of the commands was killed: look whether they still run");
                }
                Err(_) => bail!(
                    "the commands may not be ended: process {} still tries to end them",
                    self.guard.id()
                ),
            }
        }
        let _ = self.guard.wait();
        Ok(())
    }
}

impl Drop for CommandSwitch {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            print_message(&format!("error: {error:#}"));
        }
    }
}

fn read_settings() -> Machine {
    probe::machine::read_changeable_settings(Path::new("/"))
}

fn unexpected(answer: &CommandAnswer) -> anyhow::Error {
    anyhow!("the guard of the commands answered {answer:?}")
}

fn difference_in_words(difference: &FieldDifference, what: &str) -> String {
    let FieldDifference { field, base, other } = difference;
    format!("{field} was {base} under this command at first, and is {other}: {what}")
}

/// The state that one of two commands brings the machine into.
#[derive(Clone)]
pub(crate) struct CommandArm {
    switch: Arc<Mutex<CommandSwitch>>,
    /// 0 for A, 1 for B.
    side: usize,
    line: String,
}

impl CommandArm {
    /// Starts the guard of two commands, and returns both sides.
    pub(crate) fn begin_both(commands: &[String; 2], interrupt: &Interrupt) -> Result<[Self; 2]> {
        let switch = Arc::new(Mutex::new(CommandSwitch::begin(commands, interrupt)?));
        Ok([0, 1].map(|side| Self { switch: switch.clone(), side, line: commands[side].clone() }))
    }

    /// Returns the command as a run's header has it: whole, or its program and a hash; nothing of an
    /// anonymous one.
    pub(crate) fn stored(&self, anonymous: bool, is_whole: bool) -> String {
        if self.line.trim().is_empty() {
            String::new()
        } else if anonymous {
            "command".to_string()
        } else if is_whole {
            self.line.clone()
        } else {
            kept_line(&self.line)
        }
    }

    /// Returns the command as it is printed.
    pub(crate) fn shown(&self) -> String {
        if self.line.trim().is_empty() {
            return NO_COMMAND.to_string();
        }
        masked(std::slice::from_ref(&self.line)).concat()
    }

    /// Brings the machine into the state, if it is not in it.
    pub(crate) fn establish(&self) -> Result<()> {
        self.locked().switch_to(self.side)
    }

    /// Fails if the machine is no longer in the state.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.locked().check_unchanged()
    }

    /// Ends what runs, and runs what has to be run at the end.
    pub(crate) fn finish(&self) -> Result<()> {
        self.locked().finish()
    }

    fn locked(&self) -> MutexGuard<'_, CommandSwitch> {
        self.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
