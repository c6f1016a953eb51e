//! Links as typed and as this machine has them, and `switchcost ring --link help`.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use probe::ring::{self, LINKS, RegisteredLink};
use rundata::experiment::suggest_name;
use rundata::ring::RingCase;
use serde::Serialize;

use crate::base::failure::usage;
use crate::base::values::{Destination, each_once};
use crate::report::output::{print_text, write_json};

#[derive(Debug, Args)]
pub(crate) struct LinksArgs {
    /// Write the list as JSON to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,
}

/// The name that stands for all that this machine has.
pub(crate) const ALL: &str = "all";

/// Whether the links are to be listed in place of a measurement: `--link help`.
pub(crate) fn is_list_wanted(asked: &[String]) -> bool {
    asked == ["help"]
}

/// The links of these names, or all, and why each of the others was left out of all. `case` is the
/// ring without its link. One that was asked for by name and is not available is an error.
pub(crate) fn choose(
    asked: &[String],
    case: &RingCase,
) -> Result<(Vec<&'static RegisteredLink>, Vec<String>)> {
    let is_all = asked == [ALL];
    let names = each_once(asked.iter().map(|name| resolve_alias(name.trim()))).into_iter();
    let links: Vec<&RegisteredLink> = match is_all {
        true => LINKS.iter().collect(),
        false => names
            .map(|name| ring::find_link(name).ok_or_else(|| unknown(name)))
            .collect::<Result<_>>()?,
    };
    let (mut chosen, mut notices) = (Vec::new(), Vec::new());
    for link in links {
        let missing = |why| anyhow!("--link {}: not available: {why}", link.name);
        match link.suits(case).map_err(usage).and_then(|()| link.available().map_err(missing)) {
            Ok(()) => chosen.push(link),
            Err(why) if is_all => notices.push(format!("left out: {why}")),
            Err(why) => return Err(why),
        }
    }
    Ok((chosen, notices))
}

/// Returns the name that a link is stored and printed under; an unknown name stays as it is.
fn resolve_alias(name: &str) -> &str {
    ring::find_link(name).map_or(name, |link| link.name)
}

fn unknown(name: &str) -> anyhow::Error {
    let names: Vec<&str> = LINKS.iter().map(|link| link.name).collect();
    let (suggestion, names) = (suggest_name(name, names.iter().copied()), names.join(", "));
    usage(format!(
        "--link '{name}': no such link{suggestion} (accepted: {names}, a list of them, or all; `switchcost ring --link help` describes them)"
    ))
}

/// A link as it is listed.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    aliases: &'static [&'static str],
    summary: &'static str,
    needs: &'static str,
    available: bool,
    /// Why it is not.
    why_not: Option<String>,
}

pub(crate) fn run(args: &LinksArgs) -> Result<ExitCode> {
    let list = |link: &RegisteredLink| {
        let why_not = link.available().err();
        let (name, summary, needs) = (link.name, link.summary, link.needs);
        let (aliases, available) = (link.aliases, why_not.is_none());
        Listed { name, aliases, summary, needs, available, why_not }
    };
    let links: Vec<Listed> = LINKS.iter().map(list).collect();
    write_json(&links, args.json.as_ref())?;
    let width = links.iter().map(|link| link.name.len()).max().unwrap_or(0);
    // Two lines a link: sentences do not fit into columns.
    let lines = |Listed { name, aliases, summary, needs, why_not, .. }: &Listed| {
        let why = why_not.as_ref().map(|why| format!("not available: {why}"));
        let here = why.unwrap_or("available".to_string());
        let also: String = aliases.iter().map(|alias| format!(" (also: {alias})")).collect();
        format!("{name:width$}  {summary}{also}\n{:width$}  needs {needs}; {here}\n", "")
    };
    if args.json != Some(Destination::Stdout) {
        let text: String = links.iter().map(lines).collect();
        print_text(&text).context("cannot print the links")?;
    }
    Ok(ExitCode::SUCCESS)
}
