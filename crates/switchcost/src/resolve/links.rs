//! Which links a ring is measured with: those asked for, or all that can be had.

use anyhow::{Result, anyhow};
use model::ring::Case;
use probe::ring::{self, LINKS, Registered};

use crate::cli::LinkNames;
use crate::failure::usage;

/// The links, and a word on each that was left out of all. `case` is the ring without its link. One
/// that was asked for by name and cannot be had is an error.
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
