//! Hints in place of the parser's, for users of other programs (hyperfine, perf, fio): what their
//! options and commands are called here. And for options of a command that stand where this
//! program's are.
//!
//! ```text
//! switchcost ring --runtime=10    error: unexpected argument '--runtime' found
//!                                 --budget sets how long: --budget 10s
//! switchcost run gzip -k f        put one command with its options behind --, ...: switchcost run -- gzip -k f
//! ```

use std::env;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::base::failure::print_message;

/// Names that other programs have, and what there is here instead.
struct ForeignName {
    names: &'static [&'static str],
    hint: &'static str,
}

/// Options that other programs have, for all commands that have an option in their place.
struct ForeignOption {
    names: &'static [&'static str],
    /// The first of these that the command has gives the hint.
    here: &'static [OptionHint],
}

/// A long option or the name of an argument of a command here, and the hint that it gives.
struct OptionHint {
    option: &'static str,
    hint: &'static str,
}

const FOREIGN_OPTIONS: [ForeignOption; 10] = [
    ForeignOption {
        names: &["--time", "--runtime", "--timeout", "--quick", "--duration", "--seconds"],
        here: &[OptionHint { option: "budget", hint: "--budget sets how long: --budget 10s" }],
    },
    ForeignOption {
        names: &["--numjobs", "--nproc", "--processes"],
        here: &[OptionHint { option: "members", hint: "--members sets how many" }],
    },
    ForeignOption {
        names: &["--thread", "--threads"],
        here: &[OptionHint {
            option: "kind",
            hint: "--kind thread measures threads, --members sets how many",
        }],
    },
    ForeignOption {
        names: &["--pin", "--affinity", "--core"],
        here: &[OptionHint { option: "placement", hint: "--placement 1 keeps all on CPU 1" }],
    },
    ForeignOption {
        names: &["--value", "--print", "--format=simple"],
        here: &[OptionHint {
            option: "members",
            hint: "one figure a row: switchcost runs export last --format summary-csv",
        }],
    },
    ForeignOption {
        names: &["--json", "--csv"],
        here: &[OptionHint {
            option: "run",
            hint: "a stored run as JSON or CSV: switchcost runs export RUN --format json (csv)",
        }],
    },
    ForeignOption {
        names: &["--bs", "--size", "--block-size"],
        here: &[
            OptionHint { option: "array", hint: "--array sets the size" },
            OptionHint { option: "work", hint: "--work sets the size" },
        ],
    },
    ForeignOption {
        names: &["--output-format", "--format"],
        here: &[
            OptionHint { option: "csv", hint: "--json FILE and --csv FILE write the figures" },
            OptionHint { option: "json", hint: "--json FILE writes the figures" },
        ],
    },
    ForeignOption {
        names: &["--repeat", "--loops", "--iterations"],
        here: &[
            OptionHint { option: "rounds", hint: "--rounds sets how often" },
            OptionHint { option: "runs", hint: "--runs sets how often" },
        ],
    },
    ForeignOption {
        names: &["--all-cpus", "--system-wide"],
        here: &[OptionHint {
            option: "pid",
            hint: "`trace --all` and `top` see the whole machine",
        }],
    },
];

/// Hint for an option that stands behind a command: `run` takes a whole command line as one word.
const ONE_COMMAND: &str = "put one command with its options behind --, or in quotation marks:";

/// Commands of other programs.
const FOREIGN_COMMANDS: [ForeignName; 9] = [
    ForeignName {
        names: &[
            "signal",
            "signals",
            "syscall",
            "syscalls",
            "wakeup",
            "wakeups",
            "interrupts",
            "latency",
        ],
        hint: "parts of it: switchcost response --only signals, system-calls, wakeup or interrupts",
    },
    ForeignName { names: &["version"], hint: "switchcost --version" },
    ForeignName {
        names: &["numa", "placement", "cpus"],
        hint: "pairs of CPUs: switchcost ring --placement sweep",
    },
    ForeignName {
        names: &["thread", "threads"],
        hint: "threads instead of processes: switchcost ring --kind thread",
    },
    ForeignName {
        names: &["stat", "time", "bench", "exec"],
        hint: "what a command used: switchcost run -- CMD",
    },
    ForeignName {
        names: &["record", "sched", "script", "strace"],
        hint: "every switch: switchcost trace -- CMD, or --pid PID",
    },
    ForeignName {
        names: &["benchmark", "all", "start", "test"],
        hint: "what a switch costs here: switchcost measure",
    },
    ForeignName { names: &["diff", "cmp"], hint: "two runs: switchcost compare BASE NEW" },
    ForeignName {
        names: &["list", "ls", "show", "rm", "export"],
        hint: "stored runs: switchcost runs list, show, rm, export",
    },
];

/// Prints a note that a command has a new name.
pub(crate) fn note_renamed(old: &str, new: &str) {
    print_message(&format!(
        "note: `switchcost {old}` is `switchcost {new}` now; the old name goes with the next version"
    ));
}

/// Replaces the suggestion of a usage error, which goes by the spelling, where a better one is known.
/// `program` is all that may be typed.
pub(crate) fn with_hint(mut error: clap::Error, program: &Command) -> clap::Error {
    let mut typed = Vec::new();
    for word in env::args_os().skip(1) {
        typed.push(word.to_string_lossy().into_owned());
    }
    let hint = match error.kind() {
        ErrorKind::UnknownArgument => {
            argument_hint(&context_text(&error, ContextKind::InvalidArg), &typed, program)
        }
        ErrorKind::InvalidSubcommand => {
            let name = context_text(&error, ContextKind::InvalidSubcommand);
            find_hint(&FOREIGN_COMMANDS, &name).map(str::to_string)
        }
        ErrorKind::ValueValidation => {
            value_hint(&context_text(&error, ContextKind::InvalidArg), &typed)
        }
        _ => None,
    };
    if let Some(hint) = hint {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// Returns a text that an error carries; an empty one if it has none.
fn context_text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    }
}

fn find_hint(foreign: &[ForeignName], name: &str) -> Option<&'static str> {
    let found = foreign.iter().find(|foreign| foreign.names.contains(&name))?;
    Some(found.hint)
}

/// Returns the command that was typed, which may be a subcommand of another.
fn typed_command<'a>(program: &'a Command, typed: &[String]) -> &'a Command {
    let mut command = program;
    for word in typed {
        match command.find_subcommand(word) {
            Some(subcommand) => command = subcommand,
            None => break,
        }
    }
    command
}

/// Returns the hint for an option of another program, by what the command has in its place.
fn option_hint(name: &str, command: &Command) -> Option<&'static str> {
    let foreign = FOREIGN_OPTIONS.iter().find(|foreign| foreign.names.contains(&name))?;
    let hint = foreign.here.iter().find(|hint| has_argument(command, hint.option))?;
    Some(hint.hint)
}

fn has_argument(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(name) || arg.get_id() == name)
}

/// Returns the hint for a word where no word is taken: a command belongs behind `--`, a number is a
/// number of processes.
fn word_hint(word: &str, typed: &[String], program: &Command) -> Option<String> {
    let command = typed_command(program, typed);
    if word.starts_with('-')
        || command.get_name() == "run"
        || typed.iter().any(|typed| typed == "--")
    {
        return None;
    }
    if command.get_name() == "response" && word.starts_with(char::is_alphabetic) {
        return Some(format!("a part: switchcost response --only {word}"));
    }
    let takes_members = command.get_arguments().any(|arg| arg.get_id() == "members");
    if takes_members && word.parse::<u32>().is_ok() {
        return Some(format!("a number of processes: switchcost {} --members {word}", typed[0]));
    }
    let takes_command = command.get_arguments().any(clap::Arg::is_last_set);
    let start = typed.iter().position(|typed| typed == word)?;
    if !takes_command {
        return None;
    }
    let (before, line) = typed.split_at(start);
    Some(format!(
        "the command behind --: switchcost {} -- {}",
        shell_words::join(before),
        shell_words::join(line)
    ))
}

/// Returns the hint for an argument that is not known. `typed` is the whole command line.
fn argument_hint(argument: &str, typed: &[String], program: &Command) -> Option<String> {
    let name = argument.split(['=', ' ']).next().unwrap_or_default();
    if let Some(hint) = word_hint(name, typed, program) {
        return Some(hint);
    }
    let command = typed_command(program, typed);
    if command.get_name() == "clock" && name.starts_with('-') {
        let behind = typed.iter().skip_while(|word| *word != "clock").skip(1);
        let words = shell_words::join(behind);
        return Some(format!("the command is missing: switchcost clock overhead {words}"));
    }
    if let Some(hint) = option_hint(name, command) {
        return Some(hint.to_string());
    }
    if is_run(typed) { run_hint(name, &typed[1..]) } else { None }
}

fn is_run(typed: &[String]) -> bool {
    typed.first().is_some_and(|command| command == "run")
}

/// Returns the hint for an option behind a command of one word, which is taken for an option of
/// `run`. `words` is what was typed behind `run`.
fn run_hint(name: &str, words: &[String]) -> Option<String> {
    let mut before = words.iter().take_while(|word| !word.starts_with(name));
    let is_one_command = before.any(|word| !word.starts_with('-') && !word.contains(' '));
    if !is_one_command || words.iter().any(|word| word == "--") {
        return None;
    }
    let begins_with_option = words.first().is_some_and(|first| first.starts_with('-'));
    let line = if begins_with_option {
        "[OPTIONS] -- COMMAND ARGUMENT...".to_string()
    } else {
        format!("-- {}", shell_words::join(words))
    };
    Some(format!("{ONE_COMMAND} switchcost run {line}"))
}

/// Returns the hint for a value that `run` refuses and hyperfine takes: `-n` names a command there.
fn value_hint(argument: &str, typed: &[String]) -> Option<String> {
    if !is_run(typed) || !argument.starts_with("--runs") {
        return None;
    }
    Some(if typed.iter().any(|word| word == "-n") {
        "-n is the number of runs; --command-name sets a command's name".to_string()
    } else {
        format!("{ONE_COMMAND} switchcost run [OPTIONS] -- COMMAND ARGUMENT...")
    })
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    /// Returns the hint for an argument in a command line of a small program.
    fn hint(argument: &str, typed: &str) -> Option<String> {
        let program = Command::new("switchcost")
            .subcommand(Command::new("run").arg(Arg::new("runs").long("runs")))
            .subcommand(Command::new("ring").arg(Arg::new("budget").long("budget")))
            .subcommand(Command::new("report"));
        argument_hint(argument, &shell_words::split(typed).unwrap(), &program)
    }

    #[test]
    fn other_programs_options_have_a_pointer_and_commands_their_place() {
        assert!(hint("--runtime=60", "ring --runtime=60").unwrap().contains("--budget"));
        assert_eq!(hint("--runtime=60", "report --runtime=60"), None, "it has no budget");
        assert!(hint("--repeat", "run --repeat 3 x").unwrap().starts_with("--runs "));
        let placed = hint("-k", "run gzip -k 'a b'").unwrap();
        assert!(placed.ends_with("switchcost run -- gzip -k 'a b'"), "{placed}");
        let with_options = hint("-k", "run -n 3 gzip -k").unwrap();
        assert!(with_options.ends_with("run [OPTIONS] -- COMMAND ARGUMENT..."), "{with_options}");
        for typed in ["run -x a", "run 'a b' -x", "run a -x -- b", "ring a -x", "run"] {
            assert_eq!(hint("-x", typed), None, "{typed}");
        }
    }
}
