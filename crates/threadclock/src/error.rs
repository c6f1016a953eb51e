//! What can go wrong when another task's time is asked for.

use core::fmt;
use libc::pid_t;

/// A failed [`getpinfo`](crate::getpinfo()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// `id` is negative (EINVAL).
    InvalidId {
        /// What was asked for.
        id: pid_t,
    },
    /// No task has this id (ESRCH).
    NoSuchTask {
        /// What was asked for.
        id: pid_t,
    },
    /// The task is there and the kernel will not tell (EPERM).
    NotPermitted {
        /// What was asked for.
        id: pid_t,
    },
    /// Something else failed.
    Os {
        /// The call.
        call: &'static str,
        /// What was asked for.
        id: pid_t,
        /// Its errno.
        errno: i32,
    },
    /// `/proc/ID/schedstat` did not hold a number.
    Unreadable {
        /// What was asked for.
        id: pid_t,
    },
    /// This object belongs to the parent of a fork: make a new one in the child.
    Forked,
}

impl Error {
    /// The errno that C callers see.
    pub fn errno(self) -> i32 {
        match self {
            Self::InvalidId { .. } => libc::EINVAL,
            Self::NoSuchTask { .. } => libc::ESRCH,
            Self::NotPermitted { .. } => libc::EPERM,
            Self::Os { errno, .. } => errno,
            Self::Unreadable { .. } => libc::EIO,
            Self::Forked => libc::EBADF,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidId { id } => write!(f, "{id} is not a task id"),
            Self::NoSuchTask { id } => write!(f, "no task {id}"),
            Self::NotPermitted { id } => write!(f, "not permitted to read the time of task {id}"),
            Self::Os { call, id, errno } => write!(f, "{call} of task {id}: errno {errno}"),
            Self::Unreadable { id } => write!(f, "/proc/{id}/schedstat: not a number"),
            Self::Forked => f.write_str("made before a fork, used after it"),
        }
    }
}

impl core::error::Error for Error {}
