//! Wake-ups under load, a part of `response`: `plan` makes the cases from what was typed, `report`
//! the sentences, tables and charts.

pub(super) mod plan;
pub(super) mod report;

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use rundata::ring::MemberKind;
use rundata::trial::load::{
    MAX_BUSY_TASKS, MAX_LOAD_PERMILLE, MAX_RATE_PER_S, MAX_SLEEP_NS, MAX_THINK_NS, MAX_WORK_BYTES,
    MAX_WORKERS, WakeMechanism, WakerPlace,
};

use crate::base::values::{bytes, duration, nanoseconds, whole};

/// What is measured with `--only load`.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Wake-ups under load (--only load)")]
pub(crate) struct LoadArgs {
    /// Load: share of the workers' CPUs that requests take [default: 80%]
    ///
    /// Requests arrive at exponential gaps, whether or not earlier ones are done; the rate is the
    /// load over the time of a request. Above 100% the queues grow. An idle machine is measured
    /// beside.
    #[arg(long, value_name = "SHARE,...", value_delimiter = ',', value_parser = load_permille)]
    pub(crate) load: Vec<u32>,

    /// Requests a second, of all messengers together
    #[arg(long, value_name = "COUNT,...", value_delimiter = ',', value_parser = whole(1..=MAX_RATE_PER_S))]
    pub(crate) rate: Vec<u32>,

    /// Time from one wake of a worker to the next, at equal gaps: what idle states add
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = sleep_ns, conflicts_with_all = ["load", "rate"])]
    pub(crate) sleep: Vec<u64>,

    /// Time that a request takes an undisturbed CPU [default: 20us; with --sleep: 0]
    #[arg(long, value_name = "TIME", value_parser = think_ns)]
    pub(crate) think: Option<u64>,

    /// A request walks over so many bytes instead, of each worker its own
    #[arg(long, value_name = "BYTES", value_parser = work_bytes, conflicts_with = "think")]
    pub(crate) work: Option<u64>,

    /// Workers, each with a queue of its own [default: 1; with --waker free one a CPU]
    #[arg(long, value_name = "COUNT", value_parser = whole(1..=MAX_WORKERS))]
    pub(crate) workers: Option<u32>,

    /// Messengers, which wake workers in turn [default: one for each 100,000 requests a second]
    #[arg(long, value_name = "COUNT", value_parser = whole(1..=MAX_WORKERS))]
    pub(crate) messengers: Option<u32>,

    /// Tasks that never wait, on the workers' CPUs [default: 0]
    #[arg(long, value_name = "COUNT", value_parser = whole(0..=MAX_BUSY_TASKS))]
    pub(crate) busy: Option<u32>,

    /// How messengers wake: futex, eventfd, pipe [default: futex]
    #[arg(long, value_name = "HOW,...", value_delimiter = ',', value_parser = WakeMechanism::from_str)]
    pub(crate) wake: Vec<WakeMechanism>,

    /// CPU of the messengers: same, near or far from the workers' CPU; free: the scheduler's choice
    /// for all [default: near]
    #[arg(long, value_name = "PLACE", value_parser = WakerPlace::from_str)]
    pub(crate) waker: Option<WakerPlace>,

    /// Workers and messengers as threads or processes [default: thread]
    #[arg(long, value_name = "KIND", value_parser = MemberKind::from_str)]
    pub(crate) kind: Option<MemberKind>,
}

impl LoadArgs {
    /// Returns the first option that was given; absent where none was.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--load", !self.load.is_empty()),
            ("--rate", !self.rate.is_empty()),
            ("--sleep", !self.sleep.is_empty()),
            ("--think", self.think.is_some()),
            ("--work", self.work.is_some()),
            ("--workers", self.workers.is_some()),
            ("--messengers", self.messengers.is_some()),
            ("--busy", self.busy.is_some()),
            ("--wake", !self.wake.is_empty()),
            ("--waker", self.waker.is_some()),
            ("--kind", self.kind.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }
}

/// Parses a load, `80%` or `0.8`, in thousandths.
fn load_permille(text: &str) -> Result<u32, String> {
    let most = MAX_LOAD_PERMILLE / 10;
    let accepted = format!("accepted: 0.1% to {most}%, as 80% or 0.8");
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    let permille = (share.map_err(|_| accepted.clone())? * 1000.0).round();
    if permille >= 1.0 && permille <= f64::from(MAX_LOAD_PERMILLE) {
        Ok(permille as u32)
    } else {
        Err(accepted)
    }
}

fn sleep_ns(text: &str) -> Result<u64, String> {
    let ns = nanoseconds(duration(text)?);
    let most = Duration::from_nanos(MAX_SLEEP_NS);
    if (1000..=MAX_SLEEP_NS).contains(&ns) {
        Ok(ns)
    } else {
        Err(format!("accepted: 1us to {most:?}"))
    }
}

fn think_ns(text: &str) -> Result<u64, String> {
    // No time at all is a request without work.
    let ns = if text == "0" { 0 } else { nanoseconds(duration(text)?) };
    let most = Duration::from_nanos(MAX_THINK_NS);
    if ns <= MAX_THINK_NS { Ok(ns) } else { Err(format!("accepted: 0 to {most:?}")) }
}

fn work_bytes(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    if (8..=MAX_WORK_BYTES).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!("accepted: 8 to {} MiB", MAX_WORK_BYTES >> 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_times_have_bounds() {
        assert_eq!(load_permille("80%"), Ok(800));
        assert_eq!(load_permille("1.2"), Ok(1200));
        assert_eq!(load_permille("0.1 %"), Ok(1));
        for refused in ["0%", "401%", "-5%", "nan", "inf", "", "%", "1e99", "80 percent"] {
            assert!(load_permille(refused).is_err(), "{refused}");
        }
        assert_eq!(
            (sleep_ns("10us"), think_ns("0"), think_ns("20us")),
            (Ok(10_000), Ok(0), Ok(20_000))
        );
        for refused in ["999ns", "101ms", "-1ms", "0"] {
            assert!(sleep_ns(refused).is_err(), "{refused}");
        }
        assert!(think_ns("11ms").is_err() && work_bytes("7").is_err() && work_bytes("2G").is_err());
    }
}
