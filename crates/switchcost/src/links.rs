//! Links as typed and as this machine has them, and `switchcost links`.

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use model::ring::Case;
use probe::ring::{self, LINKS, Registered};
use serde::Serialize;

use crate::failure::usage;
use crate::output::{print, put_json};
use crate::values::Destination;

/// Names of links: all that are available here, or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkNames {
    All,
    These(Vec<String>),
}

impl FromStr for LinkNames {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let mut names: Vec<String> = Vec::new();
        for name in text.split(',').map(|name| name.trim().to_string()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(Self::These(names))
    }
}

#[derive(Debug, Args)]
pub(crate) struct LinksArgs {
    /// Write the list as JSON to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,
}

/// The links, and why each of the others was left out of all. `case` is the ring without its link. One
/// that was asked for by name and is not available is an error.
pub(crate) fn choose(
    asked: &LinkNames,
    case: &Case,
) -> Result<(Vec<&'static Registered>, Vec<String>)> {
    match asked {
        LinkNames::These(names) => {
            let one = |name: &String| {
                let link = ring::link(name).ok_or_else(|| unknown(name))?;
                link.suits(case).map_err(usage)?;
                let missing = |why| anyhow!("--link {name} cannot be used here: {why}");
                link.available().map_err(missing)?;
                Ok(link)
            };
            Ok((names.iter().map(one).collect::<Result<_>>()?, Vec::new()))
        }
        LinkNames::All => {
            let (mut links, mut notices) = (Vec::new(), Vec::new());
            for link in LINKS {
                let suits = link.suits(case).map_err(|error| error.to_string());
                let missing = |why| format!("--link {}: not available: {why}", link.name);
                match suits.and_then(|()| link.available().map_err(missing)) {
                    Ok(()) => links.push(link),
                    Err(why) => notices.push(format!("left out: {why}")),
                }
            }
            Ok((links, notices))
        }
    }
}

fn unknown(name: &str) -> anyhow::Error {
    let names: Vec<&str> = LINKS.iter().map(|link| link.name).collect();
    let names = names.join(", ");
    usage(format!("--link '{name}': no such link (accepted: {names}, a list of them, or all)"))
}

/// A link as it is listed.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    summary: &'static str,
    needs: &'static str,
    available: bool,
    /// Why it is not.
    why_not: Option<String>,
}

pub(crate) fn run(args: &LinksArgs) -> Result<ExitCode> {
    let list = |link: &Registered| {
        let why_not = link.available().err();
        let (name, summary, needs) = (link.name, link.summary, link.needs);
        Listed { name, summary, needs, available: why_not.is_none(), why_not }
    };
    let links: Vec<Listed> = LINKS.iter().map(list).collect();
    put_json(&links, args.json.as_ref())?;
    let width = links.iter().map(|link| link.name.len()).max().unwrap_or(0);
    // Two lines a link: sentences do not fit into columns.
    let lines = |Listed { name, summary, needs, why_not, .. }: &Listed| {
        let why = why_not.as_ref().map(|why| format!("not available: {why}"));
        let here = why.unwrap_or("available".to_string());
        format!("{name:width$}  {summary}\n{:width$}  needs {needs}; {here}\n", "")
    };
    if args.json != Some(Destination::Stdout) {
        let text: String = links.iter().map(lines).collect();
        print(text.as_bytes()).context("cannot print the links")?;
    }
    Ok(ExitCode::SUCCESS)
}
