//! Where this thread's rseq area is, and a descriptor that no instruction of ours lies in.
//!
//! `struct rseq` and `struct rseq_cs`: include/uapi/linux/rseq.h. The kernel clears `rseq_cs` on the
//! way back to user space after a preemption, migration or signal if the instruction pointer lies
//! outside the section: rseq_ip_fixup() in kernel/rseq.c.

use crate::types::WhyNot;
use crate::{arch, sys};
use core::sync::atomic::AtomicU64;

/// Offset of `rseq_cs` in `struct rseq`.
const RSEQ_CS_OFFSET: usize = 8;
/// The original size, which kernels from 7.1 take as a wish for the original behaviour too.
const AREA_BYTES: u32 = 32;
const UNREGISTER: i32 = 1;

/// `struct rseq_cs`. Its range is empty, so the kernel finds every instruction outside it.
#[repr(C, align(32))]
pub(crate) struct Descriptor {
    version: u32,
    flags: u32,
    start_ip: u64,
    post_commit_offset: u64,
    abort_ip: u64,
    /// Not in the kernel's structure: it checks the four bytes before `abort_ip`.
    signature: u32,
}

impl Descriptor {
    /// Fills in the descriptor where it will stay.
    pub(crate) fn place(&mut self) {
        self.signature = arch::RSEQ_SIG;
        let signature_address = &raw const self.signature as u64;
        (self.version, self.flags) = (0, 0);
        (self.start_ip, self.post_commit_offset) = (signature_address, 0);
        // Never jumped to, as no instruction is inside the section.
        self.abort_ip = signature_address + 4;
    }
}

/// `struct rseq` as of Linux 4.18, for C libraries that register none.
#[repr(C, align(32))]
pub(crate) struct Area([u8; AREA_BYTES as usize]);

/// This thread's `rseq_cs` word.
#[derive(Clone, Copy)]
pub(crate) struct Registered {
    pub(crate) rseq_cs: *const AtomicU64,
    /// Whether it is ours to unregister at the thread's end.
    pub(crate) by_us: bool,
}

/// Finds the area that the C library registered, else registers `own`.
pub(crate) fn find_or_register(own: *mut Area) -> Result<Registered, WhyNot> {
    let (area, by_us) = match c_library_offset() {
        Some(offset) => (arch::thread_pointer().wrapping_add_signed(offset), false),
        None => {
            call(own, 0).map_err(WhyNot::RseqRefused)?;
            (own as usize, true)
        }
    };
    Ok(Registered { rseq_cs: (area + RSEQ_CS_OFFSET) as *const AtomicU64, by_us })
}

/// Undoes our registration, which must not outlive the area.
pub(crate) fn unregister(own: *mut Area) -> Result<(), i32> {
    call(own, UNREGISTER)
}

fn call(own: *mut Area, flags: i32) -> Result<(), i32> {
    // SAFETY: the area lies in the thread's page, which stays mapped until it is unregistered.
    let status = unsafe { libc::syscall(libc::SYS_rseq, own, AREA_BYTES, flags, arch::RSEQ_SIG) };
    if status == 0 { Ok(()) } else { Err(sys::errno()) }
}

/// `__rseq_offset`, if the C library has it (glibc 2.35) and did register (`__rseq_size` is not 0:
/// old kernels, or `glibc.pthread.rseq=0`).
fn c_library_offset() -> Option<isize> {
    // SAFETY: looks two names up; nothing is called.
    let (offset, size) = unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr());
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr());
        (offset.cast::<isize>(), size.cast::<u32>())
    };
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: glibc's manual gives their types, ptrdiff_t and unsigned int; constant after start-up.
    unsafe { (*size != 0).then_some(*offset) }
}
