//! `test_cycles [trials]`: what getrusage() and getpinfo() cost, in ticks of the time-stamp counter
//! read before and after each (Hines et al. 2000, section 4, Table 1).

use std::fmt::Write;
use std::hint::black_box;
use std::process::ExitCode;

use model::trial::Tally;
use probe::classic::{Whose, usage};
use threadclock::{getpinfo, time_stamp_ordered};

use super::argument::{TRIALS, counts};
use super::{Call, print};

/// Calls that are made before any is timed: the first one of getpinfo() finds out the counter's rate.
const WARM_UP: u32 = 100;

pub(super) fn run(call: &Call) -> ExitCode {
    let trials = match counts(call, "[trials]", [TRIALS]) {
        Ok([trials]) => trials,
        Err(code) => return code,
    };
    if time_stamp_ordered().is_none() {
        return call.fail("this processor has no time-stamp counter that user space can read", 1);
    }
    let rows = [
        (
            "getrusage()",
            ticks(trials, || {
                black_box(usage(Whose::Own));
            }),
        ),
        (
            "getpinfo()",
            ticks(trials, || {
                let _ = black_box(getpinfo(0));
            }),
        ),
    ];
    match print(&table(&rows)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

/// Measured code.
#[inline(never)]
fn ticks(trials: u32, call: impl Fn()) -> Tally {
    for _ in 0..WARM_UP {
        call();
    }
    // Room for all before the first: nothing is allocated between two calls.
    let mut all = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = time_stamp_ordered().unwrap_or(0);
        call();
        let end = time_stamp_ordered().unwrap_or(0);
        all.push(end.wrapping_sub(start) as i64);
    }
    Tally::from_iter(all)
}

fn table(rows: &[(&str, Tally)]) -> String {
    let mut text = format!("{:11}  Average Cycles per call  Standard Deviation\n", "");
    for (name, ticks) in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{name:11}  {:>23.0}  {:>18}",
            ticks.mean().unwrap_or(f64::NAN),
            super::or_dash(ticks.sd(), 0)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_table() {
        let rows = [
            ("getrusage()", Tally::from_iter([300, 400, 500])),
            ("getpinfo()", Tally::from_iter([213])),
        ];
        let expected = "             Average Cycles per call  Standard Deviation
getrusage()                      400                 100
getpinfo()                       213                   -
";
        assert_eq!(table(&rows), expected);
    }
}
