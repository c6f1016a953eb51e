//! Without the C library's rseq (`glibc.pthread.rseq=0`, musl): the crate registers its own, and
//! takes the next tier where somebody else has. Each test runs itself again in such a process.
#![allow(unsafe_code, clippy::unwrap_used)]

mod common;
use std::process::Command;
use threadclock::{ThreadClock, Tier, WhyNot};

const TUNABLE: &str = "GLIBC_TUNABLES";
const NO_RSEQ: &str = "glibc.pthread.rseq=0";

/// Whether this is the process without. If not, runs the test of this name in one.
fn without_the_c_librarys(test: &str) -> bool {
    if std::env::var(TUNABLE).is_ok_and(|value| value == NO_RSEQ) {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let status = again
        .args([test, "--exact"])
        .env(TUNABLE, NO_RSEQ)
        .status()
        .unwrap();
    assert!(status.success());
    false
}

#[test]
fn our_own_serves_as_well() {
    if !without_the_c_librarys("our_own_serves_as_well") {
        return;
    }
    common::on_every_tier(|clock| {
        let mut checker = common::Checker::new(clock);
        for round in 0..2_000 {
            checker.reads(50);
            if round % 10 == 0 {
                std::thread::yield_now();
                std::thread::sleep(std::time::Duration::from_micros(10));
            }
        }
    });
}

/// Another library's area, which must stay mapped: the kernel writes to it.
#[repr(C, align(32))]
struct Area([u8; 32]);

#[test]
fn somebody_elses_refuses_ours() {
    if !without_the_c_librarys("somebody_elses_refuses_ours") {
        return;
    }
    let area = Box::leak(Box::new(Area([0; 32])));
    // SAFETY: the area is leaked; the signature is any.
    let status = unsafe { libc::syscall(libc::SYS_rseq, &raw mut *area, 32, 0, 0x5305_3053) };
    if status != 0 {
        println!("skipped: no rseq here");
        return;
    }
    let refused = ThreadClock::with_tier(Tier::Rseq).unwrap_err();
    assert!(
        matches!(refused, WhyNot::RseqRefused(errno) if errno != 0),
        "{refused:?}"
    );
    let clock = ThreadClock::for_this_thread();
    assert!(clock.tier() > Tier::Rseq);
    assert_eq!(clock.not_taken().next(), Some((Tier::Rseq, refused)));
}
