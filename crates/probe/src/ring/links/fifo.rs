//! The FIFO: a pipe with a name (fifo(7)), which is taken away as soon as both ends are open.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;

use crate::ring::link::{By, Carrier, Link, Place, Refusal};
use crate::sys::fifo_unlinked;

/// One byte through a FIFO: one write(2), one read(2).
pub struct Fifo;

impl Carrier for Fifo {
    const NAME: &'static str = "fifo";
    const SUMMARY: &'static str = "one byte through a named pipe";
    const NEEDS: &'static str = "mkfifo(3), a writable folder for temporary files (TMPDIR)";
}

impl Link for Fifo {
    type Sender = OwnedFd;
    type Receiver = OwnedFd;

    fn joint(_: &Place) -> Result<(OwnedFd, OwnedFd), Refusal> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("switchcost-{}-{number}.fifo", std::process::id());
        let path = std::env::temp_dir().join(name);
        let path =
            CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL).by("mkfifo")?;
        fifo_unlinked(&path).map_err(|(call, errno)| Refusal { call, errno })
    }
}
