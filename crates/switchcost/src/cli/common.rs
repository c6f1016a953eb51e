//! What all experiments have in common as typed: how long to measure, and where results go.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use rustix::fs::{Access, access};

use super::values::{Destination, above_zero, duration, seed, share};
use crate::failure::usage;

/// How long to measure; `BUDGET` is the seconds that an experiment takes if nothing is said.
#[derive(Debug, Args)]
#[command(next_help_heading = "Effort")]
pub(crate) struct Effort<const BUDGET: u64 = 20> {
    /// Stop when every interval's half-width is below this share of its figure
    ///
    /// A figure at full speed has a term for the scatter between launches, which keeps one launch at 2 % or more, and
    /// at 1 % or more once five stored launches have shown less scatter.
    #[arg(long, default_value = "2.5%", value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub(crate) precision: f64,

    /// Stop when this much time is spent; the first round is always finished
    ///
    /// While a case has too few clean slices the run goes on with such cases, up to three times as long.
    /// --rounds ends it all the same.
    #[arg(long, default_value = format!("{BUDGET}s"), value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) budget: Duration,

    /// Stop after this many rounds in any case
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u32>, allow_hyphen_values = true)]
    pub(crate) rounds: Option<u32>,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,
}

/// Where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Write the record as JSON (docs/record-format.md) to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,

    /// Write one row a sample as CSV to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<Destination>,

    /// Draw the charts below the table, in 80 columns or what the terminal has (COLUMNS, NO_COLOR)
    #[arg(long)]
    pub(crate) plot: bool,

    /// No progress and no table: only errors, and what --json and --csv ask for
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Destination {
    /// Whether both are one place, whatever way leads there.
    fn is(&self, other: &Self) -> bool {
        let real = |path: &Path| {
            if let Ok(there) = path.canonicalize() {
                return Some(there);
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
            Some(folder.join(path.file_name()?))
        };
        match (self, other) {
            (Self::File(one), Self::File(other)) => {
                one == other || real(one).is_some_and(|path| Some(path) == real(other))
            }
            _ => self == other,
        }
    }
}

impl Output {
    /// For what has no chart.
    pub(crate) fn refuse_plot(&self, what: &str) -> anyhow::Result<()> {
        match self.plot {
            true => Err(usage(format!("--plot: {what} has no charts"))),
            false => Ok(()),
        }
    }

    /// Whether what is asked for can be written, before anything is measured for it. Nothing is changed.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match (&self.json, &self.csv) {
            // Two formats in one place would be neither.
            (Some(json), Some(csv)) if json.is(csv) => {
                let place = match json {
                    Destination::Stdout => "standard output",
                    Destination::File(_) => "that file",
                };
                let both = format!("--json {json} and --csv {csv}");
                Err(usage(format!("{both}: only one of them can have {place}")))
            }
            _ => self.check_places(),
        }
    }

    fn check_places(&self) -> anyhow::Result<()> {
        let wanted = [("--json", &self.json), ("--csv", &self.csv)];
        wanted
            .into_iter()
            .filter_map(|(flag, to)| Some((flag, to.as_ref()?)))
            .try_for_each(|(flag, to)| check_place(flag, to))
    }
}

/// Whether what a flag names can be written. Nothing is changed.
pub(crate) fn check_place(flag: &str, to: &Destination) -> anyhow::Result<()> {
    let Destination::File(path) = to else {
        return match probe::output_was_closed() {
            true => Err(usage(format!("{flag} -: standard output is closed"))),
            false => Ok(()),
        };
    };
    let refuse = |why: &dyn Display| usage(format!("{flag} {}: {why}", path.display()));
    match path.metadata() {
        Ok(there) if there.is_dir() => Err(refuse(&"it is a directory")),
        Ok(_) => access(path, Access::WRITE_OK).map_err(|errno| refuse(&io::Error::from(errno))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            let writable = access(folder, Access::WRITE_OK | Access::EXEC_OK);
            writable.map_err(|errno| {
                let error = io::Error::from(errno);
                refuse(&format!("{} cannot be written to: {error}", folder.display()))
            })
        }
        Err(error) => Err(refuse(&error)),
    }
}
