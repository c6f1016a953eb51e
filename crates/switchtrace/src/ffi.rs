//! The C interface; include/switchtrace.h is its documentation.

use crate::error::Error;
use crate::options::Options;
use crate::tracer::Tracer;
use libc::{c_char, c_int, pid_t, size_t};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use threadclock::table::{ThreadTime, ThreadTimeReader};

/// A tracer and a reader of its table: `struct switchtrace` of the header.
#[derive(Debug)]
pub struct TracerHandle {
    times: ThreadTimeReader,
    tracer: Tracer,
}

fn set_errno(errno: c_int) {
    // SAFETY: the location belongs to this thread.
    unsafe { *libc::__errno_location() = errno };
}

/// Sets errno and returns -1.
fn failed(errno: c_int) -> c_int {
    set_errno(errno);
    -1
}

fn open() -> Result<TracerHandle, Error> {
    let tracer = Tracer::open(&Options::times_only())?;
    Ok(TracerHandle { times: tracer.thread_times()?, tracer })
}

/// Begins to trace. Null, with errno and a message, if that fails.
///
/// # Safety
/// `message` is null or has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn switchtrace_open(
    message: *mut c_char,
    bytes: size_t,
) -> *mut TracerHandle {
    let error = match open() {
        Ok(handle) => return Box::into_raw(Box::new(handle)),
        Err(error) => error,
    };
    let text = error.to_string();
    if !message.is_null() && bytes > 0 {
        let length = text.len().min(bytes - 1);
        // SAFETY: `length` bytes and a NUL fit, as the caller promises.
        unsafe {
            message.copy_from_nonoverlapping(text.as_ptr().cast(), length);
            message.add(length).write(0);
        }
    }
    set_errno(error.errno());
    std::ptr::null_mut()
}

/// Reads the times and counts of one thread. 0, or -1 with errno.
///
/// # Safety
/// `trace` is null or came from [`switchtrace_open`]; `out` is null or a `struct switchtrace_time`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn switchtrace_read(
    trace: *const TracerHandle,
    id: pid_t,
    out: *mut ThreadTime,
) -> c_int {
    // SAFETY: as the caller promises.
    let (Some(handle), Ok(tid), false) =
        (unsafe { trace.as_ref() }, u32::try_from(id), out.is_null())
    else {
        return failed(libc::EINVAL);
    };
    match handle.times.read(tid) {
        Ok(time) => {
            // SAFETY: not null, and a struct of this layout.
            unsafe { out.write(time) };
            0
        }
        Err(error) => failed(error.errno()),
    }
}

/// Returns the CPU time of one thread in nanoseconds; 0 if no such thread has been seen.
///
/// # Safety
/// `trace` is null or came from [`switchtrace_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn switchtrace_cpu_ns(trace: *const TracerHandle, id: pid_t) -> u64 {
    // SAFETY: as the caller promises.
    let Some(handle) = (unsafe { trace.as_ref() }) else { return 0 };
    let tid = u32::try_from(id).unwrap_or(u32::MAX);
    handle.times.cpu_ns(tid).unwrap_or(0)
}

/// Pins the table at a path in a BPF file system. 0, or -1 with errno.
///
/// # Safety
/// `trace` as in [`switchtrace_read`]; `path` is null or a string that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn switchtrace_pin(trace: *const TracerHandle, path: *const c_char) -> c_int {
    if path.is_null() {
        return failed(libc::EINVAL);
    }
    // SAFETY: as the caller promises.
    let (handle, path) = unsafe { (trace.as_ref(), CStr::from_ptr(path)) };
    let Some(handle) = handle else { return failed(libc::EINVAL) };
    match handle.tracer.pin(Path::new(OsStr::from_bytes(path.to_bytes()))) {
        Ok(()) => 0,
        Err(error) => failed(error.errno()),
    }
}

/// Ends the trace and frees the handle. Null is ignored.
///
/// # Safety
/// `trace` is null or came from [`switchtrace_open`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn switchtrace_close(trace: *mut TracerHandle) {
    if !trace.is_null() {
        // SAFETY: made by Box::into_raw, and given back once, as the caller promises.
        drop(unsafe { Box::from_raw(trace) });
    }
}
