//! The names of tallies, counts and calls in stored samples, by experiment.

/// `clock overhead`, and calls in loops.
pub mod overhead {
    /// Tally: ticks between two ordered time stamps with one call between them.
    pub const CALL_TICKS: &str = "call_ticks";
    /// Tally: ticks between two ordered time stamps with nothing between them, taken in turn with
    /// [`CALL_TICKS`].
    pub const EMPTY_TICKS: &str = "empty_ticks";
    /// Tally: ticks of [`BATCH_CALLS`] calls one after the other.
    pub const BATCH_TICKS: &str = "batch_ticks";
    /// Calls of a batch.
    pub const BATCH_CALLS: u32 = 100;
}

/// Calls in loops and signals between two processes.
pub mod loops {
    /// Call: the memorandum's system call.
    pub const GETUID: &str = "getuid";
    /// Call: installing a handler.
    pub const SIGACTION: &str = "sigaction";
    /// Sequence: kill to oneself, the handler installs itself again (simsig).
    pub const SIGNAL_SELF: &str = "signal-self";

    /// Tally: ticks of the empty loop of as many turns as a batch has calls, taken in turn with
    /// [`super::overhead::BATCH_TICKS`].
    pub const EMPTY_BATCH_TICKS: &str = "empty_batch_ticks";
    /// Count: calls (loops) that were made, warm-up included.
    pub const CALLS: &str = "calls";
    /// Count: signals that handlers have caught. One for each call of [`SIGNAL_SELF`], two for each
    /// loop of two processes, else there is no sample.
    pub const CAUGHT: &str = "caught";
    /// Count: entries into the kernel of [`ENTERED_CALLS`] calls, seen by tracing a child; absent
    /// where none can be traced.
    pub const KERNEL_ENTRIES: &str = "kernel_entries";
    /// Count: calls whose entries were counted.
    pub const ENTERED_CALLS: &str = "entered_calls";
    /// Count: voluntary and involuntary switches of both processes, from the start of the second to
    /// its end.
    pub const LOOP_SWITCHES: &str = "loop_switches";
    /// Count: CPU time of the process during all its loops, precisely.
    pub const CPU_NS: &str = "cpu_ns";
    /// Count: what the timer ticks sampled of it, whole ticks (CPUCLOCK_PROF).
    pub const SAMPLED_NS: &str = "sampled_ns";
    /// Count: what of that was in user mode (CPUCLOCK_VIRT).
    pub const SAMPLED_USER_NS: &str = "sampled_user_ns";
    /// Count: CPU time of the second process, all of it.
    pub const CHILD_CPU_NS: &str = "child_cpu_ns";
    /// Count: what the timer ticks sampled of it.
    pub const CHILD_SAMPLED_NS: &str = "child_sampled_ns";
    /// Count: what of that was in user mode.
    pub const CHILD_SAMPLED_USER_NS: &str = "child_sampled_user_ns";

    /// For each so many loops of one process there is one of two: the memorandum had 10,000 and
    /// 2,000.
    pub const TWO_PROCESS_SHARE: u32 = 5;
}

/// `clock primes`.
pub mod primes {
    /// Tally: CPU time of a trial by threadclock, in nanoseconds.
    pub const THREADCLOCK_NS: &str = "threadclock_ns";
    /// Tally: CPU time of a trial by `getrusage(RUSAGE_SELF)`, user and system together.
    pub const GETRUSAGE_NS: &str = "getrusage_ns";
    /// Tally: the user time of the same trials.
    pub const GETRUSAGE_USER_NS: &str = "getrusage_user_ns";
    /// Tally: CPU time of a trial by `getrusage(RUSAGE_THREAD)`, user and system together.
    pub const GETRUSAGE_THREAD_NS: &str = "getrusage_thread_ns";

    /// The ways of timing that are set against threadclock.
    pub const OTHERS: [&str; 3] = [GETRUSAGE_NS, GETRUSAGE_USER_NS, GETRUSAGE_THREAD_NS];

    /// The tally of trials of nothing at all by the same way of timing.
    pub fn empty(name: &str) -> String {
        format!("empty_{name}")
    }
}

/// `clock malloc`.
pub mod malloc {
    /// Tally: ticks of the thread's CPU time for one malloc, by threadclock.
    pub const MALLOC_TICKS: &str = "malloc_ticks";
    /// Tally: the same for one free.
    pub const FREE_TICKS: &str = "free_ticks";
    /// Tally: the same for nothing at all.
    pub const EMPTY_TICKS: &str = "empty_ticks";

    /// What a slow call was seen to do. Counts are `slow_malloc_CAUSE` and `slow_free_CAUSE`; one
    /// call may have several causes.
    pub const CAUSES: [Cause; 5] = [
        Cause { name: "fault", in_words: "first touch of a page" },
        Cause { name: "brk", in_words: "heap grown or shrunk (brk)" },
        Cause { name: "mmap", in_words: "memory mapped or unmapped" },
        Cause { name: "switched", in_words: "switched out" },
        Cause {
            name: "unexplained",
            in_words: "unexplained (interrupts, steal, cold caches, a re-sync of threadclock, \
                 the allocator's housekeeping)",
        },
    ];

    /// Why a call was slow.
    #[derive(Clone, Copy, Debug)]
    pub struct Cause {
        /// The end of its count's name.
        pub name: &'static str,
        /// What happened.
        pub in_words: &'static str,
    }

    /// Count: brk calls of the whole sample.
    pub const BRK_CALLS: &str = "brk_calls";
    /// Count: mmap, munmap and madvise calls of the whole sample.
    pub const MMAP_CALLS: &str = "mmap_calls";
    /// Count: minor faults of the whole sample.
    pub const MINOR_FAULTS: &str = "minor_faults";

    /// One of the two calls.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Call {
        /// Its tally.
        pub tally: &'static str,
        /// The count of its slow calls; those by cause have the cause behind it.
        pub slow: &'static str,
    }

    impl Call {
        /// malloc(3)
        pub const MALLOC: Self = Self { tally: MALLOC_TICKS, slow: "slow_malloc" };
        /// free(3)
        pub const FREE: Self = Self { tally: FREE_TICKS, slow: "slow_free" };

        /// The count of its slow calls of one cause; by `ticks` the count of ticks that all of them
        /// took.
        pub fn slow_by(self, cause: &str) -> String {
            format!("{}_{cause}", self.slow)
        }
    }
}

/// `clock sampling`.
pub mod sampling {
    /// Count: nanoseconds from one tick to the next, by the kernel's word.
    pub const TICK_NS: &str = "tick_ns";

    /// The two processes. Their counts are `PROCESS_ACCOUNT_ns`.
    pub const PROCESSES: [&str; 2] = ["sleeper", "burner"];

    /// The accounts of a process's CPU time that are compared, best understood first.
    pub const ACCOUNTS: [Account; 6] = [
        Account { name: "precise", in_words: "scheduler's sum", truth: "precise" },
        Account { name: "threadclock", in_words: "threadclock", truth: "precise" },
        Account { name: "ticks", in_words: "ticks that found it running", truth: "precise" },
        Account { name: "getrusage", in_words: "getrusage user + system", truth: "precise" },
        Account { name: "user", in_words: "getrusage user", truth: "true_user" },
        Account { name: "true_user", in_words: "outside of its system calls", truth: "true_user" },
    ];

    /// A way to account for CPU time.
    #[derive(Clone, Copy, Debug)]
    pub struct Account {
        /// Its part of the count's name.
        pub name: &'static str,
        /// What it is.
        pub in_words: &'static str,
        /// What it is compared with: the scheduler's sum, or the user part as it truly was.
        pub truth: &'static str,
    }

    /// The count of a process by an account.
    pub fn count(process: &str, account: &str) -> String {
        format!("{process}_{account}_ns")
    }
}

/// `cost --interference`.
pub mod interference {
    pub use crate::trial::{Execution, Noise, Wire};

    /// Tally: time of the laps of a run, in nanoseconds.
    pub const EXECUTION_NS: &str = "execution_ns";
    /// Count: what the disturbance did between the two readings of the clock: packets received,
    /// bursts, timers. Absent in quiet runs.
    pub const NOISE_EVENTS: &str = "noise_events";
    /// Count: voluntary switches of both members.
    pub const VOLUNTARY: &str = "voluntary_switches";
    /// Count: involuntary ones.
    pub const INVOLUNTARY: &str = "involuntary_switches";

    /// Longest run that a real-time ring should have: the kernel lets real-time work run for 950 ms
    /// of each second (sched_rt_runtime_us), and holds it back for the rest.
    pub const LONGEST_REALTIME_NS: u64 = 800_000_000;
}

/// Gaps in a busy loop.
pub mod gaps {
    /// Tally that a sample's gaps come to: the length of each.
    pub const GAP_TICKS: &str = "gap_ticks";
    /// Count: ticks for which the loop was watched.
    pub const WINDOW_TICKS: &str = "window_ticks";
    /// Count: ticks of the window that went into looking what a gap was, and were not watched.
    pub const LOOK_TICKS: &str = "look_ticks";
    /// Count: what a gap must exceed to be kept, learned from the loop.
    pub const THRESHOLD_TICKS: &str = "threshold_ticks";
    /// Count: median step of the loop.
    pub const LOOP_TICKS: &str = "loop_ticks";
    /// Count: 1 where more gaps came than there was room for, so that the window was ended early.
    pub const CUT_SHORT: &str = "cut_short";
    /// Count: switches of the thread, of both kinds, over the window.
    pub const SWITCHES: &str = "switches";
    /// Count: nanoseconds from one timer tick to the next, by the kernel's word.
    pub const TICK_NS: &str = "tick_ns";
    /// Counts, of interrupts that the CPU took around the window, by their name in
    /// /proc/interrupts.
    pub const INTERRUPTS: &str = "interrupts_";
    /// Count: all interrupts that the CPU took around the window.
    pub const ALL_INTERRUPTS: &str = "interrupts_all";

    /// Factor by which a gap must exceed the 99th percentile of the loop's steps: more than a
    /// slower clock of the core or a busy sibling do to all steps.
    pub const THRESHOLD_FACTOR: u64 = 8;
}

/// Wake-ups.
pub mod wakeup {
    pub use crate::trial::{DEFAULT_SLACK_NS, LEAST_SLACK_NS, Load, Wakeup};

    /// Tally: nanoseconds from the moment asked for to the sleeper's first look at the clock.
    pub const LATE_NS: &str = "late_ns";
    /// Count: the timer slack in force, in nanoseconds.
    pub const SLACK_NS: &str = "timer_slack_ns";
    /// Count: voluntary and involuntary switches of the sleeper: each sleep is one.
    pub const SWITCHES: &str = "switches";
    /// Count: what leaving an idle state might take at most, in microseconds, as
    /// /dev/cpu_dma_latency said while it was held; absent where it was not.
    pub const CPU_LATENCY_US: &str = "cpu_latency_us";
    /// Count: CPU time of the companion that keeps the CPU busy, in nanoseconds.
    pub const COMPANION_NS: &str = "companion_cpu_ns";
}
