//! `switchcost cost --pid PID` and `switchcost cost -- CMD` as typed.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

/// Seconds as a number (10) or with a unit (10s, 500ms), up to a day.
fn seconds(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(86_400);
    let number = text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    match number.or_else(|| humantime::parse_duration(text).ok()) {
        Some(time) if !time.is_zero() && time <= LONGEST => Ok(time),
        _ => Err("accepted: above zero and up to a day, as 10, 0.5, 10s or 2m".to_string()),
    }
}

/// What belongs to the other experiments of `cost`: a program's cost takes what they have measured.
const NOT_OF_A_PROGRAM: [&str; 16] = [
    "interference",
    "array",
    "deep",
    "stride",
    "op",
    "tlb",
    "huge_pages",
    "members",
    "kind",
    "placement",
    "policy",
    "laps",
    "precision",
    "budget",
    "rounds",
    "seed",
];

#[derive(Debug, Args)]
#[command(next_help_heading = "A program's cost")]
pub(crate) struct ProgramArgs {
    /// What switching costs this running program: its switches, CPU time and working set, on this
    /// machine's measured costs
    ///
    /// Its threads are only looked at, but the referenced bits of its pages are cleared a few times
    /// (clear_refs of proc(5), where that is permitted), which holds its memory map for some microseconds a
    /// MiB; not again once that took over 10 ms.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..), conflicts_with_all = NOT_OF_A_PROGRAM, allow_hyphen_values = true)]
    pub(crate) pid: Option<i32>,

    /// How long the program is watched
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = seconds, requires = "pid", allow_hyphen_values = true)]
    pub(crate) seconds: Duration,

    /// The same for a command, from its start to its end; the figures go to standard error
    #[arg(last = true, value_name = "CMD", conflicts_with = "pid", conflicts_with_all = NOT_OF_A_PROGRAM)]
    pub(crate) command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_need_no_unit() {
        assert_eq!(seconds("10"), Ok(Duration::from_secs(10)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("2m"), Ok(Duration::from_secs(120)));
        for bad in ["0", "-1", "nan", "inf", "", "soon", "86401"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
