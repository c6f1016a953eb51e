//! Measures the two promised ratios: the three readings alternate within one run, so that a
//! disturbance affects all. Prints whether the promises are kept; with `--check` fails (exit 1) if not.
#![allow(unsafe_code, missing_docs)]

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::Instant;
use threadclock::{ThreadClock, Tier};

const ROUNDS: usize = 301;
const READS: u32 = 20_000;
const MAX_RATIO_TO_STAMP: f64 = 1.15;
const MIN_RATIO_OF_KERNEL: f64 = 30.0;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn stamp() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn stamp() -> u64 {
    let value: u64;
    // SAFETY: reads a counter.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) value) };
    value
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn stamp() -> u64 {
    kernel()
}

fn kernel() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel fills `time`; zeroes are a value too.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn each_ns(reads: u32, mut read: impl FnMut() -> u64) -> f64 {
    let started = Instant::now();
    for _ in 0..reads {
        black_box(read());
    }
    started.elapsed().as_nanos() as f64 / f64::from(reads)
}

/// Median, and the middle half.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}

fn main() {
    let Ok(clock) =
        ThreadClock::with_tier(Tier::Rseq).or_else(|_| ThreadClock::with_tier(Tier::PerfPage))
    else {
        println!("skipped: only the kernel tier is available");
        return;
    };
    let [mut stamps, mut nows, mut kernels] = [(); 3].map(|()| Vec::with_capacity(ROUNDS));
    let (mut above, mut below) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    for round in 0..ROUNDS {
        // In turn first: what follows a pause is slower.
        let (bare, now) = if round % 2 == 0 {
            let bare = each_ns(READS, stamp);
            (bare, each_ns(READS, || clock.now().ns))
        } else {
            let now = each_ns(READS, || clock.now().ns);
            (each_ns(READS, stamp), now)
        };
        let asked = each_ns(READS / 40, kernel);
        above.push(now / bare);
        below.push(asked / now);
        stamps.push(bare);
        nows.push(now);
        kernels.push(asked);
    }
    println!("{} tier, {ROUNDS} rounds of {READS}: median (middle half)", clock.tier());
    let show = |name: &str, values: Vec<f64>| {
        let [low, median, high] = quartiles(values);
        println!("{name:32} {median:9.3} ({low:.3} .. {high:.3})");
        median
    };
    show("time stamp, ns", stamps);
    show("now(), ns", nows);
    show("CLOCK_THREAD_CPUTIME_ID, ns", kernels);
    let above = show("now() / time stamp", above);
    let below = show("CLOCK_THREAD_CPUTIME_ID / now()", below);
    let kept = above <= MAX_RATIO_TO_STAMP && below >= MIN_RATIO_OF_KERNEL;
    println!(
        "{}: at most {MAX_RATIO_TO_STAMP} and at least {MIN_RATIO_OF_KERNEL}",
        if kept { "kept" } else { "NOT KEPT" }
    );
    if !kept && std::env::args().any(|argument| argument == "--check") {
        std::process::exit(1);
    }
}
