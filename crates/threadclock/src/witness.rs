//! What must be true of this machine before a tier is trusted, found out once per process; and
//! where this thread's rseq area is, with a descriptor that no instruction of ours lies in.
//!
//! `struct rseq` and `struct rseq_cs`: include/uapi/linux/rseq.h. The kernel clears `rseq_cs` on
//! the way back to user space after a preemption, migration or signal if the instruction pointer
//! lies outside the section: rseq_ip_fixup() in kernel/rseq.c.

use crate::slot::WIDEST_PAIR_NS;
use crate::types::{Verdict, WhyNot};
use crate::{arch, calibrate, pinfo, sys};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Offset of `rseq_cs` in `struct rseq`.
const RSEQ_CS_OFFSET: usize = 8;
/// The original size, which kernels from 7.1 take as a wish for the original behaviour too.
const AREA_BYTES: u32 = 32;
const UNREGISTER: i32 = 1;

/// `struct rseq_cs`: version and flags, start_ip, post_commit_offset, abort_ip. Its range is empty,
/// so the kernel finds every instruction outside it. Behind it the signature: the kernel checks the
/// four bytes before abort_ip.
#[repr(C, align(32))]
pub(crate) struct Descriptor([u64; 5]);

impl Descriptor {
    /// Fills in the descriptor where it will stay.
    pub(crate) fn place(&mut self) {
        let signature = &raw const self.0[4] as u64;
        // abort_ip is never jumped to, as no instruction is inside the section.
        self.0 = [0, signature, 0, signature + 4, u64::from(arch::RSEQ_SIG)];
    }
}

/// `struct rseq` as of Linux 4.18, for C libraries that register none.
#[repr(C, align(32))]
pub(crate) struct Area([u8; AREA_BYTES as usize]);

/// The `rseq_cs` word of the area that the C library registered for this thread, else of `own`,
/// which is registered.
pub(crate) fn find_or_register(own: *mut Area) -> Result<*const AtomicU64, WhyNot> {
    match c_library_offset() {
        Some(offset) => Ok(rseq_cs(arch::thread_pointer().wrapping_add_signed(offset))),
        None => call(own, 0).map(|()| rseq_cs(own as usize)).map_err(WhyNot::RseqRefused),
    }
}

/// The `rseq_cs` word of the area at this address.
pub(crate) fn rseq_cs(area: usize) -> *const AtomicU64 {
    (area + RSEQ_CS_OFFSET) as *const AtomicU64
}

/// Undoes our registration, which must not outlive the area.
pub(crate) fn unregister(own: *mut Area) -> Result<(), i32> {
    call(own, UNREGISTER)
}

fn call(own: *mut Area, flags: i32) -> Result<(), i32> {
    // SAFETY: the area lies in the thread's page, which stays mapped until it is unregistered.
    let status = unsafe { libc::syscall(libc::SYS_rseq, own, AREA_BYTES, flags, arch::RSEQ_SIG) };
    if status == 0 { Ok(()) } else { Err(sys::errno()) }
}

/// `__rseq_offset`, if the C library has it (glibc 2.35) and did register (`__rseq_size` is not 0:
/// old kernels, or `glibc.pthread.rseq=0`).
fn c_library_offset() -> Option<isize> {
    let (offset, size) = rseq_symbols();
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: glibc's manual gives their types, ptrdiff_t and unsigned int; constant after
    // start-up.
    unsafe { (*size != 0).then_some(*offset) }
}

#[cfg(target_feature = "crt-static")]
use arch::rseq_symbols;

/// `__rseq_offset` and `__rseq_size` of a C library that may have them; a static one has no table
/// of names.
#[cfg(not(target_feature = "crt-static"))]
fn rseq_symbols() -> (*const isize, *const u32) {
    let find = |name: &core::ffi::CStr| {
        // SAFETY: looks a name up; nothing is called.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    (find(c"__rseq_offset").cast(), find(c"__rseq_size").cast())
}

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
        if sys::read_start(path, &mut buffer)
            .is_ok_and(|name| !TRUSTED.contains(&name.trim_ascii()))
        {
            return Err(WhyNot::ClockSourceDistrusted);
        }
        if !calibrate::finish() {
            return Err(WhyNot::NotCalibrated);
        }
        if is_kernel_clock_fast() { Ok(()) } else { Err(WhyNot::KernelClockTooSlow) }
    })
}

/// Whether a reading of the kernel's clock fits between two stamps that are near enough.
///
/// Beside others' work whole stretches of calls take 4 us each, which pass: it looks again for up
/// to 0.2 s.
fn is_kernel_clock_fast() -> bool {
    for attempt in 0..13 {
        let narrowest = (0..16).map(|_| pair_width()).min().unwrap_or(u64::MAX);
        if narrowest <= calibrate::ticks_of(WIDEST_PAIR_NS / 2) {
            return true;
        }
        sys::sleep_ns(25_000 << attempt);
    }
    false
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

/// Whether the count of switches of the system call moves in a call that blocks.
pub(crate) fn pinfo_shows_switches() -> Result<(), WhyNot> {
    pinfo::available()?;
    let swapins = || pinfo::own().map_or(0, |info| info.swapins);
    PINFO.get_or(|| shows_switches(swapins, swapins))
}

/// Blocks until the kernel has counted two switches; both must show in the sign. Two, since a
/// preemption can clear the word that the blocking call itself did not (Linux 6.19).
fn shows_switches(arm: impl Fn() -> u64, look: impl Fn() -> u64) -> Result<(), WhyNot> {
    let mut seen = 0;
    for attempt in 0..13 {
        let before = arm();
        let [switches, _] = sys::own_switches();
        if look() != before {
            continue;
        }
        // On a slow machine a short sleep is over before it has begun, without a switch.
        sys::sleep_ns(20_000 << attempt);
        if sys::own_switches()[0] == switches {
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
