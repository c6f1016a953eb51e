//! `switchcost help`, the help of the program by groups of commands, and `--help` in one screen a
//! command: each option in a line or two; `help COMMAND OPTION` has all that is known of it.

use std::io::{self, Write};
use std::process::ExitCode;

use anstream::AutoStream;
use anyhow::{Context, Result};
use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command, ValueEnum};
use clap_complete::Shell;

use super::schema;
use crate::base::failure::usage;
use crate::base::lines::{self, Layout};
use crate::report::output::{ignore_broken_pipe, print, print_text};

/// Commands by what they are for, in the order in which they are listed.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Measure this machine", &["measure", "ring", "cost", "response", "explain", "clock"]),
    ("Programs", &["run", "trace", "top", "sensitivity", "profile"]),
    ("Compare and show", &["compare", "trend", "report", "runs"]),
    ("More", &["fleet", "classic", "help"]),
];

/// The commands of all groups.
#[cfg(test)]
pub(super) fn grouped() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Width of the column of names, with its margins.
const NAMES: usize = 15;

/// The program with its commands listed in groups.
pub(super) fn in_groups(command: Command) -> Command {
    let margin = " ".repeat(NAMES);
    let options =
        textwrap::Options::new(Layout::terminal().prose.max(2 * NAMES)).subsequent_indent(&margin);
    let mut list = String::new();
    for (heading, names) in GROUPS {
        // A build may leave commands out.
        let commands: Vec<&Command> =
            names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if commands.is_empty() {
            continue;
        }
        list += &format!("\n{heading}:\n");
        for listed in commands {
            let name = listed.get_name();
            let about = listed.get_about().map(ToString::to_string).unwrap_or_default();
            let about = about.lines().next().unwrap_or_default();
            let line = format!("  {name:<width$}{about}", width = NAMES - 2);
            list += &textwrap::fill(&line, &options);
            list.push('\n');
        }
    }
    // Braces are the template's.
    let list = list.replace('{', "(").replace('}', ")");
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}\n\n\
         Without a command it measures for five seconds.{{after-help}}"
    ))
}

/// The command of `classic` that is none of the old programs.
pub(super) const EXPERIMENT: &str = "experiment";

/// The same with `--help` as `-h` prints it, of all options and with the examples.
pub(super) fn complete(command: Command) -> Command {
    if command.is_disable_help_flag_set() {
        return with_long_texts(command);
    }
    // The old programs' help is their own, short or long.
    if command.get_name() == "classic" {
        return with_help_flag(command, ArgAction::Help).mut_subcommands(|below| {
            match below.get_name() == EXPERIMENT {
                true => complete(below),
                false => with_help_flag(below, ArgAction::Help),
            }
        });
    }
    let command = with_help_flag(command, ArgAction::HelpShort);
    let command = command.mut_args(|arg| arg.hide_short_help(false).long_help(Resettable::Reset));
    with_long_texts(command).mut_subcommands(complete)
}

/// The command with its long text and its examples in the short help.
fn with_long_texts(command: Command) -> Command {
    let command = match command.get_after_long_help().cloned() {
        Some(examples) => command.after_help(examples),
        None => command,
    };
    match command.get_long_about().cloned() {
        Some(about) => command.about(about),
        None => command,
    }
}

/// The command with a flag for its help of our own: the parser's own goes by how it was typed.
fn with_help_flag(command: Command, action: ArgAction) -> Command {
    let help = Arg::new("help").short('h').long("help").help("Print help").action(action);
    command.disable_help_flag(true).arg(help)
}

/// The same for the manual: an option that `ring` has, too, is told on its page, and named on the
/// others.
fn for_manual(program: Command) -> Command {
    let Some(ring) = program.find_subcommand("ring").cloned() else { return complete(program) };
    complete(program).mut_subcommands(|page| with_options_of(&ring, page))
}

/// A page and those below it, without the options that it shares with `ring`.
fn with_options_of(ring: &Command, page: Command) -> Command {
    let page = page.mut_subcommands(|below| with_options_of(ring, below));
    if page.get_name() == ring.get_name() {
        return page;
    }
    let is_shared = |arg: &Arg| {
        let is_same = |of: &Arg| of.get_id() == arg.get_id() && is_alike(of, arg);
        !arg.is_hide_set() && ring.get_arguments().any(is_same)
    };
    let shared = page.get_arguments().filter(|arg| is_shared(arg));
    let names: Vec<String> =
        shared.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
    if names.is_empty() {
        return page;
    }
    let page = page.mut_args(|arg| if is_shared(&arg) { arg.hide(true) } else { arg });
    let examples = page.get_after_help().map(ToString::to_string).unwrap_or_default();
    page.after_help(format!("As in switchcost-ring(1): {}.\n\n{examples}", names.join(", ")))
}

/// Whether two options are told in the same words.
fn is_alike(one: &Arg, other: &Arg) -> bool {
    let words = |arg: &Arg| arg.get_help().map(ToString::to_string);
    words(one) == words(other)
}

/// Whether the whole of a command's help was asked for.
pub(super) fn is_complete_wanted(words: &[std::ffi::OsString]) -> bool {
    let own = words.iter().skip(1).take_while(|word| *word != "--");
    own.into_iter().any(|word| word == "--help")
}

/// Prints what is known of a topic: a command, a command and one of its options, `man`, `schema`
/// with or without a name, or `completions` with a shell. `program` makes all that may be typed.
pub(super) fn run(topic: &[String], program: fn() -> Command) -> Result<ExitCode> {
    let words: Vec<&str> = topic.iter().map(String::as_str).collect();
    match &words[..] {
        ["man"] => manual(program()),
        ["man", more, ..] => Err(usage(format!("help man takes nothing more: '{more}'"))),
        ["completions"] => Err(usage(format!("help completions: for which shell? ({})", shells()))),
        ["schema"] => schema::run(None),
        ["schema", name] => schema::run(Some(name)),
        ["completions", shell] => match Shell::from_str(shell, true) {
            Ok(shell) => completions(shell, program()),
            Err(_) => Err(usage(format!(
                "help completions '{shell}': no such shell (accepted: {})",
                shells()
            ))),
        },
        words => print_command(words, program),
    }
}

/// The shells that have completions.
fn shells() -> String {
    let all = Shell::value_variants().iter().map(ToString::to_string);
    all.collect::<Vec<_>>().join(", ")
}

/// Prints the help of the command that these words lead to, or of its option.
fn print_command(words: &[&str], program: fn() -> Command) -> Result<ExitCode> {
    let (program, mut parsed) = (program(), program());
    // Names of values are known of what is built; what is built takes no other help.
    parsed.build();
    let (mut command, mut parsed) = (&program, &parsed);
    for (at, word) in words.iter().enumerate() {
        let below = command.find_subcommand(word).zip(parsed.find_subcommand(word));
        if let Some(below) = below {
            (command, parsed) = below;
            continue;
        }
        let name = word.trim_start_matches('-');
        let is_last = at + 1 == words.len();
        let option = parsed.get_arguments().find(|arg| is_last && has_name(arg, name));
        let path = words[..at].join(" ");
        return match option {
            Some(option) => print_option(option),
            None if at == 0 => Err(usage(format!(
                "help '{word}': no such command (accepted: a command, a command and one of its \
                 options, man, schema, completions; see `switchcost --help`)"
            ))),
            None => Err(usage(format!(
                "help {path} '{word}': `switchcost {path}` has no such option (see `switchcost \
                 {path} --help`)"
            ))),
        };
    }
    let mut command = match words {
        [] => in_groups(complete(command.clone())),
        words => complete(command.clone()).bin_name(format!("switchcost {}", words.join(" "))),
    };
    command = command.term_width(Layout::terminal().prose);
    let text = lines::fitted(&command.render_help().ansi().to_string(), Layout::terminal().prose);
    let written = AutoStream::auto(io::stdout()).write_all(text.as_bytes());
    ignore_broken_pipe(written).context("cannot print the help")?;
    Ok(ExitCode::SUCCESS)
}

fn has_name(arg: &Arg, name: &str) -> bool {
    let mut letters = name.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    let long = arg.get_long_and_visible_aliases().unwrap_or_default();
    let is_short = letter.is_some() && arg.get_short() == letter;
    let is_positional = arg.is_positional() && arg.get_id().as_str().eq_ignore_ascii_case(name);
    long.contains(&name) || is_short || is_positional
}

/// Prints all that is known of an option.
fn print_option(option: &Arg) -> Result<ExitCode> {
    let text = option.get_long_help().or(option.get_help()).map(ToString::to_string);
    let defaults = option.get_default_values().iter().map(|of| of.to_string_lossy());
    let defaults = defaults.collect::<Vec<_>>().join(",");
    let default = match defaults.is_empty() || !option.get_action().takes_values() {
        true => String::new(),
        false => format!("\n\nDefault: {defaults}"),
    };
    let text = format!("{option}\n\n{}{default}\n", text.unwrap_or_default());
    print_text(&text).context("cannot print the help")?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the completion script of a shell.
pub(super) fn completions(shell: Shell, mut program: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "switchcost", &mut script);
    print(&script).context("cannot print the script")?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual: the program's page and one for each command.
pub(super) fn manual(program: Command) -> Result<ExitCode> {
    let mut text = Vec::new();
    for command in pages(for_manual(program)) {
        write_page(command, &mut text).context("cannot write the manual page")?;
    }
    print(&text).context("cannot print the manual page")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page of the manual: its commands in a line each, and a synopsis without the options,
/// which follow.
fn write_page(command: Command, to: &mut Vec<u8>) -> io::Result<()> {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let (name, rest) = about.split_once("\n\n").unwrap_or((&about, &about));
    let command = command.about(name.to_string()).long_about(rest.to_string());
    let mut command = command.mut_subcommands(|below| {
        let about = below.get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.lines().next().unwrap_or_default().to_string();
        below.about(first).long_about(Resettable::Reset)
    });
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace('-', "\\-");
    let has_options = command.get_arguments().any(|arg| !arg.is_hide_set());
    let has_commands = command.get_subcommands().any(|below| !below.is_hide_set());
    let page = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    writeln!(text, ".SH SYNOPSIS\n{usage}")?;
    page.render_description_section(&mut text)?;
    if has_options {
        page.render_options_section(&mut text)?;
    }
    if has_commands {
        page.render_subcommands_section(&mut text)?;
    }
    page.render_extra_section(&mut text)?;
    // Each section defines the apostrophe anew: once is enough.
    let mut definitions = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let is_definition = line.starts_with(".ie ") || line.starts_with(".el ");
        if is_definition && definitions.contains(&line.to_string()) {
            continue;
        }
        if is_definition {
            definitions.push(line.to_string());
        }
        writeln!(to, "{line}")?;
    }
    Ok(())
}

/// The program's page, then one for each subcommand that is not hidden, and for each of its own.
fn pages(mut command: Command) -> Vec<Command> {
    command.build();
    with_subcommands(command)
}

fn with_subcommands(command: Command) -> Vec<Command> {
    let name = command.get_name().to_string();
    let visible = |c: &&Command| !c.is_hide_set() && c.get_name() != "help";
    let named = |c: &Command| {
        let page = c.clone().name(format!("{name}-{}", c.get_name()));
        // These are in the program's page.
        page.mut_args(|arg| match arg.get_id().as_str() {
            "help" | "version" | "color" => arg.hide(true),
            _ => arg,
        })
    };
    // The old programs have no options: a line of each is on their common page.
    let is_of_old_programs = name.ends_with("-classic");
    let has_page = |below: &&Command| {
        visible(below) && (!is_of_old_programs || below.get_name() == EXPERIMENT)
    };
    let below = command.get_subcommands().filter(has_page);
    let below: Vec<_> = below.map(named).collect();
    std::iter::once(command).chain(below.into_iter().flat_map(with_subcommands)).collect()
}
