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

/// Name that stands for everything that this machine has.
pub(crate) const ALL: &str = "all";

/// Returns whether the links are to be listed instead of measured: `--link help`.
pub(crate) fn is_list_wanted(asked: &[String]) -> bool {
    asked == ["help"]
}

/// Returns the links of these names, or all that can carry the token, with a note on each that is
/// left out of all. `case` is the ring without its link. A link that was asked for by name and that
/// is not available is an error.
pub(crate) fn choose(
    asked: &[String],
    case: &RingCase,
) -> Result<(Vec<&'static RegisteredLink>, Vec<String>)> {
    let is_all = asked == [ALL];
    let links = if is_all { LINKS.iter().collect() } else { named_links(asked)? };
    let (mut chosen, mut notices) = (Vec::new(), Vec::new());
    for link in links {
        match check_link(link, case) {
            Ok(()) => chosen.push(link),
            Err(why) if is_all => notices.push(format!("left out: {why}")),
            Err(why) => return Err(why),
        }
    }
    Ok((chosen, notices))
}

/// Returns the links of these names and aliases, each once.
fn named_links(asked: &[String]) -> Result<Vec<&'static RegisteredLink>> {
    let names = each_once(asked.iter().map(|name| resolve_alias(name.trim())));
    let mut links = Vec::new();
    for name in names {
        links.push(ring::find_link(name).ok_or_else(|| unknown_link(name))?);
    }
    Ok(links)
}

/// Checks that a link can carry the token of a case's ring and works on this machine.
fn check_link(link: &RegisteredLink, case: &RingCase) -> Result<()> {
    link.suits(case).map_err(usage)?;
    link.available().map_err(|why| anyhow!("--link {}: not available: {why}", link.name))
}

/// Returns the name that a link is stored and printed under; an unknown name stays as it is.
fn resolve_alias(name: &str) -> &str {
    ring::find_link(name).map_or(name, |link| link.name)
}

fn unknown_link(name: &str) -> anyhow::Error {
    let names: Vec<&str> = LINKS.iter().map(|link| link.name).collect();
    let (suggestion, names) = (suggest_name(name, names.iter().copied()), names.join(", "));
    usage(format!(
        "--link '{name}': no such link{suggestion} (accepted: {names}, a list of them, or all; `switchcost ring --link help` describes them)"
    ))
}

/// Line of the list of links, in the form of its JSON.
#[derive(Serialize)]
struct LinkLine {
    name: &'static str,
    aliases: &'static [&'static str],
    summary: &'static str,
    needs: &'static str,
    available: bool,
    /// Reason why the link is not available.
    why_not: Option<String>,
}

impl LinkLine {
    /// Tries the link on this machine.
    fn try_link(link: &RegisteredLink) -> Self {
        let why_not = link.available().err();
        Self {
            name: link.name,
            aliases: link.aliases,
            summary: link.summary,
            needs: link.needs,
            available: why_not.is_none(),
            why_not,
        }
    }

    /// Returns two lines of text, as sentences do not fit into columns; `width` is that of the
    /// names.
    fn in_words(&self, width: usize) -> String {
        let mut text = format!("{:width$}  {}", self.name, self.summary);
        for alias in self.aliases {
            text += &format!(" (also: {alias})");
        }
        let state = match &self.why_not {
            Some(why) => format!("not available: {why}"),
            None => "available".to_string(),
        };
        text + &format!("\n{:width$}  needs {}; {state}\n", "", self.needs)
    }
}

/// Prints the list of links.
pub(crate) fn run(args: &LinksArgs) -> Result<ExitCode> {
    let links: Vec<LinkLine> = LINKS.iter().map(LinkLine::try_link).collect();
    write_json(&links, args.json.as_ref())?;
    if args.json != Some(Destination::Stdout) {
        let width = links.iter().map(|link| link.name.len()).max().unwrap_or(0);
        let text: String = links.iter().map(|link| link.in_words(width)).collect();
        print_text(&text).context("cannot print the links")?;
    }
    Ok(ExitCode::SUCCESS)
}
