//! Every switch that the kernel counted between two readings is seen by the second. The bound is
//! set to seconds, so that nothing but the sign of the switch makes a reading ask the kernel.
#![allow(unsafe_code, clippy::unwrap_used)]

mod common;
use common::{StopOnDrop, on_every_tier, spin_ns, switches};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use testing::Need;
use threadclock::{ResyncCounts, ThreadClock, Tier};

/// A pair of readings around `disturb`. Whether the kernel counted a switch between them.
fn switched_and_seen(clock: &ThreadClock, disturb: impl FnOnce()) -> bool {
    clock.now();
    let before = switches();
    disturb();
    let after = switches();
    // "unset" counts too: the first of the pair may have been preempted too often to take a base.
    let asked = |resyncs: ResyncCounts| resyncs.switched + resyncs.unset;
    let seen = asked(clock.resyncs());
    clock.now();
    if after > before {
        let now_seen = asked(clock.resyncs());
        assert!(now_seen > seen, "{}: a switch went unseen", clock.tier());
    }
    after > before
}

fn on_every_fast_tier(attack: impl Fn(&ThreadClock) + Sync) {
    on_every_tier(|clock| {
        if clock.tier() != Tier::Kernel {
            clock.set_error_bound_ns(u64::MAX);
            attack(clock);
        }
    });
}

#[test]
fn sleeps_are_seen() {
    on_every_fast_tier(|clock| {
        let count = (0..500)
            .filter(|_| switched_and_seen(clock, || std::thread::sleep(Duration::from_micros(1))))
            .count();
        assert!(count > 0);
    });
}

#[test]
fn migrations_are_seen() {
    on_every_fast_tier(|clock| {
        let cpus = common::cpus();
        if cpus.len() < 2 {
            return testing::skip(Need::TwoCpus, "one CPU only");
        }
        let count = (0..500)
            .filter(|round| switched_and_seen(clock, || assert!(common::pin(cpus[round % 2]))))
            .count();
        assert!(count > 0);
        println!("{}: {count} migrations", clock.tier());
    });
}

#[test]
fn preemptions_are_seen() {
    on_every_fast_tier(|clock| {
        let cpu = common::cpus()[0];
        assert!(common::pin(cpu));
        let stop = AtomicBool::new(false);
        let (ready, is_ready) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let allowed = common::pin(cpu) && common::become_real_time();
                ready.send(allowed).unwrap();
                while allowed && !stop.load(Relaxed) {
                    std::thread::sleep(Duration::from_micros(100));
                    spin_ns(5_000);
                }
            });
            let _stop = StopOnDrop(&stop);
            if is_ready.recv().unwrap() {
                let mut count = 0;
                for _ in 0..20_000 {
                    count += usize::from(switched_and_seen(clock, || {
                        for _ in 0..2_000 {
                            std::hint::spin_loop();
                        }
                    }));
                    if count == 500 {
                        break;
                    }
                }
                println!("{}: {count} preemptions", clock.tier());
                assert!(count > 0);
            } else {
                testing::skip(Need::RealTime, "SCHED_FIFO is not permitted here");
            }
        });
    });
}

/// Off the CPU for far longer than any plausible steal: the reading does not run on.
#[test]
fn a_long_sleep_is_not_counted() {
    on_every_fast_tier(|clock| {
        for _ in 0..testing::repeats(1, 5) {
            let (began, before) = (Instant::now(), clock.now());
            std::thread::sleep(Duration::from_millis(200));
            let slept = clock.now() - before;
            let passed = began.elapsed();
            let is_off = u128::from(slept.ns) < passed.as_nanos() / 2;
            assert!(is_off, "{}: {slept:?} of CPU time in a sleep of {passed:?}", clock.tier());
        }
    });
}
