//! What must be true of this machine before a tier is trusted, found out once per process.

use crate::slot::WIDEST_PAIR_NS;
use crate::types::{Verdict, WhyNot};
use crate::{arch, calibrate, pinfo, sys};
use core::sync::atomic::{AtomicU64, Ordering::*};

static COUNTER: Verdict = Verdict::unknown();
static RSEQ: Verdict = Verdict::unknown();
static PERF: Verdict = Verdict::unknown();
static PINFO: Verdict = Verdict::unknown();

/// Clock sources that are the counter, or are computed from it by the hypervisor's scale. The
/// counter's offset between CPUs does not matter here (a move is a switch), only its rate.
const TRUSTED: [&[u8]; 5] =
    [b"tsc", b"kvm-clock", b"hyperv_clocksource_tsc_page", b"xen", b"arch_sys_counter"];

/// Whether the counter is there, steady, calibrated, and can be paired with the kernel's clock.
pub(crate) fn counter_is_good() -> Result<(), WhyNot> {
    COUNTER.get_or(|| {
        if !arch::HAS_COUNTER {
            return Err(WhyNot::NoCounter);
        }
        // Emulators (QEMU's) have an invariant counter and do not say so. Not a feature, which any
        // other crate could switch on: kernel/guest sets it for its tests.
        if !arch::counter_is_invariant() && !cfg!(threadclock_emulated) {
            return Err(WhyNot::CounterNotInvariant);
        }
        let mut buffer = [0; 64];
        let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
        // Unreadable (no sysfs in the container) is no sign of distrust.
        if let Ok(name) = sys::read_start(path, &mut buffer)
            && !TRUSTED.contains(&name.trim_ascii())
        {
            return Err(WhyNot::ClockSourceDistrusted);
        }
        if !calibrate::finish() {
            return Err(WhyNot::NotCalibrated);
        }
        let narrowest = (0..16).map(|_| pair_width()).min().unwrap_or(u64::MAX);
        if narrowest > calibrate::ticks_of(WIDEST_PAIR_NS / 2) {
            return Err(WhyNot::KernelClockTooSlow);
        }
        Ok(())
    })
}

fn pair_width() -> u64 {
    let first = arch::stamp();
    sys::thread_cpu_ns();
    arch::stamp().wrapping_sub(first)
}

/// Whether `rseq_cs` is cleared by a call that blocks.
pub(crate) fn rseq_shows_switches(rseq_cs: *const AtomicU64, token: u64) -> Result<(), WhyNot> {
    // SAFETY: the caller's word is this thread's and mapped.
    let word = unsafe { &*rseq_cs };
    RSEQ.get_or(|| {
        let verdict = shows_switches(
            || {
                word.store(token, Relaxed);
                token
            },
            || word.load(Relaxed),
        );
        word.store(0, Relaxed);
        verdict
    })
}

/// Whether a perf page's generation moves in a call that blocks.
pub(crate) fn perf_shows_switches(generation: *const AtomicU64) -> Result<(), WhyNot> {
    // SAFETY: the caller's word is in a mapped perf page.
    let word = unsafe { &*generation };
    PERF.get_or(|| shows_switches(|| word.load(Relaxed), || word.load(Relaxed)))
}

/// Whether the count of switches that the system call tells moves in a call that blocks.
pub(crate) fn pinfo_shows_switches() -> Result<(), WhyNot> {
    pinfo::available()?;
    let swapins = || pinfo::own().map_or(0, |info| info.swapins);
    PINFO.get_or(|| shows_switches(swapins, swapins))
}

/// Blocks until the kernel has counted two switches; both must show in the sign. Two, since a
/// preemption can clear the word that the blocking call itself did not (Linux 6.19).
fn shows_switches(arm: impl Fn() -> u64, look: impl Fn() -> u64) -> Result<(), WhyNot> {
    let mut seen = 0;
    for attempt in 0..10 {
        let before = arm();
        let switches = sys::voluntary_switches();
        if look() != before {
            continue;
        }
        // On a slow machine a short sleep is over before it has begun, and nobody is switched.
        sys::sleep_ns(20_000 << attempt);
        if sys::voluntary_switches() == switches {
            continue;
        }
        if look() == before {
            return Err(WhyNot::SwitchInSyscallUnseen);
        }
        seen += 1;
        if seen == 2 {
            return Ok(());
        }
    }
    Err(WhyNot::NotTried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_switch_leaves_alone_is_refused() {
        assert_eq!(shows_switches(|| 7, || 7), Err(WhyNot::SwitchInSyscallUnseen));
    }

    #[test]
    fn a_word_that_will_not_hold_still_is_refused() {
        assert_eq!(shows_switches(|| 8, || 7), Err(WhyNot::NotTried));
    }
}
