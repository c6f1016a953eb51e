//! The C interface: include/threadclock.h says what each does.

use crate::clock::{self, ThreadClock};
use crate::sys;
use crate::types::{CpuTime, Error};
use libc::{c_char, c_int, pid_t};

fn answer(time: Result<CpuTime, Error>, out: *mut CpuTime) -> c_int {
    let errno = match time {
        _ if out.is_null() => libc::EINVAL,
        Err(error) => error.errno(),
        Ok(time) => {
            // SAFETY: not null, and the header asks for a valid pointer.
            unsafe { out.write(time) };
            return 0;
        }
    };
    sys::set_errno(errno);
    -1
}

/// [`getpinfo`](crate::getpinfo()) for C.
///
/// # Safety
/// `out` is null or points to a `struct threadclock_time`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpinfo(id: pid_t, out: *mut CpuTime) -> c_int {
    answer(crate::getpinfo::getpinfo(id), out)
}

/// [`getpinfo_process`](crate::getpinfo_process()) for C.
///
/// # Safety
/// `out` is null or points to a `struct threadclock_time`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpinfo_process(pid: pid_t, out: *mut CpuTime) -> c_int {
    answer(crate::getpinfo::getpinfo_process(pid), out)
}

/// The calling thread's CPU time in nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn threadclock_now_ns() -> u64 {
    clock::now().ns
}

/// The name of the calling thread's tier, a static string.
#[unsafe(no_mangle)]
pub extern "C" fn threadclock_tier() -> *const c_char {
    ThreadClock::for_this_thread().tier().c_name().as_ptr()
}

/// The calling thread's published bound in nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn threadclock_error_bound_ns() -> u64 {
    ThreadClock::for_this_thread().error_bound_ns()
}

#[cfg(test)]
mod tests {
    use crate::Tier;
    use core::ffi::CStr;

    #[test]
    fn the_names_are_those_of_the_tiers() {
        // SAFETY: a static string.
        let name = unsafe { CStr::from_ptr(super::threadclock_tier()) };
        let own = crate::ThreadClock::for_this_thread().tier();
        assert_eq!(name.to_str(), Ok(own.name()));
        assert!(Tier::ALL.contains(&own));
    }
}
