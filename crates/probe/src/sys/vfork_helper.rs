//! What must not be cut in two: making something with a name and taking the name away again. A
//! worker that is killed with -9 between the two would leave it behind, so a vfork helper does both.

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, open, unlink};
use rustix::io::Errno;

use super::errno::last_errno;

/// Enough for a few system calls deep.
const STACK_BYTES: usize = 64 * 1024;

struct Work<F, T> {
    act: Option<F>,
    result: Option<T>,
}

/// Does `act` in a process of its own, which shares memory and descriptors with the caller; the
/// caller waits for it. Killing the caller does not kill that process, so that `act` is done whole
/// or not at all.
///
/// # Safety
/// `act` makes system calls and nothing else: it does not allocate (another thread, killed with the
/// caller, may hold the allocator's lock for ever), take locks, use thread-local values or panic.
pub(super) unsafe fn in_vfork_helper<T, F: FnOnce() -> T>(act: F) -> Result<T, Errno> {
    extern "C" fn run<T, F: FnOnce() -> T>(work: *mut c_void) -> c_int {
        // SAFETY: the address of the caller's work, who is suspended until this process ends.
        let work = unsafe { &mut *work.cast::<Work<F, T>>() };
        // Out of the worker's process group, which may be killed as a whole.
        // SAFETY: touches no memory.
        unsafe { libc::setpgid(0, 0) };
        work.result = work.act.take().map(|act| act());
        0
    }
    let mut work = Work { act: Some(act), result: None };
    let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
    // SAFETY: the stack is used by the new process alone, from its 16-byte-aligned top; it and the
    // work live on, as CLONE_VFORK suspends this thread until that process has ended (and if this
    // thread is killed, the memory stays as long as that process uses it).
    let pid = unsafe {
        let top = stack.as_mut_ptr_range().end.cast();
        libc::clone(run::<T, F>, top, flags, (&raw mut work).cast())
    };
    if pid == -1 {
        return Err(last_errno());
    }
    loop {
        // SAFETY: waits for the process made above; no status is asked for. __WALL: it was made
        // without an exit signal, so that nobody is told of its end.
        let waited = unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) };
        match (waited, last_errno()) {
            (-1, Errno::INTR) => {}
            _ => break,
        }
    }
    work.result.ok_or(Errno::CANCELED)
}

/// A system call that failed.
pub type FailedCall = (&'static str, Errno);

/// Both ends of a FIFO, the one that writes first, whose name `path` is taken away again.
pub fn fifo_unlinked(path: &CStr) -> Result<(OwnedFd, OwnedFd), FailedCall> {
    let by = |call| move |errno| (call, errno);
    // SAFETY: system calls on a path that is there.
    let made = unsafe {
        in_vfork_helper(|| {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, path, FileType::Fifo, mode, 0).map_err(by("mkfifo"))?;
            let ends = open_both(path).map_err(by("open"));
            unlink(path).map_err(by("unlink"))?;
            ends
        })
    };
    made.map_err(by("clone"))?
}

/// The end that reads is opened first and without waiting, or each would wait for the other.
fn open_both(path: &CStr) -> Result<(OwnedFd, OwnedFd), Errno> {
    let receiver = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let sender = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    fcntl_setfl(&receiver, OFlags::empty())?;
    Ok((sender, receiver))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_another_process_with_our_memory_and_descriptors() {
        let mut seen = 0;
        // SAFETY: two system calls.
        let fd = unsafe {
            in_vfork_helper(|| {
                seen = rustix::process::getpid().as_raw_pid();
                rustix::event::eventfd(7, rustix::event::EventfdFlags::CLOEXEC)
            })
        };
        let mut count = [0; 8];
        rustix::io::read(fd.unwrap().unwrap(), &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 7);
        assert_ne!(seen, rustix::process::getpid().as_raw_pid());
        assert_ne!(seen, 0);
    }
}
