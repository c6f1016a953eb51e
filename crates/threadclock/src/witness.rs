//! Witnesses: the words by which the kernel shows that a thread was switched out. Each is tested once
//! per process before its tier is trusted; so is the counter.
//!
//! The best witness is a side effect of rseq (include/uapi/linux/rseq.h). A thread registers an area,
//! whose word `rseq_cs` may point to a descriptor of a section of code. After a preemption, migration
//! or signal, on the way back to user space, the kernel checks where the thread stopped
//! (rseq_ip_fixup() in kernel/rseq.c):
//!
//! ```text
//! inside the section     the kernel jumps to its abort handler
//! outside                the kernel stores 0 in rseq_cs, as the section is over
//! ```
//!
//! The section of our descriptor is empty, so every instruction is outside: `rseq_cs` holds the
//! descriptor's address until the thread is switched, and 0 afterwards.

use crate::slot::MAX_PAIR_WIDTH_NS;
use crate::types::{CachedVerdict, TierRefusal};
use crate::{arch, calibrate, pinfo, sys};
#[cfg(not(target_feature = "crt-static"))]
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// The offset of `rseq_cs` in `struct rseq`.
const RSEQ_CS_OFFSET: usize = 8;
/// The original size of `struct rseq`, which kernels from 7.1 take as a wish for the original behaviour, too.
const AREA_BYTES: u32 = 32;
const UNREGISTER: i32 = 1;

/// A `struct rseq_cs` with an empty range: version and flags, start_ip, post_commit_offset, abort_ip.
/// The signature follows, as the kernel checks the four bytes before abort_ip.
#[repr(C, align(32))]
pub(crate) struct RseqDescriptor([u64; 5]);

impl RseqDescriptor {
    /// Fills in the descriptor where it will stay.
    pub(crate) fn place(&mut self) {
        let signature = &raw const self.0[4] as u64;
        // abort_ip is never jumped to, as no instruction is inside the section.
        self.0 = [0, signature, 0, signature + 4, u64::from(arch::RSEQ_SIG)];
    }
}

/// `struct rseq` as of Linux 4.18, for C libraries that register none.
#[repr(C, align(32))]
pub(crate) struct RseqArea([u8; AREA_BYTES as usize]);

/// Returns the `rseq_cs` word of the area that the C library registered for this thread. If it did
/// not, registers `own_area`.
pub(crate) fn find_or_register(own_area: *mut RseqArea) -> Result<*const AtomicU64, TierRefusal> {
    match c_library_offset() {
        Some(offset) => Ok(rseq_cs(arch::thread_pointer().wrapping_add_signed(offset))),
        None => {
            call_rseq(own_area, 0).map_err(TierRefusal::RseqRefused)?;
            Ok(rseq_cs(own_area as usize))
        }
    }
}

/// Returns the `rseq_cs` word of the area at this address.
pub(crate) fn rseq_cs(area: usize) -> *const AtomicU64 {
    (area + RSEQ_CS_OFFSET) as *const AtomicU64
}

/// Undoes our registration, which must not outlive the area.
pub(crate) fn unregister(own_area: *mut RseqArea) -> Result<(), i32> {
    call_rseq(own_area, UNREGISTER)
}

fn call_rseq(own_area: *mut RseqArea, flags: i32) -> Result<(), i32> {
    // SAFETY: the area lies in the thread's page, which stays mapped until it is unregistered.
    let status =
        unsafe { libc::syscall(libc::SYS_rseq, own_area, AREA_BYTES, flags, arch::RSEQ_SIG) };
    if status == 0 { Ok(()) } else { Err(sys::errno()) }
}

/// Returns `__rseq_offset`, if the C library has it (glibc 2.35) and did register (`__rseq_size` is not 0:
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

/// Returns the addresses of `__rseq_offset` and `__rseq_size`, null where the C library has none. A
/// static one has no table of names to look them up.
#[cfg(not(target_feature = "crt-static"))]
fn rseq_symbols() -> (*const isize, *const u32) {
    (find_symbol(c"__rseq_offset").cast(), find_symbol(c"__rseq_size").cast())
}

#[cfg(not(target_feature = "crt-static"))]
fn find_symbol(name: &CStr) -> *const c_void {
    // SAFETY: looks a name up; nothing is called.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

static COUNTER_VERDICT: CachedVerdict = CachedVerdict::unknown();
static RSEQ_VERDICT: CachedVerdict = CachedVerdict::unknown();
static PERF_VERDICT: CachedVerdict = CachedVerdict::unknown();
static PINFO_VERDICT: CachedVerdict = CachedVerdict::unknown();

/// Clock sources that are the counter, or are computed from it by the hypervisor's scale. Only the
/// counter's rate matters here; its offset between CPUs does not, as a move is a switch.
const TRUSTED_CLOCK_SOURCES: [&[u8]; 5] =
    [b"tsc", b"kvm-clock", b"hyperv_clocksource_tsc_page", b"xen", b"arch_sys_counter"];

/// Checks that the counter exists, is steady and calibrated, and can be paired with the kernel's
/// clock.
pub(crate) fn counter_is_good() -> Result<(), TierRefusal> {
    COUNTER_VERDICT.get_or(|| {
        if !arch::HAS_COUNTER {
            return Err(TierRefusal::NoCounter);
        }
        // Emulators (QEMU's) have an invariant counter and do not say so. Not a feature, which any
        // other crate could switch on: kernel/guest sets it for its tests.
        if !arch::counter_is_invariant() && !cfg!(threadclock_emulated) {
            return Err(TierRefusal::CounterNotInvariant);
        }
        if !is_clock_source_trusted() {
            return Err(TierRefusal::ClockSourceDistrusted);
        }
        if !calibrate::finish() {
            return Err(TierRefusal::NotCalibrated);
        }
        if is_kernel_clock_fast() { Ok(()) } else { Err(TierRefusal::KernelClockTooSlow) }
    })
}

/// Returns whether the kernel keeps time by the counter. If that cannot be read (no sysfs in the
/// container), it is no sign of distrust.
fn is_clock_source_trusted() -> bool {
    let mut buffer = [0; 64];
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match sys::read_start(path, &mut buffer) {
        Ok(name) => TRUSTED_CLOCK_SOURCES.contains(&name.trim_ascii()),
        Err(_) => true,
    }
}

/// Returns whether a reading of the kernel's clock fits between two stamps that are near enough.
///
/// Beside competing tasks whole stretches of calls take 4 us each, and pass: it tries again for up to
/// 0.2 s.
fn is_kernel_clock_fast() -> bool {
    for attempt in 0..13 {
        let narrowest = (0..16).map(|_| pair_width()).min().unwrap_or(u64::MAX);
        if narrowest <= calibrate::ticks_of(MAX_PAIR_WIDTH_NS / 2) {
            return true;
        }
        sys::sleep_ns(25_000 << attempt);
    }
    false
}

/// Returns the ticks between two stamps around a reading of the kernel's clock.
fn pair_width() -> u64 {
    let first = arch::stamp();
    sys::thread_cpu_ns();
    arch::stamp().wrapping_sub(first)
}

/// Checks that `rseq_cs` is cleared by a call that blocks.
pub(crate) fn rseq_shows_switches(
    rseq_cs: *const AtomicU64,
    token: u64,
) -> Result<(), TierRefusal> {
    // SAFETY: the caller's word is this thread's and mapped.
    let word = unsafe { &*rseq_cs };
    RSEQ_VERDICT.get_or(|| {
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

/// Checks that a perf page's generation moves in a call that blocks.
pub(crate) fn perf_shows_switches(generation: *const AtomicU64) -> Result<(), TierRefusal> {
    // SAFETY: the caller's word is in a mapped perf page.
    let word = unsafe { &*generation };
    PERF_VERDICT.get_or(|| shows_switches(|| word.load(Relaxed), || word.load(Relaxed)))
}

/// Checks that the system call's count of switches moves in a call that blocks.
pub(crate) fn pinfo_shows_switches() -> Result<(), TierRefusal> {
    pinfo::available()?;
    PINFO_VERDICT.get_or(|| shows_switches(own_swapins, own_swapins))
}

fn own_swapins() -> u64 {
    pinfo::own().map_or(0, |info| info.swapins)
}

/// Blocks until the kernel has counted two switches; both must show in the witness. `arm` sets it
/// and returns its value, `read` reads it. One switch is not enough: a preemption can clear the word
/// that the blocking call itself did not (Linux 6.19).
fn shows_switches(arm: impl Fn() -> u64, read: impl Fn() -> u64) -> Result<(), TierRefusal> {
    let mut switches_shown = 0;
    for attempt in 0..13 {
        let before = arm();
        let [switches, _] = sys::own_switches();
        if read() != before {
            continue;
        }
        // On a slow machine a short sleep is over before it has begun, without a switch.
        sys::sleep_ns(20_000 << attempt);
        if sys::own_switches()[0] == switches {
            continue;
        }
        if read() == before {
            return Err(TierRefusal::SwitchInSyscallUnseen);
        }
        switches_shown += 1;
        if switches_shown == 2 {
            return Ok(());
        }
    }
    Err(TierRefusal::NotTried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_switch_leaves_alone_is_refused() {
        assert_eq!(shows_switches(|| 7, || 7), Err(TierRefusal::SwitchInSyscallUnseen));
    }

    #[test]
    fn a_word_that_will_not_hold_still_is_refused() {
        assert_eq!(shows_switches(|| 8, || 7), Err(TierRefusal::NotTried));
    }
}
