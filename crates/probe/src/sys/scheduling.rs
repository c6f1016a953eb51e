//! Core scheduling: the cookie of a process.

use std::ffi::c_ulong;

use rustix::io::Errno;

use super::check;

/// Constants of linux/prctl.h, which libc does not have for all targets.
const PR_SCHED_CORE: libc::c_int = 62;
const PR_SCHED_CORE_GET: c_ulong = 0;
/// A single thread.
const PIDTYPE_PID: c_ulong = 0;

/// Returns the cookie of the calling thread, 0 where it has none. Kernels without CONFIG_SCHED_CORE
/// answer `EINVAL`, machines without hardware threads `ENODEV`.
pub fn core_cookie() -> Result<u64, Errno> {
    let mut cookie = 0_u64;
    // SAFETY: the kernel writes eight bytes to the address, which `cookie` has.
    check(unsafe {
        libc::prctl(PR_SCHED_CORE, PR_SCHED_CORE_GET, 0 as c_ulong, PIDTYPE_PID, &raw mut cookie)
    })?;
    Ok(cookie)
}
