//! What the launcher is asked for: all runs of a series at once, so that between two of them it waits for
//! nobody.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use crate::sys::{Inherited, Texts, Words, write_words};

/// Runs of one command, or of several in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The commands, in words.
    pub commands: Vec<Vec<OsString>>,
    /// Rounds of which nothing is told.
    pub warmup: u32,
    /// Rounds after them.
    pub runs: u32,
    /// Seed of the order within rounds ([`model::command_use::order`]).
    pub seed: u64,
    /// Whether orphans that end within [`super::PATIENCE`] after a command are waited for and counted.
    pub tree: bool,
    /// Whether ids are told as soon as there are any.
    pub announce: bool,
}

/// Where execvp(3) looks if there is no PATH (confstr(3), _CS_PATH).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Longest name of a file, without and with its folder (limits.h).
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4096;

impl Series {
    /// Writes it to a file that `Asked::read` reads; the programs are looked for by the PATH of this
    /// process. EINVAL where a word has a byte of zero.
    pub fn write(&self, signals_before: u64) -> Result<OwnedFd, Errno> {
        let flags = u64::from(self.tree) | u64::from(self.announce) << 1;
        let inherited = Inherited::own().bits();
        let (warmup, runs) = (u64::from(self.warmup), u64::from(self.runs));
        let numbers = [warmup, runs, self.seed, flags, signals_before, inherited];
        let path = std::env::var_os("PATH");
        let texts = |words: &Vec<OsString>| -> Result<Texts, Errno> {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            let name = words.first().ok_or(Errno::INVAL)?;
            if words.iter().any(|word| word.contains(&0)) {
                return Err(Errno::INVAL);
            }
            Ok(Texts { candidates: candidates(name, path.as_deref()), words })
        };
        let commands = self.commands.iter().map(texts).collect::<Result<Vec<_>, _>>()?;
        write_words(&numbers, &commands)
    }
}

/// The paths that execvp(3) tries for a name, in their order.
fn candidates(name: &[u8], path: Option<&OsStr>) -> Vec<Vec<u8>> {
    if name.is_empty() || name.contains(&b'/') || name.len() > NAME_MAX {
        // What there is to say against it, the kernel says.
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

/// A series as the launcher reads it.
pub(super) struct Asked {
    pub(super) words: Words,
    pub(super) commands: usize,
    pub(super) warmup: u32,
    pub(super) runs: u32,
    pub(super) seed: u64,
    pub(super) tree: bool,
    pub(super) announce: bool,
    pub(super) signals_before: u64,
    pub(super) inherited: Inherited,
}

impl Asked {
    pub(super) fn read(file: impl AsFd) -> Result<Self, Errno> {
        let words = Words::map(file)?;
        let number = |which| words.number(which).ok_or(Errno::INVAL);
        let flags = number(3)?;
        Ok(Self {
            commands: (0..).take_while(|which| words.command(*which).is_some()).count(),
            warmup: number(0)? as u32,
            runs: number(1)? as u32,
            seed: number(2)?,
            tree: flags & 1 != 0,
            announce: flags & 2 != 0,
            signals_before: number(4)?,
            inherited: Inherited::from_bits(number(5)?),
            words,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
