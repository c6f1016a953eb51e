//! Reference quanta: two fixed pieces of work that show how fast the CPU runs at this moment (fixed
//! work quanta, Sottile and Minnich 2004). One is bound by latency and goes with the core's clock;
//! one is bound by the core's width and goes with the clock and with who shares the core.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;

use model::reference::TOLERANCE;
use model::ring::{ADD_TURNS, ADDS_PER_TURN, MULTIPLIES_PER_TURN, MULTIPLY_TURNS, Slices, Wait};

use super::clock::{UsageScope, monotonic_raw_ns, own_thread_cpu_ns, usage};

// The lines that the loops repeat are this many.
const _: () = assert!(MULTIPLIES_PER_TURN == 16 && ADDS_PER_TURN == 64);

/// Whether this architecture has the loops.
pub const HAS_QUANTA: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// A line of the loops for this architecture.
#[cfg(target_arch = "x86_64")]
macro_rules! line {
    ($x86_64:literal, $aarch64:literal) => {
        $x86_64
    };
}
/// The same. Run in an emulator only: how far they tell a shared core on such a machine is not
/// known.
#[cfg(target_arch = "aarch64")]
macro_rules! line {
    ($x86_64:literal, $aarch64:literal) => {
        $aarch64
    };
}

/// Each multiplication waits for the one before.
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

/// Eight sums that do not wait for each other. By a register, not by a constant: some cores add
/// small constants while they rename registers (Golden Cove), which no sibling thread shares.
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

/// Runs both loops and keeps their times. `start_ns` is now; gives the time after them. Room must
/// have been made: nothing is allocated here.
#[inline]
pub fn reference_quantum(start_ns: u64, slices: &mut Slices) -> u64 {
    let (latency_ns, throughput_ns, end_ns) = quantum(start_ns);
    slices.push_quantum(latency_ns, throughput_ns);
    end_ns
}

/// The times of both loops at this moment, in nanoseconds: first the latency-bound one's. The least
/// of three: what somebody else left in the caches, or an interrupt, makes one of them long, and who
/// shares the core all.
pub fn least_quantum_ns() -> (u64, u64) {
    let mut now_ns = monotonic_raw_ns();
    let three = [(); 3].map(|()| {
        let (latency_ns, throughput_ns, end_ns) = quantum(now_ns);
        now_ns = end_ns;
        (latency_ns, throughput_ns)
    });
    least(three)
}

/// Of each loop by itself.
fn least(all: [(u64, u64); 3]) -> (u64, u64) {
    all.into_iter().fold((u64::MAX, u64::MAX), |(latency, throughput), one| {
        (latency.min(one.0), throughput.min(one.1))
    })
}

/// Time of the latency-bound loop, that of the throughput-bound one, and now.
#[inline]
pub(super) fn quantum(start_ns: u64) -> (u64, u64, u64) {
    latency_bound();
    let between_ns = monotonic_raw_ns();
    throughput_bound();
    let end_ns = monotonic_raw_ns();
    (between_ns.wrapping_sub(start_ns), end_ns.wrapping_sub(between_ns), end_ns)
}

/// The latency-bound loop at the clock that this core has once it is busy, in nanoseconds: what the
/// quickest quarter of a block of quanta took, as soon as two blocks in a row agree to 0.2 %, after
/// 50 ms at least, in which governors have raised the clock, and 250 ms at most. Absent on
/// architectures without the loops.
pub fn busy_quantum_ns() -> Option<u64> {
    const BLOCK: usize = 400;
    let (start, mut before) = (monotonic_raw_ns(), 0);
    let mut now = start;
    loop {
        let mut block = [0; BLOCK];
        for latency_ns in &mut block {
            let (this_ns, _, end_ns) = quantum(now);
            (*latency_ns, now) = (this_ns, end_ns);
        }
        block.sort_unstable();
        let quick = block[BLOCK / 4];
        let (agree, passed_ns) = (quick.abs_diff(before) <= quick / 500, now.wrapping_sub(start));
        if !HAS_QUANTA || passed_ns >= 250_000_000 || agree && passed_ns >= 50_000_000 {
            return HAS_QUANTA.then_some(quick);
        }
        before = quick;
    }
}

/// Runs quanta until two in a row have the ratio of an unshared core, or `most_ns` have passed:
/// what comes next then has a better chance to have the core for itself. Whether it had is judged
/// by the quanta around it. `slice` is what is waited for.
pub fn wait_unshared(unshared_ratio: f64, most_ns: u64, slice: u32) -> Wait {
    wait_by(quantum, unshared_ratio, most_ns, slice)
}

/// The same by such quanta: given now, they tell both times and now.
#[inline(always)]
fn wait_by(
    mut quantum: impl FnMut(u64) -> (u64, u64, u64),
    unshared_ratio: f64,
    most_ns: u64,
    slice: u32,
) -> Wait {
    let switches = || usage(UsageScope::Thread).switches();
    let (start_ns, start_cpu_ns, start_switches) =
        (monotonic_raw_ns(), own_thread_cpu_ns(), switches());
    let mut before: Option<(u64, u64)> = None;
    let mut now = monotonic_raw_ns();
    loop {
        let (latency_ns, throughput_ns, end_ns) = quantum(now);
        now = end_ns;
        let last = (latency_ns, throughput_ns);
        let elapsed_ns = now.wrapping_sub(start_ns);
        let is_over = before.is_some_and(|before| are_unshared([before, last], unshared_ratio));
        if is_over || elapsed_ns >= most_ns {
            let kept = |ns: u64| u32::try_from(ns).unwrap_or(u32::MAX);
            return Wait {
                slice,
                elapsed_ns,
                cpu_ns: own_thread_cpu_ns().saturating_sub(start_cpu_ns),
                switches: switches().saturating_sub(start_switches),
                latency_ns: kept(latency_ns),
                throughput_ns: kept(throughput_ns),
            };
        }
        before = Some(last);
    }
}

/// Whether a quantum's times are those of an unshared core, or of one that is better than was
/// known: then what was known was a shared core's.
pub fn is_unshared((latency_ns, throughput_ns): (u64, u64), unshared_ratio: f64) -> bool {
    throughput_ns as f64 <= unshared_ratio * latency_ns as f64 * (1.0 + TOLERANCE)
}

/// Whether all these quanta are.
pub fn all_unshared(quanta: &Slices, unshared_ratio: f64) -> bool {
    let mut times =
        quanta.quanta().map(|(latency, throughput)| (latency.into(), throughput.into()));
    times.all(|times| is_unshared(times, unshared_ratio))
}

/// The same of two in a row with one clock: an interrupt makes one of them long.
fn are_unshared(quanta: [(u64, u64); 2], unshared_ratio: f64) -> bool {
    let [(before, _), (last, _)] = quanta;
    let one_clock = (before as f64 - last as f64).abs() <= TOLERANCE * last as f64;
    one_clock && quanta.into_iter().all(|times| is_unshared(times, unshared_ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_in_one_loop_is_in_no_look() {
        let (alone, shared) = ((6000, 6060), (6000, 8400));
        let of_latency = (9000, 6060);
        assert_eq!(least([of_latency, alone, (6000, 9060)]), alone);
        assert_eq!(least([(9000, 8400), shared, shared]), shared);
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
        let next = |now| {
            let (latency_ns, throughput_ns) = left.next().expect("a wait that has ended");
            (latency_ns, throughput_ns, now)
        };
        let wait = wait_by(next, 1.01, u64::MAX, 7);
        assert_eq!((wait.slice, wait.latency_ns, wait.throughput_ns), (7, 5901, 5951));
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn both_quanta_count() {
        let of = |before, last| are_unshared([before, last], 1.01);
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
