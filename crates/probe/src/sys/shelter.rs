//! What must not be cut in two: making something with a name and taking the name away again. A
//! worker that is killed with -9 between the two would leave it behind.

use std::ffi::{c_int, c_void};

use rustix::io::Errno;

use super::process::last_errno;

/// Enough for a few system calls deep.
const STACK_BYTES: usize = 64 * 1024;

struct Errand<F, T> {
    act: Option<F>,
    done: Option<T>,
}

/// Does `act` in a process of its own, which shares memory and descriptors with the caller; the
/// caller waits for it. Killing the caller does not kill that process, so that `act` is done whole
/// or not at all. It must not allocate: another thread, killed with the caller, may hold the
/// allocator's lock for ever.
pub fn sheltered<T, F: FnOnce() -> T>(act: F) -> Result<T, Errno> {
    extern "C" fn run<T, F: FnOnce() -> T>(errand: *mut c_void) -> c_int {
        // SAFETY: the address of the caller's errand, who is suspended until this process ends.
        let errand = unsafe { &mut *errand.cast::<Errand<F, T>>() };
        // Out of the worker's process group, which may be killed as a whole.
        // SAFETY: touches no memory.
        unsafe { libc::setpgid(0, 0) };
        errand.done = errand.act.take().map(|act| act());
        0
    }
    let mut errand = Errand { act: Some(act), done: None };
    let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
    // SAFETY: the stack is used by the new process alone, from its 16-byte-aligned top; it and the
    // errand live on, as CLONE_VFORK suspends this thread until that process has ended (and if this
    // thread is killed, the memory stays as long as that process uses it).
    let pid = unsafe {
        let top = stack.as_mut_ptr_range().end.cast();
        libc::clone(run::<T, F>, top, flags, (&raw mut errand).cast())
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
    errand.done.ok_or(Errno::CANCELED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_another_process_with_our_memory_and_descriptors() {
        let mut seen = 0;
        let fd = sheltered(|| {
            seen = rustix::process::getpid().as_raw_pid();
            rustix::event::eventfd(7, rustix::event::EventfdFlags::CLOEXEC)
        });
        let mut count = [0; 8];
        rustix::io::read(fd.unwrap().unwrap(), &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 7);
        assert_ne!(seen, rustix::process::getpid().as_raw_pid());
        assert_ne!(seen, 0);
    }
}
