//! `switchcost report`: runs as charts in one file.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;

use crate::cli::{Destination, ReportArgs};
use crate::report::html::{self, Drawn};
use crate::report::print;

pub(super) fn run(args: &ReportArgs) -> Result<ExitCode> {
    // Before runs are read and intervals computed: that takes seconds.
    html::check(&args.output)?;
    let drawn: Vec<Drawn> = args
        .runs
        .iter()
        .enumerate()
        .map(|(index, name)| Drawn::find(name, index))
        .collect::<Result<_>>()?;
    let pictures = html::write_pictures(&drawn, args.svg.as_deref(), args.png.as_deref())?;
    html::write(drawn, None, &args.output)?;
    if let Destination::File(path) = &args.output {
        let mut text = format!("report: {}\n", path.display());
        for picture in &pictures {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "picture: {}", picture.display());
        }
        print(text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
