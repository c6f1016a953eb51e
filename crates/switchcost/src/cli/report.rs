//! `switchcost report` as typed.

use std::path::PathBuf;

use clap::Args;

use super::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// What to draw: a run (name, start of a name, `last`, or a file), or history:MACHINE
    ///
    /// Several are drawn over each other in the same axes, in the order given.
    #[arg(required = true)]
    pub(crate) runs: Vec<String>,

    /// Where the report goes, or - for standard output
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(short, long, value_name = "FILE|-", default_value_t = Destination::File(PathBuf::from("report.html")))]
    pub(crate) output: Destination,

    /// Write each chart as an SVG file into this folder too, its text as outlines
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,

    /// Write each chart as a PNG file into this folder too, 300 pixels to the inch on a page's width
    #[arg(long, value_name = "DIR")]
    pub(crate) png: Option<PathBuf>,
}
