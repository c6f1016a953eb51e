//! The programs of Hines et al. (2000): getpinfo(), the precise CPU time of a thread, beside
//! getrusage().

use std::fmt::Write;
use std::hint::black_box;
use std::process::ExitCode;

use probe::classic::{HeapBlock, UsageScope, first_primes, usage};
use threadclock::{CpuTime, ThreadClock, getpinfo, time_stamp_ordered};

use crate::{CountRange, ProgramCall, ProgramResult, print};

/// Number of trials of each size. The maximum is because the outcome of each is kept.
const TRIALS: CountRange = CountRange { default: 1_000, max: 1_000_000 };

/// Returns the sizes, and the number of trials of each: the paper's 100 to 5000 by 100, or the one
/// size that is asked for.
fn sizes(call: &ProgramCall, words: &str, max: u32) -> Result<(Vec<u32>, u32), ExitCode> {
    let [size, trials] = call.counts(words, [CountRange { default: 0, max }, TRIALS])?;
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

/// Formats a figure with `decimals` digits after the point; a dash if it is not known.
fn or_dash(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(value) => format!("{value:.decimals$}"),
        None => "-".to_string(),
    }
}

/// Returns the mean; `None` without values.
fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// The mean of trials, and their standard deviation as a sample (n - 1); `None` if they are too few.
struct TrialStatistics {
    mean: Option<f64>,
    sd: Option<f64>,
}

impl TrialStatistics {
    fn new(trials: impl IntoIterator<Item = i64>) -> Self {
        let values: Vec<f64> = trials.into_iter().map(|value| value as f64).collect();
        let Some(mean) = mean(&values) else { return Self { mean: None, sd: None } };
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let variance = squares / (values.len() as f64 - 1.0);
        let sd = if values.len() > 1 { Some(variance.sqrt()) } else { None };
        Self { mean: Some(mean), sd }
    }
}

/// Number of calls before any is timed: the first one of getpinfo() measures the counter's rate.
const WARM_UP_CALLS: u32 = 100;

/// Runs `test_cycles [trials]`: the cost of getrusage() and getpinfo(), in ticks of the time-stamp
/// counter read before and after each (section 4, Table 1).
pub(crate) fn test_cycles(call: &ProgramCall) -> ProgramResult {
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

/// Times each call in ticks. Measured code.
#[inline(never)]
fn ticks(trials: u32, call: impl Fn()) -> TrialStatistics {
    for _ in 0..WARM_UP_CALLS {
        call();
    }
    // Reserved before the first call: nothing is allocated between two calls.
    let mut ticks = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = time_stamp_ordered().unwrap_or(0);
        call();
        let end = time_stamp_ordered().unwrap_or(0);
        ticks.push(end.wrapping_sub(start) as i64);
    }
    TrialStatistics::new(ticks)
}

fn cycles_table(rows: &[(&str, TrialStatistics)]) -> String {
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

/// Limits the number of primes: finding more takes minutes a trial.
const MAX_PRIMES: u32 = 10_000_000;

/// Runs `primes [primes [trials]]`: the first N primes, computed many times and timed by getrusage()
/// and by getpinfo() (section 4, Figure 2).
pub(crate) fn primes(call: &ProgramCall) -> ProgramResult {
    let (sizes, trials) = sizes(call, "[primes [trials]]", MAX_PRIMES)?;
    print(
        "             getrusage() us           getpinfo() us\nprimes    average  std. dev.    \
         average  std. dev.\n",
    )?;
    ask_the_kernel_rarely();
    let mut ratios = Vec::new();
    for primes in sizes {
        let (by_getrusage, by_getpinfo) = time_primes(primes as usize, trials);
        print(&primes_row(primes, &by_getrusage, &by_getpinfo))?;
        if let (Some(rusage_sd), Some(pinfo_sd)) = (by_getrusage.sd, by_getpinfo.sd) {
            ratios.push(rusage_sd / pinfo_sd);
        }
    }
    print(&gain(&ratios))
}

/// Returns the CPU time of a trial in nanoseconds, by getrusage() and by getpinfo(). Each has all its
/// trials in a row: a call of one would bring the kernel's figures up to date for the other.
fn time_primes(primes: usize, trials: u32) -> (TrialStatistics, TrialStatistics) {
    let mut found = Vec::with_capacity(primes);
    let mut work = || first_primes(black_box(&mut found), black_box(primes));
    work();
    let by_getrusage = time_trials(trials, || usage(UsageScope::Own).total_ns(), &mut work);
    let by_getpinfo = time_trials(trials, || getpinfo(0).map_or(0, |time| time.ns), &mut work);
    (by_getrusage, by_getpinfo)
}

/// Times each trial by a clock in nanoseconds. Measured code.
fn time_trials(trials: u32, now_ns: impl Fn() -> u64, work: &mut impl FnMut()) -> TrialStatistics {
    let mut times_ns = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = now_ns();
        work();
        times_ns.push(now_ns() as i64 - start as i64);
    }
    TrialStatistics::new(times_ns)
}

fn primes_row(
    primes: u32,
    by_getrusage: &TrialStatistics,
    by_getpinfo: &TrialStatistics,
) -> String {
    format!(
        "{primes:>6} {:>10} {:>10} {:>10} {:>10}\n",
        us_text(by_getrusage.mean),
        us_text(by_getrusage.sd),
        us_text(by_getpinfo.mean),
        us_text(by_getpinfo.sd)
    )
}

/// Formats nanoseconds as microseconds.
fn us_text(ns: Option<f64>) -> String {
    or_dash(ns.map(|ns| ns / 1e3), 3)
}

/// Formats the paper's one number: by how much the standard deviation by getrusage() is larger; over
/// several numbers of primes the geometric mean of the ratios.
fn gain(ratios: &[f64]) -> String {
    let mut logarithms = Vec::new();
    for ratio in ratios {
        if ratio.ln().is_finite() {
            logarithms.push(ratio.ln());
        }
    }
    let percent = mean(&logarithms).map(|logarithm| 100.0 * (logarithm.exp() - 1.0));
    format!("increase in precision by getpinfo(): {}%\n", or_dash(percent, 0))
}

/// Runs `malloc_stats [bytes [trials]]`: the cost of malloc by size of the block, by getpinfo()
/// (section 4, Table 2).
pub(crate) fn malloc_stats(call: &ProgramCall) -> ProgramResult {
    let (sizes, trials) = sizes(call, "[bytes [trials]]", u32::MAX)?;
    ask_the_kernel_rarely();
    let empty = time_empty(trials);
    print("  bytes  average cycles  std. dev.  without getpinfo()       us\n")?;
    let mut all_times = Vec::new();
    for bytes in &sizes {
        let Some(times) = time_allocations(*bytes as usize, trials) else {
            let blocks = format!("malloc could not allocate {trials} blocks of {bytes} bytes");
            return Err(call.fail(&format!("{blocks}: ask for smaller or fewer ones"), 1));
        };
        print(&malloc_row(&bytes.to_string(), &times, &empty))?;
        all_times.extend(times);
    }
    if sizes.len() > 1 {
        print(&malloc_row("all", &all_times, &empty))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn now() -> CpuTime {
    getpinfo(0).unwrap_or_default()
}

/// Times intervals with nothing in them: the cost of getpinfo() itself. Measured code.
#[inline(never)]
fn time_empty(trials: u32) -> Vec<CpuInterval> {
    now();
    let mut times = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = now();
        times.push(CpuInterval::between(start, now()));
    }
    times
}

/// Times the allocation of each of `trials` blocks, then frees them. `None` if one could not be
/// allocated. Measured code.
#[inline(never)]
fn time_allocations(bytes: usize, trials: u32) -> Option<Vec<CpuInterval>> {
    // Reserved before the first call: nothing of our own is allocated between two calls.
    let mut times = Vec::with_capacity(trials as usize);
    let mut blocks = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let start = now();
        let block = HeapBlock::new(bytes);
        times.push(CpuInterval::between(start, now()));
        blocks.push(block);
    }
    let mut is_complete = true;
    for block in blocks {
        match block {
            Some(block) => block.free(),
            None => is_complete = false,
        }
    }
    is_complete.then_some(times)
}

/// The CPU time between two readings; signed, as it is a difference.
#[derive(Clone, Copy)]
struct CpuInterval {
    cycles: i64,
    ns: i64,
}

impl CpuInterval {
    fn between(start: CpuTime, end: CpuTime) -> Self {
        Self {
            cycles: end.cycles as i64 - start.cycles as i64,
            ns: end.ns as i64 - start.ns as i64,
        }
    }
}

/// Formats a row of the table. The last two columns are without the cost of getpinfo() itself, which
/// `empty` has.
fn malloc_row(name: &str, times: &[CpuInterval], empty: &[CpuInterval]) -> String {
    let (cycles, empty_cycles) = (cycles_statistics(times), cycles_statistics(empty));
    let (ns, empty_ns) = (ns_statistics(times), ns_statistics(empty));
    format!(
        "{name:>7}  {:>14}  {:>9}  {:>18}  {:>7}\n",
        or_dash(cycles.mean, 1),
        or_dash(cycles.sd, 1),
        or_dash(mean_difference(&cycles, &empty_cycles), 1),
        us_text(mean_difference(&ns, &empty_ns))
    )
}

fn cycles_statistics(times: &[CpuInterval]) -> TrialStatistics {
    TrialStatistics::new(times.iter().map(|time| time.cycles))
}

fn ns_statistics(times: &[CpuInterval]) -> TrialStatistics {
    TrialStatistics::new(times.iter().map(|time| time.ns))
}

fn mean_difference(minuend: &TrialStatistics, subtrahend: &TrialStatistics) -> Option<f64> {
    Some(minuend.mean? - subtrahend.mean?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_table() {
        let rows = [
            ("getrusage()", TrialStatistics::new([300, 400, 500])),
            ("getpinfo()", TrialStatistics::new([213])),
        ];
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
        let (rusage, pinfo) = (TrialStatistics::new([1_000, 3_000]), TrialStatistics::new([2_000]));
        assert_eq!(
            primes_row(100, &rusage, &pinfo),
            "   100      2.000      1.414      2.000          -\n"
        );
    }

    #[test]
    fn getpinfo_is_taken_off_and_the_sign_kept() {
        let all = |values: &[i64]| -> Vec<CpuInterval> {
            values.iter().map(|v| CpuInterval { cycles: *v, ns: *v * 10 }).collect()
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
