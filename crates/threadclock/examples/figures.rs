//! The figures of docs/threadclock.md that are not benchmarks: what starting costs, and how far
//! readings are from the kernel's clock. `cargo run --release -p threadclock --example figures`
#![allow(unsafe_code)]

use std::time::{Duration, Instant};
use threadclock::{ThreadClock, Tier};

fn kernel_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn show(name: &str, mut values: Vec<i64>) {
    values.sort_unstable();
    let at = |of_1000: usize| values[(values.len() - 1) * of_1000 / 1000];
    println!(
        "{name:28} n {:7}: min {} p1 {} median {} p99 {} p99.9 {} max {}",
        values.len(),
        at(0),
        at(10),
        at(500),
        at(990),
        at(999),
        at(1000)
    );
}

/// Reading less the middle of the kernel's before and after, which is exact to half their distance:
/// pairs wider than 3 us (an interrupt between them) are left out.
fn differences(clock: &ThreadClock, mut between: impl FnMut(u32)) -> Vec<i64> {
    (0..100_000)
        .filter_map(|round| {
            between(round);
            clock.now();
            let before = kernel_ns();
            let read = clock.now().ns;
            let after = kernel_ns();
            let ahead = read as i64 - (before + (after - before) / 2) as i64;
            (after - before < 3_000).then_some(ahead)
        })
        .collect()
}

fn main() {
    let started = Instant::now();
    let clock = ThreadClock::for_this_thread();
    clock.now();
    println!("first clock of the process: {} us, {}", started.elapsed().as_micros(), clock.tier());
    let in_threads = (0..200).map(|_| {
        let thread = std::thread::spawn(|| {
            let started = Instant::now();
            ThreadClock::for_this_thread().now();
            started.elapsed().as_nanos() as i64
        });
        thread.join().unwrap_or(-1)
    });
    show("first of a thread, ns", in_threads.collect());

    for clock in [Tier::Rseq, Tier::PerfPage].into_iter().flat_map(ThreadClock::with_tier) {
        println!(
            "{} tier, bound {} ns, cost {:?}",
            clock.tier(),
            clock.error_bound_ns(),
            clock.read_cost()
        );
        show("ahead of the kernel, busy", differences(&clock, |_| ()));
        let sleep = |round| {
            if round % 50 == 0 {
                std::thread::sleep(Duration::from_micros(20));
            }
        };
        show("ahead, sleeping", differences(&clock, sleep));
        let wait = |_| {
            let until = Instant::now() + Duration::from_micros(10);
            while Instant::now() < until {}
        };
        show("ahead, 10 us between", differences(&clock, wait));
        println!("{:?}", clock.resyncs());
    }
}
