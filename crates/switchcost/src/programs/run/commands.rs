//! The commands of a series, from the command lines and the parameters that were typed.
//!
//! A parameter multiplies the commands that have it: `make -j{n}` with `--parameter n 1,4` becomes
//! `make -j1` and `make -j4`, which are labelled `n=1` and `n=4`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::base::failure::usage;

/// A command of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SeriesCommand {
    pub(super) words: Vec<OsString>,
    /// Name in reports; empty for a command that is labelled by its words.
    pub(super) name: String,
    /// True if the name is the line that was typed.
    pub(super) is_line: bool,
    /// `NAME=VALUE` of each parameter that the words had.
    pub(super) values: Vec<String>,
}

/// The way in which command lines are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineRunner {
    /// The line is split into words, and no shell runs it.
    Split,
    /// A shell with its own arguments runs the line.
    Shell(Vec<OsString>),
}

/// Value of --shell for no shell.
const NO_SHELL: &str = "none";

/// Shells that have `command -v`, which says whether a command exists (POSIX).
const POSIX_SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

impl LineRunner {
    /// Parses the value of --shell: a shell with its arguments, or `none`.
    pub(super) fn from_flag(value: &str) -> Result<Self> {
        match value.trim() {
            NO_SHELL => Ok(Self::Split),
            value => Ok(Self::Shell(split_words("--shell", value)?)),
        }
    }

    /// Returns the name of the shell; `None` without one.
    pub(super) fn shell_name(&self) -> Option<String> {
        match self {
            Self::Split => None,
            Self::Shell(words) => words.first().map(|name| name.to_string_lossy().into_owned()),
        }
    }

    /// Returns the words that run a line; an error names `flag`, which has given it.
    pub(super) fn words(&self, flag: &str, line: &str) -> Result<Vec<OsString>> {
        match self {
            Self::Split => split_words(flag, line),
            Self::Shell(_) if line.trim().is_empty() => Err(no_command(flag)),
            Self::Shell(shell) => Ok([&shell[..], &["-c".into(), line.into()]].concat()),
        }
    }

    /// Returns the command of the first line whose command the shell cannot find, without running
    /// any line.
    ///
    /// A command counts as found if the shell cannot be asked, or if its line does not begin with a
    /// plain word.
    pub(super) fn find_unknown_command(&self, lines: &[String]) -> Option<String> {
        let Self::Shell(shell) = self else { return None };
        let (program, arguments) = shell.split_first()?;
        let shell_name = Path::new(program).file_name()?;
        if !POSIX_SHELLS.iter().any(|posix| shell_name == *posix) {
            return None;
        }
        for line in lines {
            let Some(command) = line.split_whitespace().next() else { continue };
            if is_plain_word(command) && lacks_command(program, arguments, command) {
                return Some(command.to_string());
            }
        }
        None
    }
}

/// Returns whether a word means nothing but itself to a shell.
fn is_plain_word(word: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphanumeric() || "./_".contains(c);
    word.starts_with(is_start) && word.chars().all(|c| is_start(c) || "+-".contains(c))
}

/// Asks a shell whether it lacks a command.
fn lacks_command(shell: &OsStr, arguments: &[OsString], command: &str) -> bool {
    let status = Command::new(shell)
        .args(arguments)
        .args(["-c", &format!("command -v {command}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // A shell that was ended by a signal has not answered.
    status.is_ok_and(|status| status.code().is_some_and(|code| code != 0))
}

fn no_command(flag: &str) -> anyhow::Error {
    usage(format!("{flag}: no command (accepted: a command with its arguments, in one word)"))
}

/// Splits a command that `flag` has given in one argument.
pub(super) fn split_words(flag: &str, text: &str) -> Result<Vec<OsString>> {
    let words = shell_words::split(text).map_err(|error| {
        usage(format!("{flag} {text}: {error} (accepted: words as a shell splits them)"))
    })?;
    if words.is_empty() {
        return Err(no_command(flag));
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

/// Puts each value of each parameter into the commands that have it as `{NAME}`, in all
/// combinations. `parameters` has names and lists of values in turn.
pub(super) fn expand_parameters(
    typed: Vec<SeriesCommand>,
    parameters: &[String],
) -> Result<Vec<SeriesCommand>> {
    let mut commands = typed;
    for parameter in parameters.chunks(2) {
        let [name, list] = parameter else { continue };
        let values: Vec<&str> = list.split(',').collect();
        if name.is_empty() || values.iter().any(|value| value.is_empty()) {
            return Err(usage(format!(
                "--parameter {name} {list}: an empty name or value (accepted: NAME A,B,C)"
            )));
        }
        let placeholder = placeholder(name);
        if !commands.iter().any(|command| command.has(&placeholder)) {
            return Err(usage(format!(
                "--parameter {name}: there is no {placeholder} in the command"
            )));
        }
        let mut expanded = Vec::new();
        for command in commands {
            if command.has(&placeholder) {
                for value in &values {
                    expanded.push(command.with_value(name, value));
                }
            } else {
                expanded.push(command);
            }
        }
        commands = expanded;
    }
    Ok(commands)
}

fn placeholder(name: &str) -> String {
    format!("{{{name}}}")
}

impl SeriesCommand {
    fn has(&self, placeholder: &str) -> bool {
        let placeholder = placeholder.as_bytes();
        self.words.iter().any(|word| find_bytes(word.as_bytes(), placeholder).is_some())
    }

    /// Returns the command with a value in place of a parameter.
    fn with_value(&self, name: &str, value: &str) -> Self {
        let placeholder = placeholder(name);
        let mut command = self.clone();
        for word in &mut command.words {
            *word = replace_in_word(word, &placeholder, value);
        }
        command.name = self.name.replace(&placeholder, value);
        command.values.push(format!("{name}={value}"));
        command
    }

    /// Returns a text with the values of this command in place of the parameters.
    pub(super) fn fill_values(&self, text: &str) -> String {
        let mut filled = text.to_string();
        for pair in &self.values {
            if let Some((name, value)) = pair.split_once('=') {
                filled = filled.replace(&placeholder(name), value);
            }
        }
        filled
    }
}

fn find_bytes(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Replaces text in a word, which may be no UTF-8.
fn replace_in_word(word: &OsStr, from: &str, to: &str) -> OsString {
    let (mut rest, mut replaced) = (word.as_bytes(), Vec::new());
    while let Some(start) = find_bytes(rest, from.as_bytes()) {
        replaced.extend(&rest[..start]);
        replaced.extend(to.as_bytes());
        rest = &rest[start + from.len()..];
    }
    replaced.extend(rest);
    OsString::from_vec(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expands commands and returns each one's words and values.
    fn expand(commands: &[&str], parameters: &[&str]) -> Result<Vec<(String, String)>> {
        let mut typed = Vec::new();
        for text in commands {
            let words = split_words("--vs", text)?;
            typed.push(SeriesCommand { words, ..SeriesCommand::default() });
        }
        let parameters: Vec<String> = parameters.iter().map(|text| text.to_string()).collect();
        let mut expanded = Vec::new();
        for command in expand_parameters(typed, &parameters)? {
            let words = command.words.join(OsStr::new(" "));
            expanded.push((words.into_string().unwrap(), command.values.join(" ")));
        }
        Ok(expanded)
    }

    #[test]
    fn each_value_of_a_parameter_gives_a_command() {
        let one_parameter = expand(&["make -j{n} x{n}{n}"], &["n", "1,4"]).unwrap();
        let pair = |line: &str, values: &str| (line.to_string(), values.to_string());
        assert_eq!(one_parameter, [pair("make -j1 x11", "n=1"), pair("make -j4 x44", "n=4")]);
        let both = expand(&["a {x} {y}", "b {y}", "c"], &["x", "1,2", "y", "3,4"]).unwrap();
        let lines: Vec<&str> = both.iter().map(|(line, _)| &**line).collect();
        assert_eq!(lines, ["a 1 3", "a 1 4", "a 2 3", "a 2 4", "b 3", "b 4", "c"]);
        assert_eq!((&*both[3].1, &*both[6].1), ("x=2 y=4", ""));
    }

    #[test]
    fn a_parameter_that_changes_no_command_is_refused() {
        for (parameters, message) in [
            (["n", "1,2"], "there is no {n} in the command"),
            (["x", "1,,2"], "accepted: NAME A,B,C"),
            (["", "1"], "accepted: NAME A,B,C"),
        ] {
            let error = expand(&["a {x}"], &parameters).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn text_that_is_no_command_is_refused() {
        for bad in ["'", " "] {
            assert!(split_words("--vs", bad).is_err(), "{bad}");
        }
    }

    /// Returns the words by which `--shell SHELL` runs a line.
    fn run_line(shell: &str, line: &str) -> Result<Vec<String>> {
        let words = LineRunner::from_flag(shell)?.words("COMMAND", line)?;
        Ok(words.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    #[test]
    fn a_line_is_run_by_the_shell_or_split() {
        assert_eq!(run_line("sh", "a | b 'c'").unwrap(), ["sh", "-c", "a | b 'c'"]);
        assert_eq!(run_line("bash --norc", "a").unwrap(), ["bash", "--norc", "-c", "a"]);
        assert_eq!(run_line("none", "a -x 'b c'").unwrap(), ["a", "-x", "b c"]);
        for (shell, line) in [("sh", " "), ("none", ""), ("none", "'"), ("", "a")] {
            assert!(run_line(shell, line).is_err(), "{shell}: {line}");
        }
    }

    #[test]
    fn values_are_filled_into_names_and_hooks() {
        let words = split_words("--vs", "make -j{n}").unwrap();
        let typed = SeriesCommand { words, name: "jobs {n}".into(), ..SeriesCommand::default() };
        let commands =
            expand_parameters(vec![typed], &["n".to_string(), "1,4".to_string()]).unwrap();
        let names: Vec<&str> = commands.iter().map(|command| &*command.name).collect();
        assert_eq!(names, ["jobs 1", "jobs 4"]);
        assert_eq!(commands[1].fill_values("make clean{n} {m}"), "make clean4 {m}");
    }
}
