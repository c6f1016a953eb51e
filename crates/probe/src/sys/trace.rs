//! A child whose system calls are counted by its parent (ptrace(2)). It needs no privilege: the
//! child asks for it.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, waitpid};

use super::check;
use super::process::{Forked, end_with_parent, exit_now, fork_beside_threads};

/// The head of the kernel's `struct ptrace_syscall_info` (linux/ptrace.h), as far as it is read.
#[repr(C)]
struct SyscallInfo {
    op: u8,
    padding: [u8; 3],
    arch: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    number: u64,
}

/// PTRACE_GET_SYSCALL_INFO and its `op` for an entry.
const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
const ENTRY: u8 = 1;

/// Forks, runs `act` in the child and gives how often it made each system call, by number (for
/// what takes no lock of other threads). The child is gone when this returns.
pub fn count_syscalls(act: impl FnOnce()) -> Result<BTreeMap<i64, u64>, Errno> {
    let parent = getpid();
    match fork_beside_threads()? {
        Forked::Child => {
            // SAFETY: these calls touch no memory of ours. The parent sees the stop.
            let trace_me = || unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 && libc::raise(libc::SIGSTOP) == 0
            };
            let is_traced = end_with_parent(parent) && trace_me();
            if is_traced {
                act();
            }
            exit_now(i32::from(!is_traced));
        }
        Forked::Parent(child) => {
            let counts = watch(child);
            if counts.is_err() {
                // It may be stopped, or gone already.
                let _ = kill_process(child, Signal::KILL);
                let _ = waitpid(Some(child), WaitOptions::empty());
            }
            counts
        }
    }
}

/// A stop at a system call, with PTRACE_O_TRACESYSGOOD.
const AT_A_CALL: i32 = libc::SIGTRAP | 0x80;

fn watch(child: Pid) -> Result<BTreeMap<i64, u64>, Errno> {
    let mut counts = BTreeMap::new();
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    let mut status = wait(child)?;
    if status.stopped() {
        request(libc::PTRACE_SETOPTIONS, child, options as usize)?;
        // The first stop is its own asking for it.
        request(libc::PTRACE_SYSCALL, child, 0)?;
        status = wait(child)?;
    }
    while status.stopped() {
        let signal = match status.stopping_signal() {
            Some(AT_A_CALL) => {
                if let Some(number) = entered(child)? {
                    *counts.entry(number).or_default() += 1;
                }
                0
            }
            // What it does to itself, such as abort(3), must happen to it.
            signal => signal.unwrap_or(0) as usize,
        };
        request(libc::PTRACE_SYSCALL, child, signal)?;
        status = wait(child)?;
    }
    if status.exit_status() == Some(0) { Ok(counts) } else { Err(Errno::CHILD) }
}

fn wait(child: Pid) -> Result<WaitStatus, Errno> {
    let ended = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()))?;
    ended.map(|(_, status)| status).ok_or(Errno::CHILD)
}

fn request(what: libc::c_uint, child: Pid, data: usize) -> Result<(), Errno> {
    // SAFETY: these requests take a number as data and touch no memory of ours.
    check(unsafe { libc::ptrace(what, child.as_raw_pid(), 0, data) }).map(|_| ())
}

/// The number of the call that the child is about to make; none when it comes out of one.
fn entered(child: Pid) -> Result<Option<i64>, Errno> {
    let mut info = MaybeUninit::<SyscallInfo>::zeroed();
    let size = size_of::<SyscallInfo>();
    // SAFETY: the kernel writes at most `size` bytes; zeroes are a valid SyscallInfo.
    let (got, info) = unsafe {
        let address = info.as_mut_ptr().cast::<c_void>();
        (libc::ptrace(GET_SYSCALL_INFO, child.as_raw_pid(), size, address), info.assume_init())
    };
    check(got)?;
    Ok((info.op == ENTRY).then_some(info.number as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_counted_once() {
        let act = || {
            for _ in 0..7 {
                // SAFETY: getppid takes nothing and touches nothing.
                unsafe { libc::syscall(libc::SYS_getppid) };
            }
        };
        let counts = count_syscalls(act).unwrap();
        assert_eq!(counts.get(&libc::SYS_getppid), Some(&7), "{counts:?}");
        // Beside them only how raise(3) ends, and the end.
        let others = [libc::SYS_getppid, libc::SYS_rt_sigprocmask, libc::SYS_exit_group];
        assert!(counts.keys().all(|number| others.contains(number)), "{counts:?}");
    }

    #[test]
    fn a_child_that_fails_is_no_count() {
        assert!(count_syscalls(|| exit_now(3)).is_err());
        // As an allocator that finds its heap broken.
        assert!(count_syscalls(|| std::process::abort()).is_err());
    }
}
