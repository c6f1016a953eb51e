//! The commands of a series, from what was typed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command as Process, Stdio};

use anyhow::Result;

use crate::base::failure::usage;

/// A command: its words, what it is called where that is not its words, and the values by which it
/// differs from others that were typed as the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<OsString>,
    /// Empty where it is its words.
    pub(super) name: String,
    /// The name is the line that was typed.
    pub(super) is_line: bool,
    /// `NAME=VALUE` of each parameter that is in its words.
    pub(super) values: Vec<String>,
}

/// What runs a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    /// Nothing: it is split into words.
    None,
    /// A shell with its own arguments.
    Of(Vec<OsString>),
}

/// In place of a shell.
const NO_SHELL: &str = "none";

/// Shells that say by `command -v` whether they know a command (POSIX).
const POSIX: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

impl Shell {
    /// By its name, with arguments; `none` for none.
    pub(super) fn of(name: &str) -> Result<Self> {
        match name.trim() {
            NO_SHELL => Ok(Self::None),
            name => Ok(Self::Of(split("--shell", name)?)),
        }
    }

    /// What it is called; absent for none.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Of(words) => words.first().map(|name| name.to_string_lossy().into_owned()),
        }
    }

    /// The words by which a line is run, which `flag` has given.
    pub(super) fn words(&self, flag: &str, line: &str) -> Result<Vec<OsString>> {
        match self {
            Self::None => split(flag, line),
            Self::Of(_) if line.trim().is_empty() => Err(no_command(flag)),
            Self::Of(shell) => Ok([&shell[..], &["-c".into(), line.into()]].concat()),
        }
    }

    /// The first of these lines whose command the shell does not know, without running any: that
    /// command. Where the shell cannot be asked, or the line begins with anything but a plain word,
    /// it is taken to know it.
    pub(super) fn unknown(&self, lines: &[String]) -> Option<String> {
        let Self::Of(shell) = self else { return None };
        let (name, arguments) = shell.split_first()?;
        let is_posix = Path::new(name).file_name().is_some_and(|of| POSIX.iter().any(|p| of == *p));
        let is_plain = |word: &&str| {
            let first = word.starts_with(|c: char| c.is_ascii_alphanumeric() || "./_".contains(c));
            first && word.chars().all(|c| c.is_ascii_alphanumeric() || "./_+-".contains(c))
        };
        let firsts = lines.iter().filter_map(|line| line.split_whitespace().next());
        let is_unknown = |word: &&str| {
            let asked = Process::new(name)
                .args(arguments)
                .args(["-c", &format!("command -v {word}")])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            asked.is_ok_and(|status| status.code().is_some_and(|code| code != 0))
        };
        firsts.filter(is_plain).filter(|_| is_posix).find(is_unknown).map(str::to_string)
    }
}

fn no_command(flag: &str) -> anyhow::Error {
    usage(format!("{flag}: no command (accepted: a command with its arguments, in one word)"))
}

/// A command typed in one word, by `flag`.
pub(super) fn split(flag: &str, text: &str) -> Result<Vec<OsString>> {
    let words = shell_words::split(text).map_err(|error| {
        usage(format!("{flag} {text}: {error} (accepted: words as a shell splits them)"))
    })?;
    match words.is_empty() {
        true => Err(no_command(flag)),
        false => Ok(words.into_iter().map(OsString::from).collect()),
    }
}

/// Each command once for each value of each parameter that is in it, as `{NAME}`. `typed` are names
/// and lists of values in turn.
pub(super) fn expand(typed: Vec<Command>, parameters: &[String]) -> Result<Vec<Command>> {
    let mut all = typed;
    for parameter in parameters.chunks(2) {
        let [name, list] = parameter else { continue };
        let values: Vec<&str> = list.split(',').collect();
        if name.is_empty() || values.iter().any(|value| value.is_empty()) {
            return Err(usage(format!(
                "--parameter {name} {list}: an empty name or value (accepted: NAME A,B,C)"
            )));
        }
        let mark = format!("{{{name}}}");
        if !all.iter().any(|command| command.has(&mark)) {
            return Err(usage(format!("--parameter {name}: there is no {mark} in the command")));
        }
        let of_values = |command: Command| match command.has(&mark) {
            true => values.iter().map(|value| command.with(&mark, name, value)).collect(),
            false => vec![command],
        };
        all = all.into_iter().flat_map(of_values).collect();
    }
    Ok(all)
}

impl Command {
    fn has(&self, mark: &str) -> bool {
        self.words.iter().any(|word| position(word.as_bytes(), mark.as_bytes()).is_some())
    }

    fn with(&self, mark: &str, name: &str, value: &str) -> Self {
        let words = self.words.iter().map(|word| replaced(word, mark, value)).collect();
        let values = self.values.iter().cloned().chain([format!("{name}={value}")]).collect();
        Self { words, name: self.name.replace(mark, value), values, is_line: self.is_line }
    }

    /// A text with this command's values in place of their `{NAME}`.
    pub(super) fn filled(&self, text: &str) -> String {
        let pairs = self.values.iter().filter_map(|pair| pair.split_once('='));
        pairs.fold(text.to_string(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    }
}

fn position(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

fn replaced(word: &OsStr, mark: &str, value: &str) -> OsString {
    let (mut rest, mut all) = (word.as_bytes(), Vec::new());
    while let Some(at) = position(rest, mark.as_bytes()) {
        all.extend(&rest[..at]);
        all.extend(value.as_bytes());
        rest = &rest[at + mark.len()..];
    }
    all.extend(rest);
    OsString::from_vec(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        split("--vs", text).unwrap()
    }

    fn of(commands: &[&str], parameters: &[&str]) -> Result<Vec<(String, String)>> {
        let parameters: Vec<String> = parameters.iter().map(|text| text.to_string()).collect();
        let all = expand(
            commands
                .iter()
                .map(|text| Command { words: words(text), ..Command::default() })
                .collect(),
            &parameters,
        )?;
        let line = |words: &[OsString]| {
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        Ok(all.iter().map(|of| (line(&of.words), of.values.join(" "))).collect())
    }

    #[test]
    fn each_value_is_a_command_of_its_own() {
        let found = of(&["make -j{n} x{n}{n}"], &["n", "1,4"]).unwrap();
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(found, [pair("make -j1 x11", "n=1"), pair("make -j4 x44", "n=4")]);
        let both = of(&["a {x} {y}", "b {y}", "c"], &["x", "1,2", "y", "3,4"]).unwrap();
        let lines: Vec<&str> = both.iter().map(|(line, _)| &**line).collect();
        assert_eq!(lines, ["a 1 3", "a 1 4", "a 2 3", "a 2 4", "b 3", "b 4", "c"]);
        assert_eq!((&*both[3].1, &*both[6].1), ("x=2 y=4", ""));
    }

    #[test]
    fn what_would_vary_nothing_is_refused() {
        for (parameters, told) in [
            (["n", "1,2"], "there is no {n} in the command"),
            (["x", "1,,2"], "accepted: NAME A,B,C"),
            (["", "1"], "accepted: NAME A,B,C"),
        ] {
            let error = of(&["a {x}"], &parameters).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        for bad in ["'", " "] {
            assert!(split("--vs", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_line_is_run_by_the_shell_or_split() {
        let text = |words: Vec<OsString>| -> Vec<String> {
            words.into_iter().map(|word| word.into_string().unwrap()).collect()
        };
        let of = |shell: &str, line: &str| {
            Shell::of(shell).and_then(|shell| shell.words("COMMAND", line)).map(text)
        };
        assert_eq!(of("sh", "a | b 'c'").unwrap(), ["sh", "-c", "a | b 'c'"]);
        assert_eq!(of("bash --norc", "a").unwrap(), ["bash", "--norc", "-c", "a"]);
        assert_eq!(of("none", "a -x 'b c'").unwrap(), ["a", "-x", "b c"]);
        for (shell, line) in [("sh", " "), ("none", ""), ("none", "'"), ("", "a")] {
            assert!(of(shell, line).is_err(), "{shell}: {line}");
        }
    }

    #[test]
    fn values_go_into_names_and_into_what_runs_around() {
        let typed =
            Command { words: words("make -j{n}"), name: "jobs {n}".into(), ..Command::default() };
        let all = expand(vec![typed], &["n".to_string(), "1,4".to_string()]).unwrap();
        assert_eq!(all.iter().map(|of| &*of.name).collect::<Vec<_>>(), ["jobs 1", "jobs 4"]);
        assert_eq!(all[1].filled("make clean{n} {m}"), "make clean4 {m}");
    }
}
