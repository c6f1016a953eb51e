//! `primes [primes [trials]]`: the first N primes, computed many times and timed by getrusage() and by
//! getpinfo() (Hines et al. 2000, section 4, Figure 2).

use std::hint::black_box;
use std::process::ExitCode;

use model::trial::Tally;
use probe::classic::{Whose, first_primes, usage};
use threadclock::getpinfo;

use super::argument::sizes;
use super::{Call, ask_the_kernel_rarely, or_dash, print};

/// Finding more takes minutes a trial.
const LARGEST: u32 = 10_000_000;

pub(super) fn run(call: &Call) -> ExitCode {
    let told =
        sizes(call, "[primes [trials]]", LARGEST).and_then(|(sizes, trials)| tell(&sizes, trials));
    told.err().unwrap_or(ExitCode::SUCCESS)
}

fn tell(sizes: &[u32], trials: u32) -> Result<(), ExitCode> {
    print(
        "             getrusage() us           getpinfo() us\nprimes    average  std. dev.    average  std. dev.\n",
    )?;
    ask_the_kernel_rarely();
    let mut ratios = Vec::new();
    for primes in sizes {
        let (by_getrusage, by_getpinfo) = time(*primes as usize, trials);
        print(&row(*primes, &by_getrusage, &by_getpinfo))?;
        ratios
            .extend(by_getrusage.sd().zip(by_getpinfo.sd()).map(|(rusage, pinfo)| rusage / pinfo));
    }
    print(&gain(&ratios))
}

/// CPU time of each trial in nanoseconds, by getrusage() and by getpinfo(). Each has all its trials in
/// a row: what one asks the kernel brings the kernel's figures up to date for the other.
fn time(primes: usize, trials: u32) -> (Tally, Tally) {
    let mut found = Vec::with_capacity(primes);
    let mut work = || first_primes(black_box(&mut found), black_box(primes));
    work();
    let rusage = || usage(Whose::Own).read().total_ns();
    let pinfo = || getpinfo(0).map_or(0, |time| time.ns);
    (trial(trials, rusage, &mut work), trial(trials, pinfo, &mut work))
}

/// Measured code.
fn trial(trials: u32, now_ns: impl Fn() -> u64, work: &mut impl FnMut()) -> Tally {
    let mut all = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = now_ns();
        work();
        all.push(now_ns() as i64 - start as i64);
    }
    Tally::from_iter(all)
}

fn row(primes: u32, by_getrusage: &Tally, by_getpinfo: &Tally) -> String {
    let us = |ns: Option<f64>| or_dash(ns.map(|ns| ns / 1e3), 3);
    format!(
        "{primes:>6} {:>10} {:>10} {:>10} {:>10}\n",
        us(by_getrusage.mean()),
        us(by_getrusage.sd()),
        us(by_getpinfo.mean()),
        us(by_getpinfo.sd())
    )
}

/// The paper's one number: how much larger the standard deviation by getrusage() is; over several
/// numbers of primes the geometric mean of the ratios.
fn gain(ratios: &[f64]) -> String {
    let logs: Vec<f64> = ratios.iter().map(|r| r.ln()).filter(|log| log.is_finite()).collect();
    let mean = stats::mean(&logs).map(|log| 100.0 * (log.exp() - 1.0));
    format!("increase in precision by getpinfo(): {}%\n", or_dash(mean, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_gain_is_six_times_less_scatter() {
        assert_eq!(gain(&[6.27]), "increase in precision by getpinfo(): 527%\n");
        assert_eq!(gain(&[2.0, 8.0]), "increase in precision by getpinfo(): 300%\n");
        assert_eq!(gain(&[0.5]), "increase in precision by getpinfo(): -50%\n");
        // Without scatter on one side there is no ratio.
        assert_eq!(gain(&[0.0, f64::INFINITY]), "increase in precision by getpinfo(): -%\n");
    }

    #[test]
    fn a_row_in_microseconds() {
        let (rusage, pinfo) = (Tally::from_iter([1_000, 3_000]), Tally::from_iter([2_000]));
        assert_eq!(
            row(100, &rusage, &pinfo),
            "   100      2.000      1.414      2.000          -\n"
        );
    }
}
