//! `-h` fits a screen: what few need is told by `--help` alone.

use clap::{Arg, Command};

use super::help;

/// Of every command.
const COMMON: [&str; 9] =
    ["anonymous", "csv", "history", "laps", "plot", "rounds", "seed", "store_command", "wide"];

/// Of a command and those below it, beside these.
fn rare(command: &str) -> &'static [&'static str] {
    match command {
        "ring" => &["stride", "op", "state", "events", "precision"],
        "compare" => &[
            "link",
            "stride",
            "op",
            "state",
            "events",
            "kind",
            "work",
            "policy",
            "placement",
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
            "json",
            "quiet",
            "verbose",
        ],
        "profile" => &["json", "quiet"],
        "trace" => &["buffer", "folded", "json", "quiet"],
        "sensitivity" => &["precision", "progress_file", "quiet", "stay", "verbose"],
        "clock" => &["precision", "quiet"],
        "explain" | "response" => &["precision", "quiet"],
        _ => &[],
    }
}

/// The same with a short help that names what most need, and says where the rest is.
pub(super) fn with_short_help(command: Command) -> Command {
    let command = command.mut_subcommands(|of| {
        let name = of.get_name().to_string();
        // As the old programs' own.
        if name == "classic" {
            let experiment = "switchcost classic experiment";
            return of
                .mut_subcommand(help::EXPERIMENT, |of| shortened(of, rare("clock"), experiment));
        }
        shortened(of, rare(&name), &format!("switchcost {name}"))
    });
    command.after_help("More options: switchcost --help. Examples: switchcost COMMAND --help")
}

/// Of the command that is typed so.
fn shortened(command: Command, rare: &'static [&'static str], typed: &str) -> Command {
    let is_rare = |arg: &Arg| {
        let id = arg.get_id().as_str();
        // Its tables have more columns than a terminal.
        let is_needed = typed == "switchcost trace" && id == "wide";
        (COMMON.contains(&id) && !is_needed) || rare.contains(&id)
    };
    let more = match command.get_arguments().any(is_rare) {
        true => "More options and examples",
        false => "Examples",
    };
    let command = command.mut_args(|arg| match is_rare(&arg) {
        true => arg.hide_short_help(true),
        false => arg,
    });
    let command = match command.get_after_long_help() {
        Some(_) => command.after_help(format!("{more}: {typed} --help")),
        None => command,
    };
    command.mut_subcommands(|of| {
        let typed = format!("{typed} {}", of.get_name());
        shortened(of, rare, &typed)
    })
}
