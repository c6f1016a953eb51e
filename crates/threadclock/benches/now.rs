//! The cost of a reading beside the readings that it replaces, in one run: `cargo bench -p
//! threadclock`.
#![allow(unsafe_code, missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::mem::MaybeUninit;
use threadclock::{CoreClock, ThreadClock, Tier};

/// The bare time stamp, as the crate reads it; the kernel's monotonic clock elsewhere.
#[inline(always)]
fn stamp() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a counter.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let value: u64;
        // SAFETY: reads a counter.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) value) };
        return value;
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    clock(libc::CLOCK_MONOTONIC)
}

fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel fills `time`; zeroes are a value too.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn rusage() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills `usage`.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
}

fn readings(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    group.bench_function("time_stamp", |bencher| bencher.iter(stamp));
    for clock in Tier::ALL.into_iter().flat_map(ThreadClock::with_tier) {
        let name = format!("now/{}", clock.tier());
        group.bench_function(&name, |bencher| bencher.iter(|| clock.now()));
    }
    let best = ThreadClock::for_this_thread();
    group.bench_function("now_ordered", |bencher| bencher.iter(|| best.now_ordered()));
    group.bench_function("without_a_handle", |bencher| bencher.iter(threadclock::now));
    group.bench_function("getpinfo_self", |bencher| {
        bencher.iter(|| threadclock::getpinfo(black_box(0)));
    });
    if let Ok(cycles) = CoreClock::for_this_thread() {
        group.bench_function("core_cycles", |bencher| bencher.iter(|| cycles.now()));
    }
    group.bench_function("clock_monotonic", |bencher| {
        bencher.iter(|| clock(libc::CLOCK_MONOTONIC));
    });
    group.bench_function("clock_thread_cputime_id", |bencher| {
        bencher.iter(|| clock(libc::CLOCK_THREAD_CPUTIME_ID));
    });
    group.bench_function("getrusage_thread", |bencher| bencher.iter(rusage));
    group.finish();
}

criterion_group!(benches, readings);
criterion_main!(benches);
