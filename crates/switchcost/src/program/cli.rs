//! What may be typed, and what is done for it. One definition feeds parser, help, manual and
//! completions.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{self, ExitCode};

use anstream::AutoStream;
use anyhow::Result;
use charts::is_obeyed;
use clap::error::ErrorKind;
use clap::{Arg, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use super::chart::{self, ChartArgs};
use super::hints::{self, say_renamed};
use super::measured::{self, CostCommand};
use super::short_help::with_short_help;
use super::{first_answer, help};
use crate::base::lines::{self, Layout};
#[cfg(feature = "documents")]
use crate::documents::{
    self,
    classic::{self, ClassicCommand},
    paper::PaperCommand,
};
use crate::experiments::clock::overhead::OverheadArgs;
use crate::experiments::explain::ExplainArgs;
use crate::experiments::links::{self, LinksArgs};
use crate::experiments::response::ResponseArgs;
use crate::experiments::ring::RingArgs;
use crate::program::compare::{self, CompareArgs};
use crate::program::history::{self, HistoryArgs};
use crate::program::measure::{self, MeasureArgs};
use crate::program::report::{self, ReportArgs};
use crate::program::runs::{self, RunsCommand};
use crate::program::trend::{self, TrendArgs};
use crate::program::{fleet, schema};
#[cfg(feature = "programs")]
use crate::programs::{ProgramCommand, sensitivity::SensitivityArgs, watch};
use crate::report::output::set_colour;
#[cfg(feature = "switches")]
use crate::switches::SwitchCommand;

/// What a context switch costs here, at your scale, with your working set, and whether the number
/// can be trusted.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Absent: the first answer
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Answers and verdicts in colour: on a terminal without NO_COLOR (auto), always, or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub(crate) color: ColorChoice,
}

impl Cli {
    /// What was typed; where that is not accepted, the program ends with a message.
    pub(crate) fn of_arguments() -> Self {
        let words: Vec<OsString> = std::env::args_os().collect();
        let is_complete = help::is_complete_wanted(&words);
        if !is_complete {
            // What is typed well needs none of the texts that help and errors have.
            let matches = arguments().try_get_matches_from(&words);
            match matches.and_then(|matches| Self::from_arg_matches(&matches)) {
                Ok(typed) => return typed,
                Err(error) if error.kind() == ErrorKind::DisplayVersion => end_with(&error),
                Err(_) => {}
            }
        }
        let command = match is_complete {
            true => help::complete(built()),
            false => with_short_help(built()),
        };
        let mut command = help::in_groups(command).term_width(Layout::terminal().prose);
        let matches = command.try_get_matches_from_mut(&words);
        let matches = matches.map_err(|error| harmless(error, &words, &mut command));
        let matches = matches.map_err(|error| hints::hinted(error, &command));
        let typed = matches.and_then(|matches| Self::from_arg_matches(&matches));
        typed.unwrap_or_else(|told| end_with(&told))
    }
}

/// Builds all that may be typed.
fn arguments() -> clap::Command {
    // Flags of rings say nothing about runs that are stored. Declared where all have them by name,
    // they would have to be declared twice.
    let command = Cli::command().mut_subcommand("compare", compare::with_session);
    signed(command)
}

/// Builds all that may be typed, with examples that fit the terminal.
fn built() -> clap::Command {
    let command = arguments();
    #[cfg(feature = "documents")]
    let command = documents::hide_old_names(command);
    with_examples(command)
}

/// The same error with what a terminal would obey (escapes, marks of direction) spelt out in the
/// words that it repeats. A message is coloured by escapes of its own: so the words are changed.
fn harmless(error: clap::Error, words: &[OsString], command: &mut clap::Command) -> clap::Error {
    let spelt = |word: &OsString| -> String {
        let spelt = |c: char| match is_obeyed(c) {
            true => c.escape_unicode().collect(),
            false => String::from(c),
        };
        word.to_string_lossy().chars().map(spelt).collect()
    };
    let spelt: Vec<String> = words.iter().map(spelt).collect();
    command.try_get_matches_from_mut(spelt).err().unwrap_or(error)
}

/// Prints the help that was asked for, or what is wrong with the arguments, and ends.
fn end_with(told: &clap::Error) -> ! {
    let text = lines::fitted(&told.render().ansi().to_string(), Layout::terminal().prose);
    // Nobody there to read it is no reason to fail.
    let _ = match told.use_stderr() {
        true => AutoStream::auto(io::stderr()).write_all(text.as_bytes()),
        false => AutoStream::auto(io::stdout()).write_all(text.as_bytes()),
    };
    process::exit(told.exit_code())
}

/// The same with examples that fit: where one is broken, a backslash goes on.
fn with_examples(command: clap::Command) -> clap::Command {
    let text = command
        .get_after_long_help()
        .map(|text| lines::examples(&text.to_string(), Layout::terminal().prose));
    let command = match text {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    command.mut_subcommands(with_examples)
}

/// Values that are numbers.
const NUMBERS: [&str; 8] =
    ["BYTES", "BYTES,...", "COUNT", "LIST", "NUMBER", "PID", "SHARE", "TIME"];

/// A number may have a minus sign: then the message says what is accepted.
fn signed(command: clap::Command) -> clap::Command {
    let is_number = |arg: &Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().any(|name| NUMBERS.contains(&name.as_str()))
    };
    let with_sign = |arg: Arg| if is_number(&arg) { arg.allow_hyphen_values(true) } else { arg };
    command.mut_args(with_sign).mut_subcommands(signed)
}

/// `clock`, and what was below it before `classic experiment`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClockCommand {
    /// What it costs to ask for the time, by every way to ask
    ///
    /// Each call is timed alone between two time stamps, whose own cost is subtracted, and in
    /// batches of calls in a row.
    #[command(after_long_help = "Example:\n  switchcost clock overhead --calls \
             threadclock-now,getrusage")]
    Overhead(OverheadArgs),
    #[cfg(feature = "documents")]
    #[command(flatten)]
    Paper(PaperCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure all in one go: rings, working sets, response, clocks
    ///
    /// Measures the cases of ring, cost, response and clock overhead in the same rounds. Prints a
    /// summary, which begins with what a switch costs here and whether the machine was quiet.
    /// Stores one run. --report writes charts.
    #[command(
        after_long_help = "Examples:\n  switchcost measure\n  switchcost measure --budget 30s \
             --name before\n  switchcost measure --report report.html"
    )]
    Measure(MeasureArgs),
    /// Cost of a switch by the number of processes, in a ring
    ///
    /// The members of a ring pass a one-byte token round, so that the kernel has to switch from
    /// each to the next (Sloan 1992). A ring of one passes the token to itself and never switches;
    /// it is measured in every round. The cost of a switch is what a larger ring takes above that,
    /// divided by the switches that the kernel counted.
    #[command(
        after_long_help = "Examples:\n  switchcost ring\n  switchcost ring --members 2..64:x2 \
             --kind thread\n  switchcost ring --link all --members 2\n  switchcost ring \
             --placement sweep --members 2 --name pinned"
    )]
    Ring(RingArgs),
    /// Cost of a switch by working set; what switching costs a program
    ///
    /// The direct cost (c1) is what a switch costs without work. The total cost (c2) is what it
    /// costs with a working set that each member walks in every hop. The indirect cost, c2 - c1, is
    /// what refilling the caches adds (Li, Ding and Shen 2007). Each is the time of a hop less that
    /// of its members alone, divided by the counted switches. As the working set grows, c2 passes
    /// through regions: all fits; two do not fit together; one alone does not fit.
    #[command(
        after_long_help = "Examples:\n  switchcost cost\n  switchcost cost --array 4K..8M:x2 \
             --walk chase\n  switchcost cost --pid 1234 --budget \
             30s\n  switchcost cost -- make -j4"
    )]
    #[cfg_attr(feature = "programs", command(mut_arg("budget", watch::with_program)))]
    Cost(CostCommand),
    /// Clocks: what reading them costs, how far they can be trusted
    #[command(subcommand)]
    #[command(after_long_help = "Example:\n  switchcost clock overhead")]
    Clock(ClockCommand),
    /// The papers' own programs and experiments: pipeline, getrusage, times, twosig, primes
    ///
    /// Arguments, output and exit codes are the originals'; their faults are not (docs/classic.md).
    #[cfg(feature = "documents")]
    #[command(subcommand)]
    #[command(after_long_help = "Example:\n  switchcost classic pipeline 8 1000")]
    Classic(ClassicCommand),
    /// How late wake-ups, signals and interrupts are; what system calls cost
    ///
    /// Measures system calls; signals, to oneself and between two processes; a token between two
    /// processes, by every link that the machine has; what interrupts a busy thread; and how late a
    /// sleeper is woken. The response budget says whether these parts explain a wake-up. All cases
    /// are measured in one shuffled schedule, so that figures made of several are paired within
    /// rounds. What registers in use add to a switch: switchcost ring --members 2 --state all.
    #[command(after_long_help = "Examples:\n  switchcost response\n  switchcost response --only \
             wakeup\n  switchcost response --only interrupts --busy-policy fifo")]
    Response(ResponseArgs),
    /// What a preemption costs a command of yours
    ///
    /// Runs the command again and again, in rounds of shuffled settings: alone, and beside a
    /// neighbour. The neighbour wakes on the command's CPU at a higher priority, writes to some
    /// memory or none, and sleeps again. A preemption costs what the command's CPU time is above
    /// that of its run alone, divided by the preemptions that the kernel counted more. The cost of
    /// a timer interrupt without a switch is measured and subtracted.
    #[command(
        after_long_help = "Examples:\n  switchcost sensitivity -- gzip -kf file\n  switchcost \
             sensitivity --neighbour 0,1M --budget 60s -- ./job --once\n  switchcost sensitivity --pid \
             nginx --inject --progress ./requests\n  switchcost sensitivity --cgroup \
             app.service --inject --progress-file app.log"
    )]
    #[cfg(feature = "programs")]
    Sensitivity(SensitivityArgs),
    /// What a switch is made of: calls, link, scheduler, wake-up
    ///
    /// Each part is the difference of two rings that differ in one thing, measured in the same
    /// rounds. The parts add up; what is left of a switch that was measured by itself is called not
    /// explained. What would add to a switch is measured, too: registers, control groups, filters,
    /// events, other CPUs, idle states, timer slack. Each comes with the setting that changes it,
    /// and what cannot be measured here with what it needs. `compare` of two such runs says which
    /// part changed.
    #[command(after_long_help = "Examples:\n  switchcost explain\n  switchcost explain --kind \
             thread --plot\n  switchcost explain --parts-only --budget 10s\n  switchcost compare \
             before after")]
    Explain(ExplainArgs),
    /// Compare two runs, or two settings measured side by side
    ///
    /// Pairs the cases of both and lists what differs between their machines. Each pair has the
    /// ratio of its costs with an interval, and one of three answers: changed, not changed within a
    /// limit, inconclusive. All intervals hold together, however many cases there are. Exit codes:
    /// 0; with --fail-above 1 if a case has become slower beyond it, 3 if that is not decided
    /// (--allow-undecided: 0); 2 if there is no comparison, or with --fail-above if a case that
    /// BASE measured failed in NEW.
    // As large as it is for the flags of `ring`.
    #[command(after_long_help = "Examples:\n  switchcost compare base last --fail-above 3%\n  \
             switchcost compare free pinned --across placement\n  switchcost compare --ab '' \
             'nice -n 10' --members 2")]
    Compare(Box<CompareArgs>),
    /// Follow a cost through stored runs: when did it change, and why?
    ///
    /// All figures are at one clock of the core, in nanoseconds and in cycles; a change of the
    /// clock is reported separately. A change of the cost is found from its third run on, with an
    /// interval. What may explain it is what changed in the runs' records at the same time: kernel,
    /// command line, mitigations, microcode, CPU, or this program's build. Runs whose figure does
    /// not hold are left out, with the reason. Exit codes: 0; with --fail-above 1 if the newest
    /// change is slower by more than that, 3 if such a change would not show; 2 if there is no
    /// usable run.
    #[command(after_long_help = "Examples:\n  switchcost trend\n  switchcost trend 'ring of 64' \
             --plot\n  switchcost trend weekly --by kernel --fail-above 3%\n  switchcost trend \
             ./builds/ --by build --json -")]
    Trend(TrendArgs),
    /// Draw runs as charts in one HTML file
    ///
    /// Several runs are drawn in the same charts, with the machines of 1984 to today on request.
    /// The file needs no network and no other file. It opens with the answer and says what was
    /// measured where. A table under each chart has its numbers.
    #[command(
        after_long_help = "Examples:\n  switchcost report last -o report.html\n  switchcost \
             report base last history:sun-4/280"
    )]
    Report(ReportArgs),
    /// Draw figures in JSON as SVG for a page of yours
    ///
    /// Prints a line of SVG for each figure. Its colours are classes, which the page's CSS sets.
    #[command(
        hide = true,
        after_long_help = "Examples:\n  switchcost chart figures.json\n  switchcost chart --panel -"
    )]
    Chart(ChartArgs),
    /// List published figures, which compare and report take
    #[command(
        hide = true,
        after_long_help = "Examples:\n  switchcost history\n  switchcost history sun-4/280\n  \
             switchcost history --svg years.svg"
    )]
    History(HistoryArgs),
    /// List what can carry the token, and what this machine has
    #[command(hide = true, after_long_help = "Example:\n  switchcost links")]
    Links(LinksArgs),
    #[cfg(feature = "programs")]
    #[command(flatten)]
    Programs(ProgramCommand),
    #[cfg(feature = "switches")]
    #[command(flatten)]
    Switches(SwitchCommand),
    /// List, show, export, resume or remove stored runs
    #[command(subcommand)]
    #[command(after_long_help = "Examples:\n  switchcost runs list\n  switchcost runs show last")]
    Runs(RunsCommand),
    /// Measure many hosts, and find those that are slow or different
    ///
    /// Measures by Slurm, Kubernetes, ReFrame or ssh. Comes with the Python package: pip install
    /// 'switchcost[fleet]'. All arguments after `fleet` go to its program, switchcost-fleet, which
    /// is looked for beside this one, then on PATH.
    #[command(
        disable_help_flag = true,
        disable_version_flag = true,
        after_long_help = "Example:\n  switchcost fleet --help"
    )]
    Fleet {
        /// What switchcost-fleet is given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print help: of a command, of one of its options, or man, schema, completions
    ///
    /// `help ring --link` prints all about an option. `help man` is the manual page. `help schema`
    /// lists the JSON schemas, and `help schema NAME` prints one. `help completions SHELL` prints a
    /// completion script.
    #[command(after_long_help = "Examples:\n  switchcost help trace\n  switchcost help ring \
             --link\n  switchcost help man | man -l -\n  switchcost help schema record\n  \
             switchcost help completions bash")]
    Help {
        /// A command and one of its options, man, schema NAME, or completions SHELL
        #[arg(allow_hyphen_values = true, value_name = "TOPIC")]
        topic: Vec<String>,
    },
    /// Print a completion script for a shell
    #[command(hide = true, after_long_help = "Example:\n  switchcost completions bash")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    #[command(hide = true, after_long_help = "Example:\n  switchcost man | man -l -")]
    Man,
    /// Print the JSON schema of an output, or the names of all
    #[command(
        hide = true,
        after_long_help = "Examples:\n  switchcost schema\n  switchcost schema record"
    )]
    Schema {
        /// The schema's name
        name: Option<String>,
    },
}

/// Does what was asked; without a command it measures for a few seconds.
pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    set_colour(cli.color);
    let Some(command) = cli.command else { return first_answer::run() };
    match command {
        Command::Measure(args) => measure::run(&args),
        Command::Ring(args) if links::is_list_wanted(&args.link) => {
            links::run(&LinksArgs { json: args.output.files.json })
        }
        Command::Ring(args) => measured::ring(&args),
        Command::Cost(args) => measured::cost(&args),
        Command::Clock(ClockCommand::Overhead(args)) => measured::clock_overhead(&args),
        #[cfg(feature = "documents")]
        Command::Clock(ClockCommand::Paper(command)) => measured::renamed_experiment(command),
        #[cfg(feature = "documents")]
        Command::Classic(command) => classic::run(command, measured::classic_experiment),
        Command::Response(args) => measured::response(&args),
        #[cfg(feature = "programs")]
        Command::Sensitivity(args) => measured::sensitivity(&args),
        Command::Explain(args) => measured::explain(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Trend(args) => trend::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Chart(args) => chart::run(&args),
        #[cfg(feature = "programs")]
        Command::Programs(command) => command.run(),
        #[cfg(feature = "switches")]
        Command::Switches(command) => command.run(),
        Command::Runs(command) => runs::run(command),
        Command::Fleet { arguments } => fleet::run(&arguments),
        Command::Help { topic } => help::run(&topic, built),
        old => run_old(old),
    }
}

/// Does what was asked by a name of before, and says the new one.
fn run_old(command: Command) -> Result<ExitCode> {
    match command {
        Command::History(args) => {
            say_renamed("history", "runs list --history");
            history::run(&args)
        }
        Command::Links(args) => {
            say_renamed("links", "ring --link help");
            links::run(&args)
        }
        Command::Completions { shell } => {
            say_renamed("completions", "help completions");
            help::completions(shell, built())
        }
        Command::Man => {
            say_renamed("man", "help man");
            help::manual(built())
        }
        Command::Schema { name } => {
            say_renamed("schema", "help schema");
            schema::run(name.as_deref())
        }
        _ => unreachable!("every other command has its own line in `run`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        let program = Cli::command();
        let visible = program.get_subcommands().filter(|of| !of.is_hide_set());
        let mut names: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = help::grouped().collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(names, grouped);
    }

    /// The lines of a command's examples, and of those of its subcommands; none of one whose help
    /// is that of an old program.
    fn examples(command: &clap::Command, name: &str) -> Vec<String> {
        let text = command.get_after_long_help().map(ToString::to_string);
        let below: Vec<&clap::Command> = command.get_subcommands().collect();
        let own = text.iter().flat_map(|text| text.lines().skip(1)).map(str::trim);
        let own: Vec<String> = own.map(str::to_string).collect();
        let is_old = name.starts_with("switchcost classic ");
        let has_own = !own.is_empty() || is_old || name == "switchcost" || command.is_hide_set();
        assert!(has_own, "{name} --help has no example");
        let of_those = below.into_iter().filter(|of| of.get_name() != "help");
        let of_those = of_those.flat_map(|of| examples(of, &format!("{name} {}", of.get_name())));
        own.into_iter().chain(of_those).collect()
    }

    #[test]
    fn every_help_has_an_example_and_each_is_accepted() {
        let command = signed(Cli::command().mut_subcommand("compare", compare::with_session));
        let all = examples(&command, "switchcost");
        assert!(all.len() > 50, "{all:?}");
        for line in all {
            assert_accepted(&command, &line);
        }
    }

    /// The first command of a line, as a shell would split it, is one that the program takes.
    fn assert_accepted(command: &clap::Command, line: &str) {
        let alone = line.split(" | ").next().unwrap_or_default();
        let alone = alone.split(" > ").next().unwrap_or_default();
        let words = shell_words::split(alone).expect("whole quotation marks");
        let said = command.clone().try_get_matches_from(&words);
        let is_help = |of: &clap::Error| of.kind() == clap::error::ErrorKind::DisplayHelp;
        assert!(said.as_ref().map_or_else(is_help, |_| true), "{line}: {}", said.unwrap_err());
    }

    /// The commands that a page shows, as typed: lines that are indented, without what is said of
    /// them behind a `#`.
    fn shown(page: &str) -> Vec<String> {
        let code = page.lines().filter_map(|line| line.strip_prefix("    "));
        let typed = code.map(|line| line.strip_prefix("$ ").unwrap_or(line));
        let typed = typed.filter(|line| line.starts_with("switchcost "));
        typed.map(|line| line.split(" #").next().unwrap_or_default().trim().to_string()).collect()
    }

    #[test]
    fn every_command_of_the_readme_and_the_guide_is_accepted() {
        let command = signed(Cli::command().mut_subcommand("compare", compare::with_session));
        for (name, fewest) in [("README.md", 4), ("docs/guide.md", 60)] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
            let all = shown(&std::fs::read_to_string(path).expect("a page"));
            assert!(all.len() >= fewest, "{name}: {all:?}");
            for line in all {
                assert_accepted(&command, &line);
            }
        }
    }
}
