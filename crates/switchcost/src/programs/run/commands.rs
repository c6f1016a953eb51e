//! The commands of a series, from the command lines and the parameters that were typed.
//!
//! A parameter multiplies the commands that have it: `make -j{n}` with `--parameter n 1,4` becomes
//! `make -j1` and `make -j4`, which are labelled `n=1` and `n=4`. One that is in a hook or a name
//! multiplies all commands: a hook may check out `{rev}` before `make`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::parameters::{ParameterList, placeholder};
use crate::base::failure::usage;

/// The value of a parameter for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParameterValue {
    pub(super) name: String,
    pub(super) value: String,
    /// True if the words of the command have a place for it.
    pub(super) is_used: bool,
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// A command of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SeriesCommand {
    pub(super) words: Vec<OsString>,
    /// Line that the words come from once its values are in it; `None` if words were typed.
    pub(super) line: Option<TypedLine>,
    /// Name in reports; empty for a command that is labelled by its words.
    pub(super) name: String,
    /// True if the name is the line that was typed.
    pub(super) is_line: bool,
    /// Values of its parameters.
    pub(super) values: Vec<ParameterValue>,
}

/// A command line, and the option that has given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypedLine {
    pub(super) flag: &'static str,
    pub(super) text: String,
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

/// Value of --shell for [`DEFAULT_SHELL`].
const SHELL_BY_DEFAULT: &str = "default";

/// Shell that runs command lines.
pub(super) const DEFAULT_SHELL: &str = "sh";

/// Shells that have `command -v`, which says whether a command exists (POSIX).
const POSIX_SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

impl LineRunner {
    /// Parses the value of --shell: a shell with its arguments, or `none`.
    pub(super) fn from_flag(value: &str) -> Result<Self> {
        match value.trim() {
            NO_SHELL => Ok(Self::Split),
            SHELL_BY_DEFAULT => Ok(Self::Shell(vec![DEFAULT_SHELL.into()])),
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

    /// Returns the words that run a line; an error names `flag`, which has given it. A shell also
    /// runs an empty line, as in hyperfine.
    pub(super) fn words(&self, flag: &str, line: &str) -> Result<Vec<OsString>> {
        match self {
            Self::Split => split_words(flag, line),
            Self::Shell(shell) => Ok([&shell[..], &["-c".into(), line.into()]].concat()),
        }
    }

    /// Returns the command of the first line whose command the shell cannot find, without running
    /// any line.
    ///
    /// A command counts as found if the shell cannot be asked, if its line does not begin with a
    /// plain word, or if the line has several commands: `fd x || find .` may succeed without the
    /// first.
    pub(super) fn find_unknown_command(&self, lines: &[String]) -> Option<String> {
        let Self::Shell(shell) = self else { return None };
        let (program, arguments) = shell.split_first()?;
        let shell_name = Path::new(program).file_name()?;
        if !POSIX_SHELLS.iter().any(|posix| shell_name == *posix) {
            return None;
        }
        for line in lines {
            if line.contains(['|', '&', ';', '\n']) {
                continue;
            }
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

/// Returns the error of an option that has given nothing to run.
pub(super) fn no_command(flag: &str) -> anyhow::Error {
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
/// combinations; into all commands if one of the `texts` has it, which are names and hooks.
///
/// In the order of the result, the commands change first, then the first parameter, as in hyperfine.
pub(super) fn expand_parameters(
    typed: Vec<SeriesCommand>,
    parameters: &[ParameterList],
    texts: &[&str],
) -> Result<Vec<SeriesCommand>> {
    let mut commands = typed;
    for parameter in parameters {
        let placeholder = parameter.placeholder();
        let is_for_all = texts.iter().any(|text| text.contains(&placeholder));
        if !is_for_all && !commands.iter().any(|command| command.has(&placeholder)) {
            return Err(usage(format!(
                "{} {}: there is no {placeholder} in the command",
                parameter.flag, parameter.name
            )));
        }
        let mut expanded = Vec::new();
        for (number, value) in parameter.values.iter().enumerate() {
            for command in &commands {
                let is_used = command.has(&placeholder);
                if is_used || is_for_all {
                    let mut command = command.clone();
                    let (name, value) = (parameter.name.clone(), value.clone());
                    command.values.push(ParameterValue { name, value, is_used });
                    expanded.push(command);
                } else if number == 0 {
                    expanded.push(command.clone());
                }
            }
        }
        commands = expanded;
    }
    for command in &mut commands {
        command.fill_words();
    }
    Ok(commands)
}

impl SeriesCommand {
    fn has(&self, placeholder: &str) -> bool {
        if let Some(line) = &self.line {
            return line.text.contains(placeholder);
        }
        let placeholder = placeholder.as_bytes();
        self.words.iter().any(|word| find_bytes(word.as_bytes(), placeholder).is_some())
    }

    /// Puts the values into the line or the words, and into the name.
    fn fill_words(&mut self) {
        if let Some(line) = self.line.take() {
            let text = self.fill_values(&line.text);
            self.line = Some(TypedLine { text, ..line });
        }
        for word in &mut self.words {
            *word = OsString::from_vec(fill_bytes(word.as_bytes(), &self.values));
        }
        self.name = self.fill_values(&self.name);
    }

    /// Makes the words of a line, in which the values are already: a value may be several words, or
    /// none.
    pub(super) fn split_line(&mut self, runner: &LineRunner) -> Result<()> {
        if let Some(line) = &self.line {
            self.words = runner.words(line.flag, &line.text)?;
        }
        Ok(())
    }

    /// Returns a text with the values of this command in place of the parameters.
    pub(super) fn fill_values(&self, text: &str) -> String {
        // Whole characters are replaced by whole characters.
        String::from_utf8_lossy(&fill_bytes(text.as_bytes(), &self.values)).into_owned()
    }
}

fn find_bytes(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Puts values in the places of their parameters. A value is not searched for parameters.
fn fill_bytes(text: &[u8], values: &[ParameterValue]) -> Vec<u8> {
    let (mut rest, mut filled) = (text, Vec::new());
    while let Some((first, behind)) = rest.split_first() {
        let found = values.iter().find_map(|parameter| {
            let rest = rest.strip_prefix(placeholder(&parameter.name).as_bytes())?;
            Some((parameter, rest))
        });
        if let Some((parameter, behind)) = found {
            filled.extend(parameter.value.as_bytes());
            rest = behind;
        } else {
            filled.push(*first);
            rest = behind;
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expands commands and returns each one's words and values.
    fn expand(
        commands: &[&str],
        parameters: &[&str],
        texts: &[&str],
    ) -> Result<Vec<(String, String)>> {
        let mut typed = Vec::new();
        for text in commands {
            let words = split_words("--vs", text)?;
            typed.push(SeriesCommand { words, ..SeriesCommand::default() });
        }
        let parameters: Vec<String> = parameters.iter().map(|text| text.to_string()).collect();
        let parameters = ParameterList::from_lists(&parameters)?;
        let mut expanded = Vec::new();
        for command in expand_parameters(typed, &parameters, texts)? {
            let words = command.words.join(OsStr::new(" "));
            let values: Vec<String> = command.values.iter().map(ToString::to_string).collect();
            expanded.push((words.into_string().unwrap(), values.join(" ")));
        }
        Ok(expanded)
    }

    fn lines(expanded: &[(String, String)]) -> Vec<&str> {
        expanded.iter().map(|(line, _)| &**line).collect()
    }

    #[test]
    fn each_value_of_a_parameter_gives_a_command() {
        let one_parameter = expand(&["make -j{n} x{n}{n}"], &["n", "1,4"], &[]).unwrap();
        let pair = |line: &str, values: &str| (line.to_string(), values.to_string());
        assert_eq!(one_parameter, [pair("make -j1 x11", "n=1"), pair("make -j4 x44", "n=4")]);
        // The commands change first, then the first parameter, as in hyperfine.
        let both = expand(&["a {x} {y}", "b {y}", "c"], &["x", "1,2", "y", "3,4"], &[]).unwrap();
        assert_eq!(lines(&both), ["a 1 3", "b 3", "c", "a 2 3", "a 1 4", "b 4", "a 2 4"]);
        assert_eq!((&*both[3].1, &*both[2].1), ("x=2 y=3", ""));
    }

    #[test]
    fn a_parameter_of_a_hook_multiplies_all_commands() {
        let both = expand(&["make", "make {n}"], &["n", "1,2"], &["git checkout {n}"]).unwrap();
        assert_eq!(lines(&both), ["make", "make 1", "make", "make 2"]);
        assert_eq!([&*both[0].1, &both[2].1], ["n=1", "n=2"]);
    }

    #[test]
    fn a_value_is_not_searched_for_parameters() {
        let both = expand(&["echo {foo} {bar}"], &["foo", "a,{bar}", "bar", "z"], &[]).unwrap();
        assert_eq!(lines(&both), ["echo a z", "echo {bar} z"]);
    }

    #[test]
    fn a_parameter_that_changes_no_command_is_refused() {
        let error = expand(&["a {x}"], &["n", "1,2"], &["{m}"]).unwrap_err().to_string();
        assert!(error.contains("there is no {n} in the command"), "{error}");
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
        assert_eq!(run_line("default", "a").unwrap(), ["sh", "-c", "a"]);
        assert_eq!(run_line("none", "a -x 'b c'").unwrap(), ["a", "-x", "b c"]);
        assert_eq!(run_line("sh", "").unwrap(), ["sh", "-c", ""]);
        for (shell, line) in [("none", " "), ("none", ""), ("none", "'"), ("", "a")] {
            assert!(run_line(shell, line).is_err(), "{shell}: {line}");
        }
    }

    #[test]
    fn values_are_in_a_line_before_it_is_split() {
        let text = "{tool} {flag} x".to_string();
        let typed = SeriesCommand {
            line: Some(TypedLine { flag: "COMMAND", text }),
            ..SeriesCommand::default()
        };
        let lists = ["tool", "a 1,'b c'", "flag", ",-O2"].map(str::to_string);
        let lists = ParameterList::from_lists(&lists).unwrap();
        let mut found = Vec::new();
        for mut command in expand_parameters(vec![typed], &lists, &[]).unwrap() {
            assert!(command.values.iter().all(|value| value.is_used));
            command.split_line(&LineRunner::Split).unwrap();
            found.push(command.words.join(OsStr::new("|")).into_string().unwrap());
        }
        assert_eq!(found, ["a|1|x", "b c|x", "a|1|-O2|x", "b c|-O2|x"]);
    }

    #[test]
    fn lines_with_several_commands_are_not_looked_up() {
        let runner = LineRunner::from_flag("sh").unwrap();
        let unknown = |line: &str| runner.find_unknown_command(&[line.to_string()]);
        assert_eq!(unknown("no-such-program x").as_deref(), Some("no-such-program"));
        let ends = ["|| true", "| cat", "& wait", "; true", "\ntrue", "&& true"];
        for end in ends {
            assert_eq!(unknown(&format!("no-such-program {end}")), None, "{end}");
        }
    }

    #[test]
    fn values_are_filled_into_names_and_hooks() {
        let words = split_words("--vs", "make -j{n}").unwrap();
        let typed = SeriesCommand { words, name: "jobs {n}".into(), ..SeriesCommand::default() };
        let lists = ParameterList::from_lists(&["n".into(), "1,4".into()]).unwrap();
        let commands = expand_parameters(vec![typed], &lists, &[]).unwrap();
        let names: Vec<&str> = commands.iter().map(|command| &*command.name).collect();
        assert_eq!(names, ["jobs 1", "jobs 4"]);
        assert_eq!(commands[1].fill_values("make clean{n} {m} é"), "make clean4 {m} é");
    }
}
