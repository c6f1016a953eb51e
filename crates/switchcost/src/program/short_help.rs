//! `-h` fits a screen: what few need is told by `--help` alone.

use clap::{Arg, Command};

/// Of every command.
const COMMON: [&str; 12] = [
    "anonymous",
    "color",
    "csv",
    "history",
    "laps",
    "launches",
    "plot",
    "rounds",
    "seed",
    "store_command",
    "version",
    "wide",
];

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
            "verbose",
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
            "vs",
            "verbose",
        ],
        "profile" | "trace" => &["json", "quiet"],
        "sensitivity" => &["progress", "progress_file", "precision", "quiet", "verbose"],
        "clock" => &["precision", "quiet", "calls"],
        "explain" | "response" => &["precision", "quiet"],
        _ => &[],
    }
}

/// The same with a short help that names what most need, and says where the rest is.
pub(super) fn with_short_help(command: Command) -> Command {
    command.mut_subcommands(|of| {
        let name = of.get_name().to_string();
        shortened(of, rare(&name))
    })
}

fn shortened(command: Command, rare: &'static [&'static str]) -> Command {
    let is_rare = |arg: &Arg| {
        let id = arg.get_id().as_str();
        COMMON.contains(&id) || rare.contains(&id)
    };
    let count = command.get_arguments().filter(|arg| is_rare(arg)).count();
    let command = command.mut_args(|arg| match is_rare(&arg) {
        true => arg.hide_short_help(true),
        false => arg,
    });
    let command = match (count, command.get_after_long_help().is_some()) {
        (1.., true) => {
            let name = command.get_name().to_string();
            command.after_help(format!("More options and examples: switchcost {name} --help"))
        }
        _ => command,
    };
    command.mut_subcommands(|of| shortened(of, rare))
}
