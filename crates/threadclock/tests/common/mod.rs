//! Helpers of the attacks: the kernel's clock around readings, and the available tiers.
#![allow(dead_code, unreachable_pub)]

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use testing::Need;
use threadclock::{CpuTime, ThreadClock, Tier, TierRefusal};

/// CLOCK_THREAD_CPUTIME_ID, read without the crate.
pub fn kernel_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills `time`.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs `attack` on every available tier, each in a new thread, and reports the others as skipped.
pub fn on_every_tier(attack: impl Fn(&ThreadClock) + Sync) {
    for tier in Tier::ALL {
        let attacked = || {
            let clock = ThreadClock::with_tier(tier)?;
            assert_eq!(clock.tier(), tier);
            attack(&clock);
            Ok::<_, TierRefusal>(())
        };
        let tried = std::thread::scope(|scope| scope.spawn(attacked).join().unwrap());
        if let Err(why) = tried {
            // Where the guest says that they are there, none may be left out unseen.
            let expected = matches!(tier, Tier::Rseq | Tier::SystemCall);
            let all = std::env::var_os("TIERS_MUST_BE_THERE").is_some();
            assert!(!(all && expected), "{tier}: {why}");
            testing::skip(need_of(tier, why), format_args!("{tier}: {why}"));
        }
    }
}

/// Returns the need that a refused tier lacks.
pub fn need_of(tier: Tier, why: TierRefusal) -> Need<'static> {
    match (why, tier) {
        (TierRefusal::KernelClockTooSlow, _) => Need::Quiet,
        (_, Tier::SystemCall) => Need::Getpinfo,
        (
            TierRefusal::NoCounter
            | TierRefusal::CounterNotInvariant
            | TierRefusal::ClockSourceDistrusted
            | TierRefusal::NotCalibrated,
            _,
        ) => Need::TimeStamp,
        (_, Tier::PerfPage) => Need::PerfPage,
        (_, Tier::CoreCycles) => Need::Hardware("a cycle counter for user space"),
        (_, Tier::Rseq | Tier::Kernel) => Need::Rseq,
    }
}

/// Holds readings against the published bound, and against each other.
pub struct Checker<'a> {
    clock: &'a ThreadClock,
    last: CpuTime,
    pub reads: u64,
    pub most_ahead_ns: u64,
    pub most_behind_ns: u64,
}

impl<'a> Checker<'a> {
    pub fn new(clock: &'a ThreadClock) -> Self {
        Self { clock, last: clock.now(), reads: 0, most_ahead_ns: 0, most_behind_ns: 0 }
    }

    /// Some reads between two of the kernel's clock. `Err` tells what was violated.
    pub fn try_reads(&mut self, reads: u64) -> Result<(), String> {
        let before_ns = kernel_ns();
        let (mut backwards, first) = (None, self.last);
        let (mut least, mut last) = (u64::MAX, first);
        for index in 0..reads {
            let time = if index % 8 == 7 { self.clock.now_ordered() } else { self.clock.now() };
            if time.ns < last.ns || time.cycles < last.cycles {
                backwards = Some((last, time));
            }
            least = least.min(time.ns);
            last = time;
        }
        let after_ns = kernel_ns();
        let (ahead, behind) = (last.ns.saturating_sub(after_ns), before_ns.saturating_sub(least));
        self.most_ahead_ns = self.most_ahead_ns.max(ahead);
        self.most_behind_ns = self.most_behind_ns.max(behind);
        self.reads += reads;
        self.last = last;
        if let Some((earlier, later)) = backwards {
            return Err(format!("went backwards: {earlier:?} then {later:?}"));
        }
        let bound = self.clock.error_bound_ns();
        if ahead > bound || behind > bound {
            return Err(format!(
                "{ahead} ns ahead, {behind} behind, bound {bound}: kernel {before_ns}..{after_ns}, \
                 read {least}..{}, {:?}",
                last.ns,
                self.clock.resyncs()
            ));
        }
        Ok(())
    }

    pub fn reads(&mut self, reads: u64) {
        if let Err(violation) = self.try_reads(reads) {
            panic!("{}: {violation}", self.clock.tier());
        }
    }

    pub fn report(&self, attack: &str) {
        println!(
            "{attack}, {}: {} reads, at most {} ns ahead and {} ns behind; {:?}",
            self.clock.tier(),
            self.reads,
            self.most_ahead_ns,
            self.most_behind_ns,
            self.clock.resyncs()
        );
    }
}

/// Uses the CPU for about this long.
pub fn spin_ns(ns: u64) {
    let started = kernel_ns();
    while kernel_ns() - started < ns {
        std::hint::spin_loop();
    }
}

/// Switches of this thread that the kernel has counted, of both kinds.
pub fn switches() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills `usage`.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    usage.ru_nvcsw + usage.ru_nivcsw
}

/// Moves the calling thread to one CPU. `false`: not allowed there.
pub fn pin(cpu: usize) -> bool {
    // SAFETY: an all-zero cpu_set_t is an empty set; CPU_SET checks nothing but `cpu` is small.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

/// The CPUs that the calling thread may use.
pub fn cpus() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is an empty set, which the kernel fills.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

/// Makes the calling thread real-time. `false`: no privilege.
pub fn become_real_time() -> bool {
    // By the system call, as musl's function refuses; its sched_param is the kernel's and more.
    // SAFETY: zeroes are a value of it, and the call only reads it.
    unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = 10;
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const parameters) == 0
    }
}

/// Stops the other threads of a test when it ends, by a failed assertion too.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
