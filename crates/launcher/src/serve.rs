//! The launcher's process: it runs the commands of a series, each from its start to its end.
//!
//! ```text
//! clone, execve     the command runs; poll on its pidfd and on the socket
//! it exits          a zombie: /proc/PID/io, schedstat, its CPU clocks are read
//! wait4             its usage; the zombie is gone, and these files with it
//! ```

use std::ffi::{CString, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use probe::command::{
    CommandFile, CommandStarter, CommandStreams, FORWARDED_BYTES, MemoryHighWater, ReusedVariable,
    StartedCommand, StopHandlers, ended_child, inherited, monotonic_raw_ns, note_forwarded,
    release_traced_children, send_signal, set_variable, stop_signal, unblock_stop_signals,
    wait_for,
};
use rundata::reading::Reading;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, retry_on_intr};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, set_child_subreaper, waitid,
};

use crate::accounting::{self, ThreadSamples};
use crate::series::{
    EXEC, HookKind, ITERATION, LauncherAnswer, LauncherRequest, MAX_OFFSET_BYTES, NAME, OFFSET,
    OutputTarget, StartFailure, offset_bytes, order,
};
use crate::usage::{
    CommandRun, Ending, ExecBaseline, FailedWarmup, OrphanCounts, ProcessUsage, RunUsage,
};

/// Limits the wait for orphans with `--tree`.
const MAX_ORPHAN_WAIT: Duration = Duration::from_secs(1);
/// Time between two checks for orphans.
const ORPHAN_PAUSE: Duration = Duration::from_millis(2);

/// Signals that ask a command to end; the other forwarded signals do not.
const ENDING_SIGNALS: [i32; 4] =
    [Signal::INT.as_raw(), Signal::QUIT.as_raw(), Signal::TERM.as_raw(), Signal::HUP.as_raw()];

/// Limits how long answers are held back. They are sent together, as each message wakes the program,
/// which would disturb the commands.
const MAX_ANSWER_AGE: Duration = Duration::from_millis(100);
/// Most bytes of a command's output that are discarded at once: what a pipe holds (pipe(7)).
const MAX_SPLICE_BYTES: usize = 64 << 10;
/// Limits how many bytes of answers are held back.
const MAX_ANSWER_BYTES: usize = 16 << 10;

/// Runs the series if this process was started as the launcher; returns `None` if not. Call it before
/// anything else, including the parsing of arguments: all memory of this process is charged to every
/// command.
pub fn serve_if_asked() -> Option<io::Result<()>> {
    let mut words = std::env::args_os().skip(1);
    if words.next()?.as_bytes() != NAME.to_bytes() {
        return None;
    }
    Some(serve(words.next()))
}

fn serve(request: Option<OsString>) -> io::Result<()> {
    probe::set_own_name(c"switchcost-cmd");
    let request = request.unwrap_or_default();
    let request: LauncherRequest = serde_json::from_slice(request.as_bytes())
        .map_err(|_| io::Error::other("it is an internal command of switchcost"))?;
    if !probe::set_parent_death_signal(request.parent)? {
        // The program has ended and has printed why: no process waits for the launcher.
        return Ok(());
    }
    let socket = UnixStream::from(inherited(request.socket)?);
    let words = CommandFile::map(inherited(request.words)?)?;
    if request.has_environment {
        for variable in words.texts(words.commands().saturating_sub(1))? {
            set_variable(variable)?;
        }
    }
    let mut answers = AnswerQueue { socket, unsent: Vec::new(), sent_at: Instant::now() };
    let last_answer = match SeriesRunner::new(&request, &words, &mut answers) {
        Ok(mut runner) => {
            runner.rehearse();
            runner.run_series()?
        }
        Err(answer) => answer,
    };
    answers.add(&last_answer);
    answers.send()
}

/// The socket to the program, and answers that are not sent yet.
struct AnswerQueue {
    socket: UnixStream,
    unsent: Vec<u8>,
    /// The last time that answers were sent.
    sent_at: Instant,
}

impl AnswerQueue {
    fn add(&mut self, answer: &LauncherAnswer) {
        // Cannot fail: it is written to memory, and every answer has a form in JSON.
        let _ = serde_json::to_writer(&mut self.unsent, answer);
        self.unsent.push(b'\n');
    }

    fn send(&mut self) -> io::Result<()> {
        self.sent_at = Instant::now();
        let result = self.socket.write_all(&self.unsent);
        self.unsent.clear();
        result
    }

    /// Reads a signal that reached the program alone; `None` if the program has ended.
    fn read_forwarded(&mut self) -> Option<[u8; FORWARDED_BYTES]> {
        let mut bytes = [0; FORWARDED_BYTES];
        // The program writes all bytes at once.
        self.socket.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Runs the commands of a series, one after the other.
struct SeriesRunner<'a> {
    request: &'a LauncherRequest,
    words: &'a CommandFile,
    answers: &'a mut AnswerQueue,
    starter: CommandStarter,
    handlers: StopHandlers,
    /// `None` if the kernel has no such file: then commands are charged with more.
    high_water: Option<MemoryHighWater>,
    /// True while children end where they would become the command.
    rehearsal: bool,
    /// The path candidate by which each command's program was found; `None` before its first run.
    found_paths: Vec<Option<usize>>,
    /// /dev/null, if outputs are discarded.
    null: Option<OwnedFd>,
    /// Paths of the series' files.
    files: Vec<CString>,
    /// Variables that tell a run its number; `None` if it is not told, and outside of the rounds.
    variables: Option<RunVariables>,
    /// Processes that earlier commands have left behind.
    left_behind: Vec<u32>,
    /// True if there were any when this command began.
    had_left_behind: bool,
    /// Orphans of this command.
    orphans: OrphanCounts,
    /// True if this command or a child of it asked this process to trace it.
    asked_to_be_traced: bool,
    /// True if /proc/PID/io has to be opened before the command's end, as for ordinary users. Root may
    /// open it afterwards, when that does not disturb the command.
    opens_io_before_end: bool,
}

/// The longest value of [`OFFSET`], of which each run has a beginning.
static OFFSET_VALUE: [u8; MAX_OFFSET_BYTES] = [b'X'; MAX_OFFSET_BYTES];

/// Longest value of [`ITERATION`]: `warmup-4294967295`.
const MAX_ITERATION_BYTES: usize = 17;

/// Variables that tell each run its number, and shift its memory.
struct RunVariables {
    iteration: ReusedVariable,
    offset: ReusedVariable,
}

impl RunVariables {
    fn new() -> Result<Self, Errno> {
        Ok(Self {
            iteration: ReusedVariable::new(ITERATION, MAX_ITERATION_BYTES)?,
            offset: ReusedVariable::new(OFFSET, MAX_OFFSET_BYTES)?,
        })
    }

    fn remove(self) {
        self.iteration.remove();
        self.offset.remove();
    }
}

/// Descriptors that were opened for one run; those of the command are closed here once it has
/// started.
#[derive(Default)]
struct RunFiles {
    input: Option<OwnedFd>,
    output: Option<OwnedFd>,
    /// Read end of the pipe that is the command's output.
    pipe: Option<OwnedFd>,
}

/// Returns a function that makes the last answer of a series in which `step` failed for a command.
fn failed(command: usize, step: &str) -> impl Fn(Errno) -> LauncherAnswer + '_ {
    move |errno| LauncherAnswer::NotStarted { command, failure: StartFailure::new(step, errno) }
}

/// Returns the last answer of a series that is done, or was asked to stop.
fn done() -> LauncherAnswer {
    LauncherAnswer::Done(stop_signal_number())
}

fn stop_signal_number() -> Option<u8> {
    stop_signal().map(|signal| signal as u8)
}

impl<'a> SeriesRunner<'a> {
    /// Prepares this process: it notes signals that ask to stop, and adopts orphaned descendants.
    fn new(
        request: &'a LauncherRequest,
        words: &'a CommandFile,
        answers: &'a mut AnswerQueue,
    ) -> Result<Self, LauncherAnswer> {
        let handlers = StopHandlers::install(None).map_err(failed(0, "sigaction"))?;
        unblock_stop_signals(request.blocked);
        // If that fails, orphans are adopted by init, and fewer are counted.
        let _ = set_child_subreaper(Some(Pid::INIT));
        let null = if request.series.discards_output() {
            let null = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
            Some(null.map_err(failed(0, "open /dev/null"))?)
        } else {
            None
        };
        let mut files = Vec::new();
        if request.has_files {
            let behind = 1 + usize::from(request.has_environment);
            let list = words.texts(words.commands().saturating_sub(behind));
            files = list.map_err(failed(0, "read the paths of files"))?;
        }
        Ok(Self {
            request,
            words,
            answers,
            starter: CommandStarter::new(request.inherited).map_err(failed(0, "mmap"))?,
            handlers,
            high_water: MemoryHighWater::own().ok(),
            rehearsal: false,
            found_paths: vec![None; words.commands()],
            null,
            files,
            variables: None,
            left_behind: Vec::new(),
            had_left_behind: false,
            orphans: OrphanCounts::default(),
            asked_to_be_traced: false,
            opens_io_before_end: false,
        })
    }

    /// Runs the whole series. Returns the last answer; an error if the program does not read.
    fn run_series(&mut self) -> io::Result<LauncherAnswer> {
        let series = &self.request.series;
        for hook in &series.setup {
            if let Err(answer) = self.run_hook(HookKind::Setup, *hook) {
                return Ok(answer);
            }
        }
        if series.is_numbered {
            match RunVariables::new() {
                Ok(variables) => self.variables = Some(variables),
                Err(errno) => return Ok(failed(0, "putenv")(errno)),
            }
        }
        let mut begun = None;
        for round in 0..series.warmup.saturating_add(series.runs) {
            // `None` during the warm-up.
            let measured_round = round.checked_sub(series.warmup);
            if let Some(rounds_done) = measured_round {
                let elapsed = begun.get_or_insert_with(Instant::now).elapsed();
                if series.stop_rule.is_some_and(|rule| rule.is_reached(rounds_done, elapsed)) {
                    break;
                }
            }
            for command in order(self.request.measured, series.seed, round) {
                if stop_signal().is_some() {
                    return Ok(done());
                }
                self.number_run(round, command);
                let used = match self.prepare_and_run(command) {
                    Ok(used) => used,
                    Err(answer) => return Ok(answer),
                };
                match measured_round {
                    Some(round) => self.report_run(command, round, used)?,
                    None => self.report_warmup(command, round, used.ending),
                }
                if let Err(answer) = self.conclude(command) {
                    return Ok(answer);
                }
            }
        }
        if let Some(variables) = self.variables.take() {
            variables.remove();
        }
        for hook in &series.cleanup {
            if let Err(answer) = self.run_hook(HookKind::Cleanup, *hook) {
                return Ok(answer);
            }
        }
        Ok(done())
    }

    /// Runs the command's prepare hook, if there is one, then the command. The error is the last
    /// answer.
    fn prepare_and_run(&mut self, command: usize) -> Result<RunUsage, LauncherAnswer> {
        if let Some(hook) = self.request.series.prepare.get(command) {
            self.run_hook(HookKind::Prepare, *hook)?;
        }
        self.run(command)
    }

    /// Runs the command's conclude hook, if there is one. The error is the last answer.
    fn conclude(&mut self, command: usize) -> Result<(), LauncherAnswer> {
        match self.request.series.conclude.get(command) {
            Some(hook) => self.run_hook(HookKind::Conclude, *hook),
            None => Ok(()),
        }
    }

    /// Sets the variables of a run, if it is told its number. `round` counts from the warm-up on.
    fn number_run(&mut self, round: u32, command: usize) {
        let series = &self.request.series;
        if let Some(variables) = &mut self.variables {
            let number = match round.checked_sub(series.warmup) {
                Some(number) => number.to_string(),
                None => format!("warmup-{round}"),
            };
            variables.iteration.set(number.as_bytes());
            let bytes = offset_bytes(series.seed, round, command);
            variables.offset.set(&OFFSET_VALUE[..bytes]);
        }
    }

    /// Adds the answer of a measured run, and sends answers that were held back for long enough.
    fn report_run(&mut self, command: usize, round: u32, used: RunUsage) -> io::Result<()> {
        let signal = stop_signal_number();
        let run = CommandRun { command, round, interrupted: signal.is_some(), signal, used };
        self.answers.add(&LauncherAnswer::Ran(Box::new(run)));
        let bytes = self.answers.unsent.len();
        if bytes >= MAX_ANSWER_BYTES || self.answers.sent_at.elapsed() >= MAX_ANSWER_AGE {
            self.answers.send()?;
        }
        Ok(())
    }

    /// Adds the answer of a run of the warm-up that has failed, unless a signal asked it to stop.
    fn report_warmup(&mut self, command: usize, round: u32, ending: Ending) {
        if ending != (Ending::Exited { code: 0 }) && stop_signal().is_none() {
            let warmup = FailedWarmup { command, round, ending };
            self.answers.add(&LauncherAnswer::WarmupFailed(warmup));
        }
    }

    /// Runs a hook to its end, which must be a success. The error is the last answer.
    fn run_hook(&mut self, kind: HookKind, number: usize) -> Result<(), LauncherAnswer> {
        let command = self.request.measured + number;
        match self.run(command)?.ending {
            Ending::Exited { code: 0 } => Ok(()),
            _ if stop_signal().is_some() => Err(done()),
            ending => Err(LauncherAnswer::HookFailed { kind, command, ending }),
        }
    }

    /// Starts a child that does not become the command. The pages of this program that it touches stay
    /// resident, and the others are given back to the kernel.
    fn rehearse(&mut self) {
        // If something fails here, commands are charged with more, which their figures show, or the
        // first run fails too and reports why.
        let Some(high_water) = self.high_water.take() else { return };
        self.rehearsal = true;
        let _ = high_water.reduce(|| {
            let _ = self.run(0);
        });
        self.rehearsal = false;
        self.high_water = Some(high_water);
    }

    /// Runs a command to its end. The error is the last answer.
    fn run(&mut self, number: usize) -> Result<RunUsage, LauncherAnswer> {
        let rehearsal = self.rehearsal;
        let command = self.words.command(number).map_err(failed(number, EXEC))?;
        let usage = self.request.series.tree.then(ProcessUsage::default);
        self.orphans = OrphanCounts { usage, ..OrphanCounts::default() };
        self.asked_to_be_traced = false;
        self.had_left_behind = !self.left_behind.is_empty();
        if let Some(high_water) = &self.high_water {
            high_water.reset();
        }
        let files = if rehearsal { RunFiles::default() } else { self.open_files(number)? };
        let before_ns = monotonic_raw_ns();
        let path = self.found_paths[number].unwrap_or(0);
        let streams = self.streams(number, &files);
        let started = self.starter.start(&command, path, streams, rehearsal, &self.handlers);
        let RunFiles { input, output, pipe } = files;
        // Only the command has the write end of a pipe, so that its end is seen.
        drop((input, output));
        let StartedCommand { pid: child, handle, before_exec } =
            started.map_err(failed(number, "clone"))?;
        let pid = child.as_raw_pid();
        if self.request.series.announce && !rehearsal {
            self.answers.add(&LauncherAnswer::Started(pid.unsigned_abs()));
            // If the program has ended, sending fails again at the end of the series.
            let _ = self.answers.send();
        }
        let io = self.opens_io_before_end.then(|| accounting::open_io(pid)).flatten();
        let mut samples = ThreadSamples::new(pid);
        let handle = match handle {
            Some(handle) => Ok(handle),
            None => pidfd_open(child, PidfdFlags::empty()),
        };
        let waited = match &handle {
            Ok(handle) => self.wait(pid, handle, pipe, &mut samples),
            // Linux before 5.3, or no descriptor left: neither threads nor forwarded signals are seen.
            Err(_) => {
                if let Some(pipe) = pipe {
                    while self.discard_from(&pipe) {}
                }
                wait_until_zombie(child).map_err(|errno| ("waitid", errno))
            }
        };
        let real_ns = monotonic_raw_ns().saturating_sub(before_ns);
        self.words.let_go();
        if rehearsal {
            // These are otherwise only called for long commands, and for commands that leave processes.
            samples.sample(|| false);
            let _ = children();
        }
        let zombie = accounting::read_zombie(pid, io);
        self.opens_io_before_end |= zombie.io.known().is_none();
        let ended = wait_for(pid).map_err(failed(number, "wait4"))?;
        waited.map_err(|(step, errno)| failed(number, step)(errno))?;
        if before_exec.held {
            return Err(done());
        }
        if let Some(errno) = before_exec.failure {
            return Err(failed(number, EXEC)(errno));
        }
        if !rehearsal {
            self.found_paths[number] = Some(before_exec.found);
        }
        self.find_left_behind();
        Ok(RunUsage {
            real_ns,
            ending: Ending::from_status(ended.status),
            usage: ProcessUsage::from(&ended),
            delay: samples.delay(zombie.first_thread),
            threads: match handle {
                Ok(_) => samples.threads(),
                Err(errno) => Reading::unknown(format!("pidfd_open: {errno}")),
            },
            own_cpu_ns: zombie.cpu_ns,
            sampled: zombie.sampled,
            migrations: zombie.migrations,
            io: zombie.io,
            orphans: std::mem::take(&mut self.orphans),
            asked_to_be_traced: self.asked_to_be_traced,
            at_exec: match before_exec.usage {
                Some(usage) => ExecBaseline {
                    resident_bytes: usage.max_resident_bytes(),
                    minor_faults: usage.minor_faults(),
                    cpu_ns: usage.total_ns(),
                },
                None => ExecBaseline::default(),
            },
        })
    }

    /// Waits until the command has ended; it stays a zombie. Its output through a pipe is read to
    /// the end, which a child of it may delay, unless a signal asks to stop. Signals that reach the
    /// program alone meanwhile are forwarded to it. An error names the call.
    fn wait(
        &mut self,
        pid: i32,
        handle: &OwnedFd,
        mut pipe: Option<OwnedFd>,
        samples: &mut ThreadSamples,
    ) -> Result<(), (&'static str, Errno)> {
        let mut is_connected = true;
        let mut looked_at = Instant::now();
        let mut is_over = false;
        loop {
            if is_over && stop_signal().is_some() {
                return Ok(());
            }
            // A pidfd stays ready once its process is a zombie.
            let awaited = if is_over { PollFlags::empty() } else { PollFlags::IN };
            let timeout = Timespec::try_from(samples.pause).map_err(|_| ("poll", Errno::INVAL))?;
            let mut descriptors = vec![PollFd::new(handle, awaited)];
            if is_connected {
                descriptors.push(PollFd::new(&self.answers.socket, PollFlags::IN));
            }
            if let Some(pipe) = &pipe {
                descriptors.push(PollFd::new(pipe, PollFlags::IN));
            }
            match poll(&mut descriptors, Some(&timeout)) {
                Ok(0) => {
                    self.look_at(pid, handle, samples)?;
                    looked_at = Instant::now();
                    continue;
                }
                Err(Errno::INTR) => continue,
                ready => ready.map_err(|errno| ("poll", errno))?,
            };
            is_over |= is_ready(&descriptors, 0);
            let has_output =
                pipe.is_some() && is_ready(&descriptors, 1 + usize::from(is_connected));
            let is_signalled = is_connected && is_ready(&descriptors, 1);
            drop(descriptors);
            // A signal is handled first: it may be the reason why the command has ended.
            if !is_signalled {
                // There is output, or all ends of the pipe were closed.
                if has_output && pipe.as_ref().is_some_and(|pipe| !self.discard_from(pipe)) {
                    pipe = None;
                }
                if is_over && pipe.is_none() {
                    return Ok(());
                }
                // A command that writes all the time lets no wait run out.
                if looked_at.elapsed() >= samples.pause {
                    self.look_at(pid, handle, samples)?;
                    looked_at = Instant::now();
                }
                continue;
            }
            match self.answers.read_forwarded().map(note_forwarded) {
                Some(None) => {}
                Some(Some(signal)) => {
                    send_signal(pid, signal);
                    // A stopped command (SIGSTOP) does not end before it is continued.
                    if ENDING_SIGNALS.contains(&signal) {
                        send_signal(pid, Signal::CONT.as_raw());
                    }
                }
                // The program has ended, and this process ends with it.
                None => is_connected = false,
            }
        }
    }

    /// Looks at a command while it runs: samples its threads, and reaps orphans. An error names the
    /// call.
    fn look_at(
        &mut self,
        pid: i32,
        handle: &OwnedFd,
        samples: &mut ThreadSamples,
    ) -> Result<(), (&'static str, Errno)> {
        samples.sample(|| has_ended(handle));
        self.asked_to_be_traced |= release_traced_children();
        // Zombies would accumulate while a command runs for days.
        self.reap_orphans(Some(pid)).map_err(|errno| ("waitid", errno))?;
        let _ = self.answers.send();
        Ok(())
    }

    /// Opens the files of a command's input and output, or its pipe. The error is the last answer.
    fn open_files(&self, number: usize) -> Result<RunFiles, LauncherAnswer> {
        let mut files = RunFiles::default();
        if let Some(file) = self.request.series.input {
            files.input = Some(self.open_file(number, file, OFlags::RDONLY)?);
        }
        match self.request.series.output_target(number) {
            OutputTarget::Pipe => {
                let ends = pipe_with(PipeFlags::CLOEXEC).map_err(failed(number, "pipe2"))?;
                (files.pipe, files.output) = (Some(ends.0), Some(ends.1));
            }
            OutputTarget::File(file) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
                files.output = Some(self.open_file(number, file, flags)?);
            }
            OutputTarget::Caller | OutputTarget::Null => {}
        }
        Ok(files)
    }

    /// Opens a file of the series for a command.
    fn open_file(
        &self,
        number: usize,
        file: usize,
        flags: OFlags,
    ) -> Result<OwnedFd, LauncherAnswer> {
        let path = self.files.get(file).ok_or(Errno::INVAL);
        let path = path.map_err(failed(number, "open"))?;
        let step = format!("open {}", path.to_string_lossy());
        let mode = Mode::from_raw_mode(0o666);
        loop {
            match open(path.as_c_str(), flags | OFlags::CLOEXEC, mode) {
                // A FIFO waits for its other end.
                Err(Errno::INTR) if stop_signal().is_some() => return Err(done()),
                Err(Errno::INTR) => {}
                opened => return opened.map_err(failed(number, &step)),
            }
        }
    }

    /// Returns the standard streams of a command. A stream that the caller had closed is not opened
    /// to discard what is written to it.
    fn streams<'s>(&'s self, number: usize, files: &'s RunFiles) -> CommandStreams<'s> {
        let input = files.input.as_ref().map(AsFd::as_fd);
        let error = self.null_stream(2);
        match self.request.series.output_target(number) {
            OutputTarget::Caller => CommandStreams { input, ..CommandStreams::default() },
            OutputTarget::Null => CommandStreams { input, output: self.null_stream(1), error },
            OutputTarget::Pipe | OutputTarget::File(_) => {
                let output = files.output.as_ref().map(AsFd::as_fd);
                CommandStreams { input, output, error }
            }
        }
    }

    /// Returns /dev/null for a standard stream that the caller had open.
    fn null_stream(&self, stream: usize) -> Option<BorrowedFd<'_>> {
        let null = self.null.as_ref().filter(|_| !self.request.inherited.had_closed(stream))?;
        Some(null.as_fd())
    }

    /// Discards what a pipe holds, after a wait for it; returns whether more may come.
    fn discard_from(&self, pipe: &OwnedFd) -> bool {
        let Some(null) = &self.null else { return false };
        match splice(pipe, None, null, None, MAX_SPLICE_BYTES, SpliceFlags::empty()) {
            Ok(bytes) => bytes > 0,
            Err(Errno::INTR | Errno::AGAIN) => true,
            // A kernel that does not splice here.
            Err(_) => matches!(read(pipe, &mut [0_u8; 4096][..]), Ok(1..) | Err(Errno::INTR)),
        }
    }

    /// Reaps orphans that have ended, but not the command.
    fn reap_orphans(&mut self, command: Option<i32>) -> Result<(), Errno> {
        while let Some(pid) = ended_child()? {
            // The kernel returns the command first as long as it is not reaped: orphans behind it wait.
            if command == Some(pid) {
                break;
            }
            let ended = wait_for(pid)?;
            let pid = pid.unsigned_abs();
            if let Some(position) = self.left_behind.iter().position(|left| *left == pid) {
                self.left_behind.swap_remove(position);
            } else if self.had_left_behind {
                // A descendant of this command, or of a process that an earlier one has left.
                self.orphans.of_unknown_origin += 1;
            } else {
                self.orphans.ended += 1;
                if let Some(usage) = &mut self.orphans.usage {
                    *usage = usage.add(&ProcessUsage::from(&ended));
                }
            }
        }
        Ok(())
    }

    /// Finds the processes that the command has left behind, once it has ended.
    fn find_left_behind(&mut self) {
        let (tree, end) = (self.request.series.tree, Instant::now() + MAX_ORPHAN_WAIT);
        self.orphans.left_behind = loop {
            if self.reap_orphans(None).is_err() {
                // ECHILD.
                self.left_behind.clear();
                break Reading::Known(Vec::new());
            }
            let left = children().map(|mut pids| {
                pids.retain(|pid| !self.left_behind.contains(pid));
                pids
            });
            match left {
                Reading::Known(left) if !left.is_empty() && tree && Instant::now() < end => {
                    sleep(ORPHAN_PAUSE);
                }
                left => break left,
            }
        };
        self.left_behind.extend(self.orphans.left_behind.known().into_iter().flatten());
    }
}

/// Returns whether anything has come at one of the descriptors.
fn is_ready(descriptors: &[PollFd<'_>], place: usize) -> bool {
    descriptors.get(place).is_some_and(|descriptor| !descriptor.revents().is_empty())
}

/// Returns whether a process has ended, by its pidfd.
fn has_ended(handle: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&Timespec::default())) == Ok(1)
}

/// Waits for the end of a child without reaping it.
fn wait_until_zombie(child: Pid) -> Result<(), Errno> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    retry_on_intr(|| waitid(WaitId::Pid(child), how)).map(|_| ())
}

/// Returns the children of this process (proc_pid_task(5), `children`).
fn children() -> Reading<Vec<u32>> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"));
    Reading::from(text).map(|text| text.split_whitespace().flat_map(str::parse).collect())
}
