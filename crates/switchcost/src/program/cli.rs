//! The program from its first argument to its exit code: all that may be typed, and which module does
//! it. One definition feeds parser, help, manual and completions.
//!
//! ```text
//! switchcost ring --members 2
//!   run_program        a worker or an old program by this name? no
//!   Cli::from_arguments words --> Command::Ring(args)
//!   run_command        Command::Ring(args) --> measure_plan(the ring's plan)
//!   measure_plan       plan --> engine::execute --> registry::report_new_run --> printed
//! ```

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{self, ExitCode};

use anstream::AutoStream;
use anyhow::Result;
use charts::is_obeyed;
use clap::error::ErrorKind;
use clap::{Arg, Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use super::chart::{self, ChartArgs};
use super::hints::{note_renamed, with_hint};
use super::short_help::with_short_help;
use super::{first_answer, help};
use crate::base::failure::print_error;
use crate::base::lines::{self, Layout};
#[cfg(feature = "documents")]
use crate::documents::{
    self,
    classic::{self, ClassicCommand, ExperimentCommand},
    interference::{self, OldInterferenceArgs},
    paper::PaperCommand,
};
use crate::engine::execute::{self, RecordedRun};
use crate::engine::machine_setting::{guard_if_asked, restore_leftovers};
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::engine::state_commands;
use crate::engine::workers::worker_if_asked;
use crate::experiments::clock::overhead::{self, OverheadArgs};
use crate::experiments::cost::{self, CostArgs};
use crate::experiments::explain::{self, ExplainArgs};
use crate::experiments::links::{self, LinksArgs};
use crate::experiments::response::{self, ResponseArgs};
use crate::experiments::ring::{self, RingArgs, launches};
use crate::program::compare::{self, CompareArgs};
use crate::program::history::{self, HistoryArgs};
use crate::program::measure::{self, MeasureArgs};
use crate::program::report::{self, ReportArgs};
use crate::program::runs::{self, RunsCommand};
use crate::program::trend::{self, TrendArgs};
use crate::program::{fleet, schema};
#[cfg(feature = "programs")]
use crate::programs::{
    ProgramCommand, launcher_if_asked,
    sensitivity::{self, SensitivityArgs},
    watch::{self, ProgramArgs},
};
use crate::registry::{report_new_run, report_with_metrics};
use crate::report::output::{OutputOptions, set_colour};
#[cfg(feature = "switches")]
use crate::switches::SwitchCommand;

/// What a context switch costs here, at your scale, with your working set, and whether the number
/// can be trusted.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, disable_help_subcommand = true)]
struct Cli {
    /// Absent: the first answer
    #[command(subcommand)]
    command: Option<Command>,

    /// Answers and verdicts in colour: on a terminal without NO_COLOR (auto), always, or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        hide_short_help = true
    )]
    color: ColorChoice,
}

/// Runs this program; its name and its first argument may make it a worker, the launcher of a
/// command or one of the papers' programs.
pub(crate) fn run_program() -> ExitCode {
    // With SIGCHLD ignored, as some parents leave it, no child could be waited for. Neither of
    // these calls can fail.
    let _ = probe::default_child();
    let _ = probe::ignore_file_limit();
    #[cfg(feature = "documents")]
    if let Some(code) = ::classic::by_link(std::env::args_os()) {
        return code;
    }
    let hidden = worker_if_asked();
    #[cfg(feature = "programs")]
    let hidden = hidden.or_else(launcher_if_asked);
    let hidden = hidden.or_else(guard_if_asked).or_else(state_commands::guard_if_asked);
    if hidden.is_none() {
        restore_leftovers();
    }
    let done = hidden.unwrap_or_else(|| run_command(Cli::from_arguments()));
    done.unwrap_or_else(|error| print_error(&error))
}

impl Cli {
    /// Parses the arguments. Where they are not accepted, or ask for help, the program ends with a
    /// message.
    fn from_arguments() -> Self {
        let words: Vec<OsString> = std::env::args_os().collect();
        let is_complete = help::is_complete_wanted(&words);
        if !is_complete {
            // Accepted arguments need none of the texts that help and errors have.
            let matches = arguments().try_get_matches_from(&words);
            match matches.and_then(|matches| Self::from_arg_matches(&matches)) {
                Ok(cli) => return cli,
                Err(error) if error.kind() == ErrorKind::DisplayVersion => end_with(&error),
                Err(_) => {}
            }
        }
        let command = with_texts(arguments());
        let command = if is_complete { help::complete(command) } else { with_short_help(command) };
        let mut command = help::in_groups(command).term_width(Layout::terminal().prose);
        let matches = command.try_get_matches_from_mut(&words);
        let matches = matches.map_err(|error| {
            let error = with_harmless_words(error, &words, &mut command);
            with_hint(error, &command)
        });
        let cli = matches.and_then(|matches| Self::from_arg_matches(&matches));
        cli.unwrap_or_else(|error| end_with(&error))
    }
}

/// Builds all that may be typed.
fn arguments() -> clap::Command {
    // Flags of rings say nothing about stored runs. If they were declared in `CompareArgs` itself,
    // each would be declared twice.
    let command = Cli::command().mut_subcommand("compare", compare::with_session);
    with_signed_numbers(command)
}

/// Builds all that may be typed, with the texts of its help.
fn complete_command() -> clap::Command {
    with_texts(arguments())
}

/// Adds what only the help shows: examples that fit the terminal; old names are hidden.
fn with_texts(command: clap::Command) -> clap::Command {
    #[cfg(feature = "documents")]
    let command = documents::hide_old_names(command);
    with_examples(command)
}

/// Returns the error for the same words, in which characters that a terminal would obey (escapes,
/// marks of direction) are spelt out. The message itself is coloured by escapes, so the words are
/// changed before it is made.
fn with_harmless_words(
    error: clap::Error,
    words: &[OsString],
    command: &mut clap::Command,
) -> clap::Error {
    let words: Vec<String> = words.iter().map(|word| spell_out(&word.to_string_lossy())).collect();
    command.try_get_matches_from_mut(words).err().unwrap_or(error)
}

/// Writes the characters that a terminal would obey as `\u{1b}`.
fn spell_out(word: &str) -> String {
    let mut text = String::new();
    for c in word.chars() {
        if is_obeyed(c) {
            text.extend(c.escape_unicode());
        } else {
            text.push(c);
        }
    }
    text
}

/// Prints the help that was asked for, or what is wrong with the arguments, and ends.
fn end_with(message: &clap::Error) -> ! {
    let text = lines::fitted(&message.render().ansi().to_string(), Layout::terminal().prose);
    // It is no failure if nobody is there to read it.
    let _ = if message.use_stderr() {
        AutoStream::auto(io::stderr()).write_all(text.as_bytes())
    } else {
        AutoStream::auto(io::stdout()).write_all(text.as_bytes())
    };
    process::exit(message.exit_code())
}

/// Breaks the examples of a command and its subcommands, with a backslash at each break.
fn with_examples(command: clap::Command) -> clap::Command {
    let examples = command.get_after_long_help().map(ToString::to_string);
    let command = match examples {
        Some(text) => command.after_long_help(lines::examples(&text, Layout::terminal().prose)),
        None => command,
    };
    command.mut_subcommands(with_examples)
}

/// Names of values that are numbers.
const NUMBER_NAMES: [&str; 8] =
    ["BYTES", "BYTES,...", "COUNT", "LIST", "NUMBER", "PID", "SHARE", "TIME"];

/// Lets numbers have a minus sign, which would otherwise begin an option: so the message says which
/// numbers are accepted.
fn with_signed_numbers(command: clap::Command) -> clap::Command {
    command.mut_args(with_sign).mut_subcommands(with_signed_numbers)
}

fn with_sign(arg: Arg) -> Arg {
    let names = arg.get_value_names().unwrap_or_default();
    let is_number = names.iter().any(|name| NUMBER_NAMES.contains(&name.as_str()));
    if is_number { arg.allow_hyphen_values(true) } else { arg }
}

/// `cost`: of rings, of a process or command, and by its old name an experiment of the paper.
#[derive(Debug, Args)]
struct CostCommand {
    #[cfg(feature = "documents")]
    #[command(flatten)]
    interference: OldInterferenceArgs,

    #[cfg(feature = "programs")]
    #[command(flatten)]
    program: ProgramArgs,

    #[command(flatten)]
    cost: CostArgs,
}

impl CostCommand {
    /// Returns what is measured in words, if it is no rings by working set.
    fn subject_without_prices(&self) -> Option<&'static str> {
        #[cfg(feature = "programs")]
        if self.program.is_asked_for() {
            return Some("a program");
        }
        #[cfg(feature = "documents")]
        if self.interference.interference {
            return Some("the experiment of the paper");
        }
        None
    }
}

/// `clock`, and what was below it before `classic experiment`.
#[derive(Debug, Subcommand)]
enum ClockCommand {
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
enum Command {
    /// Measure all in one go: rings, working sets, response, clocks
    ///
    /// Measures the cases of ring, cost, response and clock overhead in the same rounds. Prints a
    /// summary, which begins with what a switch costs here and whether the machine was quiet.
    /// Stores one run. --report writes charts.
    #[command(
        after_long_help = "Examples:\n  switchcost measure\n  switchcost measure --budget 30s \
             --name before\n  switchcost measure --report report.html\n  switchcost \
             measure --budget 2m --share result.csv"
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
    /// of its members alone, divided by the counted switches.
    #[command(
        after_long_help = "Examples:\n  switchcost cost\n  switchcost cost --array 4K..8M:x2 \
             --walk chase\n  switchcost cost --pid 1234 --budget \
             30s\n  switchcost cost -- make -j4"
    )]
    #[cfg_attr(feature = "programs", command(mut_arg("budget", watch::with_watch_defaults)))]
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
    /// sleeper is woken. The response budget says whether these parts explain a wake-up.
    #[command(after_long_help = "Examples:\n  switchcost response\n  switchcost response --only \
             wakeup\n  switchcost response --only interrupts --busy-policy fifo")]
    Response(ResponseArgs),
    /// What a preemption costs a command of yours
    ///
    /// Runs the command again and again, in rounds of shuffled settings: alone, and beside a
    /// neighbour. The neighbour wakes on the command's CPU at a higher priority, writes to some
    /// memory or none, and sleeps again. A preemption costs what the command's CPU time is above
    /// that of its run alone, divided by the preemptions that the kernel counted more.
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
    /// rounds. What is left of a switch that was measured by itself is called not explained. What
    /// would add to a switch is measured, too: registers, control groups, filters, events, other
    /// CPUs, idle states, timer slack. Each comes with the setting that changes it. `compare` of
    /// two such runs says which part changed.
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
             'nice -n 10' --members 2\n  switchcost compare --ab-setting \
             /proc/sys/kernel/sched_autogroup_enabled 0 1 --members 2\n  switchcost compare \
             --ab-commands '' scx_lavd -- response --only wakeup")]
    Compare(Box<CompareArgs>),
    /// Follow a cost through stored runs: when did it change, and why?
    ///
    /// All figures are at one clock of the core; a change of the clock is reported separately. A
    /// change of the cost is found from its third run on, with an interval, and what changed in the
    /// runs' records at the same time: kernel, command line, mitigations, microcode, CPU, or this
    /// program's build. Runs whose figure does not hold are left out, with the reason. Exit codes:
    /// 0; with --fail-above 1 if the newest
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
fn run_command(cli: Cli) -> Result<ExitCode> {
    set_colour(cli.color);
    let Some(command) = cli.command else { return first_answer::run() };
    match command {
        Command::Measure(args) => measure::run(&args),
        Command::Ring(args) if links::is_list_wanted(&args.link) => {
            links::run(&LinksArgs { json: args.output.files.json })
        }
        Command::Ring(args) if args.launches != 1 => launches::take(&args),
        Command::Ring(args) => measure_plan(&args.output, |host| ring::plan::plan(&args, host)),
        Command::Cost(command) => run_cost(&command),
        Command::Clock(ClockCommand::Overhead(args)) => {
            measure_plan(&args.common.output, |host| overhead::plan(&args, host))
        }
        #[cfg(feature = "documents")]
        Command::Clock(ClockCommand::Paper(command)) => run_renamed_experiment(command),
        #[cfg(feature = "documents")]
        Command::Classic(command) => classic::run(command, run_classic_experiment),
        Command::Response(args) => {
            measure_plan(&args.common.output, |host| response::plan::plan(&args, host))
        }
        #[cfg(feature = "programs")]
        Command::Sensitivity(args) => {
            measure_plan(&args.output, |host| sensitivity::plan::plan(&args, host))
        }
        Command::Explain(args) => {
            measure_plan(&args.common.output, |host| explain::plan::plan(&args, host))
        }
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
        Command::Help { topic } => help::run(&topic, complete_command),
        Command::History(args) => {
            note_renamed("history", "runs list --history");
            history::run(&args)
        }
        Command::Links(args) => {
            note_renamed("links", "ring --link help");
            links::run(&args)
        }
        Command::Completions { shell } => {
            note_renamed("completions", "help completions");
            help::completions(shell, complete_command())
        }
        Command::Man => {
            note_renamed("man", "help man");
            help::manual(complete_command())
        }
        Command::Schema { name } => {
            note_renamed("schema", "help schema");
            schema::run(name.as_deref())
        }
    }
}

/// Measures a plan, stores the run and prints its report. Checks first that all outputs can be
/// written.
fn measure_plan(
    output: &OutputOptions,
    plan: impl FnOnce(&LocalHost) -> Result<PlanWithNotices>,
) -> Result<ExitCode> {
    output.files.check()?;
    report_new_run(measure_on_host(output, plan)?, output)
}

/// Measures a plan on this machine and stores the run.
fn measure_on_host(
    output: &OutputOptions,
    plan: impl FnOnce(&LocalHost) -> Result<PlanWithNotices>,
) -> Result<RecordedRun> {
    let host = LocalHost::detect()?;
    let planned = plan(&host)?;
    execute::new_run(planned, host, output)
}

/// Runs `cost`: of rings; of a process or command; or by its old name an experiment of the paper.
fn run_cost(command: &CostCommand) -> Result<ExitCode> {
    let args = &command.cost;
    if let Some(subject) = command.subject_without_prices() {
        args.refuse_openmetrics(subject)?;
    }
    #[cfg(feature = "programs")]
    if command.program.is_asked_for() {
        args.output.files.check()?;
        return watch::run(&command.program, args.effort.budget, &args.output);
    }
    #[cfg(feature = "documents")]
    if command.interference.interference {
        note_renamed("cost --interference", "classic experiment interference");
        let chosen = &command.interference.chosen;
        return measure_plan(&args.output, |host| {
            interference::plan::plan(chosen, args.laps, &args.effort, host)
        });
    }
    args.check_output()?;
    let taken = measure_on_host(&args.output, |host| {
        let planned = cost::plan::plan(args, host)?;
        args.refuse_plan_without_prices(&planned.0)?;
        Ok(planned)
    })?;
    report_with_metrics(taken, &args.output, args.openmetrics.as_ref())
}

/// Runs an experiment of the papers.
#[cfg(feature = "documents")]
fn run_classic_experiment(command: ExperimentCommand) -> Result<ExitCode> {
    measure_plan(command.output(), |host| command.plan(host))
}

/// Runs an experiment of the papers that was asked for by its old name, below `clock`.
#[cfg(feature = "documents")]
fn run_renamed_experiment(command: PaperCommand) -> Result<ExitCode> {
    let name = command.name();
    note_renamed(&format!("clock {name}"), &format!("classic experiment {name}"));
    run_classic_experiment(ExperimentCommand::Paper(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        let program = Cli::command();
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set());
        let mut names: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = help::grouped().collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(names, grouped);
    }

    /// Returns the lines of the examples of a command and its subcommands. Fails where a command has
    /// none, other than the old programs, whose help is their own.
    fn example_lines(command: &clap::Command, name: &str) -> Vec<String> {
        let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let mut lines: Vec<String> =
            text.lines().skip(1).map(|line| line.trim().to_string()).collect();
        let is_old = name.starts_with("switchcost classic ");
        let may_have_none = is_old || name == "switchcost" || command.is_hide_set();
        assert!(may_have_none || !lines.is_empty(), "{name} --help has no example");
        for subcommand in command.get_subcommands() {
            if subcommand.get_name() != "help" {
                let name = format!("{name} {}", subcommand.get_name());
                lines.extend(example_lines(subcommand, &name));
            }
        }
        lines
    }

    #[test]
    fn every_help_has_an_example_and_each_is_accepted() {
        let command = arguments();
        let lines = example_lines(&command, "switchcost");
        assert!(lines.len() > 50, "{lines:?}");
        for line in lines {
            assert_accepted(&command, &line);
        }
    }

    /// Checks that the program takes the first command of a line, as a shell would split it.
    fn assert_accepted(command: &clap::Command, line: &str) {
        let first = line.split(" | ").next().unwrap_or_default();
        let first = first.split(" > ").next().unwrap_or_default();
        let words = shell_words::split(first).expect("whole quotation marks");
        if let Err(error) = command.clone().try_get_matches_from(&words) {
            assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{line}: {error}");
        }
    }

    /// Returns the commands that a page shows, as typed: lines that are indented, without the
    /// comment behind a `#`.
    fn shown_commands(page: &str) -> Vec<String> {
        let mut commands = Vec::new();
        for line in page.lines() {
            let Some(code) = line.strip_prefix("    ") else { continue };
            let typed = code.strip_prefix("$ ").unwrap_or(code);
            if typed.starts_with("switchcost ") {
                commands.push(typed.split(" #").next().unwrap_or_default().trim().to_string());
            }
        }
        commands
    }

    #[test]
    fn every_command_of_the_readme_and_the_guide_is_accepted() {
        let command = arguments();
        let pages = [("README.md", 4), ("docs/guide.md", 60), ("docs/what-do-switches-cost.md", 4)];
        for (name, fewest) in pages {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
            let commands = shown_commands(&std::fs::read_to_string(path).expect("a page"));
            assert!(commands.len() >= fewest, "{name}: {commands:?}");
            for line in commands {
                assert_accepted(&command, &line);
            }
        }
    }
}
