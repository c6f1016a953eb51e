//! A command from its start to its end, for a process that does nothing else: tiny, with one thread,
//! so that what the kernel charges to the command is the command's own.
//!
//! What the kernel forgets when a process is reaped is read before: waitid(2) with WNOWAIT, then the
//! files of the zombie, then wait4(2).

mod answer;
mod looks;
mod series;
mod zombie;

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use model::command_use::{AtExec, Ending, Orphans, Usage, Used, order};
use model::reading::Reading;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, set_child_subreaper};
use thiserror::Error;

use crate::sys::{
    Footprint, Note, Shared, Starter, Told, Words, ended_child, let_in, monotonic_raw_ns, reap,
    send_signal,
};
pub use crate::sys::{
    HeldBack, KeptActions, StopWatch, inherited_file, inherited_socket as channel, start_again,
    stop_signal,
};
pub use answer::Answer;
use looks::Looks;
use series::Asked;
pub use series::Series;

/// Longest wait for orphans with `--tree`.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// Answers are gathered for so long: whoever hears them would else be woken by each, and be in the way.
const GATHER: Duration = Duration::from_millis(100);

/// And up to so many bytes: some dozens of runs.
const GATHER_BYTES: usize = 16 << 10;

/// A command that could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotStarted {
    /// The step that failed, a call of the kernel.
    pub step: String,
    /// Its errno.
    pub errno: i32,
}

impl NotStarted {
    fn at(step: &str) -> impl Fn(Errno) -> Self + '_ {
        move |errno| Self { step: step.to_owned(), errno: errno.raw_os_error() }
    }
}

/// The launcher cannot do its part.
#[derive(Debug, Error)]
pub enum ServeError {
    /// It was not asked as it should be.
    #[error("the launcher's request cannot be read")]
    Asked(#[source] Errno),
    /// Nobody hears it.
    #[error("the launcher cannot answer")]
    Answers(#[source] io::Error),
}

/// Runs the series that `file` asks for, and answers on `channel`. For a process with one thread that
/// does nothing else and was started with the stopping signals held back.
pub fn serve(file: OwnedFd, channel: UnixStream) -> Result<(), ServeError> {
    let asked = Asked::read(&file).map_err(ServeError::Asked)?;
    drop(file);
    let mut answers = Answers { channel, bytes: Vec::new(), since: Instant::now() };
    let end = match Launcher::new(&asked) {
        Ok(mut launcher) => {
            launcher.rehearse(&asked, &mut answers);
            launcher.series(&asked, &mut answers)?
        }
        Err(failure) => Some(Answer::NotStarted { command: 0, failure }),
    };
    let end = end.unwrap_or(Answer::Done { signal: None });
    end.write(&mut answers.bytes);
    answers.tell().map_err(ServeError::Answers)
}

/// Answers that are not told yet.
struct Answers {
    channel: UnixStream,
    bytes: Vec<u8>,
    since: Instant,
}

impl Answers {
    fn add(&mut self, answer: &Answer) -> io::Result<()> {
        answer.write(&mut self.bytes);
        let enough = self.bytes.len() >= GATHER_BYTES || self.since.elapsed() >= GATHER;
        if enough { self.tell() } else { Ok(()) }
    }

    fn tell(&mut self) -> io::Result<()> {
        if !self.bytes.is_empty() {
            self.channel.write_all(&self.bytes)?;
            self.bytes.clear();
        }
        self.since = Instant::now();
        Ok(())
    }

    /// A signal that reached the program alone.
    fn told(&mut self) -> Option<Told> {
        let mut bytes = [0; Told::BYTES];
        // The program writes all of it at once.
        self.channel.read_exact(&mut bytes).ok()?;
        Some(Told::from_bytes(bytes))
    }
}

/// Starts commands, one after the other.
struct Launcher {
    starter: Starter,
    watch: StopWatch,
    note: Shared<Note>,
    /// Absent where the kernel does not tell of it: commands are charged with more then.
    footprint: Option<Footprint>,
    /// Where each command's program was found.
    found: Vec<usize>,
    /// Left behind by earlier commands.
    old: Vec<u32>,
    /// Whether bytes read and written can only be had through a file that was opened before the end: so
    /// it is for ordinary users. To root it may be opened afterwards, when it is in nobody's way.
    io_before_end: bool,
}

/// Why a command has no figures.
enum NoRun {
    /// Somebody had asked to stop before it began.
    Held,
    NotStarted(NotStarted),
    Unheard(io::Error),
}

impl From<NotStarted> for NoRun {
    fn from(failure: NotStarted) -> Self {
        Self::NotStarted(failure)
    }
}

impl From<io::Error> for NoRun {
    fn from(error: io::Error) -> Self {
        Self::Unheard(error)
    }
}

impl Launcher {
    /// From now on this process notes who asks to stop, and adopts the orphans among its descendants.
    fn new(asked: &Asked) -> Result<Self, NotStarted> {
        let watch = StopWatch::install(None).map_err(NotStarted::at("sigaction"))?;
        let_in(asked.signals_before);
        let starter = Starter::new(asked.inherited).map_err(NotStarted::at("mmap"))?;
        // Without it orphans are init's: fewer are seen.
        let _ = set_child_subreaper(Some(Pid::INIT));
        let footprint = Footprint::own().ok();
        let found = vec![0; asked.commands];
        let note = Shared::new().map_err(NotStarted::at("mmap"))?;
        let (old, io_before_end) = (Vec::new(), false);
        Ok(Self { starter, watch, note, footprint, found, old, io_before_end })
    }

    /// All runs; gives the last word, if it is another than that all is done.
    fn series(
        &mut self,
        asked: &Asked,
        answers: &mut Answers,
    ) -> Result<Option<Answer>, ServeError> {
        let done = || Answer::Done { signal: stop_signal().map(|signal| signal as u8) };
        for round in 0..asked.warmup.saturating_add(asked.runs) {
            for command in order(asked.commands, asked.seed, round) {
                if stop_signal().is_some() {
                    return Ok(Some(done()));
                }
                let used = match self.run(command, asked, answers) {
                    Ok(used) => Box::new(used),
                    Err(NoRun::Held) => return Ok(Some(done())),
                    Err(NoRun::NotStarted(failure)) => {
                        return Ok(Some(Answer::NotStarted { command, failure }));
                    }
                    Err(NoRun::Unheard(error)) => return Err(ServeError::Answers(error)),
                };
                let signal = stop_signal().map(|signal| signal as u8);
                if let Some(round) = round.checked_sub(asked.warmup) {
                    let ran = Answer::Ran { command, round, signal, used };
                    answers.add(&ran).map_err(ServeError::Answers)?;
                }
            }
        }
        Ok(Some(done()))
    }

    /// Runs of a child that does not become the command: what the first touches every run needs, and all
    /// that lies around it is given back; the second has it come again, so that no run has to.
    fn rehearse(&mut self, asked: &Asked, answers: &mut Answers) {
        // Where something fails here commands are charged with more, which is told beside their figures,
        // or the first run fails too and tells why.
        let Some(footprint) = self.footprint.take() else { return };
        let _ = footprint.give_back();
        self.note.rehearse(true);
        let _ = self.run(0, asked, answers);
        footprint.forget_high_water();
        let _ = footprint.give_back_page_by_page();
        let _ = self.run(0, asked, answers);
        self.note.rehearse(false);
        self.footprint = Some(footprint);
    }

    /// Runs a command to its end.
    fn run(&mut self, number: usize, asked: &Asked, answers: &mut Answers) -> Result<Used, NoRun> {
        let missing = || NotStarted::at("execve")(Errno::INVAL);
        let command = Words::command(&asked.words, number).ok_or_else(missing)?;
        let mut orphans = Adopted { strangers: !self.old.is_empty(), ..Adopted::default() };
        if let Some(footprint) = &self.footprint {
            footprint.forget_high_water();
        }
        let before_ns = monotonic_raw_ns();
        let started = self.starter.start(command, self.found[number], &self.note, &self.watch);
        let (child, handle) = started.map_err(NotStarted::at("clone"))?;
        if asked.announce && !self.note.is_rehearsal() {
            Answer::Started { pid: child.as_raw_pid().unsigned_abs() }.write(&mut answers.bytes);
            answers.tell()?;
        }
        let io = self.io_before_end.then(|| zombie::open_io(child.as_raw_pid())).flatten();
        let mut looks = Looks::new(child.as_raw_pid());
        let waited = self.wait(child, handle, &mut looks, &mut orphans, answers);
        let real_ns = monotonic_raw_ns().saturating_sub(before_ns);
        asked.words.let_go();
        if self.note.is_rehearsal() {
            // What only longer commands need, and such as leave somebody behind.
            looks.look(|| false);
            let _ = children();
        }
        let own = zombie::of(child.as_raw_pid(), io);
        self.io_before_end |= own.io.known().is_none();
        let ended =
            reap(child.as_raw_pid().unsigned_abs(), true).map_err(NotStarted::at("wait4"))?;
        waited?;
        if self.note.held() {
            return Err(NoRun::Held);
        }
        if let Some(errno) = self.note.failure() {
            return Err(NotStarted::at("execve")(errno).into());
        }
        self.found[number] = self.note.found();
        let ended = ended.ok_or(Errno::CHILD).map_err(NotStarted::at("wait4"))?;
        let orphans = self.adopt(orphans, asked.tree);
        let (resident_bytes, minor_faults, cpu_ns) = self.note.before_exec();
        Ok(Used {
            real_ns,
            ending: Ending::of_status(ended.status),
            usage: ended.usage,
            delay: looks.delay(own.first_thread),
            threads: looks.threads(),
            own_cpu_ns: own.cpu_ns,
            sampled: own.sampled,
            migrations: own.migrations,
            io: own.io,
            orphans,
            at_exec: AtExec { resident_bytes, minor_faults, cpu_ns },
        })
    }

    /// Until the command has ended; it stays a zombie. What is told meanwhile of signals goes to it.
    fn wait(
        &mut self,
        child: Pid,
        handle: Option<OwnedFd>,
        looks: &mut Looks,
        orphans: &mut Adopted,
        answers: &mut Answers,
    ) -> Result<(), NoRun> {
        let handle = match handle {
            Some(handle) => Ok(handle),
            None => pidfd_open(child, PidfdFlags::empty()),
        };
        // Where there is none (Linux before 5.3, no descriptor left) nobody looks meanwhile, and nobody
        // can be heard.
        let handle = match handle {
            Ok(handle) => handle,
            Err(errno) => {
                looks.refuse(format!("pidfd_open: {errno}"));
                return wait_until_zombie(child)
                    .map_err(NotStarted::at("waitid"))
                    .map_err(NoRun::from);
            }
        };
        let mut hearing = true;
        loop {
            let channel = hearing.then(|| answers.channel.as_fd());
            let event = wait_for_either(&handle, channel, looks.next());
            match event.map_err(NotStarted::at("poll"))? {
                Event::Ended => return Ok(()),
                Event::Heard => match answers.told() {
                    Some(told) => {
                        if let Some(signal) = told.note() {
                            send_signal(child.as_raw_pid(), signal);
                        }
                    }
                    // The program is gone, and we go with it.
                    None => hearing = false,
                },
                Event::Interrupted => {}
                Event::Time => {
                    looks.look(|| has_ended(&handle));
                    // Zombies would gather while a command runs for days.
                    let reaped = self.reap_orphans(Some(child), orphans);
                    reaped.map_err(NotStarted::at("waitid"))?;
                    // Whoever waits is not to wait for this command too.
                    answers.tell()?;
                }
            }
        }
    }

    /// Waits for what has been orphaned and has ended, but not for the command.
    fn reap_orphans(&mut self, command: Option<Pid>, orphans: &mut Adopted) -> Result<(), Errno> {
        while let Some(pid) = ended_child()? {
            // What was found once is found first again: orphans behind it wait until it is reaped.
            if command.is_some_and(|command| command.as_raw_pid().unsigned_abs() == pid) {
                break;
            }
            let ended = reap(pid, false)?;
            if let Some(place) = self.old.iter().position(|old| *old == pid) {
                self.old.swap_remove(place);
            } else if let Some(child) = ended {
                // A child of the command, or of what an earlier one has left: nobody knows.
                if orphans.strangers {
                    orphans.of_unknown_origin += 1;
                } else {
                    orphans.ended += 1;
                    orphans.usage = orphans.usage.and(&child.usage);
                }
            }
        }
        Ok(())
    }

    /// What the command has left, once it is gone itself.
    fn adopt(&mut self, mut orphans: Adopted, tree: bool) -> Orphans {
        let end = Instant::now() + PATIENCE;
        let left_behind = loop {
            if self.reap_orphans(None, &mut orphans).is_err() {
                // ECHILD.
                self.old.clear();
                break Reading::Known(Vec::new());
            }
            let living = children();
            let left = living.map(|all| -> Vec<u32> {
                all.into_iter().filter(|pid| !self.old.contains(pid)).collect()
            });
            let patient = tree && Instant::now() < end;
            match left {
                Reading::Known(left) if !left.is_empty() && patient => sleep(LOOK_AGAIN),
                left => break left,
            }
        };
        self.old.extend(left_behind.known().into_iter().flatten());
        let Adopted { ended, of_unknown_origin, usage, .. } = orphans;
        Orphans { ended, usage: tree.then_some(usage), of_unknown_origin, left_behind }
    }
}

/// Orphans that were reaped.
#[derive(Default)]
struct Adopted {
    usage: Usage,
    ended: u32,
    of_unknown_origin: u32,
    /// Whether there was anybody of an earlier run while this one ran.
    strangers: bool,
}

const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// What a wait for a command has brought.
enum Event {
    Ended,
    Heard,
    Interrupted,
    Time,
}

/// `handle` is the command's, `channel` the program's.
fn wait_for_either(
    handle: &OwnedFd,
    channel: Option<rustix::fd::BorrowedFd<'_>>,
    timeout: Duration,
) -> Result<Event, Errno> {
    let timeout =
        Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    let end = PollFd::new(handle, PollFlags::IN);
    let mut both =
        [end.clone(), channel.map_or(end, |ours| PollFd::from_borrowed_fd(ours, PollFlags::IN))];
    let ready = match poll(&mut both, Some(&timeout)) {
        Ok(ready) => ready,
        Err(Errno::INTR) => return Ok(Event::Interrupted),
        Err(errno) => return Err(errno),
    };
    Ok(match both.map(|one| !one.revents().is_empty()) {
        // What is told goes before: it may be why the command has ended.
        [_, true] if channel.is_some() => Event::Heard,
        [true, _] => Event::Ended,
        _ if ready > 0 => Event::Interrupted,
        _ => Event::Time,
    })
}

fn has_ended(handle: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&Timespec::default())) == Ok(1)
}

fn wait_until_zombie(child: Pid) -> Result<(), Errno> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    loop {
        match waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            result => return result.map(|_| ()),
        }
    }
}

/// This process's children (proc_pid_task(5), `children`).
fn children() -> Reading<Vec<u32>> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"));
    Reading::from(text).map(|text| text.split_whitespace().flat_map(str::parse).collect())
}
