//! `switchcost history`: figures that were published from 1984 to 2007.

use std::process::ExitCode;

use anyhow::{Context, Result};
use model::subject::published;
use serde::Serialize;

use crate::cli::{Destination, HistoryArgs};
use crate::report::{history, print, put};
use crate::subjects::find_published;

pub(super) fn run(args: &HistoryArgs) -> Result<ExitCode> {
    match &args.machine {
        None => {
            let all = published().context("the published figures")?;
            tell(&all, history::list(&all), args)?;
        }
        Some(name) => {
            let machine = find_published(name)?;
            tell(&machine, history::one(&machine), args)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell<T: Serialize>(what: &T, text: String, args: &HistoryArgs) -> Result<()> {
    if let Some(to) = &args.json {
        let mut bytes = serde_json::to_vec_pretty(what).context("cannot write JSON")?;
        bytes.push(b'\n');
        put(&bytes, to)?;
    }
    if args.json != Some(Destination::Stdout) {
        print(text.as_bytes()).context("cannot print the figures")?;
    }
    Ok(())
}
