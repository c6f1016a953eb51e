//! A stack of one's own, where the caller has left too little (`ulimit -s`): the first thread's
//! grows no further than that. Another thread would have one, too, but a process with several may
//! not fork. And room for the stack of another thread.

use std::io;

use corosensei::stack::DefaultStack;
use rustix::process::{Resource, getrlimit};

/// What the program needs at most, with the definitions of all its arguments.
const NEEDED_BYTES: u64 = 2 << 20;
/// As large as the kernel's default; what nobody touches takes no memory.
const OWN_BYTES: usize = 8 << 20;

/// The stack of a thread for which none is asked (std::thread).
pub const THREAD_BYTES: usize = 2 << 20;
/// What a thread needs besides: a stack for its signals above all.
const BESIDES_BYTES: usize = 256 << 10;

/// Refused where a thread with such a stack would not find what it needs besides (`ulimit -v`).
/// Such a thread of std ends the process, or waits for itself for ever while it prints why.
pub fn room_for_thread(stack_bytes: usize) -> io::Result<()> {
    DefaultStack::new(stack_bytes + BESIDES_BYTES).map(drop)
}

/// Runs `act` on the stack that there is, or on another where that is small.
pub fn with_stack<T>(act: impl FnOnce() -> T) -> T {
    let limit = getrlimit(Resource::Stack).current;
    let is_small = limit.is_some_and(|bytes| bytes < NEEDED_BYTES);
    match is_small.then(|| DefaultStack::new(OWN_BYTES)) {
        Some(Ok(stack)) => corosensei::on_stack(stack, act),
        // As little memory as that, and it may still do.
        Some(Err(_)) | None => act(),
    }
}
