//! What the launcher is asked for, all runs of a series at once, and what it answers. Between two
//! runs it waits for no other process.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use probe::command::{CommandTexts, InheritedState, write_commands};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::LauncherError;
use crate::used::{Ending, Run};

/// Runs of one command, or of several in turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The commands, in words. The launcher has them in a file: on its heap they would be charged
    /// to every command.
    #[serde(skip)]
    pub commands: Vec<Vec<OsString>>,
    /// Rounds beforehand that are not reported.
    pub warmup: u32,
    /// Rounds after them.
    pub runs: u32,
    /// Seed of the order within rounds (`order`).
    pub seed: u64,
    /// Whether orphans that end within a second after a command are waited for and counted.
    pub tree: bool,
    /// Whether process ids are reported at the start.
    pub announce: bool,
    /// Whether both outputs of all commands are discarded, in all runs alike.
    pub discard: bool,
    /// Ends the rounds before all are done.
    pub enough: Option<Enough>,
    /// What runs around them; the words are in the same file.
    #[serde(skip)]
    pub around: Vec<Vec<OsString>>,
    /// Which of `around` run once before the first round.
    pub setup: Vec<usize>,
    /// Which of them runs before each run, for each command; empty for none.
    pub prepare: Vec<usize>,
    /// Which of them run once after the last round; not where a signal has asked to stop.
    pub cleanup: Vec<usize>,
    /// `NAME=VALUE` of variables that all of them find in their environment beside the caller's, or
    /// instead of it; they are in the same file.
    #[serde(skip)]
    pub environment: Vec<OsString>,
}

/// When rounds need not go on: so many are done, and one more would take longer than this in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enough {
    /// Rounds.
    pub runs: u32,
    /// Nanoseconds.
    pub time_ns: u64,
}

impl Enough {
    /// Whether there are enough after so many rounds, which took so long: one more, as long as
    /// those, would not fit.
    pub(crate) fn is_reached(self, rounds: u32, passed: Duration) -> bool {
        let with_next = passed.as_nanos() * u128::from(rounds + 1);
        rounds >= self.runs.max(1) && with_next > u128::from(self.time_ns) * u128::from(rounds)
    }
}

/// What a command that is run around the others is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Around {
    Setup,
    Prepare,
    Cleanup,
}

impl Around {
    /// The flag that it was given by.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Setup => "--setup",
            Self::Prepare => "--prepare",
            Self::Cleanup => "--cleanup",
        }
    }
}

impl Series {
    /// One run of a command that is watched from outside meanwhile.
    pub fn watched(words: &[OsString]) -> Self {
        Self { commands: vec![words.to_vec()], runs: 1, announce: true, ..Self::default() }
    }
}

/// What happened to a command of a series: a line of JSON on the socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// It has a process id; only in an announced series.
    Started(u32),
    /// It has ended. Rounds count from 0 after the warm-up.
    Ran(Box<Run>),
    /// It could not be started; no other will be.
    NotStarted { command: usize, failure: NotStarted },
    /// One that is run around the others has not succeeded; nothing else is run.
    Around { what: Around, command: usize, ending: Ending },
    /// The end of the series, and the last signal that asked to stop.
    Done(Option<u8>),
}

/// The order in which so many commands run in round `round`: shuffled anew in each (Fisher-Yates by
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

/// Where execvp(3) looks without PATH (confstr(3), _CS_PATH).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The argument that makes this program the launcher.
pub(crate) const NAME: &CStr = c"launcher";

/// Longest name of a file, without and with its directory (limits.h).
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4096;

impl Series {
    /// The commands, and behind them those that are run around them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Vec<OsString>> {
        self.commands.iter().chain(&self.around)
    }

    /// Writes all of them to a file in memory, and the environment behind them, if there is one;
    /// programs are looked for by the PATH of this process. EINVAL where a word has a byte of zero.
    pub(crate) fn write_words(&self) -> Result<OwnedFd, Errno> {
        let texts = |words: &Vec<OsString>| -> Result<CommandTexts, Errno> {
            let paths = in_path(words.first().ok_or(Errno::INVAL)?).into_iter();
            let candidates = paths.map(|path| path.into_os_string().into_vec()).collect();
            Ok(CommandTexts { candidates, words: bytes_of(words)? })
        };
        let mut all = self.all().map(texts).collect::<Result<Vec<_>, _>>()?;
        if !self.environment.is_empty() {
            all.push(CommandTexts { candidates: Vec::new(), words: bytes_of(&self.environment)? });
        }
        write_commands(&all)
    }
}

/// The bytes of words; EINVAL where one has a byte of zero.
fn bytes_of(words: &[OsString]) -> Result<Vec<Vec<u8>>, Errno> {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    if words.iter().any(|word| word.contains(&0)) {
        return Err(Errno::INVAL);
    }
    Ok(words)
}

/// The paths that execvp(3) tries for a name, in their order.
fn in_path(name: &OsStr) -> Vec<PathBuf> {
    let paths = candidates(name.as_bytes(), std::env::var_os("PATH").as_deref());
    paths.into_iter().map(|path| OsString::from_vec(path).into()).collect()
}

fn candidates(name: &[u8], path: Option<&OsStr>) -> Vec<Vec<u8>> {
    if name.is_empty() || name.contains(&b'/') || name.len() > NAME_MAX {
        // The kernel says what is wrong with it.
        return vec![name.to_vec()];
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes();
    let folders = path.split(|byte| *byte == b':').filter(|folder| folder.len() < PATH_MAX);
    let within = |folder: &[u8]| match folder {
        [] => name.to_vec(),
        folder => [folder, b"/", name].concat(),
    };
    folders.map(within).collect()
}

/// Looks for the programs of all commands as execvp(3) would, without running any: why the first
/// that cannot be run cannot.
pub fn look_up(commands: &[Vec<OsString>]) -> Result<(), LauncherError> {
    for words in commands {
        let name = words.first().map(OsString::as_os_str).unwrap_or_default();
        if let Err(errno) = executable(in_path(name).into_iter()) {
            let (message, exit_code) = NotStarted::at(EXEC, errno).explain(words);
            return Err(LauncherError { message, exit_code });
        }
    }
    Ok(())
}

/// Whether one of these may be executed, as far as its mode tells; the errno that execvp(3) would
/// give.
fn executable(paths: impl Iterator<Item = PathBuf>) -> Result<(), Errno> {
    let mut failure = Errno::NOENT;
    for path in paths {
        let found = match access(&path, Access::EXEC_OK) {
            Ok(()) if path.is_dir() => Err(Errno::ACCESS),
            found => found,
        };
        match found {
            Ok(()) => return Ok(()),
            // Another folder may have it.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => failure = errno,
        }
    }
    Err(failure)
}

/// What the launcher is started with, as JSON in its one argument.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    /// The program's process id.
    pub(crate) parent: i32,
    /// Descriptors of the socket and of the words.
    pub(crate) socket: i32,
    pub(crate) words: i32,
    /// How many of the words' commands are measured.
    pub(crate) measured: usize,
    /// Whether the last of the words are variables of the environment.
    pub(crate) has_environment: bool,
    pub(crate) series: Series,
    /// Signals that the program was started with blocked.
    pub(crate) blocked: u64,
    /// What else it was started with ([`InheritedState`]).
    pub(crate) inherited: InheritedState,
}

/// The call that makes a process the command.
pub(crate) const EXEC: &str = "execve";

/// A system call on the way to a command that failed, and its errno.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotStarted {
    pub(crate) step: String,
    pub(crate) errno: i32,
}

impl NotStarted {
    pub(crate) fn at(step: &str, errno: Errno) -> Self {
        Self { step: step.to_owned(), errno: errno.raw_os_error() }
    }

    /// A line for the command `words`, and the exit code: 127 where the command is not there, 126
    /// where it cannot be run (env(1)), 1 where nothing could be.
    pub(crate) fn explain(&self, words: &[OsString]) -> (String, u8) {
        let name = words.first().map(OsString::as_os_str).unwrap_or_default();
        let errno = Errno::from_raw_os_error(self.errno);
        let (step, shown) = (&self.step, Path::new(name).display());
        if step != EXEC {
            return (format!("cannot run '{shown}': {step}: {errno}{}", limit(errno)), 1);
        }
        // The file that was meant, if there is any.
        let found = in_path(name).into_iter().find(|path| path.exists());
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

/// What ran out, where a call says so, to be put behind its errno.
pub(crate) fn limit(errno: Errno) -> &'static str {
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
    use crate::{AtExec, Delay, Ending, IoBytes, Orphans, Threads, Usage, Used};

    #[test]
    fn names_are_looked_for_as_execvp_does() {
        let of = |name: &str, path: Option<&str>| -> Vec<String> {
            let all = candidates(name.as_bytes(), path.map(OsStr::new));
            all.into_iter().map(|path| String::from_utf8(path).unwrap()).collect()
        };
        assert_eq!(of("x", Some("/a:/b/c")), ["/a/x", "/b/c/x"]);
        assert_eq!(of("x", Some(":/a:")), ["x", "/a/x", "x"], "an empty folder is the current one");
        assert_eq!(of("x", None), ["/bin/x", "/usr/bin/x"]);
        assert_eq!(of("./x", Some("/a")), ["./x"]);
        assert_eq!(of("", Some("/a")), [""]);
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
        let of = |paths: &[&PathBuf]| executable(paths.iter().map(|path| path.to_path_buf()));
        let (none, below) = (folder.join("none"), plain.join("x"));
        let answers = [
            of(&[&none]),
            of(&[&below]),
            of(&[&folder]),
            of(&[&plain]),
            of(&[&none, &plain, &program]),
            of(&[&plain, &none]),
            of(&[]),
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
        let enough = Enough { runs: 3, time_ns: 1_000 };
        let ends =
            |rounds: u32, passed: u64| enough.is_reached(rounds, Duration::from_nanos(passed));
        assert!(!ends(0, 0) && !ends(2, 5_000), "as few as were asked for are always done");
        assert!(ends(3, 751) && !ends(3, 750), "a fourth as long ends at 1,000 ns");
        assert!(!ends(9, 900) && ends(10, 1_000));
        assert!(!Enough { runs: 0, time_ns: 9 }.is_reached(0, Duration::ZERO), "one at least");
    }

    #[test]
    fn orders_are_permutations_fixed_by_the_seed() {
        let orders = || (0..20).map(|round| order(2, 5, round)).collect::<Vec<_>>();
        assert!(orders().contains(&vec![0, 1]) && orders().contains(&vec![1, 0]), "{:?}", orders());
        assert_eq!(orders(), orders());
        assert_eq!(order(1, 5, 3), [0]);
    }

    #[test]
    fn answers_come_back_as_they_were() {
        let usage = Usage { user_ns: u64::MAX, voluntary: 3, ..Usage::default() };
        let used = Used {
            real_ns: 5,
            ending: Ending::Killed { signal: 11, core_dumped: true },
            usage,
            own_cpu_ns: Reading::Known(0),
            sampled: Reading::unknown("é: no"),
            delay: Reading::Known(Delay { run_delay_ns: 1, covered_cpu_ns: 2 }),
            migrations: Reading::unknown(""),
            io: Reading::Known(IoBytes { storage_read_bytes: 9, ..IoBytes::default() }),
            threads: Reading::Known(Threads { peak_seen: 4, looks: 2 }),
            orphans: Orphans {
                ended: 1,
                usage: Some(usage),
                of_unknown_origin: 2,
                left_behind: Reading::Known(vec![7, 8]),
            },
            at_exec: AtExec { resident_bytes: 1, minor_faults: 2, cpu_ns: 3 },
            asked_to_be_traced: true,
        };
        let exited = Used { ending: Ending::Exited { code: 255 }, ..used.clone() };
        let run = |used, signal: Option<u8>| {
            let interrupted = signal.is_some();
            Answer::Ran(Box::new(Run { command: 1, round: 6, interrupted, signal, used }))
        };
        let failure = NotStarted { step: "execve".to_owned(), errno: 2 };
        let all = [
            Answer::Started(77),
            run(used, Some(15)),
            run(exited, None),
            Answer::NotStarted { command: 0, failure },
            Answer::Around {
                what: Around::Prepare,
                command: 3,
                ending: Ending::Exited { code: 2 },
            },
            Answer::Done(Some(2)),
        ];
        for answer in all {
            let line = serde_json::to_string(&answer).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Answer>(&line).unwrap(), answer);
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
            let (line, code) = NotStarted::at(step, errno).explain(&["x".into()]);
            assert!(line.starts_with(&format!("cannot run 'x': {step}: ")), "{line}");
            assert!(line.contains(limit), "{line}");
            assert_eq!(code, 1);
        }
    }
}
