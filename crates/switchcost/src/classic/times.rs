//! `times program [argument ...]`: runs a program and prints what times(2) says of it, in ticks and
//! converted (Sloan 1992, appendix 4).

use std::process::ExitCode;

use probe::classic::{ChildTicks, child_ticks};

use super::Call;
use super::command;
use crate::failure::say;

pub(super) fn run(call: &Call) -> ExitCode {
    let ended = match command::run(call) {
        Ok(ended) => ended,
        Err(code) => return code,
    };
    let (ticks, per_second) = (child_ticks(), rustix::param::clock_ticks_per_second());
    let pid = ended.pid;
    say(&format!("{pid}: rtime      {}usec", ended.real.as_micros()));
    lines(pid, ticks, per_second).iter().for_each(|line| say(line));
    ended.code()
}

fn lines(pid: i32, ticks: ChildTicks, per_second: u64) -> Vec<String> {
    let rows = [
        ("utime", ticks.user),
        ("stime", ticks.system),
        ("total", ticks.system + ticks.user),
        ("since", ticks.since),
    ];
    let row = |(name, ticks): (&str, i64)| {
        let us = ticks as f64 / (per_second as f64 / 1e6);
        format!("{pid}: {name}      {us:.6}usec ({ticks}tics)")
    };
    let first = format!("{pid}: tics/sec   {per_second}");
    std::iter::once(first).chain(rows.into_iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_microseconds_by_the_machines_own_rate() {
        let ticks = ChildTicks { user: 3, system: 5, since: 1_000_000 };
        let expected = [
            "7: tics/sec   250",
            "7: utime      12000.000000usec (3tics)",
            "7: stime      20000.000000usec (5tics)",
            "7: total      32000.000000usec (8tics)",
            "7: since      4000000000.000000usec (1000000tics)",
        ];
        assert_eq!(lines(7, ticks, 250), expected);
    }
}
