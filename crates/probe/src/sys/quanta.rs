//! Reference quanta: two fixed loops that show how fast the CPU runs at this moment (fixed work
//! quanta, Sottile and Minnich 2004).
//!
//! - The latency-bound loop, multiplications that wait for each other, depends on the core's clock
//!   alone: a sibling thread takes only execution slots that it does not use.
//! - The throughput-bound loop, independent additions, fills the core's width: it depends on the
//!   clock and on who shares the core.
//!
//! Their ratio therefore shows a shared core at any clock. On our test machine k0 is 1.01:
//!
//! ```text
//! core       clock    latency   throughput   ratio
//! unshared   full     5.9 us    5.95 us      1.01 = k0
//! unshared   slower   6.9 us    6.96 us      1.01
//! shared     full     5.9 us    8.3 us       1.41
//! ```

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;

use rundata::reference::TOLERANCE;
use rundata::ring::{
    ADD_TURNS, ADDS_PER_TURN, CoreWait, MULTIPLIES_PER_TURN, MULTIPLY_TURNS, Slices,
};

use super::clock::{UsageScope, monotonic_raw_ns, own_thread_cpu_ns, usage};

// The `.rept` counts in the loops below.
const _: () = assert!(MULTIPLIES_PER_TURN == 16 && ADDS_PER_TURN == 64);

/// True on architectures that have the loops.
pub const HAS_QUANTA: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Chooses the assembly line for this architecture.
#[cfg(target_arch = "x86_64")]
macro_rules! line {
    ($x86_64:literal, $aarch64:literal) => {
        $x86_64
    };
}
/// Chooses the assembly line for this architecture. So far run in an emulator only: whether these
/// loops show a shared core on a real machine is not known.
#[cfg(target_arch = "aarch64")]
macro_rules! line {
    ($x86_64:literal, $aarch64:literal) => {
        $aarch64
    };
}

/// Runs multiplications each of which waits for the one before.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(never)]
fn latency_bound() {
    // SAFETY: registers only; no memory, no stack, nothing else is changed.
    unsafe {
        asm!(
            ".p2align 6",
            "2:",
            ".rept 16",
            line!("imul {value}, {factor}", "mul {value}, {value}, {factor}"),
            ".endr",
            line!("dec {turns:e}", "subs {turns:w}, {turns:w}, #1"),
            line!("jnz 2b", "b.ne 2b"),
            value = inout(reg) 12_345_u64 => _,
            factor = in(reg) 3_u64,
            turns = inout(reg) MULTIPLY_TURNS => _,
            options(nomem, nostack),
        );
    }
}

/// Runs additions to eight sums that do not wait for each other. They add a register, not a
/// constant: some cores (Golden Cove) add small constants while they rename registers, a stage that
/// sibling threads do not share.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(never)]
fn throughput_bound() {
    // SAFETY: registers only; no memory, no stack, nothing else is changed.
    unsafe {
        asm!(
            ".p2align 6",
            "2:",
            ".rept 8",
            ".irp sum, {a}, {b}, {c}, {d}, {e}, {f}, {g}, {h}",
            line!("add \\sum, {step}", "add \\sum, \\sum, {step}"),
            ".endr",
            ".endr",
            line!("dec {turns:e}", "subs {turns:w}, {turns:w}, #1"),
            line!("jnz 2b", "b.ne 2b"),
            a = inout(reg) 1_u64 => _,
            b = inout(reg) 2_u64 => _,
            c = inout(reg) 3_u64 => _,
            d = inout(reg) 4_u64 => _,
            e = inout(reg) 5_u64 => _,
            f = inout(reg) 6_u64 => _,
            g = inout(reg) 7_u64 => _,
            h = inout(reg) 8_u64 => _,
            step = in(reg) 3_u64,
            turns = inout(reg) ADD_TURNS => _,
            options(nomem, nostack),
        );
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn latency_bound() {}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn throughput_bound() {}

/// Times of the two loops of a quantum, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantumTimes {
    /// Time of the latency-bound loop.
    pub latency_ns: u64,
    /// Time of the throughput-bound loop.
    pub throughput_ns: u64,
}

impl From<(u32, u32)> for QuantumTimes {
    /// Builds the times from those of the latency-bound and of the throughput-bound loop.
    fn from(times: (u32, u32)) -> Self {
        Self { latency_ns: times.0.into(), throughput_ns: times.1.into() }
    }
}

impl QuantumTimes {
    /// Returns whether these are the times of an unshared core. A ratio below k0 is one, too: then
    /// the known k0 was measured on a shared core.
    pub fn is_unshared(self, unshared_ratio: f64) -> bool {
        let limit_ns = unshared_ratio * self.latency_ns as f64 * (1.0 + TOLERANCE);
        self.throughput_ns as f64 <= limit_ns
    }

    /// Returns the shorter time of each loop.
    fn min(self, other: Self) -> Self {
        Self {
            latency_ns: self.latency_ns.min(other.latency_ns),
            throughput_ns: self.throughput_ns.min(other.throughput_ns),
        }
    }
}

/// Runs a quantum and stores its times in `slices`, which must have room: nothing is allocated
/// here. `start_ns` is the current time; returns the time after the quantum.
#[inline]
pub fn reference_quantum(start_ns: u64, slices: &mut Slices) -> u64 {
    let (times, end_ns) = run_quantum(start_ns);
    slices.push_quantum(times.latency_ns, times.throughput_ns);
    end_ns
}

/// Runs three quanta and returns the shortest time of each loop. An interrupt, or cold caches,
/// lengthen one of the three; a shared core lengthens all.
pub fn shortest_quantum() -> QuantumTimes {
    let (first, now_ns) = run_quantum(monotonic_raw_ns());
    let (second, now_ns) = run_quantum(now_ns);
    let (third, _) = run_quantum(now_ns);
    first.min(second).min(third)
}

/// Runs both loops; `start_ns` is the current time. Returns their times and the time after them.
#[inline]
pub fn run_quantum(start_ns: u64) -> (QuantumTimes, u64) {
    latency_bound();
    let between_ns = monotonic_raw_ns();
    throughput_bound();
    let end_ns = monotonic_raw_ns();
    let times = QuantumTimes {
        latency_ns: between_ns.wrapping_sub(start_ns),
        throughput_ns: end_ns.wrapping_sub(between_ns),
    };
    (times, end_ns)
}

/// Measures the latency-bound loop, in nanoseconds, at the clock that this core reaches when it is
/// busy. It is the first quartile of a block of quanta, as soon as two blocks in a row agree to 0.2
/// %. That takes 50 ms at least, in which governors raise the clock, and 250 ms at most. Returns
/// `None` on architectures without the loops.
pub fn busy_quantum_ns() -> Option<u64> {
    const BLOCK_QUANTA: usize = 400;
    const MIN_NS: u64 = 50_000_000;
    const MAX_NS: u64 = 250_000_000;
    if !HAS_QUANTA {
        return None;
    }
    let start_ns = monotonic_raw_ns();
    let mut now_ns = start_ns;
    let mut quartile_before_ns = 0;
    loop {
        let mut block_ns = [0; BLOCK_QUANTA];
        for latency_ns in &mut block_ns {
            let (times, end_ns) = run_quantum(now_ns);
            *latency_ns = times.latency_ns;
            now_ns = end_ns;
        }
        block_ns.sort_unstable();
        let quartile_ns = block_ns[BLOCK_QUANTA / 4];
        let agrees = quartile_ns.abs_diff(quartile_before_ns) <= quartile_ns / 500;
        let passed_ns = now_ns.wrapping_sub(start_ns);
        if passed_ns >= MAX_NS || agrees && passed_ns >= MIN_NS {
            return Some(quartile_ns);
        }
        quartile_before_ns = quartile_ns;
    }
}

/// Runs quanta until two in a row are those of an unshared core, or until `most_ns` have passed.
/// What runs next then has a better chance of an unshared core; whether it had one is judged by the
/// quanta around it. `slice` is the number of the slice that waits.
pub fn wait_unshared(unshared_ratio: f64, most_ns: u64, slice: u32) -> CoreWait {
    wait_by(run_quantum, unshared_ratio, most_ns, slice)
}

/// Waits like [`wait_unshared`], with another function in the place of [`run_quantum`].
#[inline(always)]
fn wait_by(
    mut quantum: impl FnMut(u64) -> (QuantumTimes, u64),
    unshared_ratio: f64,
    most_ns: u64,
    slice: u32,
) -> CoreWait {
    let start_ns = monotonic_raw_ns();
    let start_cpu_ns = own_thread_cpu_ns();
    let start_switches = usage(UsageScope::Thread).switches();
    let mut before: Option<QuantumTimes> = None;
    let mut now_ns = monotonic_raw_ns();
    loop {
        let (times, end_ns) = quantum(now_ns);
        now_ns = end_ns;
        let elapsed_ns = now_ns.wrapping_sub(start_ns);
        let is_over = before.is_some_and(|before| are_unshared(before, times, unshared_ratio));
        if is_over || elapsed_ns >= most_ns {
            let switches = usage(UsageScope::Thread).switches();
            return CoreWait {
                slice,
                elapsed_ns,
                cpu_ns: own_thread_cpu_ns().saturating_sub(start_cpu_ns),
                switches: switches.saturating_sub(start_switches),
                latency_ns: u32::try_from(times.latency_ns).unwrap_or(u32::MAX),
                throughput_ns: u32::try_from(times.throughput_ns).unwrap_or(u32::MAX),
            };
        }
        before = Some(times);
    }
}

/// Returns whether all quanta of these slices are those of an unshared core.
pub fn all_unshared(slices: &Slices, unshared_ratio: f64) -> bool {
    slices.quanta().all(|times| QuantumTimes::from(times).is_unshared(unshared_ratio))
}

/// Returns whether two quanta in a row are those of an unshared core at one clock. An interrupt
/// lengthens one loop of one of them, and then their clocks seem to differ.
fn are_unshared(before: QuantumTimes, last: QuantumTimes, unshared_ratio: f64) -> bool {
    let difference_ns = (before.latency_ns as f64 - last.latency_ns as f64).abs();
    difference_ns <= TOLERANCE * last.latency_ns as f64
        && before.is_unshared(unshared_ratio)
        && last.is_unshared(unshared_ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_in_one_loop_is_in_no_look() {
        let shortest = |quanta: [(u32, u32); 3]| {
            let [first, second, third] = quanta.map(QuantumTimes::from);
            first.min(second).min(third)
        };
        let (alone, shared) = ((6000, 6060), (6000, 8400));
        let long_latency = (9000, 6060);
        assert_eq!(shortest([long_latency, alone, (6000, 9060)]), alone.into());
        assert_eq!(shortest([(9000, 8400), shared, shared]), shared.into());
    }

    #[test]
    fn a_wait_ends_by_what_it_sees_or_by_its_time() {
        // No core has this ratio.
        let wait = wait_unshared(1e-6, 200_000, 7);
        assert!(wait.slice == 7 && wait.elapsed_ns >= 200_000 && wait.cpu_ns > 0, "{wait:?}");
        assert!(wait.latency_ns > 0 && wait.throughput_ns > 0, "{wait:?}");
        // Any core has this one, unless each quantum is interrupted.
        let longest_ns = testing::PATIENCE.as_nanos() as u64;
        let wait = wait_unshared(1e6, longest_ns, 0);
        assert!(wait.elapsed_ns < longest_ns, "{wait:?}");
    }

    #[test]
    fn a_wait_ends_by_the_first_two_quanta_in_a_row_that_are_unshared() {
        // A neighbour, an interrupt, another clock; then the last two.
        let quanta =
            [(5900, 8300), (9100, 5950), (6900, 6960), (5900, 5950), (5901, 5951), (5902, 5952)];
        let mut left = quanta.into_iter();
        let next = |now| (QuantumTimes::from(left.next().expect("a wait that has ended")), now);
        let wait = wait_by(next, 1.01, u64::MAX, 7);
        assert_eq!((wait.slice, wait.latency_ns, wait.throughput_ns), (7, 5901, 5951));
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn both_quanta_count() {
        let of =
            |before: (u32, u32), last: (u32, u32)| are_unshared(before.into(), last.into(), 1.01);
        assert!(of((5900, 5960), (5900, 5950)));
        assert!(!of((5900, 8300), (5900, 5960)));
        assert!(!of((5900, 5960), (5900, 8300)));
        // A clock that changed in between, or an interrupt.
        assert!(!of((6900, 6969), (5900, 5959)));
        assert!(!of((15_900, 5960), (5900, 5960)));
        // Better than what was known.
        assert!(of((5900, 4300), (5900, 4300)));
    }
}
