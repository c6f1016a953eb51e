//! Becoming another program: what this process was started with is put back, then execve(2).

use std::ffi::CString;

use rustix::io::Errno;

use super::inherited::Inherited;
use super::process::last_errno;

/// Becomes the program `path`, with these arguments, the first of which is its name, and the
/// environment as it is. `std` searches PATH, and hands what is no program to a shell. Gives why it could
/// not be done.
pub fn execute(path: &CString, args: &[CString]) -> Errno {
    let mut list: Vec<*const libc::c_char> = args.iter().map(|arg| arg.as_ptr()).collect();
    list.push(std::ptr::null());
    Inherited::own().restore();
    // SAFETY: path and list are strings that end with a zero, and the list ends with a null. It returns
    // only if it failed.
    unsafe { libc::execv(path.as_ptr(), list.as_ptr()) };
    last_errno()
}
