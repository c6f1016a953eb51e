//! What is typed by who knows other programs (hyperfine, perf, fio), and what there is here instead;
//! and options of a command that stand where this program's are.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::base::failure::print_message;

/// What an option that is another's here is called, and what does here what it does there.
type Instead = (&'static [&'static str], &'static str);

/// Of `run`: options of hyperfine.
const OF_RUN: [Instead; 9] = [
    (
        &["--parameter-scan", "-P", "--parameter-step-size", "-D"],
        "its values are listed: --parameter NAME 1,2,4",
    ),
    (&["--conclude", "-C"], "--prepare runs before each run, --cleanup after the last"),
    (&["--reference"], "ratios are to the first command: give it first"),
    (&["--export-asciidoc", "--export-orgmode"], "--markdown, --json and --csv write the figures"),
    (&["--output"], "--show-output shows what the commands print in all runs"),
    (&["--input"], "all runs have this program's standard input: switchcost run ... < FILE"),
    (&["--style"], "--color chooses the colours, --quiet leaves progress and table out"),
    (&["--sort"], "rows are in the order of the commands, the first line has the ranking"),
    (&["--time-unit", "-u"], "the unit follows from the times; --json and --csv have nanoseconds"),
];

/// What an option that is another's does here, by the option that a command has for it.
type ByOption = (&'static [&'static str], &'static [(&'static str, &'static str)]);

/// Of all commands: the first of these options that the command has.
const OF_ALL: [ByOption; 10] = [
    (
        &["--time", "--runtime", "--timeout", "--quick", "--duration", "--seconds"],
        &[("budget", "--budget sets how long: --budget 10s")],
    ),
    (&["--numjobs", "--nproc", "--processes"], &[("members", "--members sets how many")]),
    (
        &["--thread", "--threads"],
        &[("kind", "--kind thread measures threads, --members sets how many")],
    ),
    (&["--pin", "--affinity", "--core"], &[("placement", "--placement 1 keeps all on CPU 1")]),
    (
        &["--value", "--print", "--format=simple"],
        &[("members", "one figure a row: switchcost runs export last --format summary-csv")],
    ),
    (
        &["--json", "--csv"],
        &[("run", "a stored run as JSON or CSV: switchcost runs export RUN --format json (csv)")],
    ),
    (
        &["--bs", "--size", "--block-size"],
        &[("array", "--array sets the size"), ("work", "--work sets the size")],
    ),
    (
        &["--output-format", "--format"],
        &[
            ("csv", "--json FILE and --csv FILE write the figures"),
            ("json", "--json FILE writes the figures"),
        ],
    ),
    (
        &["--repeat", "--loops", "--iterations"],
        &[("rounds", "--rounds sets how often"), ("runs", "--runs sets how often")],
    ),
    (&["--all-cpus", "--system-wide"], &[("pid", "`trace --all` and `top` see the whole machine")]),
];

/// One command with its own options: a whole command line has blanks.
const STANDS: &str = "put one command with its options behind --, or in quotation marks:";

/// Commands of other programs.
const COMMANDS: [Instead; 9] = [
    (
        &["signal", "signals", "syscall", "syscalls", "wakeup", "wakeups", "interrupts", "latency"],
        "parts of it: switchcost response --only signals, system-calls, wakeup or interrupts",
    ),
    (&["version"], "switchcost --version"),
    (&["numa", "placement", "cpus"], "pairs of CPUs: switchcost ring --placement sweep"),
    (&["thread", "threads"], "threads instead of processes: switchcost ring --kind thread"),
    (&["stat", "time", "bench", "exec"], "what a command used: switchcost run -- CMD"),
    (
        &["record", "sched", "script", "strace"],
        "every switch: switchcost trace -- CMD, or --pid PID",
    ),
    (&["benchmark", "all", "start", "test"], "what a switch costs here: switchcost measure"),
    (&["diff", "cmp"], "two runs: switchcost compare BASE NEW"),
    (
        &["list", "ls", "show", "rm", "export"],
        "stored runs: switchcost runs list, show, rm, export",
    ),
];

/// Prints a note that a command has a new name.
pub(crate) fn say_renamed(old: &str, new: &str) {
    print_message(&format!(
        "note: `switchcost {old}` is `switchcost {new}` now; the old name goes with the next version"
    ));
}

/// A usage error with what to type instead, where that is known better than from the spelling.
/// `program` is all that may be typed.
pub(crate) fn hinted(mut error: clap::Error, program: &Command) -> clap::Error {
    let typed = std::env::args_os().skip(1);
    let typed: Vec<String> = typed.map(|word| word.to_string_lossy().into_owned()).collect();
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let hint = match error.kind() {
        ErrorKind::UnknownArgument => of_argument(&text(ContextKind::InvalidArg), &typed, program),
        ErrorKind::InvalidSubcommand => {
            find(&COMMANDS, &text(ContextKind::InvalidSubcommand)).map(str::to_string)
        }
        ErrorKind::ValueValidation => of_value(&text(ContextKind::InvalidArg), &typed),
        _ => None,
    };
    if let Some(hint) = hint {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

fn find(all: &[Instead], name: &str) -> Option<&'static str> {
    all.iter().find(|(names, _)| names.contains(&name)).map(|(_, words)| *words)
}

/// The command that is typed: one of those below another, too.
fn typed_command<'a>(program: &'a Command, typed: &[String]) -> &'a Command {
    let below = |at: Result<&'a Command, &'a Command>, word: &String| {
        at.and_then(|at| at.find_subcommand(word).ok_or(at))
    };
    typed.iter().fold(Ok(program), below).unwrap_or_else(|last| last)
}

/// What a command has for an option that is another's.
fn by_option(name: &str, command: &Command) -> Option<&'static str> {
    let (_, here) = OF_ALL.iter().find(|(names, _)| names.contains(&name))?;
    let has = |option: &str| {
        command.get_arguments().any(|of| of.get_long() == Some(option) || of.get_id() == option)
    };
    here.iter().find(|(option, _)| has(option)).map(|(_, words)| *words)
}

/// What to type instead of a word where none is taken: a command belongs behind `--`, a number is a
/// number of processes.
fn of_word(word: &str, typed: &[String], program: &Command) -> Option<String> {
    let command = typed_command(program, typed);
    if word.starts_with('-') || command.get_name() == "run" || typed.iter().any(|of| of == "--") {
        return None;
    }
    let has = |id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    if command.get_name() == "response" && word.starts_with(char::is_alphabetic) {
        return Some(format!("a part: switchcost response --only {word}"));
    }
    if word.parse::<u32>().is_ok() && has("members") {
        return Some(format!("a number of processes: switchcost {} --members {word}", typed[0]));
    }
    command.get_arguments().find(|arg| arg.is_last_set())?;
    let at = typed.iter().position(|of| of == word)?;
    let (before, line) = typed.split_at(at);
    Some(format!(
        "the command behind --: switchcost {} -- {}",
        shell_words::join(before),
        shell_words::join(line)
    ))
}

/// What to type instead of an option that is not known, where `typed` is the whole command line.
fn of_argument(argument: &str, typed: &[String], program: &Command) -> Option<String> {
    let name = argument.split(['=', ' ']).next().unwrap_or_default();
    let is_run = typed.first().is_some_and(|command| command == "run");
    let known = find(&OF_RUN, name).filter(|_| is_run);
    if let Some(hint) = of_word(name, typed, program) {
        return Some(hint);
    }
    let command = typed_command(program, typed);
    if command.get_name() == "clock" && name.starts_with('-') {
        let behind = typed.iter().skip_while(|word| *word != "clock").skip(1);
        let words = shell_words::join(behind);
        return Some(format!("the command is missing: switchcost clock overhead {words}"));
    }
    let known = known.or_else(|| by_option(name, command));
    if let Some(words) = known {
        return Some(words.to_string());
    }
    let words = typed.get(1..).filter(|_| is_run)?;
    let before = words.iter().take_while(|word| !word.starts_with(name));
    let is_one = before.clone().any(|word| !word.starts_with('-') && !word.contains(' '));
    if !is_one || words.iter().any(|word| word == "--") {
        return None;
    }
    let line = match words.first().filter(|first| !first.starts_with('-')) {
        Some(_) => format!("-- {}", shell_words::join(words)),
        None => "[OPTIONS] -- COMMAND ARGUMENT...".to_string(),
    };
    Some(format!("{STANDS} switchcost run {line}"))
}

/// Where a value is refused that another program takes there.
fn of_value(argument: &str, typed: &[String]) -> Option<String> {
    let is_run = typed.first().is_some_and(|command| command == "run");
    if !is_run || !argument.starts_with("--runs") {
        return None;
    }
    Some(match typed.iter().any(|word| word == "-n") {
        true => "-n is the number of runs; --command-name sets a command's name".to_string(),
        false => format!("{STANDS} switchcost run [OPTIONS] -- COMMAND ARGUMENT..."),
    })
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn other_programs_options_have_a_pointer_and_commands_their_place() {
        let program = Command::new("switchcost")
            .subcommand(Command::new("run").arg(Arg::new("runs").long("runs")))
            .subcommand(Command::new("ring").arg(Arg::new("budget").long("budget")))
            .subcommand(Command::new("report"));
        let of = |argument: &str, typed: &str| {
            of_argument(argument, &shell_words::split(typed).unwrap(), &program)
        };
        assert!(of("--parameter-scan", "run -P n 1 4 x").unwrap().contains("--parameter NAME"));
        assert!(of("-u", "run -u second x").unwrap().contains("nanoseconds"));
        assert_eq!(of("-u", "ring -u"), None, "of another command it is nothing");
        assert!(of("--runtime=60", "ring --runtime=60").unwrap().contains("--budget"));
        assert_eq!(of("--runtime=60", "report --runtime=60"), None, "it has no budget");
        assert!(of("--repeat", "run --repeat 3 x").unwrap().starts_with("--runs "));
        let placed = of("-k", "run gzip -k 'a b'").unwrap();
        assert!(placed.ends_with("switchcost run -- gzip -k 'a b'"), "{placed}");
        assert!(
            of("-k", "run -n 3 gzip -k").unwrap().ends_with("run [OPTIONS] -- COMMAND ARGUMENT...")
        );
        for typed in ["run -x a", "run 'a b' -x", "run a -x -- b", "ring a -x", "run"] {
            assert_eq!(of("-x", typed), None, "{typed}");
        }
    }
}
