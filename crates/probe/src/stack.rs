//! A larger stack for the first thread, if `ulimit -s` leaves too little, and the check that there
//! is room for the stack of another thread. A second thread would have a stack of its own, but a
//! process with several threads may not fork.

use std::io;

use corosensei::stack::DefaultStack;
use rustix::process::{Resource, getrlimit};

/// Upper bound of the stack that the program needs, with the definitions of all its arguments.
const NEEDED_BYTES: u64 = 2 << 20;
/// Size of the larger stack, the kernel's default; untouched pages take no memory.
const LARGE_BYTES: usize = 8 << 20;

/// Default stack size of a thread (std::thread).
pub const THREAD_BYTES: usize = 2 << 20;
/// Memory that a thread needs beside its stack, mainly a stack for its signals.
const EXTRA_BYTES: usize = 256 << 10;

/// Checks that there is memory for a thread with such a stack (`ulimit -v`). Without enough, a
/// thread of std ends the process, or waits for itself for ever while it prints why.
pub fn room_for_thread(stack_bytes: usize) -> io::Result<()> {
    DefaultStack::new(stack_bytes + EXTRA_BYTES).map(drop)
}

/// Runs `act` on the current stack, or on a larger one if that is small.
pub fn with_stack<T>(act: impl FnOnce() -> T) -> T {
    let limit = getrlimit(Resource::Stack).current;
    if limit.is_none_or(|bytes| bytes >= NEEDED_BYTES) {
        return act();
    }
    match DefaultStack::new(LARGE_BYTES) {
        Ok(stack) => corosensei::on_stack(stack, act),
        // With so little memory the small stack may still be enough.
        Err(_) => act(),
    }
}
