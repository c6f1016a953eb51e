//! The launcher's process: a command from its start to its end, for a series of them.
//!
//! What the kernel forgets when a process is reaped is read before: waitid(2) with WNOWAIT, then
//! the files of the zombie, then wait4(2).

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use probe::command::{
    CommandFile, CommandStarter, FORWARDED_BYTES, MemoryHighWater, StartedCommand, StopHandlers,
    ended_child, inherited, monotonic_raw_ns, note_forwarded, release_traced_children, send_signal,
    set_variable, stop_signal, unblock_stop_signals, wait_for,
};
use rundata::reading::Reading;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, set_child_subreaper, waitid,
};

use crate::accounting::{self, ThreadSamples};
use crate::series::{Answer, Around, EXEC, Enough, NAME, NotStarted, Request, Series, order};
use crate::used::{AtExec, Ending, Orphans, Run, Usage, Used};

/// Longest wait for orphans with `--tree`, and the time between two looks.
const ORPHANS_LONGEST: Duration = Duration::from_secs(1);
const ORPHANS_AGAIN: Duration = Duration::from_millis(2);

/// Signals that ask a command to end; the others that are passed on do not.
const ENDING: [i32; 4] =
    [Signal::INT.as_raw(), Signal::QUIT.as_raw(), Signal::TERM.as_raw(), Signal::HUP.as_raw()];

/// Answers are gathered for so long, or up to so many bytes: each one sent wakes the program, which
/// would disturb the commands.
const GATHER: Duration = Duration::from_millis(100);
const GATHER_BYTES: usize = 16 << 10;

/// The launcher's work, if this process was started as one. To be called before anything else, the
/// parsing of arguments among it: all memory of this process is charged to every command.
pub fn serve_if_asked() -> Option<io::Result<()>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()?.as_bytes() == NAME.to_bytes()).then(|| serve(words.next()))
}

fn serve(request: Option<OsString>) -> io::Result<()> {
    probe::set_own_name(c"switchcost-cmd");
    let by_hand = || io::Error::other("it is an internal command of switchcost");
    let request = request.unwrap_or_default();
    let request: Request = serde_json::from_slice(request.as_bytes()).map_err(|_| by_hand())?;
    if !probe::set_parent_death_signal(request.parent)? {
        // The program has ended before: it has said why, and nobody waits for this.
        return Ok(());
    }
    let socket = UnixStream::from(inherited(request.socket)?);
    let words = CommandFile::map(inherited(request.words)?)?;
    if request.has_environment {
        for variable in words.texts(words.commands().saturating_sub(1))? {
            set_variable(variable)?;
        }
    }
    let mut answers = Answers { socket, unsent: Vec::new(), sent: Instant::now() };
    let end = match Server::new(&request, &words, &mut answers) {
        Ok(mut server) => {
            server.rehearse();
            server.series()?
        }
        Err(end) => end,
    };
    answers.add(&end);
    answers.send()
}

/// The program's end of the socket, and answers that are not sent yet.
struct Answers {
    socket: UnixStream,
    unsent: Vec<u8>,
    sent: Instant,
}

impl Answers {
    fn add(&mut self, answer: &Answer) {
        // Into memory, and all of it has a form in JSON.
        let _ = serde_json::to_writer(&mut self.unsent, answer);
        self.unsent.push(b'\n');
    }

    fn send(&mut self) -> io::Result<()> {
        self.sent = Instant::now();
        let sent = self.socket.write_all(&self.unsent);
        self.unsent.clear();
        sent
    }

    /// A signal that reached the program alone.
    fn forwarded(&mut self) -> Option<[u8; FORWARDED_BYTES]> {
        let mut bytes = [0; FORWARDED_BYTES];
        // The program writes all of it at once.
        self.socket.read_exact(&mut bytes).ok().map(|()| bytes)
    }
}

/// Starts the commands of a series, one after the other.
struct Server<'a> {
    request: &'a Request,
    words: &'a CommandFile,
    answers: &'a mut Answers,
    starter: CommandStarter,
    handlers: StopHandlers,
    /// Absent where the kernel has no such file: commands are charged with more then.
    high_water: Option<MemoryHighWater>,
    /// Whether children are to end where they would become the command.
    rehearsal: bool,
    /// Where each command's program was found; none before its first run.
    found: Vec<Option<usize>>,
    /// /dev/null, where outputs are discarded.
    null: Option<OwnedFd>,
    /// Processes that earlier commands have left behind, and whether there were any when this
    /// command began.
    old: Vec<u32>,
    strangers: bool,
    /// Of this command.
    orphans: Orphans,
    /// Whether this command or a child of it asked this process to trace it.
    traced: bool,
    /// Whether /proc/PID/io has to be opened before the command's end: so for ordinary users. Root
    /// may open it afterwards, when that disturbs nothing.
    io_before_end: bool,
}

/// The answer of a series that goes no further: `step` failed for command `command`.
fn failed(command: usize, step: &str) -> impl Fn(Errno) -> Answer + '_ {
    move |errno| Answer::NotStarted { command, failure: NotStarted::at(step, errno) }
}

/// The answer of a series that is done, or was asked to stop.
fn done() -> Answer {
    Answer::Done(stop_signal().map(|signal| signal as u8))
}

impl<'a> Server<'a> {
    /// From now on this process notes signals that ask to stop, and adopts orphaned descendants.
    fn new(
        request: &'a Request,
        words: &'a CommandFile,
        answers: &'a mut Answers,
    ) -> Result<Self, Answer> {
        let handlers = StopHandlers::install(None).map_err(failed(0, "sigaction"))?;
        unblock_stop_signals(request.blocked);
        // Without it orphans are init's: fewer are seen.
        let _ = set_child_subreaper(Some(Pid::INIT));
        let null = || open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        let null = request.series.discard.then(null).transpose();
        Ok(Self {
            request,
            words,
            answers,
            starter: CommandStarter::new(request.inherited).map_err(failed(0, "mmap"))?,
            handlers,
            high_water: MemoryHighWater::own().ok(),
            rehearsal: false,
            found: vec![None; words.commands()],
            null: null.map_err(failed(0, "open /dev/null"))?,
            old: Vec::new(),
            strangers: false,
            orphans: Orphans::default(),
            traced: false,
            io_before_end: false,
        })
    }

    /// All runs; gives the last answer.
    fn series(&mut self) -> io::Result<Answer> {
        let request = self.request;
        let Series { warmup, runs, seed, enough, setup, prepare, cleanup, .. } = &request.series;
        if let Err(end) = setup.iter().try_for_each(|of| self.around(Around::Setup, *of)) {
            return Ok(end);
        }
        let mut begun = None;
        for round in 0..warmup.saturating_add(*runs) {
            let measured = round.checked_sub(*warmup);
            if let Some(before) = measured {
                let passed = begun.get_or_insert_with(Instant::now).elapsed();
                let is_enough = |of: &Enough| of.is_reached(before, passed);
                if enough.as_ref().is_some_and(is_enough) {
                    break;
                }
            }
            for command in order(request.measured, *seed, round) {
                if stop_signal().is_some() {
                    return Ok(done());
                }
                let before = prepare.get(command).map(|of| self.around(Around::Prepare, *of));
                let used = match before.unwrap_or(Ok(())).and_then(|()| self.run(command)) {
                    Ok(used) => used,
                    Err(end) => return Ok(end),
                };
                let signal = stop_signal().map(|signal| signal as u8);
                let Some(round) = measured else { continue };
                let run = Run { command, round, interrupted: signal.is_some(), signal, used };
                self.answers.add(&Answer::Ran(Box::new(run)));
                let bytes = self.answers.unsent.len();
                if bytes >= GATHER_BYTES || self.answers.sent.elapsed() >= GATHER {
                    self.answers.send()?;
                }
            }
        }
        let cleaned = cleanup.iter().try_for_each(|of| self.around(Around::Cleanup, *of));
        Ok(cleaned.err().unwrap_or_else(done))
    }

    /// Runs one that is not measured to its end, which must be a success. The error is the last
    /// answer.
    fn around(&mut self, what: Around, number: usize) -> Result<(), Answer> {
        let command = self.request.measured + number;
        match self.run(command)?.ending {
            Ending::Exited { code: 0 } => Ok(()),
            _ if stop_signal().is_some() => Err(done()),
            ending => Err(Answer::Around { what, command, ending }),
        }
    }

    /// Children that do not become the command: what of this program they touch stays resident, all
    /// that lies around it is given back.
    fn rehearse(&mut self) {
        // Where something fails here commands are charged with more, which stands beside their
        // figures, or the first run fails too and says why.
        let Some(high_water) = self.high_water.take() else { return };
        self.rehearsal = true;
        let _ = high_water.reduce(|| {
            let _ = self.run(0);
        });
        self.rehearsal = false;
        self.high_water = Some(high_water);
    }

    /// Runs a command to its end. The error is the last answer.
    fn run(&mut self, number: usize) -> Result<Used, Answer> {
        let rehearsal = self.rehearsal;
        let command = self.words.command(number).map_err(failed(number, EXEC))?;
        let usage = self.request.series.tree.then(Usage::default);
        self.orphans = Orphans { usage, ..Orphans::default() };
        self.traced = false;
        self.strangers = !self.old.is_empty();
        if let Some(high_water) = &self.high_water {
            high_water.reset();
        }
        let before_ns = monotonic_raw_ns();
        let found = self.found[number];
        let null = self.null.as_ref().map(AsFd::as_fd);
        let found = found.unwrap_or(0);
        let started = self.starter.start(&command, found, null, rehearsal, &self.handlers);
        let StartedCommand { pid: child, handle, before_exec } =
            started.map_err(failed(number, "clone"))?;
        let pid = child.as_raw_pid();
        if self.request.series.announce && !rehearsal {
            self.answers.add(&Answer::Started(pid.unsigned_abs()));
            // Where the program is gone, the end of the series finds so too.
            let _ = self.answers.send();
        }
        let io = self.io_before_end.then(|| accounting::open_io(pid)).flatten();
        let mut samples = ThreadSamples::new(pid);
        let handle = handle.map_or_else(|| pidfd_open(child, PidfdFlags::empty()), Ok);
        let waited = match &handle {
            Ok(handle) => self.wait(pid, handle, &mut samples),
            // Linux before 5.3, no descriptor left: neither threads nor forwarded signals are seen.
            Err(_) => wait_until_zombie(child).map_err(|errno| ("waitid", errno)),
        };
        let real_ns = monotonic_raw_ns().saturating_sub(before_ns);
        self.words.let_go();
        if rehearsal {
            // What only longer commands need, and such as leave somebody behind.
            samples.look(|| false);
            let _ = children();
        }
        let own = accounting::of_zombie(pid, io);
        self.io_before_end |= own.io.known().is_none();
        let ended = wait_for(pid).map_err(failed(number, "wait4"))?;
        waited.map_err(|(step, errno)| failed(number, step)(errno))?;
        if before_exec.held {
            return Err(done());
        }
        if let Some(errno) = before_exec.failure {
            return Err(failed(number, EXEC)(errno));
        }
        if !rehearsal {
            self.found[number] = Some(before_exec.found);
        }
        self.adopt();
        Ok(Used {
            real_ns,
            ending: Ending::of_status(ended.status),
            usage: Usage::from(&ended),
            delay: samples.delay(own.first_thread),
            threads: match handle {
                Ok(_) => samples.threads(),
                Err(errno) => Reading::unknown(format!("pidfd_open: {errno}")),
            },
            own_cpu_ns: own.cpu_ns,
            sampled: own.sampled,
            migrations: own.migrations,
            io: own.io,
            orphans: std::mem::take(&mut self.orphans),
            asked_to_be_traced: self.traced,
            at_exec: before_exec.usage.map_or_else(AtExec::default, |used| AtExec {
                resident_bytes: used.max_resident_bytes(),
                minor_faults: used.minor_faults(),
                cpu_ns: used.total_ns(),
            }),
        })
    }

    /// Until the command has ended; it stays a zombie. Signals that reach the program alone
    /// meanwhile are passed on to it. An error names the call.
    fn wait(
        &mut self,
        pid: i32,
        handle: &OwnedFd,
        samples: &mut ThreadSamples,
    ) -> Result<(), (&'static str, Errno)> {
        let mut connected = true;
        loop {
            let timeout = Timespec::try_from(samples.pause).map_err(|_| ("poll", Errno::INVAL))?;
            let mut both = vec![PollFd::new(handle, PollFlags::IN)];
            both.extend(connected.then(|| PollFd::new(&self.answers.socket, PollFlags::IN)));
            match poll(&mut both, Some(&timeout)) {
                Ok(0) => {
                    samples.look(|| has_ended(handle));
                    self.traced |= release_traced_children();
                    // Zombies would gather while a command runs for days.
                    self.reap_orphans(Some(pid)).map_err(|errno| ("waitid", errno))?;
                    let _ = self.answers.send();
                    continue;
                }
                Err(Errno::INTR) => continue,
                ready => ready.map_err(|errno| ("poll", errno))?,
            };
            // A signal goes before: it may be why the command has ended.
            if both.get(1).is_none_or(|socket| socket.revents().is_empty()) {
                return Ok(());
            }
            match self.answers.forwarded().map(note_forwarded) {
                Some(None) => {}
                Some(Some(signal)) => {
                    send_signal(pid, signal);
                    // A command that stands (SIGSTOP) does not end before it is continued.
                    if ENDING.contains(&signal) {
                        send_signal(pid, Signal::CONT.as_raw());
                    }
                }
                // The program is gone, and this process goes with it.
                None => connected = false,
            }
        }
    }

    /// Reaps orphans that have ended, but not the command.
    fn reap_orphans(&mut self, command: Option<i32>) -> Result<(), Errno> {
        while let Some(pid) = ended_child()? {
            // What was found once is found first again: orphans behind it wait until it is reaped.
            if command == Some(pid) {
                break;
            }
            let ended = wait_for(pid)?;
            if let Some(place) = self.old.iter().position(|old| *old == pid.unsigned_abs()) {
                self.old.swap_remove(place);
            } else if self.strangers {
                // A child of the command, or of what an earlier one has left.
                self.orphans.of_unknown_origin += 1;
            } else {
                self.orphans.ended += 1;
                let sum = self.orphans.usage.map(|usage| usage.and(&Usage::from(&ended)));
                self.orphans.usage = sum;
            }
        }
        Ok(())
    }

    /// What the command has left, once it has ended.
    fn adopt(&mut self) {
        let (tree, end) = (self.request.series.tree, Instant::now() + ORPHANS_LONGEST);
        self.orphans.left_behind = loop {
            if self.reap_orphans(None).is_err() {
                // ECHILD.
                self.old.clear();
                break Reading::Known(Vec::new());
            }
            let left = children().map(|mut all| {
                all.retain(|pid| !self.old.contains(pid));
                all
            });
            match left {
                Reading::Known(left) if !left.is_empty() && tree && Instant::now() < end => {
                    sleep(ORPHANS_AGAIN);
                }
                left => break left,
            }
        };
        self.old.extend(self.orphans.left_behind.known().into_iter().flatten());
    }
}

fn has_ended(handle: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&Timespec::default())) == Ok(1)
}

fn wait_until_zombie(child: Pid) -> Result<(), Errno> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    retry_on_intr(|| waitid(WaitId::Pid(child), how)).map(|_| ())
}

/// This process's children (proc_pid_task(5), `children`).
fn children() -> Reading<Vec<u32>> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"));
    Reading::from(text).map(|text| text.split_whitespace().flat_map(str::parse).collect())
}
