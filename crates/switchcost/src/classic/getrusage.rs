//! `getrusage program [argument ...]`: runs a program and prints every field of its getrusage
//! structure (Sloan 1992, appendix 3).

use std::process::ExitCode;

use super::Call;
use super::command::{self, Ended};
use crate::failure::say;

pub(super) fn run(call: &Call) -> ExitCode {
    match command::run(call) {
        Ok(ended) => {
            lines(&ended).iter().for_each(|line| say(line));
            ended.code()
        }
        Err(code) => code,
    }
}

/// Names, spaces and order are the original's.
fn lines(ended: &Ended) -> Vec<String> {
    let used = &ended.account;
    let times = [
        ("rtime", ended.real.as_micros() as i64),
        ("utime", used.utime_us),
        ("stime", used.stime_us),
        ("total", used.stime_us + used.utime_us),
    ];
    let counts = [
        ("maxrss", used.maxrss),
        ("ixrss", used.ixrss),
        ("idrss", used.idrss),
        ("isrss", used.isrss),
        ("minflt", used.minflt),
        ("majflt", used.majflt),
        ("nswap", used.nswap),
        ("inblock", used.inblock),
        ("oublock", used.oublock),
        ("msgsnd", used.msgsnd),
        ("msgrcv", used.msgrcv),
        ("nsignals", used.nsignals),
        ("nvcsw", used.nvcsw),
        ("nivcsw", used.nivcsw),
    ];
    let line = |name: &str, value: i64, unit: &str| {
        format!("{}: {name}          {value}{unit}", ended.pid)
    };
    let times = times.iter().map(|(name, us)| line(name, *us, "usec"));
    times.chain(counts.iter().map(|(name, count)| line(name, *count, ""))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use probe::classic::Account;

    use super::*;

    /// The original's total() left a sum of exactly 1,000,000 us uncarried and printed 11000000.
    #[test]
    fn a_sum_of_whole_seconds_is_carried() {
        let account = Account {
            status: 0,
            utime_us: 1_400_000,
            stime_us: 600_000,
            maxrss: 1,
            ixrss: 2,
            idrss: 3,
            isrss: 4,
            minflt: 5,
            majflt: 6,
            nswap: 7,
            inblock: 8,
            oublock: 9,
            msgsnd: 10,
            msgrcv: 11,
            nsignals: 12,
            nvcsw: 13,
            nivcsw: 14,
        };
        let ended = Ended { pid: 77, real: Duration::from_micros(5_000_001), account };
        let lines = lines(&ended);
        assert_eq!(lines[0], "77: rtime          5000001usec");
        assert_eq!(lines[3], "77: total          2000000usec");
        // Each field under its own name: they are numbered in the original's order.
        for (index, line) in lines.iter().skip(4).enumerate() {
            assert!(line.ends_with(&format!("          {}", index + 1)), "{line}");
        }
    }
}
