//! The guard of two commands, and its keeper. They outlive the program, and one of them outlives the
//! other:
//!
//! ```text
//! switchcost compare --ab-commands A B      switchcost keep-commands     switchcost guard-commands
//!   requests  ---------------------------------------------------------->  runs the commands
//!             <------------- answers ---------  relays  <-----------------
//!   killed: the pipe ends                                                  ends the command, runs A
//!                                           adopts and ends what is left  <---  killed
//!                                           runs A if that is needed
//! ```
//!
//! Both are subreapers (PR_SET_CHILD_SUBREAPER): what the commands start cannot hide from them by
//! becoming an orphan. The keeper holds the lock.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::process::{Pid, set_child_subreaper};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::running::{RunningCommand, end_descendants, named, shown};
use crate::base::failure::print_message;

/// The hidden command of the keeper.
pub(super) const KEEPER: &str = "keep-commands";

/// The hidden command of the guard.
const GUARD: &str = "guard-commands";

/// A command that still runs after this time goes on. So long it has, too, to bring about a state
/// that no setting shows.
const FIRST_TIME: Duration = Duration::from_secs(2);

/// Time for which a command that goes on is watched at its later starts where settings show its state.
const STARTING_TIME: Duration = Duration::from_millis(300);

/// Longest time for a command that ends by itself.
pub(super) const RUN_PATIENCE: Duration = Duration::from_secs(30);

/// The file whose lock a session holds: every user can read it, and no program locks it.
const LOCKED_FILE: &str = "/proc/sys/kernel/ostype";

/// What the program asks of the guard, a line each. Sides are 0 (A) and 1 (B).
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum CommandRequest {
    /// Begins: the command of each side; an empty one is none.
    Begin([String; 2]),
    /// Brings the machine into the state of a side.
    Switch {
        /// 0 (A) or 1 (B).
        side: usize,
        /// Whether settings of the machine show the state, for which the program waits.
        is_shown: bool,
    },
    /// Asks whether that state can still be there.
    Check,
}

/// What the guard answers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CommandAnswer {
    /// The guard has begun; nothing was run.
    Ready,
    /// The command of this side has ended well, or goes on.
    Switched(usize),
    /// The command that goes on, if there is one, still does.
    Unchanged,
    /// What was asked for cannot be done.
    Failed(String),
    /// The guard ends: nothing of the commands runs, and what had to be run at the end has.
    Restored,
    /// The guard ends, and the machine may not be as it was.
    NotRestored(String),
    /// To the keeper: what to run if the guard is killed.
    Note(Option<String>),
}

/// Acts as the keeper or the guard if this program was started as one.
pub(crate) fn guard_if_asked() -> Option<Result<ExitCode>> {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next()?;
    if arguments.next().is_some() {
        return None;
    }
    match name.to_str()? {
        KEEPER => Some(keep()),
        GUARD => Some(guard()),
        _ => None,
    }
}

fn internal(name: &str) -> anyhow::Error {
    anyhow!("`{name}` is an internal command of switchcost")
}

/// Becomes a process that adopts all that is started below it, and that ends by nothing but its own
/// decision and SIGKILL.
fn become_subreaper(name: &'static str) -> Result<()> {
    // Anybody may start this command: it must not do for them what they may not do themselves.
    if probe::has_file_privileges() {
        return Err(internal(name));
    }
    let _ = rustix::process::setsid();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::new(AtomicBool::new(false))).context("sigaction")?;
    }
    set_child_subreaper(Some(Pid::INIT)).context("prctl(PR_SET_CHILD_SUBREAPER)")
}

/// Acts as the keeper: holds the lock, starts the guard, passes its answers on, and cleans up where it
/// was killed.
fn keep() -> Result<ExitCode> {
    become_subreaper(KEEPER)?;
    probe::set_own_name(c"switchcost-keep");
    let _lock = match lock() {
        Ok(lock) => lock,
        Err(why) => {
            answer(&CommandAnswer::Failed(why));
            return Ok(ExitCode::FAILURE);
        }
    };
    let mut guard = Command::new("/proc/self/exe")
        .arg(GUARD)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the guard of the commands")?;
    let mut note = None;
    let mut has_ended_well = false;
    if let Some(answers) = guard.stdout.take() {
        for line in BufReader::new(answers).lines() {
            let Ok(Ok(said)) = line.map(|line| serde_json::from_str(&line)) else { break };
            match said {
                CommandAnswer::Note(restore) => note = restore,
                said => {
                    let is_last =
                        matches!(said, CommandAnswer::Restored | CommandAnswer::NotRestored(_));
                    has_ended_well |= is_last;
                    let is_heard = answer(&said);
                    if let (CommandAnswer::NotRestored(why), false) = (&said, is_heard) {
                        print_message(&format!("error: {why}"));
                    }
                }
            }
        }
    }
    // One that was killed has no code.
    let code = guard.wait().ok().and_then(|status| status.code());
    if has_ended_well {
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(why) = clean_up(note.as_deref()) {
        print_message(&format!("error: {why}"));
        return Ok(ExitCode::FAILURE);
    }
    Ok(if code.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Takes the lock of sessions of commands; the error is the reason.
fn lock() -> Result<File, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = File::from(open(LOCKED_FILE, flags, Mode::empty()).map_err(cannot_lock)?);
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(format!(
            "another session of switchcost runs such commands (wait for its end), or another \
             program holds a lock on {LOCKED_FILE} (lslocks)"
        )),
        Err(errno) => Err(cannot_lock(errno)),
    }
}

fn cannot_lock(errno: Errno) -> String {
    format!("{LOCKED_FILE} cannot be locked: {errno}")
}

/// Answers the program; returns whether that is there to read it.
fn answer(answer: &CommandAnswer) -> bool {
    let Ok(mut line) = serde_json::to_vec(answer) else { return false };
    line.push(b'\n');
    let mut output = io::stdout();
    output.write_all(&line).and_then(|()| output.flush()).is_ok()
}

/// Ends all that the commands have left, then runs the command that brings the machine back, if one
/// does. What cannot be ended is no reason not to run it.
fn clean_up(restore: Option<&str>) -> Result<(), String> {
    let ended = end_descendants().map(|_| ());
    let restored = match restore {
        Some(line) => run_to_end(line).map_err(|why| not_restored(line, &why)),
        None => Ok(()),
    };
    join(ended, restored)
}

/// Returns the errors of two steps as one.
fn join(first: Result<(), String>, second: Result<(), String>) -> Result<(), String> {
    match (first, second) {
        (Err(first), Err(second)) if first != second => Err(format!("{first}; {second}")),
        (first, second) => first.and(second),
    }
}

fn not_restored(line: &str, why: &str) -> String {
    let shown = shown(line);
    format!("the state of A is not back: {why}; to bring it back, run {shown} yourself")
}

/// Runs a command that ends by itself; it must end well and leave nothing.
fn run_to_end(line: &str) -> Result<(), String> {
    let command = RunningCommand::start(line)?;
    end_by_itself(command, RUN_PATIENCE).map(|_| ())
}

/// Waits for a command's end, which must be a success that leaves nothing running. Returns the
/// command if it goes on after `patience`.
fn wait_for_end(
    mut command: RunningCommand,
    patience: Duration,
) -> Result<Option<RunningCommand>, String> {
    let Some(status) = command.wait(patience)? else { return Ok(Some(command)) };
    if !status.success() {
        let why = command.end_in_words(status);
        end_descendants()?;
        return Err(why);
    }
    let staying = end_descendants()?;
    if staying.is_empty() {
        return Ok(None);
    }
    Err(format!(
        "{} ended and left {} running, which was ended: let the command itself go on (without &)",
        command.line_in_words(),
        named(&staying)
    ))
}

/// Waits for the end of a command that ends by itself; one that goes on is ended, which is an error.
fn end_by_itself(command: RunningCommand, patience: Duration) -> Result<(), String> {
    let Some(mut hanging) = wait_for_end(command, patience)? else { return Ok(()) };
    let why = hanging.hang_in_words(patience);
    hanging.end()?;
    Err(why)
}

/// What a command does, as its first start has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandKind {
    /// No command.
    Nothing,
    /// It ends by itself.
    Ends,
    /// It goes on until it is ended.
    GoesOn,
}

/// The command of a side.
struct SideCommand {
    line: String,
    /// Absent before its first start.
    kind: Option<CommandKind>,
}

impl SideCommand {
    fn new(line: String) -> Self {
        let kind = if line.trim().is_empty() { Some(CommandKind::Nothing) } else { None };
        Self { line, kind }
    }
}

/// The commands of both sides, and the one that runs.
struct GuardedCommands {
    sides: [SideCommand; 2],
    running: Option<RunningCommand>,
    /// The side whose state the machine is in, or may be: B until A's command has succeeded.
    last: Option<usize>,
}

impl GuardedCommands {
    /// Brings the machine into the state of a side.
    fn switch(&mut self, side: usize, is_shown: bool) -> Result<(), String> {
        if let Some(running) = self.running.take() {
            running.end()?;
        }
        if side == 1 {
            self.note_last(side);
        }
        self.run_side(side, is_shown)?;
        self.note_last(side);
        self.check_undone()
    }

    /// Notes the side whose state the machine may be in, for the keeper, too.
    fn note_last(&mut self, side: usize) {
        self.last = Some(side);
        answer(&CommandAnswer::Note(self.restoring_line().map(str::to_string)));
    }

    /// Runs the command of a side: to its end, or until it has shown that it goes on.
    fn run_side(&mut self, side: usize, is_shown: bool) -> Result<(), String> {
        let SideCommand { line, kind } = &self.sides[side];
        let kind = match kind {
            Some(CommandKind::Nothing) => CommandKind::Nothing,
            Some(CommandKind::Ends) => {
                run_to_end(line)?;
                CommandKind::Ends
            }
            known => {
                let is_short = known.is_some() && is_shown;
                let time = if is_short { STARTING_TIME } else { FIRST_TIME };
                self.running = wait_for_end(RunningCommand::start(line)?, time)?;
                match &self.running {
                    Some(running) => {
                        running.check_permission()?;
                        CommandKind::GoesOn
                    }
                    None if known.is_some() => {
                        return Err(format!("{} went on at first, and ended now", shown(line)));
                    }
                    None => CommandKind::Ends,
                }
            }
        };
        self.sides[side].kind = Some(kind);
        Ok(())
    }

    /// Fails if the command of a side stays in force after its end, and the other's does not undo it,
    /// as it is none or goes on: both sides would be the same.
    fn check_undone(&self) -> Result<(), String> {
        for (one, other) in [(0, 1), (1, 0)] {
            if self.sides[other].kind != Some(CommandKind::Ends) {
                continue;
            }
            let [one, other] = [one, other].map(|side| &self.sides[side]);
            let ending = shown(&other.line);
            match one.kind {
                Some(CommandKind::Nothing) => {
                    return Err(format!(
                        "{ending} ends by itself, and '' does not undo it: name a command that \
                         does (what it did stays)"
                    ));
                }
                Some(CommandKind::GoesOn) => {
                    return Err(format!(
                        "{ending} ends by itself, and {}, which goes on, does not undo it: let \
                         both go on, or both end by themselves (what it did stays)",
                        shown(&one.line)
                    ));
                }
                Some(CommandKind::Ends) | None => {}
            }
        }
        Ok(())
    }

    /// Returns the command that has to be run at the end: that of A, if it ends by itself and B's was
    /// the last.
    fn restoring_line(&self) -> Option<&str> {
        let a = &self.sides[0];
        let is_needed = self.last == Some(1) && a.kind == Some(CommandKind::Ends);
        is_needed.then_some(a.line.as_str())
    }

    /// Fails if the command that goes on has ended.
    fn check(&mut self) -> Result<(), String> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let Some(status) = running.wait(Duration::ZERO)? else { return Ok(()) };
        Err(format!(
            "{} while it was measured (a command that has not ended within {} s is to go on)",
            running.end_in_words(status),
            FIRST_TIME.as_secs()
        ))
    }

    /// Ends what runs, and runs what has to be run at the end.
    fn end(&mut self) -> Result<(), String> {
        let ended = self.running.take().map_or(Ok(()), RunningCommand::end);
        join(ended, clean_up(self.restoring_line()))
    }
}

/// Acts as the guard.
fn guard() -> Result<ExitCode> {
    become_subreaper(GUARD)?;
    probe::set_own_name(c"switchcost-cmds");
    let mut lines = io::stdin().lock().lines();
    let first = lines.next().ok_or_else(|| internal(GUARD))?.context("standard input")?;
    let request = serde_json::from_str(&first).map_err(|_| internal(GUARD))?;
    let CommandRequest::Begin(commands) = request else { return Err(internal(GUARD)) };
    let sides = commands.map(SideCommand::new);
    let mut guarded = GuardedCommands { sides, running: None, last: None };
    answer(&CommandAnswer::Ready);
    for line in lines {
        let Ok(Ok(request)) = line.map(|line| serde_json::from_str(&line)) else { break };
        let done = match request {
            CommandRequest::Switch { side: side @ (0 | 1), is_shown } => {
                guarded.switch(side, is_shown).map(|()| CommandAnswer::Switched(side))
            }
            CommandRequest::Check => guarded.check().map(|()| CommandAnswer::Unchanged),
            CommandRequest::Switch { .. } | CommandRequest::Begin(_) => break,
        };
        if !answer(&done.unwrap_or_else(CommandAnswer::Failed)) {
            break;
        }
    }
    let (last, code) = match guarded.end() {
        Ok(()) => (CommandAnswer::Restored, ExitCode::SUCCESS),
        Err(why) => (CommandAnswer::NotRestored(why), ExitCode::FAILURE),
    };
    answer(&last);
    Ok(code)
}
