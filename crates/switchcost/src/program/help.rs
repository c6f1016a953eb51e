//! `switchcost help`, and what `--help` prints: the commands of the program in groups, each command
//! in one screen, each option in a line or two. `help COMMAND OPTION` has all that is known of an
//! option, `help man` the manual pages.
//!
//! Texts of commands and options are declared once, in `cli.rs` and the arguments of each command.
//! Functions here take the parser that clap built of them and return it with other texts shown:
//!
//! | typed | function | shows of an option |
//! |---|---|---|
//! | `ring -h` | `short_help::with_short_help` | its first line, unless few need it |
//! | `ring --help` | [`complete`] | its first line |
//! | `help ring --link` | [`print_option`] | all |
//! | `help man` | [`manual`] | its first line, if it is not on the page of `ring` |

use std::ffi::OsString;
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

/// Commands of one purpose, under their heading.
struct CommandGroup {
    heading: &'static str,
    names: &'static [&'static str],
}

/// Commands in the order in which they are listed.
const GROUPS: [CommandGroup; 4] = [
    CommandGroup {
        heading: "Measure this machine",
        names: &["measure", "ring", "cost", "response", "explain", "clock"],
    },
    CommandGroup { heading: "Programs", names: &["run", "trace", "top", "sensitivity", "profile"] },
    CommandGroup { heading: "Compare and show", names: &["compare", "trend", "report", "runs"] },
    CommandGroup { heading: "More", names: &["fleet", "classic", "help"] },
];

/// Returns the commands of all groups.
#[cfg(test)]
pub(super) fn grouped() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|group| group.names).copied()
}

/// Width of the column of names, with its margins.
const NAMES_WIDTH: usize = 15;

/// Returns the program, whose help lists its commands in groups.
pub(super) fn in_groups(program: Command) -> Command {
    let mut list = String::new();
    for group in &GROUPS {
        let mut lines = String::new();
        for name in group.names {
            // A build may leave commands out.
            if let Some(command) = program.find_subcommand(name) {
                lines += &command_line(command);
            }
        }
        if !lines.is_empty() {
            list += &format!("\n{}:\n{lines}", group.heading);
        }
    }
    // Braces would be tags of the template.
    let list = list.replace('{', "(").replace('}', ")");
    program.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}\n\n\
         Without a command it measures for five seconds.{{after-help}}"
    ))
}

/// Writes the name of a command and the first line of its text, broken to fit the terminal.
fn command_line(command: &Command) -> String {
    let columns = Layout::terminal().prose.max(2 * NAMES_WIDTH);
    let margin = " ".repeat(NAMES_WIDTH);
    let options = textwrap::Options::new(columns).subsequent_indent(&margin);
    let about = about_text(command);
    let first = about.lines().next().unwrap_or_default();
    let line = format!("  {:<width$}{first}", command.get_name(), width = NAMES_WIDTH - 2);
    textwrap::fill(&line, &options) + "\n"
}

fn about_text(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// The only command of `classic` that is none of the old programs.
pub(super) const EXPERIMENT: &str = "experiment";

/// Returns the command whose `--help` is in the form of `-h`, but with all options, the long text
/// and the examples.
pub(super) fn complete(command: Command) -> Command {
    if command.is_disable_help_flag_set() {
        return with_long_texts(command);
    }
    // The old programs' help is their own, short or long.
    if command.get_name() == "classic" {
        return with_help_flag(command, ArgAction::Help).mut_subcommands(complete_classic);
    }
    let command = with_help_flag(command, ArgAction::HelpShort);
    let command = command.mut_args(|arg| arg.hide_short_help(false).long_help(Resettable::Reset));
    with_long_texts(command).mut_subcommands(complete)
}

fn complete_classic(subcommand: Command) -> Command {
    if subcommand.get_name() == EXPERIMENT {
        complete(subcommand)
    } else {
        with_help_flag(subcommand, ArgAction::Help)
    }
}

/// Returns the command with its long text and its examples in the short help.
fn with_long_texts(command: Command) -> Command {
    let (examples, about) =
        (command.get_after_long_help().cloned(), command.get_long_about().cloned());
    let command = match examples {
        Some(examples) => command.after_help(examples),
        None => command,
    };
    match about {
        Some(about) => command.about(about),
        None => command,
    }
}

/// Returns the command with a flag for its help that does the same as `-h` and as `--help`: that of
/// the parser prints the short or the long help.
fn with_help_flag(command: Command, action: ArgAction) -> Command {
    let help = Arg::new("help").short('h').long("help").help("Print help").action(action);
    command.disable_help_flag(true).arg(help)
}

/// Returns the program as the manual shows it: an option that `ring` has, too, is described on the
/// page of `ring`, and named on the others.
fn for_manual(program: Command) -> Command {
    let Some(ring) = program.find_subcommand("ring").cloned() else { return complete(program) };
    complete(program).mut_subcommands(|page| without_options_of(&ring, page))
}

/// Hides the options that a page and those below it share with `ring`, and names them at its end.
fn without_options_of(ring: &Command, page: Command) -> Command {
    let page = page.mut_subcommands(|below| without_options_of(ring, below));
    if page.get_name() == ring.get_name() {
        return page;
    }
    let mut names = Vec::new();
    for arg in page.get_arguments().filter(|arg| is_option_of(ring, arg)) {
        names.extend(arg.get_long().map(|long| format!("--{long}")));
    }
    if names.is_empty() {
        return page;
    }
    let page = page.mut_args(|arg| if is_option_of(ring, &arg) { arg.hide(true) } else { arg });
    let examples = page.get_after_help().map(ToString::to_string).unwrap_or_default();
    page.after_help(format!("As in switchcost-ring(1): {}.\n\n{examples}", names.join(", ")))
}

/// Returns whether `ring` has an option of this name with the same text.
fn is_option_of(ring: &Command, arg: &Arg) -> bool {
    let is_same =
        |option: &Arg| option.get_id() == arg.get_id() && help_text(option) == help_text(arg);
    !arg.is_hide_set() && ring.get_arguments().any(is_same)
}

fn help_text(arg: &Arg) -> Option<String> {
    arg.get_help().map(ToString::to_string)
}

/// Returns whether the words ask for the whole help of a command.
pub(super) fn is_complete_wanted(words: &[OsString]) -> bool {
    words.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "--help")
}

/// Prints the help on a topic: a command, a command and one of its options, `man`, `schema` with or
/// without a name, or `completions` with a shell. `program` builds all that may be typed.
pub(super) fn run(topic: &[String], program: fn() -> Command) -> Result<ExitCode> {
    let words: Vec<&str> = topic.iter().map(String::as_str).collect();
    match &words[..] {
        ["man"] => manual(program()),
        ["man", more, ..] => Err(usage(format!("help man takes nothing more: '{more}'"))),
        ["completions"] => {
            Err(usage(format!("help completions: no shell given ({})", shell_names())))
        }
        ["schema"] => schema::run(None),
        ["schema", name] => schema::run(Some(name)),
        ["completions", shell] => match Shell::from_str(shell, true) {
            Ok(shell) => completions(shell, program()),
            Err(_) => Err(usage(format!(
                "help completions '{shell}': no such shell (accepted: {})",
                shell_names()
            ))),
        },
        words => print_command(words, program),
    }
}

fn shell_names() -> String {
    let names: Vec<String> = Shell::value_variants().iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// Prints the help of the command that these words lead to, or of its option.
fn print_command(words: &[&str], program: fn() -> Command) -> Result<ExitCode> {
    // A built command knows the names of its values, but its help can no longer be changed. So both
    // are followed.
    let (program, mut built) = (program(), program());
    built.build();
    let (mut command, mut built) = (&program, &built);
    for (index, word) in words.iter().enumerate() {
        if let (Some(subcommand), Some(built_subcommand)) =
            (command.find_subcommand(word), built.find_subcommand(word))
        {
            (command, built) = (subcommand, built_subcommand);
            continue;
        }
        if index + 1 == words.len() {
            if let Some(option) = find_option(built, word) {
                return print_option(option);
            }
        }
        return Err(no_such_topic(&words[..index], word));
    }
    let command = if words.is_empty() {
        in_groups(complete(command.clone()))
    } else {
        complete(command.clone()).bin_name(format!("switchcost {}", words.join(" ")))
    };
    let columns = Layout::terminal().prose;
    let help = command.term_width(columns).render_help().ansi().to_string();
    let text = lines::fitted(&help, columns);
    let written = AutoStream::auto(io::stdout()).write_all(text.as_bytes());
    ignore_broken_pipe(written).context("cannot print the help")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for a word that is none of the commands and options of a command.
fn no_such_topic(command: &[&str], word: &str) -> anyhow::Error {
    if command.is_empty() {
        return usage(format!(
            "help '{word}': no such command (accepted: a command, a command and one of its \
             options, man, schema, completions; see `switchcost --help`)"
        ));
    }
    let path = command.join(" ");
    usage(format!(
        "help {path} '{word}': `switchcost {path}` has no such option (see `switchcost {path} \
         --help`)"
    ))
}

/// Finds an option by its long name, its letter or the name of its place, with or without dashes.
fn find_option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.trim_start_matches('-');
    command.get_arguments().find(|arg| has_name(arg, name))
}

fn has_name(arg: &Arg, name: &str) -> bool {
    let is_long = arg.get_long_and_visible_aliases().unwrap_or_default().contains(&name);
    let is_short = arg.get_short().is_some_and(|letter| name == letter.to_string());
    let is_positional = arg.is_positional() && arg.get_id().as_str().eq_ignore_ascii_case(name);
    is_long || is_short || is_positional
}

/// Prints all that is known of an option.
fn print_option(option: &Arg) -> Result<ExitCode> {
    let help = option.get_long_help().or(option.get_help());
    let mut text = format!("{option}\n\n{}", help.map(ToString::to_string).unwrap_or_default());
    let defaults: Vec<_> =
        option.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let defaults = defaults.join(",");
    if !defaults.is_empty() && option.get_action().takes_values() {
        text += &format!("\n\nDefault: {defaults}");
    }
    text.push('\n');
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
    for page in manual_pages(for_manual(program)) {
        write_page(page, &mut text).context("cannot write the manual page")?;
    }
    print(&text).context("cannot print the manual page")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page of the manual: its commands in a line each, and a synopsis without the options,
/// which follow.
fn write_page(page: Command, to: &mut Vec<u8>) -> io::Result<()> {
    let about = about_text(&page);
    let (name, description) = about.split_once("\n\n").unwrap_or((&about, &about));
    let page = page.about(name.to_string()).long_about(description.to_string());
    let mut page = page.mut_subcommands(|below| {
        let first = about_text(&below).lines().next().unwrap_or_default().to_string();
        below.about(first).long_about(Resettable::Reset)
    });
    let usage = page.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace('-', "\\-");
    let has_options = page.get_arguments().any(|arg| !arg.is_hide_set());
    let has_commands = page.get_subcommands().any(|below| !below.is_hide_set());
    let page = clap_mangen::Man::new(page);
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
    write_definitions_once(&text, to)
}

/// Writes a page without repeated definitions: each section defines the apostrophe anew.
fn write_definitions_once(page: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
    let page = String::from_utf8_lossy(page);
    let mut definitions = Vec::new();
    for line in page.lines() {
        if line.starts_with(".ie ") || line.starts_with(".el ") {
            if definitions.contains(&line) {
                continue;
            }
            definitions.push(line);
        }
        writeln!(to, "{line}")?;
    }
    Ok(())
}

/// Returns the program's page, then one for each subcommand that is not hidden, each followed by
/// those of its own.
fn manual_pages(mut program: Command) -> Vec<Command> {
    program.build();
    let mut pages = Vec::new();
    push_pages(program, &mut pages);
    pages
}

fn push_pages(command: Command, pages: &mut Vec<Command>) {
    let name = command.get_name().to_string();
    let mut below = Vec::new();
    for subcommand in command.get_subcommands() {
        if has_page(subcommand, &name) {
            let page = subcommand.clone().name(format!("{name}-{}", subcommand.get_name()));
            below.push(page.mut_args(without_common_option));
        }
    }
    pages.push(command);
    for page in below {
        push_pages(page, pages);
    }
}

/// Returns whether a subcommand of the page of that name has a page. The old programs have no
/// options: they have a line each on their common page.
fn has_page(subcommand: &Command, parent: &str) -> bool {
    let is_visible = !subcommand.is_hide_set() && subcommand.get_name() != "help";
    let is_old_program = parent.ends_with("-classic") && subcommand.get_name() != EXPERIMENT;
    is_visible && !is_old_program
}

/// Hides an option that is on the program's page.
fn without_common_option(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "help" | "version" | "color" => arg.hide(true),
        _ => arg,
    }
}
