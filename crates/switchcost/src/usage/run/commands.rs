//! The commands of a series, from what was typed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use anyhow::Result;

use crate::base::failure::usage;

/// A command: its words, and the values by which it differs from others that were typed as the
/// same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<OsString>,
    /// `NAME=VALUE` of each parameter that is in its words.
    pub(super) values: Vec<String>,
}

/// A command typed in one word.
pub(super) fn split(text: &str) -> Result<Vec<OsString>> {
    let words = shell_words::split(text).map_err(|error| {
        usage(format!("--vs {text}: {error} (accepted: words as a shell splits them)"))
    })?;
    match words.is_empty() {
        true => {
            Err(usage("--vs: no command (accepted: a command with its arguments, in one word)"))
        }
        false => Ok(words.into_iter().map(OsString::from).collect()),
    }
}

/// Each command once for each value of each parameter that is in it, as `{NAME}`. `typed` are names
/// and lists of values in turn.
pub(super) fn expand(typed: Vec<Vec<OsString>>, parameters: &[String]) -> Result<Vec<Command>> {
    let plain = |words| Command { words, values: Vec::new() };
    let mut all: Vec<Command> = typed.into_iter().map(plain).collect();
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
        Self { words, values }
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
        split(text).unwrap()
    }

    fn of(commands: &[&str], parameters: &[&str]) -> Result<Vec<(String, String)>> {
        let parameters: Vec<String> = parameters.iter().map(|text| text.to_string()).collect();
        let all = expand(commands.iter().map(|text| words(text)).collect(), &parameters)?;
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
            assert!(split(bad).is_err(), "{bad}");
        }
    }
}
