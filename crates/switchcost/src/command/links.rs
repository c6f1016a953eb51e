//! `switchcost links`: what can carry the token, and what of it this machine has.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use probe::ring::LINKS;
use serde::Serialize;

use crate::cli::{Destination, LinksArgs};
use crate::report::{print, put};

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

pub(super) fn run(args: &LinksArgs) -> Result<ExitCode> {
    let list = |link: &probe::ring::Registered| {
        let why_not = link.available().err();
        let (name, summary, needs) = (link.name, link.summary, link.needs);
        Listed { name, summary, needs, available: why_not.is_none(), why_not }
    };
    let links: Vec<Listed> = LINKS.iter().map(list).collect();
    if let Some(to) = &args.json {
        let mut bytes = serde_json::to_vec_pretty(&links).context("cannot write JSON")?;
        bytes.push(b'\n');
        put(&bytes, to)?;
    }
    if args.json != Some(Destination::Stdout) {
        print(text(&links).as_bytes()).context("cannot print the links")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Two lines a link: sentences do not fit into columns.
fn text(links: &[Listed]) -> String {
    let width = links.iter().map(|link| link.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    // Writing to a String cannot fail.
    for Listed { name, summary, needs, why_not, .. } in links {
        let here = match why_not {
            None => "available".to_string(),
            Some(why) => format!("not available: {why}"),
        };
        let _ = writeln!(text, "{name:width$}  {summary}");
        let _ = writeln!(text, "{:width$}  needs {needs}; {here}", "");
    }
    text
}
