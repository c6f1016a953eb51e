//! What is typed by who knows other programs (hyperfine, perf, fio), and what there is here instead;
//! and options of a command that stand where this program's are.

use clap::error::{ContextKind, ContextValue, ErrorKind};

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

/// Of all commands.
const OF_ALL: [Instead; 6] = [
    (
        &["--time", "--runtime", "--timeout", "--quick", "--duration", "--seconds"],
        "--budget says how long: --budget 10s",
    ),
    (&["--numjobs", "--nproc", "--processes", "--thread", "--threads"], "--members says how many"),
    (&["--bs", "--size", "--block-size"], "--array of `cost` and --work of `ring` are sizes"),
    (&["--output-format", "--format"], "--json FILE and --csv FILE write the figures"),
    (&["--repeat", "--loops", "--iterations"], "--rounds says how often, of `run` --runs"),
    (&["--all-cpus", "--system-wide"], "`trace --all` and `top` see the whole machine"),
];

/// Commands of other programs.
const COMMANDS: [Instead; 5] = [
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

/// A usage error with what to type instead, where that is known better than from the spelling.
pub(crate) fn hinted(mut error: clap::Error) -> clap::Error {
    let typed = std::env::args_os().skip(1);
    let typed: Vec<String> = typed.map(|word| word.to_string_lossy().into_owned()).collect();
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let hint = match error.kind() {
        ErrorKind::UnknownArgument => of_argument(&text(ContextKind::InvalidArg), &typed),
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

/// What to type instead of an option that is not known, where `typed` is the whole command line.
fn of_argument(argument: &str, typed: &[String]) -> Option<String> {
    let name = argument.split(['=', ' ']).next().unwrap_or_default();
    let is_run = typed.first().is_some_and(|command| command == "run");
    let known = find(&OF_RUN, name).filter(|_| is_run).or_else(|| find(&OF_ALL, name));
    if let Some(words) = known {
        return Some(words.to_string());
    }
    // One command with its own options: a whole command line has blanks.
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
    Some(format!(
        "one command with its options stands behind --, or in quotation marks: switchcost run \
         {line}"
    ))
}

/// Where a value is refused that another program takes there.
fn of_value(argument: &str, typed: &[String]) -> Option<String> {
    let is_run = typed.first().is_some_and(|command| command == "run");
    let is_name = is_run && argument.starts_with("--runs");
    is_name.then(|| "-n is how many runs; what a command is called says --command-name".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_options_have_a_pointer_and_commands_their_place() {
        let of = |argument: &str, typed: &str| {
            of_argument(argument, &shell_words::split(typed).unwrap())
        };
        assert!(of("--parameter-scan", "run -P n 1 4 x").unwrap().contains("--parameter NAME"));
        assert!(of("-u", "run -u second x").unwrap().contains("nanoseconds"));
        assert_eq!(of("-u", "ring -u"), None, "of another command it is nothing");
        assert!(of("--runtime=60", "ring --runtime=60").unwrap().contains("--budget"));
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
