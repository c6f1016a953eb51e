//! Results of calls of the C library.

use rustix::io::Errno;

/// Why the last call of the C library failed.
pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// The result of a call of the C library that gives -1 with errno when it fails.
#[inline(always)]
pub(super) fn check(result: libc::c_int) -> Result<libc::c_int, Errno> {
    if result == -1 { Err(last_errno()) } else { Ok(result) }
}
