//! `getpinfo` as a system call: the kernel of Hines et al. (2000), section 3, as kernel/patches
//! makes it of a current one. Elsewhere there is no such call.

use crate::types::{TimeReadError, Verdict, WhyNot};
use crate::{arch, sys};
use libc::{c_long, pid_t};

/// The number of the call, ours and not upstream's (arch/x86/entry/syscalls/syscall_64.tbl and
/// scripts/syscall.tbl of the patch). The only place that has it.
pub const NUMBER: c_long = 600;
/// `PINFO_PROCESS` of include/uapi/linux/pinfo.h.
pub const PROCESS: u32 = 1;

/// `struct pinfo` of include/uapi/linux/pinfo.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pinfo {
    /// Bytes of this that the kernel filled.
    pub size: u32,
    /// Threads that were on a CPU at that moment: 0 or 1 for a thread.
    pub on_cpu: u32,
    /// Ticks of the CPUs' counters (TSC, CNTVCT_EL0) on a CPU until now. Steal and interrupts,
    /// which happen on the CPU, are among them.
    pub cycles: u64,
    /// Times that the scheduler switched to it.
    pub swapins: u64,
}

/// A thread of the caller's process; 0 is the caller itself. Exact for the caller.
///
/// # Errors
/// Where the kernel has no such call [`TimeReadError::Os`] with `ENOSYS`. Negative ids, ids of no thread.
/// [`TimeReadError::NotPermitted`] for a thread of another process: see [`process`].
#[inline]
pub fn thread(id: pid_t) -> Result<Pinfo, TimeReadError> {
    checked(id, 0)
}

/// All threads of a process, those that have ended included; 0 is the caller's. Any process.
///
/// # Errors
/// As [`thread`]. [`TimeReadError::InvalidId`] for a thread that is not its process's first.
#[inline]
pub fn process(pid: pid_t) -> Result<Pinfo, TimeReadError> {
    checked(pid, PROCESS)
}

/// Whether this kernel has the call, and why not. Found out once a process.
///
/// Another kernel may have given the number to something else. So it is first called in a way that
/// no call accepts (and this one refuses as invalid), and then believed only if its answers agree
/// with themselves and with the time stamp.
pub fn available() -> Result<(), WhyNot> {
    static VERDICT: Verdict = Verdict::unknown();
    VERDICT.get_or(|| probe(call))
}

#[inline]
fn checked(id: pid_t, flags: u32) -> Result<Pinfo, TimeReadError> {
    let failed = |errno| match errno {
        libc::EINVAL => TimeReadError::InvalidId(id),
        libc::ESRCH => TimeReadError::NoSuchTask(id),
        libc::EPERM => TimeReadError::NotPermitted(id),
        _ => TimeReadError::Os { call: "getpinfo", id, errno },
    };
    available().map_err(|why| failed(why.errno().unwrap_or(libc::ENOSYS)))?;
    call(id, flags, size_of::<Pinfo>()).map_err(failed)
}

/// The caller's own count, for the tier, which exists only where [`available`] says so. `None` if a
/// filter has come since.
#[inline]
pub(crate) fn own() -> Option<Pinfo> {
    call(0, 0, size_of::<Pinfo>()).ok()
}

/// The system call. `size` is its argument for the size of the struct.
#[inline]
fn call(id: pid_t, flags: u32, size: usize) -> Result<Pinfo, i32> {
    let mut info = Pinfo::default();
    // A longer one than ours would be written past its end.
    let size = size.min(size_of::<Pinfo>());
    // No address with no bytes: another call may use it in its own way.
    let out = if size == 0 { core::ptr::null_mut() } else { &raw mut info };
    // SAFETY: the kernel, whatever call has this number there, is given a struct of `size` bytes.
    let status = unsafe { libc::syscall(NUMBER, id, flags, out, size) };
    if status == 0 { Ok(info) } else { Err(sys::errno()) }
}

fn probe(call: impl Fn(pid_t, u32, usize) -> Result<Pinfo, i32>) -> Result<(), WhyNot> {
    if !arch::HAS_COUNTER {
        return Err(WhyNot::NoCounter);
    }
    match call(-1, u32::MAX, 0) {
        Err(libc::EINVAL) => {}
        Err(libc::ENOSYS) => return Err(WhyNot::NoSystemCall),
        Err(errno @ (libc::EPERM | libc::EACCES)) => return Err(WhyNot::SystemCallRefused(errno)),
        _ => return Err(WhyNot::OtherSystemCall),
    }
    let size = size_of::<Pinfo>();
    let sound = |info: &Pinfo| info.size as usize == size && info.on_cpu == 1 && info.swapins > 0;
    let refuses = call(0, 0, size - 1) == Err(libc::EINVAL);
    let before = arch::stamp_ordered();
    let (first, second) = (call(0, 0, size), call(0, 0, size));
    let elapsed = arch::stamp_ordered().wrapping_sub(before);
    let whole = call(0, PROCESS, size);
    match (first, second, whole) {
        (Ok(first), Ok(second), Ok(whole))
            if refuses
                && sound(&first)
                && sound(&second)
                && (1..=elapsed).contains(&second.cycles.wrapping_sub(first.cycles))
                && second.swapins >= first.swapins
                && whole.cycles >= second.cycles =>
        {
            Ok(())
        }
        _ => Err(WhyNot::OtherSystemCall),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    const SIZE: usize = size_of::<Pinfo>();

    /// A kernel whose counter is the time stamp, as `distort` tells of it.
    fn kernel(
        distort: impl Fn(Pinfo) -> Pinfo,
    ) -> impl Fn(pid_t, u32, usize) -> Result<Pinfo, i32> {
        move |id, flags, size| match (id, flags, size) {
            (0, 0 | PROCESS, SIZE) => {
                let cycles = arch::stamp_ordered();
                Ok(distort(Pinfo { size: SIZE as u32, on_cpu: 1, cycles, swapins: 3 }))
            }
            _ => Err(libc::EINVAL),
        }
    }

    #[test]
    fn the_call_of_the_patch_is_believed() {
        if arch::HAS_COUNTER {
            assert_eq!(probe(kernel(|info| info)), Ok(()));
        }
    }

    #[test]
    fn no_call_and_a_filter_are_told_apart() {
        if arch::HAS_COUNTER {
            assert_eq!(probe(|_, _, _| Err(libc::ENOSYS)), Err(WhyNot::NoSystemCall));
            let refused = WhyNot::SystemCallRefused(libc::EPERM);
            assert_eq!(probe(|_, _, _| Err(libc::EPERM)), Err(refused));
        }
    }

    /// Another call of this number: one that takes anything, one that refuses everything, and such
    /// as answer almost as ours.
    #[test]
    fn another_call_of_this_number_is_not_believed() {
        let calls = Cell::new(0);
        let steps = |by: u64| {
            let calls = &calls;
            kernel(move |info| {
                calls.set(calls.get() + 1);
                Pinfo { cycles: by.wrapping_mul(calls.get()).wrapping_add(1_000), ..info }
            })
        };
        let wrong = |found| {
            if arch::HAS_COUNTER {
                assert_eq!(found, Err(WhyNot::OtherSystemCall));
            }
        };
        wrong(probe(|_, _, _| Ok(Pinfo::default())));
        wrong(probe(|_, _, _| Err(libc::EFAULT)));
        wrong(probe(|_, _, _| Err(libc::EINVAL)));
        wrong(probe(kernel(|info| Pinfo { size: 32, ..info })));
        wrong(probe(kernel(|info| Pinfo { on_cpu: 0, ..info })));
        wrong(probe(kernel(|info| Pinfo { swapins: 0, ..info })));
        // Stands still, runs away, goes back.
        wrong(probe(steps(0)));
        wrong(probe(steps(1 << 60)));
        wrong(probe(steps(u64::MAX)));
    }

    #[test]
    fn ids_that_nobody_has() {
        if available().is_ok() {
            assert_eq!(thread(-1), Err(TimeReadError::InvalidId(-1)));
            assert_eq!(process(i32::MAX), Err(TimeReadError::NoSuchTask(i32::MAX)));
        } else {
            assert!(matches!(thread(0), Err(TimeReadError::Os { call: "getpinfo", .. })));
        }
    }
}
