//! `-h` fits on a screen: options that few need are in `--help` alone. Which these are is listed here
//! by the names of their fields.

use clap::{Arg, Command};

use super::help;

/// Options that few need of any command.
const COMMON_OPTIONS: [&str; 12] = [
    "anonymous",
    "csv",
    "history",
    "junit",
    "ktap",
    "laps",
    "plot",
    "print",
    "rounds",
    "seed",
    "store_command",
    "wide",
];

/// Returns the options that few need of a command and its subcommands, beside [`COMMON_OPTIONS`].
fn rare_options(command: &str) -> &'static [&'static str] {
    match command {
        "ring" => &["stride", "op", "state", "events", "precision"],
        "compare" => &[
            "rings",
            "link",
            "stride",
            "op",
            "state",
            "events",
            "kind",
            "work",
            "policy",
            "placement",
            "flight",
            "precision",
            "cost",
            "json",
            "quiet",
            "allow_undecided",
        ],
        "cost" => &[
            "deep",
            "stride",
            "op",
            "tlb",
            "huge_pages",
            "events",
            "kind",
            "policy",
            "sizes",
            "runs",
            "noise",
            "profile",
            "precision",
            "json",
        ],
        "run" => &[
            "min_runs",
            "max_runs",
            "command_name",
            "command_output",
            "conclude",
            "export_asciidoc",
            "export_csv",
            "export_json",
            "export_markdown",
            "export_orgmode",
            "input",
            "parameter_scan",
            "parameter_step_size",
            "reference",
            "reference_name",
            "sort",
            "style",
            "time_unit",
            "figures",
            "allow_undecided",
            "show_output",
            "tree",
            "no_estimate",
            "profile",
            "setup",
            "cleanup",
            "shell",
            "no_shell",
            "openmetrics",
            "json",
            "quiet",
            "verbose",
        ],
        "profile" => &["json", "quiet"],
        "trace" => &["buffer", "folded", "json", "quiet"],
        "sensitivity" => &["precision", "progress_file", "quiet", "stay", "verbose"],
        "clock" => &["precision", "quiet"],
        "explain" => &["precision", "quiet"],
        "response" => &[
            "precision",
            "quiet",
            "think",
            "work",
            "workers",
            "messengers",
            "wake",
            "waker",
            "kind",
        ],
        _ => &[],
    }
}

/// Returns the program whose `-h` leaves out what few need, and says how to see it.
pub(super) fn with_short_help(program: Command) -> Command {
    let program = program.mut_subcommands(|command| {
        let name = command.get_name().to_string();
        // The old programs have a help of their own.
        if name == "classic" {
            return command.mut_subcommand(help::EXPERIMENT, |experiment| {
                shortened(experiment, rare_options("clock"), "switchcost classic experiment")
            });
        }
        shortened(command, rare_options(&name), &format!("switchcost {name}"))
    });
    program.after_help("More options: switchcost --help. Examples: switchcost COMMAND --help")
}

/// Shortens the help of a command and its subcommands; `typed` is how the command is typed.
fn shortened(command: Command, rare: &'static [&'static str], typed: &str) -> Command {
    let is_rare = |arg: &Arg| {
        let id = arg.get_id().as_str();
        // TableOptions of `trace` have more columns than a terminal.
        let is_needed = typed == "switchcost trace" && id == "wide";
        (COMMON_OPTIONS.contains(&id) && !is_needed) || rare.contains(&id)
    };
    let has_rare = command.get_arguments().any(is_rare);
    let more = if has_rare { "More options and examples" } else { "Examples" };
    let mut command =
        command.mut_args(|arg| if is_rare(&arg) { arg.hide_short_help(true) } else { arg });
    if command.get_after_long_help().is_some() {
        command = command.after_help(format!("{more}: {typed} --help"));
    }
    command.mut_subcommands(|subcommand| {
        let typed = format!("{typed} {}", subcommand.get_name());
        shortened(subcommand, rare, &typed)
    })
}
