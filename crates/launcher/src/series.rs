//! What the launcher is asked for, all runs of a series at once, and what it answers. Between two runs
//! it waits for nobody.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use probe::command::{Inherited, Texts, write_words};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::NotStarted;
use crate::used::Run;

/// Runs of one command, or of several in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The commands, in words.
    pub commands: Vec<Vec<OsString>>,
    /// Rounds beforehand that are not reported.
    pub warmup: u32,
    /// Rounds after them.
    pub runs: u32,
    /// Seed of the order within rounds ([`order`]).
    pub seed: u64,
    /// Whether orphans that end within a second after a command are waited for and counted.
    pub tree: bool,
    /// Whether process ids are reported at the start.
    pub announce: bool,
}

/// What happened to a command of a series: a line of JSON on the socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// It has a process id; only in an announced series.
    Started {
        /// The id.
        pid: u32,
    },
    /// It has ended. Rounds count from 0 after the warm-up.
    Ran(Box<Run>),
    /// It could not be started; no other will be.
    NotStarted {
        /// Which command.
        command: usize,
        /// Why.
        failure: NotStarted,
    },
    /// The end of the series.
    Done {
        /// The last signal that asked to stop.
        signal: Option<u8>,
    },
}

/// The order in which so many commands run in round `round`: shuffled anew in each (Fisher-Yates by
/// ChaCha8 with the seed, stream `round`).
#[must_use]
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
pub(crate) const NAME: &str = "launcher";

/// Longest name of a file, without and with its directory (limits.h).
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4096;

impl Series {
    /// Writes the commands to a file in memory; programs are looked for by the PATH of this process. EINVAL
    /// where a word has a byte of zero.
    pub(crate) fn write_words(&self) -> Result<OwnedFd, Errno> {
        let path = std::env::var_os("PATH");
        let texts = |words: &Vec<OsString>| -> Result<Texts, Errno> {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            let name = words.first().ok_or(Errno::INVAL)?;
            if words.iter().any(|word| word.contains(&0)) {
                return Err(Errno::INVAL);
            }
            Ok(Texts { candidates: candidates(name, path.as_deref()), words })
        };
        write_words(&self.commands.iter().map(texts).collect::<Result<Vec<_>, _>>()?)
    }
}

/// The paths that execvp(3) tries for a name, in their order.
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

/// What the launcher is started with, as JSON in its one argument. The commands' words are in a file of
/// their own: on the launcher's heap they would be charged to every command.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    /// The program's process id.
    pub(crate) parent: i32,
    /// Descriptors of the socket and of the words.
    pub(crate) socket: i32,
    pub(crate) words: i32,
    pub(crate) warmup: u32,
    pub(crate) runs: u32,
    pub(crate) seed: u64,
    pub(crate) tree: bool,
    pub(crate) announce: bool,
    /// Signals that the program was started with blocked.
    pub(crate) blocked: u64,
    /// What else it was started with ([`Inherited::bits`]).
    pub(crate) inherited: u64,
}

impl Request {
    pub(crate) fn of(
        series: &Series,
        blocked: u64,
        socket: BorrowedFd<'_>,
        words: BorrowedFd<'_>,
    ) -> Self {
        let Series { warmup, runs, seed, tree, announce, .. } = *series;
        let parent = std::process::id().cast_signed();
        let (socket, words) = (socket.as_raw_fd(), words.as_raw_fd());
        let inherited = Inherited::own().bits();
        Self { parent, socket, words, warmup, runs, seed, tree, announce, blocked, inherited }
    }

    /// The launcher's command line.
    pub(crate) fn in_words(&self) -> Result<[CString; 3], Errno> {
        let json = serde_json::to_vec(self).map_err(|_| Errno::INVAL)?;
        let json = CString::new(json).map_err(|_| Errno::INVAL)?;
        Ok([c"switchcost".to_owned(), CString::new(NAME).map_err(|_| Errno::INVAL)?, json])
    }
}

#[cfg(test)]
mod tests {
    use model::reading::Reading;

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
        };
        let exited = Used { ending: Ending::Exited { code: 255 }, ..used.clone() };
        let run = |used, signal: Option<u8>| {
            let interrupted = signal.is_some();
            Answer::Ran(Box::new(Run { command: 1, round: 6, interrupted, signal, used }))
        };
        let failure = NotStarted { step: "execve".to_owned(), errno: 2 };
        let all = [
            Answer::Started { pid: 77 },
            run(used, Some(15)),
            run(exited, None),
            Answer::NotStarted { command: 0, failure },
            Answer::Done { signal: Some(2) },
        ];
        for answer in all {
            let line = serde_json::to_string(&answer).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Answer>(&line).unwrap(), answer);
        }
    }
}
