//! Without the C library's rseq (`glibc.pthread.rseq=0`, musl): the crate registers its own, and
//! takes the next tier where somebody else has. Each test runs itself again in such a process.
#![allow(unsafe_code, clippy::unwrap_used)]

mod common;
use std::process::Command;
use testing::Need;
use threadclock::{ThreadClock, Tier, TierRefusal};

const TUNABLE: &str = "GLIBC_TUNABLES";
const NO_RSEQ: &str = "glibc.pthread.rseq=0";

/// Returns whether the C library of this process registers no rseq area. If it does, runs the test of
/// this name in a process whose C library does not.
fn without_the_c_librarys(test: &str) -> bool {
    if std::env::var(TUNABLE).is_ok_and(|value| value == NO_RSEQ) {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let status = again.args([test, "--exact"]).env(TUNABLE, NO_RSEQ).status().unwrap();
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
        for round in 0..testing::repeats(500, 2_000) {
            checker.reads(50);
            if round % 10 == 0 {
                std::thread::yield_now();
                std::thread::sleep(std::time::Duration::from_micros(10));
            }
        }
    });
}

/// Returns whether the counter is good here: if not, every tier is refused for that reason.
fn counter_serves() -> bool {
    // In a thread of its own, so that this one has not tried anything yet.
    let tried = std::thread::spawn(|| ThreadClock::with_tier(Tier::PerfPage).err()).join().unwrap();
    let Some(
        why @ (TierRefusal::NoCounter
        | TierRefusal::CounterNotInvariant
        | TierRefusal::ClockSourceDistrusted
        | TierRefusal::NotCalibrated
        | TierRefusal::KernelClockTooSlow),
    ) = tried
    else {
        return true;
    };
    assert!(std::env::var_os("TIERS_MUST_BE_THERE").is_none(), "{why}");
    testing::skip(common::need_of(Tier::PerfPage, why), why);
    false
}

/// Another library's area, which must stay mapped: the kernel writes to it.
#[repr(C, align(32))]
struct Area([u8; 32]);

/// Registers as another library would have. `false`: no rseq here.
fn registered_by_somebody_else() -> bool {
    let area = Box::leak(Box::new(Area([0; 32])));
    // SAFETY: the area is leaked; the signature is any.
    unsafe { libc::syscall(libc::SYS_rseq, &raw mut *area, 32, 0, 0x5305_3053) == 0 }
}

#[test]
fn somebody_elses_refuses_ours() {
    if !without_the_c_librarys("somebody_elses_refuses_ours") || !counter_serves() {
        return;
    }
    if !registered_by_somebody_else() {
        return testing::skip(Need::Rseq, "no rseq here");
    }
    let refused = ThreadClock::with_tier(Tier::Rseq).unwrap_err();
    assert!(matches!(refused, TierRefusal::RseqRefused(errno) if errno != 0), "{refused:?}");
    let clock = ThreadClock::for_this_thread();
    assert!(clock.tier() > Tier::Rseq);
    assert_eq!(clock.not_taken().next(), Some((Tier::Rseq, refused)));
}

/// No rseq, and no descriptor for a perf event either.
#[test]
fn at_worst_the_kernel_is_asked() {
    if !without_the_c_librarys("at_worst_the_kernel_is_asked") || !counter_serves() {
        return;
    }
    if !registered_by_somebody_else() {
        return testing::skip(Need::Rseq, "no rseq here");
    }
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads `none`.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }, 0);
    let clock = ThreadClock::for_this_thread();
    // A kernel with getpinfo has one thing less bad.
    let worst = ThreadClock::with_tier(Tier::SystemCall).map_or(Tier::Kernel, |clock| clock.tier());
    assert_eq!(clock.tier(), worst);
    let reasons: Vec<_> = clock.not_taken().collect();
    assert_eq!(reasons.len(), Tier::ALL.iter().position(|&tier| tier == worst).unwrap());
    assert_eq!(reasons[1], (Tier::PerfPage, TierRefusal::PerfRefused(libc::EMFILE)));
    let mut checker = common::Checker::new(&clock);
    checker.reads(1_000);
}
