//! `getpinfo` as a system call, after Hines et al. (2000), section 3: kernel/patches adds it to a
//! current kernel. Other kernels have no such call.

use crate::types::{CachedVerdict, TierRefusal, TimeReadError};
use crate::{arch, sys};
use libc::{c_long, pid_t};

/// The number of the call, which is ours and not upstream's (arch/x86/entry/syscalls/syscall_64.tbl and
/// scripts/syscall.tbl of the patch). Defined only here.
pub const NUMBER: c_long = 600;
/// `PINFO_PROCESS` of include/uapi/linux/pinfo.h.
pub const PROCESS: u32 = 1;

/// `struct pinfo` of include/uapi/linux/pinfo.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pinfo {
    /// Bytes of this struct that the kernel filled.
    pub size: u32,
    /// Number of threads that were on a CPU at that moment: 0 or 1 for a thread.
    pub on_cpu: u32,
    /// Ticks of the CPUs' counters (TSC, CNTVCT_EL0) on a CPU up to now. They include steal and
    /// interrupts, which happen on the CPU.
    pub cycles: u64,
    /// Number of times that the scheduler switched to it.
    pub swapins: u64,
}

/// Reads a thread of the caller's process; 0 is the caller itself. Exact for the caller.
///
/// # Errors
/// [`TimeReadError::Os`] with `ENOSYS` if the kernel has no such call; negative ids, ids of no
/// thread; [`TimeReadError::NotPermitted`] for a thread of another process: see [`process`].
#[inline]
pub fn thread(id: pid_t) -> Result<Pinfo, TimeReadError> {
    read_checked(id, 0)
}

/// Reads all threads of any process, including those that have ended; 0 is the caller's.
///
/// # Errors
/// [`TimeReadError::Os`] like [`thread`]; [`TimeReadError::InvalidId`] for a thread that is not its process's first.
#[inline]
pub fn process(pid: pid_t) -> Result<Pinfo, TimeReadError> {
    read_checked(pid, PROCESS)
}

/// Checks that this kernel has the call. The result is kept for the process.
///
/// Another kernel may have given the number to another call. It is therefore first called with
/// arguments that no call accepts (and this one refuses as invalid), and then trusted only if its
/// answers agree with themselves and with the time stamp.
pub fn available() -> Result<(), TierRefusal> {
    static VERDICT: CachedVerdict = CachedVerdict::unknown();
    VERDICT.get_or(|| check_call(call))
}

#[inline]
fn read_checked(id: pid_t, flags: u32) -> Result<Pinfo, TimeReadError> {
    if let Err(why) = available() {
        return Err(read_error(id, why.errno().unwrap_or(libc::ENOSYS)));
    }
    call(id, flags, size_of::<Pinfo>()).map_err(|errno| read_error(id, errno))
}

fn read_error(id: pid_t, errno: i32) -> TimeReadError {
    match errno {
        libc::EINVAL => TimeReadError::InvalidId(id),
        libc::ESRCH => TimeReadError::NoSuchTask(id),
        libc::EPERM => TimeReadError::NotPermitted(id),
        _ => TimeReadError::Os { call: "getpinfo", id, errno },
    }
}

/// Reads the caller's own count, for the tier, which is taken only if [`available`] succeeds. `None`
/// if a filter of system calls has come since.
#[inline]
pub(crate) fn own() -> Option<Pinfo> {
    call(0, 0, size_of::<Pinfo>()).ok()
}

/// Makes the system call. `size` is its argument for the size of the struct.
#[inline]
fn call(id: pid_t, flags: u32, size: usize) -> Result<Pinfo, i32> {
    let mut info = Pinfo::default();
    // The kernel would write a longer struct than ours past its end.
    let size = size.min(size_of::<Pinfo>());
    // Without bytes it gets no address: another call may use the argument in another way.
    let out = if size == 0 { core::ptr::null_mut() } else { &raw mut info };
    // SAFETY: the kernel, whatever call has this number there, is given a struct of `size` bytes.
    let status = unsafe { libc::syscall(NUMBER, id, flags, out, size) };
    if status == 0 { Ok(info) } else { Err(sys::errno()) }
}

/// Checks by its answers that `call` is the call of the patch.
fn check_call(call: impl Fn(pid_t, u32, usize) -> Result<Pinfo, i32>) -> Result<(), TierRefusal> {
    if !arch::HAS_COUNTER {
        return Err(TierRefusal::NoCounter);
    }
    match call(-1, u32::MAX, 0) {
        Err(libc::EINVAL) => {}
        Err(libc::ENOSYS) => return Err(TierRefusal::NoSystemCall),
        Err(errno @ (libc::EPERM | libc::EACCES)) => {
            return Err(TierRefusal::SystemCallRefused(errno));
        }
        _ => return Err(TierRefusal::OtherSystemCall),
    }
    let size = size_of::<Pinfo>();
    let refuses_short = call(0, 0, size - 1) == Err(libc::EINVAL);
    let before = arch::stamp_ordered();
    let (first, second) = (call(0, 0, size), call(0, 0, size));
    let elapsed = arch::stamp_ordered().wrapping_sub(before);
    let whole = call(0, PROCESS, size);
    match (first, second, whole) {
        (Ok(first), Ok(second), Ok(whole))
            if refuses_short
                && is_running_caller(&first)
                && is_running_caller(&second)
                && (1..=elapsed).contains(&second.cycles.wrapping_sub(first.cycles))
                && second.swapins >= first.swapins
                && whole.cycles >= second.cycles =>
        {
            Ok(())
        }
        _ => Err(TierRefusal::OtherSystemCall),
    }
}

/// Returns whether an answer can be that of the calling thread, which runs.
fn is_running_caller(info: &Pinfo) -> bool {
    info.size as usize == size_of::<Pinfo>() && info.on_cpu == 1 && info.swapins > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    const SIZE: usize = size_of::<Pinfo>();

    /// Returns the call of a kernel whose counter is the time stamp; `distort` changes its answers.
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
            assert_eq!(check_call(kernel(|info| info)), Ok(()));
        }
    }

    #[test]
    fn no_call_and_a_filter_are_told_apart() {
        if arch::HAS_COUNTER {
            assert_eq!(check_call(|_, _, _| Err(libc::ENOSYS)), Err(TierRefusal::NoSystemCall));
            let refused = TierRefusal::SystemCallRefused(libc::EPERM);
            assert_eq!(check_call(|_, _, _| Err(libc::EPERM)), Err(refused));
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
                assert_eq!(found, Err(TierRefusal::OtherSystemCall));
            }
        };
        wrong(check_call(|_, _, _| Ok(Pinfo::default())));
        wrong(check_call(|_, _, _| Err(libc::EFAULT)));
        wrong(check_call(|_, _, _| Err(libc::EINVAL)));
        wrong(check_call(kernel(|info| Pinfo { size: 32, ..info })));
        wrong(check_call(kernel(|info| Pinfo { on_cpu: 0, ..info })));
        wrong(check_call(kernel(|info| Pinfo { swapins: 0, ..info })));
        // Stands still, runs away, goes back.
        wrong(check_call(steps(0)));
        wrong(check_call(steps(1 << 60)));
        wrong(check_call(steps(u64::MAX)));
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
