//! Threads that end leave nothing behind. Alone in its file: it counts the process's mappings.
#![allow(unsafe_code, clippy::unwrap_used)]

mod common;
use threadclock::{ThreadClock, Tier};

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn a_thread_that_ends() {
    std::thread::spawn(|| {
        for tier in Tier::ALL {
            let _ = ThreadClock::with_tier(tier).map(|clock| clock.now());
        }
        let forgotten = ThreadClock::for_this_thread();
        // Dropped by a destructor of the thread, maybe after ours.
        thread_local!(static LATE: std::cell::OnceCell<ThreadClock> = const { std::cell::OnceCell::new() });
        LATE.with(|late| late.set(forgotten)).unwrap();
        common::spin_ns(100_000);
    })
    .join()
    .unwrap();
}

#[test]
fn ended_threads_leave_nothing() {
    // The first few grow what the C library and the allocator keep.
    (0..20).for_each(|_| a_thread_that_ends());
    let before = (mappings(), descriptors());
    (0..300).for_each(|_| a_thread_that_ends());
    let after = (mappings(), descriptors());
    assert!(after.0 <= before.0 + 10, "mappings {before:?}, then {after:?}");
    assert_eq!(after.1, before.1);
}
