//! `switchcost chart`: draws figures that other programs have made, as the Python package does for
//! the page of a fleet.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use charts::{Figure, InlineSize, inline_svg};
use clap::Args;
use serde_json::Deserializer;

use crate::report::output::print;

#[derive(Debug, Args)]
pub(crate) struct ChartArgs {
    /// Figures in JSON (`switchcost help schema figure`), one behind the other; - is standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,

    /// Draw them for 320 pixels, to stand side by side, not for 640
    #[arg(long)]
    panel: bool,
}

/// Prints a line of SVG for each figure.
pub(crate) fn run(args: &ChartArgs) -> Result<ExitCode> {
    let name = args.file.display();
    let mut text = Vec::new();
    if args.file.as_os_str() == "-" {
        io::stdin().read_to_end(&mut text).context("cannot read standard input")?;
    } else {
        text = fs::read(&args.file).with_context(|| format!("cannot read {name}"))?;
    }
    let size = if args.panel { InlineSize::Panel } else { InlineSize::Whole };
    let mut lines = String::new();
    for (number, figure) in Deserializer::from_slice(&text).into_iter::<Figure>().enumerate() {
        let figure = figure.with_context(|| {
            format!(
                "{name}: figure {} cannot be read (`switchcost help schema figure`)",
                number + 1
            )
        })?;
        lines += &inline_svg(&figure, size);
        lines.push('\n');
    }
    print(lines.as_bytes()).context("cannot print the charts")?;
    Ok(ExitCode::SUCCESS)
}
