//! Readings agree with the kernel's clock and never go backwards: of a busy thread (more than a
//! million reads in the nightly tier), one that sleeps or yields, many, and under preemption, signals, migration and
//! fork.
#![allow(unsafe_code, clippy::unwrap_used)]

mod common;
use common::{Checker, StopOnDrop, kernel_ns, on_every_tier, spin_ns};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::*};
use std::sync::{Mutex, mpsc};
use std::time::Duration;
use testing::{Need, repeats};
use threadclock::ThreadClock;

#[test]
fn busy() {
    on_every_tier(|clock| {
        let mut checker = Checker::new(clock);
        for round in 0..repeats(4_000, 20_000u64) {
            checker.reads(50);
            if round % 100 == 0 {
                spin_ns(round % 7 * 20_000);
            }
        }
        assert_eq!(checker.reads, repeats(200_000, 1_000_000));
        checker.report("busy");
    });
}

#[test]
fn every_single_read_between_two_of_the_kernels() {
    on_every_tier(|clock| {
        let mut checker = Checker::new(clock);
        for _ in 0..repeats(20_000, 100_000) {
            checker.reads(1);
        }
        checker.report("each read");
    });
}

#[test]
fn sleeping() {
    on_every_tier(|clock| {
        let mut checker = Checker::new(clock);
        for round in 0..repeats(300, 1_500) {
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
        for _ in 0..repeats(4_000, 20_000) {
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
                    for round in 0..repeats(20, 100u64) {
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
            for _ in 0..repeats(200, 1_000) {
                checker.reads(100);
            }
            checker.report(&format!("bound {got_ns}"));
        }
    });
}

/// A real-time thread on the reader's CPU that runs and sleeps in turns.
#[test]
fn preempted() {
    on_every_tier(|clock| {
        let before = common::cpus();
        let cpu = before[0];
        assert!(common::pin(cpu));
        let stop = AtomicBool::new(false);
        let (ready, is_ready) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let allowed = common::pin(cpu) && common::become_real_time();
                ready.send(allowed).unwrap();
                let mut round = 0;
                while allowed && !stop.load(Relaxed) {
                    round += 1;
                    spin_ns(round % 5 * 40_000);
                    std::thread::sleep(Duration::from_micros(round % 3 * 70));
                }
            });
            let _stop = StopOnDrop(&stop);
            if is_ready.recv().unwrap() {
                let switches = common::switches();
                let mut checker = Checker::new(clock);
                // Until there were enough of the one or of the other, not for a time.
                for _ in 0..100_000 {
                    checker.reads(100);
                    if common::switches() - switches > repeats(300, 1_500) {
                        break;
                    }
                }
                println!("{} switches", common::switches() - switches);
                checker.report("preempted");
            } else {
                testing::skip(Need::RealTime, "SCHED_FIFO is not permitted here");
            }
        });
    });
}

static INTERRUPTED: AtomicPtr<ThreadClock> = AtomicPtr::new(std::ptr::null_mut());
static HANDLED: AtomicU64 = AtomicU64::new(0);
static VIOLATIONS: AtomicU64 = AtomicU64::new(0);
static LAST_IN_HANDLER: AtomicU64 = AtomicU64::new(0);

extern "C" fn read_in_handler(_signal: libc::c_int) {
    // SAFETY: set to a clock of this thread, which outlives the signals.
    let Some(clock) = (unsafe { INTERRUPTED.load(Relaxed).as_ref() }) else {
        return;
    };
    let bound_ns = clock.error_bound_ns();
    let mut last = LAST_IN_HANDLER.load(Relaxed);
    for _ in 0..4 {
        let before_ns = kernel_ns();
        let ns = clock.now().ns;
        let after_ns = kernel_ns();
        let good = ns + bound_ns >= before_ns && ns <= after_ns + bound_ns && ns >= last;
        VIOLATIONS.fetch_add(u64::from(!good), Relaxed);
        last = ns;
    }
    LAST_IN_HANDLER.store(last, Relaxed);
    HANDLED.fetch_add(1, Relaxed);
}

/// The handler reads the clock that it interrupts, in the middle of a re-sync too: with the least
/// bound, a re-sync is under way for a good part of the time.
#[test]
fn signalled() {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    on_every_tier(|clock| {
        let _guard = ONE_AT_A_TIME.lock();
        // SAFETY: the handler only reads clocks and atomics.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = read_in_handler as *const () as usize;
            // NODEFER: a handler may be interrupted as well.
            action.sa_flags = libc::SA_RESTART | libc::SA_NODEFER;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
        }
        clock.set_error_bound_ns(5_000);
        LAST_IN_HANDLER.store(0, Relaxed);
        HANDLED.store(0, Relaxed);
        INTERRUPTED.store((&raw const *clock).cast_mut(), Relaxed);
        // SAFETY: no arguments.
        let (process, reader) = unsafe { (libc::getpid(), libc::gettid()) };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    for _ in 0..3 {
                        // SAFETY: the reader is alive until this scope ends.
                        unsafe { libc::syscall(libc::SYS_tgkill, process, reader, libc::SIGUSR1) };
                    }
                    std::thread::sleep(Duration::from_micros(20));
                }
            });
            let _stop = StopOnDrop(&stop);
            let mut checker = Checker::new(clock);
            for _ in 0..100_000 {
                let seen = LAST_IN_HANDLER.load(Relaxed);
                let own = clock.now().ns;
                assert!(own >= seen, "behind what a handler had read before: {own} < {seen}");
                checker.reads(20);
                if HANDLED.load(Relaxed) > repeats(1_000, 10_000) {
                    break;
                }
            }
            checker.report("signalled");
        });
        INTERRUPTED.store(std::ptr::null_mut(), Relaxed);
        println!("{} handled", HANDLED.load(Relaxed));
        assert!(HANDLED.load(Relaxed) > 0);
        assert_eq!(VIOLATIONS.load(Relaxed), 0, "in the handler");
    });
}

#[test]
fn migrated() {
    on_every_tier(|clock| {
        let cpus = common::cpus();
        if cpus.len() < 2 {
            return testing::skip(Need::TwoCpus, "one CPU only");
        }
        let mut checker = Checker::new(clock);
        for round in 0..repeats(400, 4_000) {
            assert!(common::pin(cpus[round % cpus.len()]));
            checker.reads(50);
        }
        checker.report("migrated");
    });
}

/// Makes a child by fork(), or by the bare system call, which runs no pthread_atfork handler.
fn fork(bare: bool) -> libc::pid_t {
    // SAFETY: the child only reads clocks, formats nothing on success, and leaves by _exit.
    unsafe {
        if bare {
            libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t
        } else {
            libc::fork()
        }
    }
}

/// Runs in the child: its clock starts near zero, whatever its parent had used.
fn child(clock: &ThreadClock, generation: u32) -> ! {
    let mut checker = Checker::new(clock);
    let good = (0..repeats(500, 2_000)).all(|_| checker.try_reads(20).is_ok())
        && threadclock::now().ns <= kernel_ns() + clock.error_bound_ns()
        && (generation == 0 || wait_for(fork_a_child(clock, false, generation - 1)));
    // SAFETY: leaves without running what belongs to the parent.
    unsafe { libc::_exit(i32::from(!good)) }
}

fn fork_a_child(clock: &ThreadClock, bare: bool, generation: u32) -> libc::pid_t {
    match fork(bare) {
        0 => child(clock, generation),
        pid => pid,
    }
}

fn wait_for(child: libc::pid_t) -> bool {
    let mut status = -1;
    // SAFETY: the kernel fills `status`.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[test]
fn forked() {
    on_every_tier(|clock| {
        // Much more than the child will use, so that a base from before the fork shows.
        spin_ns(50_000_000);
        let mut checker = Checker::new(clock);
        for round in 0..repeats(4, 20) {
            let child = fork_a_child(clock, round % 2 == 1, 1);
            checker.reads(1_000);
            assert!(wait_for(child), "{}: the child disagrees with its kernel clock", clock.tier());
            checker.reads(1_000);
        }
        checker.report("forked");
    });
}
