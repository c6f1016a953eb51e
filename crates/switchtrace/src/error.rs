//! Errors: each says what was tried, why it failed and what is missing.

use crate::privilege::BpfRefusal;
use std::io;
use std::path::PathBuf;

/// The reason why switches cannot be traced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel was built without its types.
    #[error(
        "{}: {source}: this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which tracing needs",
        path.display()
    )]
    NoBtf {
        /// The file that was tried.
        path: PathBuf,
        /// The error of reading it.
        source: io::Error,
    },
    /// The kernel's types lack something, or cannot be read.
    #[error("the kernel's BTF has no {0}: this kernel is not supported")]
    NotInBtf(String),
    /// bpf(2) was refused.
    #[error("{call} was refused ({source}): {refusal}")]
    Refused {
        /// The name of the call, as `bpf(BPF_PROG_LOAD)`.
        call: &'static str,
        /// The errno of the call.
        source: io::Error,
        /// The likely reasons, as far as /proc and /sys show.
        refusal: BpfRefusal,
    },
    /// The kernel's verifier rejected a program: a fault of this crate on this kernel.
    #[error("the kernel rejected the program {program} ({source}); please report this:\n{log}")]
    Rejected {
        /// The name of the program.
        program: &'static str,
        /// The errno of the load.
        source: io::Error,
        /// The end of the verifier's log.
        log: String,
    },
    /// Another call failed.
    #[error("{call}: {source}")]
    Os {
        /// The name of the call.
        call: &'static str,
        /// The errno of the call.
        source: io::Error,
    },
    /// An option is out of range.
    #[error("{0}")]
    Options(&'static str),
    /// The table of threads cannot be read.
    #[error("{0}")]
    Table(#[from] threadclock::table::ThreadTimeError),
}

impl Error {
    /// Returns the errno that C callers get.
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
