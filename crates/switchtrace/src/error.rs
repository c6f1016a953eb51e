//! What can go wrong, in words that a person can act on.

use crate::privilege::BpfRefusal;
use std::io;
use std::path::PathBuf;

/// Why switches cannot be traced here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel was built without its types.
    #[error(
        "{}: {source}: this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which tracing needs",
        path.display()
    )]
    NoBtf {
        /// Where it was looked for.
        path: PathBuf,
        /// As the file gave it.
        source: io::Error,
    },
    /// The kernel's types lack something, or cannot be read.
    #[error("the kernel's BTF has no {0}: this kernel is not supported")]
    NotInBtf(String),
    /// bpf(2) was refused.
    #[error("{call} was refused ({source}): {refusal}")]
    Refused {
        /// The command of bpf(2).
        call: &'static str,
        /// Its errno.
        source: io::Error,
        /// What stands in the way, as far as can be seen.
        refusal: BpfRefusal,
    },
    /// The kernel's verifier rejected a program: a fault of this crate on this kernel.
    #[error("the kernel rejected the program {program} ({source}); please report this:\n{log}")]
    Rejected {
        /// Its name.
        program: &'static str,
        /// The errno.
        source: io::Error,
        /// The end of the verifier's log.
        log: String,
    },
    /// Another call failed.
    #[error("{call}: {source}")]
    Os {
        /// What was tried.
        call: &'static str,
        /// Its errno.
        source: io::Error,
    },
    /// An option has no sense.
    #[error("{0}")]
    Options(&'static str),
    /// The table of threads.
    #[error("{0}")]
    Table(#[from] threadclock::table::ThreadTimeError),
}

impl Error {
    /// The errno behind it, for C callers.
    pub fn errno(&self) -> i32 {
        match self {
            Self::NoBtf { .. } | Self::NotInBtf(_) => libc::EOPNOTSUPP,
            Self::Options(_) => libc::EINVAL,
            Self::Table(error) => error.errno(),
            Self::Refused { source, .. }
            | Self::Rejected { source, .. }
            | Self::Os { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}
