//! Completions and the manual page, both from the one definition of what may be typed.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::output::print;

pub(crate) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "switchcost", &mut script);
    print(&script).context("cannot print the script")?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn manual() -> Result<ExitCode> {
    let mut page = Vec::new();
    for command in pages(Cli::command()) {
        clap_mangen::Man::new(command).render(&mut page).context("cannot write the manual page")?;
    }
    print(&page).context("cannot print the manual page")?;
    Ok(ExitCode::SUCCESS)
}

/// The program's page, then one for each subcommand that is not hidden, and for each of its own.
fn pages(mut command: clap::Command) -> Vec<clap::Command> {
    command.build();
    with_subcommands(command)
}

fn with_subcommands(command: clap::Command) -> Vec<clap::Command> {
    let name = command.get_name().to_string();
    let visible = |c: &&clap::Command| !c.is_hide_set() && c.get_name() != "help";
    let named = |c: &clap::Command| c.clone().name(format!("{name}-{}", c.get_name()));
    let below: Vec<_> = command.get_subcommands().filter(visible).map(named).collect();
    std::iter::once(command).chain(below.into_iter().flat_map(with_subcommands)).collect()
}
