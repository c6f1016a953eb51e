//! The request to the launcher, which has all runs of a series at once, and its answers. Between two
//! runs the launcher waits for no other process.
//!
//! ```text
//! program                                    launcher
//! argument: LauncherRequest as JSON   ---->  runs warmup, then rounds of all commands
//! file in memory: the commands' words ---->
//!                                    <----  socket: a line of JSON for each LauncherAnswer
//! signals to the program              ---->  socket: forwarded to the command
//! ```

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use probe::command::{CommandTexts, InheritedState, write_commands};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::LauncherError;
use crate::usage::{CommandRun, Ending, FailedWarmup};

/// A series of runs of one command, or of several in turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSeries {
    /// The commands, in words. The launcher gets them in a file: on its heap they would be charged
    /// to every command.
    #[serde(skip)]
    pub commands: Vec<Vec<OsString>>,
    /// Number of rounds beforehand that are not reported.
    pub warmup: u32,
    /// Number of rounds after them.
    pub runs: u32,
    /// Seed of the order within rounds ([`order`]).
    pub seed: u64,
    /// True if orphans that end within a second after a command are to be waited for and counted.
    pub tree: bool,
    /// True if process ids are to be reported at the start.
    pub announce: bool,
    /// True if standard output and error of all commands are to be discarded.
    pub discard: bool,
    /// The rule by which the rounds may end before all are done.
    pub stop_rule: Option<StopRule>,
    /// Commands that run before and after the others (hooks); their words are in the same file.
    #[serde(skip)]
    pub hooks: Vec<Vec<OsString>>,
    /// Numbers of the `hooks` that run once before the first round.
    pub setup: Vec<usize>,
    /// Number of the hook that runs before each run, for each command; empty for none.
    pub prepare: Vec<usize>,
    /// Number of the hook that runs after each run, for each command; empty for none.
    #[serde(default)]
    pub conclude: Vec<usize>,
    /// Numbers of the hooks that run once after the last round; not if a signal has asked to stop.
    pub cleanup: Vec<usize>,
    /// Paths of files for input and output, which are opened anew for each run; they are in the
    /// same file.
    #[serde(skip)]
    pub files: Vec<OsString>,
    /// Number of the file in `files` that is the standard input of all; `None` for the caller's.
    #[serde(default)]
    pub input: Option<usize>,
    /// Target of each command's output, instead of what `discard` says; empty for none. Hooks go by
    /// `discard`.
    #[serde(default)]
    pub outputs: Vec<OutputTarget>,
    /// True if commands and the hooks before and after a run are told the number of the run, and
    /// get an environment of random size ([`ITERATION`], [`OFFSET`]).
    #[serde(default)]
    pub is_numbered: bool,
    /// `NAME=VALUE` of variables that are added to the environment of all of them, or replace the
    /// caller's; they are in the same file.
    #[serde(skip)]
    pub environment: Vec<OsString>,
}

/// Variable with the number of a run from 0, in the warm-up as `warmup-0`; hyperfine's name for it.
pub const ITERATION: &CStr = c"HYPERFINE_ITERATION";

/// Variable whose random length shifts what follows it in a command's memory (Mytkowicz et al. 2009);
/// hyperfine's name for it.
pub const OFFSET: &CStr = c"HYPERFINE_RANDOMIZED_ENVIRONMENT_OFFSET";

/// The length of [`OFFSET`]'s value is below this number of bytes: a page.
pub(crate) const MAX_OFFSET_BYTES: usize = 4096;

/// Returns the length of [`OFFSET`]'s value for a run, from the series' seed (ChaCha8, in streams
/// that [`order`] does not use).
pub(crate) fn offset_bytes(seed: u64, round: u32, command: usize) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream((1 << 63) | (u64::from(round) << 24) | command as u64);
    rng.next_u32() as usize % MAX_OFFSET_BYTES
}

/// Target of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputTarget {
    /// Standard output and error are the caller's.
    Caller,
    /// Both are discarded.
    Null,
    /// Standard output is a pipe, whose content is discarded; standard error is discarded.
    Pipe,
    /// Standard output is the file with this number in `files`, which each run begins anew; standard
    /// error is discarded.
    File(usize),
}

/// The rule by which rounds end: a minimum is done, and one more would exceed the total time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRule {
    /// Minimum of rounds.
    pub runs: u32,
    /// Total time in nanoseconds.
    pub time_ns: u64,
}

impl StopRule {
    /// Returns whether `rounds`, which took `elapsed`, are enough: one more of the same length would
    /// exceed the total time.
    pub fn is_reached(self, rounds: u32, elapsed: Duration) -> bool {
        let with_next = elapsed.as_nanos() * u128::from(rounds + 1);
        rounds >= self.runs.max(1) && with_next > u128::from(self.time_ns) * u128::from(rounds)
    }
}

/// The purpose of a command that runs before or after the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HookKind {
    Setup,
    Prepare,
    Conclude,
    Cleanup,
}

impl HookKind {
    /// Returns the flag by which the command was given.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Setup => "--setup",
            Self::Prepare => "--prepare",
            Self::Conclude => "--conclude",
            Self::Cleanup => "--cleanup",
        }
    }
}

impl CommandSeries {
    /// Returns a series of one run of a command, which is watched from outside meanwhile.
    pub fn watched(words: &[OsString]) -> Self {
        Self { commands: vec![words.to_vec()], runs: 1, announce: true, ..Self::default() }
    }

    /// Returns where the output of a command or a hook goes, by its number among all.
    pub(crate) fn output_target(&self, number: usize) -> OutputTarget {
        match self.outputs.get(number) {
            Some(target) => *target,
            None if self.discard => OutputTarget::Null,
            None => OutputTarget::Caller,
        }
    }

    /// Returns whether any output of commands is the caller's.
    pub fn shows_output(&self) -> bool {
        if self.outputs.is_empty() {
            !self.discard
        } else {
            self.outputs.contains(&OutputTarget::Caller)
        }
    }

    /// Returns whether any output is discarded.
    pub(crate) fn discards_output(&self) -> bool {
        self.discard || self.outputs.iter().any(|target| *target != OutputTarget::Caller)
    }
}

/// An answer of the launcher: a line of JSON on the socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum LauncherAnswer {
    /// A command was started with this process id; only in an announced series.
    Started(u32),
    /// A run has ended. Rounds count from 0 after the warm-up.
    Ran(Box<CommandRun>),
    /// A run of the warm-up has failed.
    WarmupFailed(FailedWarmup),
    /// A command could not be started; the series ends.
    NotStarted { command: usize, failure: StartFailure },
    /// A hook has not succeeded; the series ends.
    HookFailed { kind: HookKind, command: usize, ending: Ending },
    /// The series has ended; the last signal that asked to stop.
    Done(Option<u8>),
}

/// Returns the order in which the commands run in a round. Each round is shuffled (Fisher-Yates by
/// ChaCha8 with the seed, stream `round`).
pub fn order(commands: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..commands).collect();
    if commands > 1 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(round));
        order.shuffle(&mut rng);
    }
    order
}

/// The path by which execvp(3) searches without PATH (confstr(3), _CS_PATH).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The argument that makes this program the launcher.
pub(crate) const NAME: &CStr = c"launcher";

/// Limits the name of a file (limits.h).
const NAME_MAX: usize = 255;
/// Limits the path of a file (limits.h).
const PATH_MAX: usize = 4096;

impl CommandSeries {
    /// Returns the commands, then the hooks.
    pub(crate) fn all_commands(&self) -> impl Iterator<Item = &Vec<OsString>> {
        self.commands.iter().chain(&self.hooks)
    }

    /// Writes the words of all commands to a file in memory, then the paths of files and the
    /// environment, if there are any. Programs are searched by the PATH of this process. EINVAL if a
    /// word has a zero byte.
    pub(crate) fn write_words(&self) -> Result<OwnedFd, Errno> {
        let mut texts = Vec::new();
        for words in self.all_commands() {
            let candidates = path_candidates(words.first().ok_or(Errno::INVAL)?);
            texts.push(CommandTexts { candidates, words: word_bytes(words)? });
        }
        for list in [&self.files, &self.environment] {
            if !list.is_empty() {
                texts.push(CommandTexts { candidates: Vec::new(), words: word_bytes(list)? });
            }
        }
        write_commands(&texts)
    }
}

/// Returns the bytes of words; EINVAL if one has a zero byte.
fn word_bytes(words: &[OsString]) -> Result<Vec<Vec<u8>>, Errno> {
    let mut bytes = Vec::new();
    for word in words {
        if word.as_bytes().contains(&0) {
            return Err(Errno::INVAL);
        }
        bytes.push(word.as_bytes().to_vec());
    }
    Ok(bytes)
}

/// Returns the paths that execvp(3) tries for a name, in their order.
fn path_candidates(name: &OsStr) -> Vec<Vec<u8>> {
    candidates(name.as_bytes(), std::env::var_os("PATH").as_deref())
}

/// Returns the paths of [`path_candidates`] as such.
fn in_path(name: &OsStr) -> impl Iterator<Item = PathBuf> {
    path_candidates(name).into_iter().map(|path| OsString::from_vec(path).into())
}

fn candidates(name: &[u8], path: Option<&OsStr>) -> Vec<Vec<u8>> {
    if name.is_empty() || name.contains(&b'/') || name.len() > NAME_MAX {
        // Not searched in PATH: execve(2) gives the error.
        return vec![name.to_vec()];
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes();
    let mut candidates = Vec::new();
    for folder in path.split(|byte| *byte == b':') {
        match folder {
            [] => candidates.push(name.to_vec()),
            _ if folder.len() < PATH_MAX => candidates.push([folder, b"/", name].concat()),
            _ => {}
        }
    }
    candidates
}

/// Returns the first word of a command; empty if there is none.
fn program_name(words: &[OsString]) -> &OsStr {
    words.first().map(OsString::as_os_str).unwrap_or_default()
}

/// Searches the programs of all commands as execvp(3) would, without running any.
///
/// # Errors
/// The reason why the first that cannot be run cannot.
pub fn look_up(commands: &[Vec<OsString>]) -> Result<(), LauncherError> {
    for words in commands {
        let name = program_name(words);
        if let Err(errno) = check_executable(in_path(name)) {
            let (message, exit_code) = StartFailure::new(EXEC, errno).explain(words);
            return Err(LauncherError { message, exit_code });
        }
    }
    Ok(())
}

/// Checks by their modes that one of these files may be executed. The error is that of execvp(3).
fn check_executable(paths: impl Iterator<Item = PathBuf>) -> Result<(), Errno> {
    let mut failure = Errno::NOENT;
    for path in paths {
        let access = match access(&path, Access::EXEC_OK) {
            Ok(()) if path.is_dir() => Err(Errno::ACCESS),
            access => access,
        };
        match access {
            Ok(()) => return Ok(()),
            // Another folder may have it.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => failure = errno,
        }
    }
    Err(failure)
}

/// The request with which the launcher is started, as JSON in its only argument.
#[derive(Serialize, Deserialize)]
pub(crate) struct LauncherRequest {
    /// The program's process id.
    pub(crate) parent: i32,
    /// Descriptor of the socket.
    pub(crate) socket: i32,
    /// Descriptor of the file with the words.
    pub(crate) words: i32,
    /// Number of the commands in the file that are measured; the others are hooks.
    pub(crate) measured: usize,
    /// True if paths of files stand behind the words of the hooks.
    pub(crate) has_files: bool,
    /// True if the last of the words are variables of the environment.
    pub(crate) has_environment: bool,
    pub(crate) series: CommandSeries,
    /// Signals that the program was started with blocked.
    pub(crate) blocked: u64,
    /// Other state that the program was started with.
    pub(crate) inherited: InheritedState,
}

/// The call that makes a process the command; failures of other steps are not the command's.
pub(crate) const EXEC: &str = "execve";

/// A system call that failed in the start of a command, and its errno.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartFailure {
    pub(crate) step: String,
    pub(crate) errno: i32,
}

impl StartFailure {
    pub(crate) fn new(step: &str, errno: Errno) -> Self {
        Self { step: step.to_owned(), errno: errno.raw_os_error() }
    }

    /// Returns a message for the command `words`, and the exit code: 127 if the command does not exist,
    /// 126 if it cannot be run (env(1)), 1 if no command could be started.
    pub(crate) fn explain(&self, words: &[OsString]) -> (String, u8) {
        let name = program_name(words);
        let errno = Errno::from_raw_os_error(self.errno);
        let (step, shown) = (&self.step, Path::new(name).display());
        if step != EXEC {
            return (format!("cannot run '{shown}': {step}: {errno}{}", limit_hint(errno)), 1);
        }
        // The file that was meant, if one exists.
        let found = in_path(name).find(|path| path.exists());
        let (why, code) = match (errno, &found) {
            (_, Some(path)) if path.is_dir() => ("it is a directory", 126),
            (Errno::NOENT, Some(_)) => {
                ("its interpreter (after #!, or the dynamic loader) was not found", 126)
            }
            (Errno::NOENT, None) if name.is_empty() => ("an empty name", 127),
            (Errno::NOENT, None) if name.as_bytes().contains(&b'/') => ("no such file", 127),
            (Errno::NOENT, None) => ("command not found in PATH", 127),
            (Errno::ACCESS, Some(_)) => {
                ("it may not be executed (chmod +x, or a noexec mount)", 126)
            }
            (Errno::NOEXEC, _) => ("not a program for this machine", 126),
            (Errno::TOOBIG, _) => ("arguments and environment are too long (getconf ARG_MAX)", 126),
            _ => ("", 126),
        };
        let why = if why.is_empty() { errno.to_string() } else { format!("{why} ({errno})") };
        (format!("cannot run '{shown}': {why}"), code)
    }
}

/// Returns which limit was reached, if the errno says so, to be appended to it.
pub(crate) fn limit_hint(errno: Errno) -> &'static str {
    match errno {
        Errno::AGAIN => {
            ": no more processes are allowed (ulimit -u, pids.max of the control group)"
        }
        Errno::NOMEM => ": out of memory",
        Errno::MFILE | Errno::NFILE => ": no more descriptors are allowed (ulimit -n)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use rundata::reading::Reading;

    use super::*;
    use crate::{
        Ending, ExecBaseline, IoBytes, OrphanCounts, ProcessUsage, RunDelay, RunUsage, ThreadPeak,
    };

    #[test]
    fn names_are_looked_for_as_execvp_does() {
        let paths = |name: &str, path: Option<&str>| -> Vec<String> {
            let candidates = candidates(name.as_bytes(), path.map(OsStr::new));
            candidates.into_iter().map(|path| String::from_utf8(path).unwrap()).collect()
        };
        assert_eq!(paths("x", Some("/a:/b/c")), ["/a/x", "/b/c/x"]);
        assert_eq!(
            paths("x", Some(":/a:")),
            ["x", "/a/x", "x"],
            "an empty folder is the current one"
        );
        assert_eq!(paths("x", None), ["/bin/x", "/usr/bin/x"]);
        assert_eq!(paths("./x", Some("/a")), ["./x"]);
        assert_eq!(paths("", Some("/a")), [""]);
    }

    #[test]
    fn commands_are_looked_up_without_running_them() {
        let folder =
            std::env::temp_dir().join(format!("switchcost-look-up-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = |name: &str, mode| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::write(folder.join(name), "").unwrap();
            std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(mode)).unwrap();
            folder.join(name)
        };
        let (plain, program) = (file("plain", 0o644), file("program", 0o755));
        let check =
            |paths: &[&PathBuf]| check_executable(paths.iter().map(|path| path.to_path_buf()));
        let (none, below) = (folder.join("none"), plain.join("x"));
        let answers = [
            check(&[&none]),
            check(&[&below]),
            check(&[&folder]),
            check(&[&plain]),
            check(&[&none, &plain, &program]),
            check(&[&plain, &none]),
            check(&[]),
        ];
        std::fs::remove_dir_all(&folder).unwrap();
        let refused = Err(Errno::ACCESS);
        let absent = Err(Errno::NOENT);
        assert_eq!(answers, [absent, absent, refused, refused, Ok(()), refused, absent]);
        let unknown = look_up(&[vec!["sh".into()], vec!["/no/such/command".into()]]).unwrap_err();
        assert_eq!((unknown.exit_code, look_up(&[vec!["sh".into()]]).is_ok()), (127, true));
        assert!(unknown.to_string().contains("no such file"), "{unknown}");
    }

    #[test]
    fn rounds_end_where_one_more_would_take_too_long() {
        let rule = StopRule { runs: 3, time_ns: 1_000 };
        let ends = |rounds: u32, passed: u64| rule.is_reached(rounds, Duration::from_nanos(passed));
        assert!(!ends(0, 0) && !ends(2, 5_000), "as few as were asked for are always done");
        assert!(ends(3, 751) && !ends(3, 750), "a fourth as long ends at 1,000 ns");
        assert!(!ends(9, 900) && ends(10, 1_000));
        assert!(!StopRule { runs: 0, time_ns: 9 }.is_reached(0, Duration::ZERO), "one at least");
    }

    #[test]
    fn orders_are_permutations_fixed_by_the_seed() {
        let orders = || (0..20).map(|round| order(2, 5, round)).collect::<Vec<_>>();
        assert!(orders().contains(&vec![0, 1]) && orders().contains(&vec![1, 0]), "{:?}", orders());
        assert_eq!(orders(), orders());
        assert_eq!(order(1, 5, 3), [0]);
    }

    #[test]
    fn offsets_differ_by_run_and_are_fixed_by_the_seed() {
        let offsets = |seed| {
            let mut offsets = Vec::new();
            for round in 0..50 {
                offsets.extend([offset_bytes(seed, round, 0), offset_bytes(seed, round, 1)]);
            }
            offsets
        };
        let mut distinct = offsets(5);
        distinct.sort_unstable();
        distinct.dedup();
        // Of 100 among 4,096, one pair is alike on average.
        assert!(distinct.len() > 90 && distinct.iter().all(|bytes| *bytes < MAX_OFFSET_BYTES));
        assert!(distinct[0] < 400 && distinct[distinct.len() - 1] > 3_600, "{distinct:?}");
        assert_eq!(offsets(5), offsets(5));
        assert_ne!(offsets(5), offsets(6));
    }

    #[test]
    fn outputs_go_by_the_command_or_by_the_series() {
        let discarded = CommandSeries { discard: true, ..CommandSeries::default() };
        let outputs = vec![OutputTarget::Pipe, OutputTarget::Caller];
        let mixed = CommandSeries { outputs, ..discarded.clone() };
        let targets = [0, 1, 2].map(|number| mixed.output_target(number));
        assert_eq!(targets, [OutputTarget::Pipe, OutputTarget::Caller, OutputTarget::Null]);
        let shown = CommandSeries { discard: false, ..discarded.clone() };
        let series = [&shown, &discarded, &mixed];
        assert_eq!(series.map(CommandSeries::shows_output), [true, false, true]);
        assert_eq!(series.map(CommandSeries::discards_output), [false, true, true]);
    }

    #[test]
    fn answers_come_back_as_they_were() {
        let usage = ProcessUsage { user_ns: u64::MAX, voluntary: 3, ..ProcessUsage::default() };
        let used = RunUsage {
            real_ns: 5,
            ending: Ending::Killed { signal: 11, core_dumped: true },
            usage,
            own_cpu_ns: Reading::Known(0),
            sampled: Reading::unknown("é: no"),
            delay: Reading::Known(RunDelay { run_delay_ns: 1, covered_cpu_ns: 2 }),
            migrations: Reading::unknown(""),
            io: Reading::Known(IoBytes { storage_read_bytes: 9, ..IoBytes::default() }),
            threads: Reading::Known(ThreadPeak { peak_seen: 4, looks: 2 }),
            orphans: OrphanCounts {
                ended: 1,
                usage: Some(usage),
                of_unknown_origin: 2,
                left_behind: Reading::Known(vec![7, 8]),
            },
            at_exec: ExecBaseline { resident_bytes: 1, minor_faults: 2, cpu_ns: 3 },
            asked_to_be_traced: true,
        };
        let exited = RunUsage { ending: Ending::Exited { code: 255 }, ..used.clone() };
        let run = |used, signal: Option<u8>| {
            let interrupted = signal.is_some();
            LauncherAnswer::Ran(Box::new(CommandRun {
                command: 1,
                round: 6,
                interrupted,
                signal,
                used,
            }))
        };
        let failure = StartFailure { step: "execve".to_owned(), errno: 2 };
        let all = [
            LauncherAnswer::Started(77),
            run(used, Some(15)),
            run(exited, None),
            LauncherAnswer::WarmupFailed(FailedWarmup {
                command: 1,
                round: 2,
                ending: Ending::Exited { code: 3 },
            }),
            LauncherAnswer::NotStarted { command: 0, failure },
            LauncherAnswer::HookFailed {
                kind: HookKind::Prepare,
                command: 3,
                ending: Ending::Exited { code: 2 },
            },
            LauncherAnswer::Done(Some(2)),
        ];
        for answer in all {
            let line = serde_json::to_string(&answer).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<LauncherAnswer>(&line).unwrap(), answer);
        }
    }

    #[test]
    fn what_ran_out_has_its_limit_named() {
        for (step, errno, limit) in [
            ("clone", Errno::AGAIN, "ulimit -u"),
            ("clone", Errno::NOMEM, "out of memory"),
            ("mmap", Errno::NOMEM, "out of memory"),
            ("clone", Errno::MFILE, "ulimit -n"),
        ] {
            let (line, code) = StartFailure::new(step, errno).explain(&["x".into()]);
            assert!(line.starts_with(&format!("cannot run 'x': {step}: ")), "{line}");
            assert!(line.contains(limit), "{line}");
            assert_eq!(code, 1);
        }
    }
}
