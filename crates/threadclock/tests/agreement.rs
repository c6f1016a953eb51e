//! Readings agree with the kernel's clock and never go backwards: a busy thread, one that sleeps or
//! yields, and many. More than a million reads.
#![allow(unsafe_code, clippy::unwrap_used)]

mod common;
use common::{Checker, on_every_tier, spin_ns};
use std::time::Duration;
use threadclock::ThreadClock;

#[test]
fn busy() {
    on_every_tier(|clock| {
        let mut checker = Checker::new(clock);
        for round in 0..20_000u64 {
            checker.reads(50);
            if round % 100 == 0 {
                spin_ns(round % 7 * 20_000);
            }
        }
        assert_eq!(checker.reads, 1_000_000);
        checker.report("busy");
    });
}

#[test]
fn every_single_read_between_two_of_the_kernels() {
    on_every_tier(|clock| {
        let mut checker = Checker::new(clock);
        for _ in 0..100_000 {
            checker.reads(1);
        }
        checker.report("each read");
    });
}

#[test]
fn sleeping() {
    on_every_tier(|clock| {
        let mut checker = Checker::new(clock);
        for round in 0..1_500 {
            std::thread::sleep(Duration::from_micros(round % 10 * 30));
            checker.reads(100);
        }
        checker.report("sleeping");
    });
}

#[test]
fn yielding() {
    on_every_tier(|clock| {
        let mut checker = Checker::new(clock);
        for _ in 0..20_000 {
            std::thread::yield_now();
            checker.reads(10);
        }
        checker.report("yielding");
    });
}

#[test]
fn sixty_four_threads() {
    on_every_tier(|own| {
        let tier = own.tier();
        std::thread::scope(|scope| {
            for thread in 0..64u64 {
                scope.spawn(move || {
                    let clock = ThreadClock::with_tier(tier).unwrap();
                    let mut checker = Checker::new(&clock);
                    for round in 0..100u64 {
                        checker.reads(30);
                        match (thread + round) % 4 {
                            0 => std::thread::yield_now(),
                            1 => spin_ns(100_000),
                            2 => std::thread::sleep(Duration::from_micros(50)),
                            _ => {}
                        }
                    }
                });
            }
        });
    });
}

/// Whatever bound is asked for is kept.
#[test]
fn other_bounds() {
    on_every_tier(|clock| {
        for asked_ns in [0, 5_000, 20_000, 1_000_000, u64::MAX] {
            let got_ns = clock.set_error_bound_ns(asked_ns);
            assert_eq!(got_ns, clock.error_bound_ns());
            assert!(got_ns <= 4_000_000_000);
            let mut checker = Checker::new(clock);
            for _ in 0..1_000 {
                checker.reads(100);
            }
            checker.report(&format!("bound {got_ns}"));
        }
    });
}
