//! Becoming another program: execve(2) and nothing more.

use std::ffi::CString;

use rustix::io::Errno;

use super::process::last_errno;

/// Becomes the program `path`, with these arguments, the first of which is its name, and the
/// environment as it is. `std` searches PATH, and hands what is no program to a shell. Gives why it could
/// not be done.
pub fn execute(path: &CString, args: &[CString]) -> Errno {
    let mut list: Vec<*const libc::c_char> = args.iter().map(|arg| arg.as_ptr()).collect();
    list.push(std::ptr::null());
    // SAFETY: the default action needs no handler; path and list are strings that end with a zero, and
    // the list ends with a null. It returns only if it failed.
    unsafe {
        // Rust's start has made it ignored, and that would stay so.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execv(path.as_ptr(), list.as_ptr());
    }
    last_errno()
}
