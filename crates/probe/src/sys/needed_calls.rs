//! System calls without which nothing can be waited for, ended or timed.
//!
//! A filter (seccomp) may refuse any of them. What stands on them has no way to say so: the
//! standard library panics where `clock_nanosleep` fails, a loop that polls turns without end where
//! `ppoll` does. So they are tried once, before anything is started. Each is called in a way that
//! changes nothing, and that a kernel answers in one known way.

use std::ffi::c_long;

use rustix::io::Errno;
use thiserror::Error;

use super::last_errno;

/// A system call that is needed and refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the system call {name} is refused here ({errno}), and nothing can be measured without it: a \
     filter of system calls stands before the kernel (seccomp; in a container try --security-opt \
     seccomp=unconfined)"
)]
pub struct RefusedCall {
    name: &'static str,
    errno: Errno,
}

/// A system call, with arguments by which it changes nothing.
struct HarmlessCall {
    name: &'static str,
    number: c_long,
    arguments: [c_long; 4],
}

impl HarmlessCall {
    /// Returns an error if a filter refuses the call; the kernel answers none of these calls so.
    fn check(&self) -> Result<(), RefusedCall> {
        let [first, second, third, fourth] = self.arguments;
        // SAFETY: what the arguments point to outlives the call, and is as long as it says.
        let status = unsafe { libc::syscall(self.number, first, second, third, fourth) };
        if status != -1 {
            return Ok(());
        }
        let errno = last_errno();
        if matches!(errno, Errno::NOSYS | Errno::PERM | Errno::ACCESS) {
            return Err(RefusedCall { name: self.name, errno });
        }
        Ok(())
    }
}

/// Returns an error that names the first needed system call that is refused.
pub fn check_needed_calls() -> Result<(), RefusedCall> {
    let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut cpu_time = no_time;
    let futex_word = 0_u32;
    let at_no_time = &raw const no_time as c_long;
    let at_cpu_time = &raw mut cpu_time as c_long;
    let at_futex_word = &raw const futex_word as c_long;
    let own_pid = c_long::from(std::process::id() as i32);
    let no_file = -1;
    // Writing to this address fails with EFAULT.
    let nowhere = -1;
    let address_space = c_long::from(libc::RLIMIT_AS as i32);
    let cpu_clock = c_long::from(libc::CLOCK_THREAD_CPUTIME_ID);
    let monotonic = c_long::from(libc::CLOCK_MONOTONIC);
    let wake = c_long::from(libc::FUTEX_WAKE);
    let at_once = c_long::from(libc::WNOHANG);
    let calls = [
        ("getpid", libc::SYS_getpid, [0; 4]),
        ("gettid", libc::SYS_gettid, [0; 4]),
        ("getppid", libc::SYS_getppid, [0; 4]),
        ("getuid", libc::SYS_getuid, [0; 4]),
        ("geteuid", libc::SYS_geteuid, [0; 4]),
        ("getgid", libc::SYS_getgid, [0; 4]),
        ("getegid", libc::SYS_getegid, [0; 4]),
        ("uname", libc::SYS_uname, [nowhere, 0, 0, 0]),
        ("sysinfo", libc::SYS_sysinfo, [nowhere, 0, 0, 0]),
        ("prlimit64", libc::SYS_prlimit64, [0, address_space, 0, 0]),
        ("munmap", libc::SYS_munmap, [0; 4]),
        ("clock_gettime", libc::SYS_clock_gettime, [cpu_clock, at_cpu_time, 0, 0]),
        ("clock_getres", libc::SYS_clock_getres, [cpu_clock, 0, 0, 0]),
        ("clock_nanosleep", libc::SYS_clock_nanosleep, [monotonic, 0, at_no_time, 0]),
        ("sched_yield", libc::SYS_sched_yield, [0; 4]),
        ("kill", libc::SYS_kill, [own_pid, 0, 0, 0]),
        ("ppoll", libc::SYS_ppoll, [0, 0, at_no_time, 0]),
        ("futex", libc::SYS_futex, [at_futex_word, wake, 0, 0]),
        ("wait4", libc::SYS_wait4, [own_pid, 0, at_once, 0]),
        ("unlinkat", libc::SYS_unlinkat, [no_file, nowhere, 0, 0]),
        // A set of signals of no bytes is refused with EINVAL.
        ("rt_sigprocmask", libc::SYS_rt_sigprocmask, [0; 4]),
        ("rt_sigsuspend", libc::SYS_rt_sigsuspend, [0; 4]),
        ("rt_sigtimedwait", libc::SYS_rt_sigtimedwait, [0; 4]),
        ("recvfrom", libc::SYS_recvfrom, [no_file, 0, 0, 0]),
    ];
    for (name, number, arguments) in calls {
        HarmlessCall { name, number, arguments }.check()?;
    }
    Ok(())
}
