//! Burdens that make the switches of a process dearer: a filter of its system calls (seccomp(2)), a
//! barrier of the branch predictor (PR_SET_SPECULATION_CTRL(2const)). Processes that it forks or
//! starts inherit them.

use rustix::io::Errno;

use super::check;

/// Constants of linux/prctl.h, which libc does not have for all targets.
const PR_GET_SPECULATION_CTRL: libc::c_int = 52;
const PR_SET_SPECULATION_CTRL: libc::c_int = 53;
const PR_SPEC_INDIRECT_BRANCH: libc::c_ulong = 1;
const PR_SPEC_PRCTL: libc::c_int = 1;
const PR_SPEC_DISABLE: libc::c_ulong = 4;

/// Filters the system calls of this process by a program of one instruction, which allows all
/// calls. The filter cannot be removed.
pub fn filter_nothing() -> Result<(), Errno> {
    // BPF_RET | BPF_K.
    let mut allow = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
    let (filter, flags) = (libc::SECCOMP_SET_MODE_FILTER, 0_u32);
    // SAFETY: prctl takes numbers; the kernel copies the program, which is whole, before it
    // returns.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        check(libc::syscall(libc::SYS_seccomp, filter, flags, &raw const program)).map(|_| ())
    }
}

/// Makes the kernel shield this process from indirect branches of others, by a barrier (IBPB) with
/// each switch, on machines where only processes that ask get it. ENXIO if a process has no choice,
/// EPERM if it has chosen before.
pub fn shield_branches() -> Result<(), Errno> {
    let feature = PR_SPEC_INDIRECT_BRANCH;
    // SAFETY: prctl takes numbers here.
    let state = check(unsafe { libc::prctl(PR_GET_SPECULATION_CTRL, feature, 0, 0, 0) })?;
    if state & PR_SPEC_PRCTL == 0 {
        return Err(Errno::NXIO);
    }
    // SAFETY: the same.
    let set = unsafe { libc::prctl(PR_SET_SPECULATION_CTRL, feature, PR_SPEC_DISABLE, 0, 0) };
    check(set).map(|_| ())
}
