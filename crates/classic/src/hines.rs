//! The programs of Hines et al. (2000): getpinfo(), the precise CPU time of a thread, beside
//! getrusage().

use std::fmt::Write;
use std::hint::black_box;
use std::process::ExitCode;

use probe::classic::{HeapBlock, UsageScope, first_primes, usage};
use threadclock::{CpuTime, ThreadClock, getpinfo, time_stamp_ordered};

use crate::{Call, Ended, print};

/// Trials of each, by default and at most: each one's outcome is kept.
const TRIALS: (u32, u32) = (1_000, 1_000_000);

/// Sizes and trials for each: the paper's 100 to 5000 by 100, or the one size that is asked for,
/// and 1000 trials.
fn sizes(call: &Call, words: &str, most: u32) -> Result<(Vec<u32>, u32), ExitCode> {
    let [size, trials] = call.counts(words, [(0, most), TRIALS])?;
    let sizes = match size {
        0 => (100..=5_000).step_by(100).collect(),
        size => vec![size],
    };
    Ok((sizes, trials))
}

/// Lets getpinfo() be off by up to 10 ms before it asks the kernel again. By default it asks every
/// 50 us, which would fall into some of what is timed.
fn ask_the_kernel_rarely() {
    ThreadClock::for_this_thread().set_error_bound_ns(10_000_000);
}

/// A figure with so many decimals; a dash for what is not known.
fn or_dash(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_string(), |value| format!("{value:.decimals$}"))
}

/// Absent without values.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Mean, and standard deviation of a sample (n - 1), of trials; absent where there are too few.
struct Tally {
    mean: Option<f64>,
    sd: Option<f64>,
}

fn tally(trials: impl IntoIterator<Item = i64>) -> Tally {
    let trials: Vec<f64> = trials.into_iter().map(|value| value as f64).collect();
    let mean = mean(&trials);
    let of_squares = |mean: f64| trials.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let variance = mean.map(|mean| of_squares(mean) / (trials.len() as f64 - 1.0));
    Tally { mean, sd: variance.filter(|_| trials.len() > 1).map(f64::sqrt) }
}

/// Calls that are made before any is timed: the first one of getpinfo() finds out the counter's
/// rate.
const WARM_UP: u32 = 100;

/// `test_cycles [trials]`: what getrusage() and getpinfo() cost, in ticks of the time-stamp counter
/// read before and after each (section 4, Table 1).
pub(crate) fn test_cycles(call: &Call) -> Ended {
    let [trials] = call.counts("[trials]", [TRIALS])?;
    if time_stamp_ordered().is_none() {
        let why = "this processor has no time-stamp counter that user space can read";
        return Err(call.fail(why, 1));
    }
    let getrusage = ticks(trials, || {
        black_box(usage(UsageScope::Own));
    });
    let getpinfo = ticks(trials, || {
        let _ = black_box(getpinfo(0));
    });
    print(&cycles_table(&[("getrusage()", getrusage), ("getpinfo()", getpinfo)]))
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
    tally(all)
}

fn cycles_table(rows: &[(&str, Tally)]) -> String {
    let mut text = format!("{:11}  Average Cycles per call  Standard Deviation\n", "");
    for (name, ticks) in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{name:11}  {:>23.0}  {:>18}",
            ticks.mean.unwrap_or(f64::NAN),
            or_dash(ticks.sd, 0)
        );
    }
    text
}

/// Finding more takes minutes a trial.
const LARGEST: u32 = 10_000_000;

/// `primes [primes [trials]]`: the first N primes, computed many times and timed by getrusage() and
/// by getpinfo() (section 4, Figure 2).
pub(crate) fn primes(call: &Call) -> Ended {
    let (sizes, trials) = sizes(call, "[primes [trials]]", LARGEST)?;
    print(
        "             getrusage() us           getpinfo() us\nprimes    average  std. dev.    \
         average  std. dev.\n",
    )?;
    ask_the_kernel_rarely();
    let mut ratios = Vec::new();
    for primes in sizes {
        let (by_getrusage, by_getpinfo) = time(primes as usize, trials);
        print(&primes_row(primes, &by_getrusage, &by_getpinfo))?;
        ratios.extend(by_getrusage.sd.zip(by_getpinfo.sd).map(|(rusage, pinfo)| rusage / pinfo));
    }
    print(&gain(&ratios))
}

/// CPU time of each trial in nanoseconds, by getrusage() and by getpinfo(). Each has all its trials
/// in a row: what one asks the kernel brings the kernel's figures up to date for the other.
fn time(primes: usize, trials: u32) -> (Tally, Tally) {
    let mut found = Vec::with_capacity(primes);
    let mut work = || first_primes(black_box(&mut found), black_box(primes));
    work();
    let rusage = || usage(UsageScope::Own).total_ns();
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
    tally(all)
}

fn primes_row(primes: u32, by_getrusage: &Tally, by_getpinfo: &Tally) -> String {
    let us = |ns: Option<f64>| or_dash(ns.map(|ns| ns / 1e3), 3);
    format!(
        "{primes:>6} {:>10} {:>10} {:>10} {:>10}\n",
        us(by_getrusage.mean),
        us(by_getrusage.sd),
        us(by_getpinfo.mean),
        us(by_getpinfo.sd)
    )
}

/// The paper's one number: how much larger the standard deviation by getrusage() is; over several
/// numbers of primes the geometric mean of the ratios.
fn gain(ratios: &[f64]) -> String {
    let logs: Vec<f64> = ratios.iter().map(|r| r.ln()).filter(|log| log.is_finite()).collect();
    let mean = mean(&logs).map(|log| 100.0 * (log.exp() - 1.0));
    format!("increase in precision by getpinfo(): {}%\n", or_dash(mean, 0))
}

/// `malloc_stats [bytes [trials]]`: what malloc costs by size of the block, by getpinfo() (section
/// 4, Table 2).
pub(crate) fn malloc_stats(call: &Call) -> Ended {
    let (sizes, trials) = sizes(call, "[bytes [trials]]", u32::MAX)?;
    ask_the_kernel_rarely();
    let nothing = of_nothing(trials);
    print("  bytes  average cycles  std. dev.  without getpinfo()       us\n")?;
    let mut all = Vec::new();
    for bytes in &sizes {
        let Some(times) = allocate(*bytes as usize, trials) else {
            let blocks = format!("malloc could not allocate {trials} blocks of {bytes} bytes");
            return Err(call.fail(&format!("{blocks}: ask for smaller or fewer ones"), 1));
        };
        print(&malloc_row(&bytes.to_string(), &times, &nothing))?;
        all.extend(times);
    }
    if sizes.len() > 1 {
        print(&malloc_row("all", &all, &nothing))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn now() -> CpuTime {
    getpinfo(0).unwrap_or_default()
}

/// What getpinfo() itself takes.
#[inline(never)]
fn of_nothing(trials: u32) -> Vec<Taken> {
    now();
    let mut all = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = now();
        all.push(Taken::between(start, now()));
    }
    all
}

/// Allocates all blocks, then frees them. Measured code.
#[inline(never)]
fn allocate(bytes: usize, trials: u32) -> Option<Vec<Taken>> {
    // Room for all before the first: nothing of our own is allocated between two calls.
    let mut all = Vec::with_capacity(trials as usize);
    let mut blocks = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = now();
        let block = HeapBlock::new(bytes);
        all.push(Taken::between(start, now()));
        blocks.push(block);
    }
    let complete = blocks.iter().all(Option::is_some);
    blocks.into_iter().flatten().for_each(HeapBlock::free);
    complete.then_some(all)
}

/// CPU time between two readings; signed, as all differences are.
#[derive(Clone, Copy)]
struct Taken {
    cycles: i64,
    ns: i64,
}

impl Taken {
    fn between(start: CpuTime, end: CpuTime) -> Self {
        Self {
            cycles: end.cycles as i64 - start.cycles as i64,
            ns: end.ns as i64 - start.ns as i64,
        }
    }
}

/// Without what getpinfo() itself takes in the last two columns.
fn malloc_row(name: &str, taken: &[Taken], nothing: &[Taken]) -> String {
    let mean = |all: &[Taken], of: fn(&Taken) -> i64| tally(all.iter().map(of)).mean;
    let net = |of: fn(&Taken) -> i64| Some(mean(taken, of)? - mean(nothing, of)?);
    let cycles = tally(taken.iter().map(|taken| taken.cycles));
    format!(
        "{name:>7}  {:>14}  {:>9}  {:>18}  {:>7}\n",
        or_dash(cycles.mean, 1),
        or_dash(cycles.sd, 1),
        or_dash(net(|taken| taken.cycles), 1),
        or_dash(net(|taken| taken.ns).map(|ns| ns / 1e3), 3)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_table() {
        let rows = [("getrusage()", tally([300, 400, 500])), ("getpinfo()", tally([213]))];
        let expected = "             Average Cycles per call  Standard Deviation
getrusage()                      400                 100
getpinfo()                       213                   -
";
        assert_eq!(cycles_table(&rows), expected);
    }

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
        let (rusage, pinfo) = (tally([1_000, 3_000]), tally([2_000]));
        assert_eq!(
            primes_row(100, &rusage, &pinfo),
            "   100      2.000      1.414      2.000          -\n"
        );
    }

    #[test]
    fn getpinfo_is_taken_off_and_the_sign_kept() {
        let all = |values: &[i64]| -> Vec<Taken> {
            values.iter().map(|v| Taken { cycles: *v, ns: *v * 10 }).collect()
        };
        assert_eq!(
            malloc_row("100", &all(&[600, 800]), &all(&[100, 120])),
            "    100           700.0      141.4               590.0    5.900\n"
        );
        assert_eq!(
            malloc_row("all", &all(&[100]), &all(&[110])),
            "    all           100.0          -               -10.0   -0.100\n"
        );
    }
}
