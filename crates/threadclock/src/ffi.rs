//! The C interface; include/threadclock.h is its documentation.

use crate::clock::{self, ThreadClock};
use crate::sys;
use crate::table::{ThreadTimeError, ThreadTimeReader};
use crate::types::{CpuTime, TimeReadError};
use core::ffi::CStr;
use core::ptr;
use libc::{c_char, c_int, pid_t};

/// Writes the result to `out` and returns 0, or sets errno and returns -1.
fn answer<T>(result: Result<T, c_int>, out: *mut T) -> c_int {
    let errno = match result {
        _ if out.is_null() => libc::EINVAL,
        Err(errno) => errno,
        Ok(value) => {
            // SAFETY: not null, and the header asks for a valid pointer.
            unsafe { out.write(value) };
            return 0;
        }
    };
    sys::set_errno(errno);
    -1
}

/// Reads one thread, as [`getpinfo`](crate::getpinfo()).
///
/// # Safety
/// `out` is null or points to a `struct threadclock_time`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpinfo(id: pid_t, out: *mut CpuTime) -> c_int {
    answer(crate::getpinfo::getpinfo(id).map_err(TimeReadError::errno), out)
}

/// Reads a whole process, as [`getpinfo_process`](crate::getpinfo_process()).
///
/// # Safety
/// `out` is null or points to a `struct threadclock_time`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpinfo_process(pid: pid_t, out: *mut CpuTime) -> c_int {
    answer(crate::getpinfo::getpinfo_process(pid).map_err(TimeReadError::errno), out)
}

/// Returns the calling thread's CPU time in nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn threadclock_now_ns() -> u64 {
    clock::now().ns
}

/// Returns the name of the calling thread's tier, a static string.
#[unsafe(no_mangle)]
pub extern "C" fn threadclock_tier() -> *const c_char {
    ThreadClock::for_this_thread().tier().c_name().as_ptr()
}

/// Returns the calling thread's published bound in nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn threadclock_error_bound_ns() -> u64 {
    ThreadClock::for_this_thread().error_bound_ns()
}

/// Opens a pinned table. Null, with errno, if that fails.
///
/// # Safety
/// `path` is null or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn threadclock_others_open(path: *const c_char) -> *mut ThreadTimeReader {
    let null = ptr::null_mut();
    if path.is_null() {
        sys::set_errno(libc::EINVAL);
        return null;
    }
    // SAFETY: a string, as the caller promises.
    let reader = match ThreadTimeReader::open(unsafe { CStr::from_ptr(path) }) {
        Ok(reader) => reader,
        Err(error) => {
            sys::set_errno(error.errno());
            return null;
        }
    };
    // SAFETY: memory of its size, aligned for anything, written before it is used.
    unsafe {
        let place = libc::malloc(size_of::<ThreadTimeReader>()).cast::<ThreadTimeReader>();
        if !place.is_null() {
            place.write(reader);
        }
        place
    }
}

/// Reads the CPU time of a thread in nanoseconds. 0, or -1 with errno.
///
/// # Safety
/// `others` is null or came from [`threadclock_others_open`]; `ns` is null or points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn threadclock_others_ns(
    others: *const ThreadTimeReader,
    id: pid_t,
    ns: *mut u64,
) -> c_int {
    // SAFETY: as the caller promises.
    let cpu_ns = match (unsafe { others.as_ref() }, u32::try_from(id)) {
        (Some(others), Ok(tid)) => others.cpu_ns(tid).map_err(ThreadTimeError::errno),
        _ => Err(libc::EINVAL),
    };
    answer(cpu_ns, ns)
}

/// Frees a reader. Null is ignored.
///
/// # Safety
/// `others` is null or came from [`threadclock_others_open`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn threadclock_others_close(others: *mut ThreadTimeReader) {
    if !others.is_null() {
        // SAFETY: written by `threadclock_others_open` in memory of malloc's, as the caller
        // promises.
        unsafe {
            others.drop_in_place();
            libc::free(others.cast());
        }
    }
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
