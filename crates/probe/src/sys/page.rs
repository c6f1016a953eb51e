//! A page of memory that stays shared over fork: where the links that have no object of the kernel
//! keep what two neighbours share.

use std::ffi::c_void;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// What may lie in memory shared between processes.
///
/// # Safety
/// All zeros are a value, any thread may use it through a shared reference, and it means the same
/// in every process (no address of its own).
pub unsafe trait Shareable: Sync {}

/// One `T`, all zeros at first, that its holders share also when a fork has parted them.
pub struct Shared<T: Shareable> {
    value: NonNull<T>,
    mapping: Arc<Mapping>,
}

/// The mapping ends with its last holder in this process; other processes keep theirs.
struct Mapping {
    base: *mut c_void,
    bytes: usize,
}

// SAFETY: the mapping's address may be used from any thread; what lies there is Shareable.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing changes a Mapping before its drop.
unsafe impl Sync for Mapping {}
// SAFETY: a Shared gives shared references to a T that is Sync, and nothing else.
unsafe impl<T: Shareable> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Shareable> Sync for Shared<T> {}

impl<T: Shareable> Shared<T> {
    /// A new one.
    pub fn new() -> Result<Self, Errno> {
        let (bytes, protection) = (size_of::<T>(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED)? };
        let mapping = Arc::new(Mapping { base, bytes });
        let value = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { value, mapping })
    }
}

impl<T: Shareable> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self { value: self.value, mapping: Arc::clone(&self.mapping) }
    }
}

impl<T: Shareable> Deref for Shared<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: page-aligned, valid when zero, and mapped as long as self holds the mapping.
        unsafe { self.value.as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and its last holder is gone. A failure leaves it to the end
        // of the process.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}

/// Room for one token.
#[derive(Default)]
pub struct Slot(AtomicU32);

// SAFETY: an atomic: zero is a value, and it holds no address.
unsafe impl Shareable for Slot {}

/// A count that several processes share.
#[derive(Default)]
pub struct EventCount(pub AtomicU32);

// SAFETY: an atomic: zero is a value, and it holds no address.
unsafe impl Shareable for EventCount {}

impl Slot {
    /// What an empty slot holds.
    pub const EMPTY: u32 = 0;

    /// Puts the token in.
    #[inline(always)]
    pub fn put(&self, token: u8) {
        self.0.store(u32::from(token) + 1, Ordering::Release);
    }

    /// Takes the token out, if there is one. Only one receiver looks, so that no exchange is needed.
    #[inline(always)]
    pub fn take(&self) -> Option<u8> {
        match self.0.load(Ordering::Acquire) {
            Self::EMPTY => None,
            full => {
                self.0.store(Self::EMPTY, Ordering::Relaxed);
                Some((full - 1) as u8)
            }
        }
    }

    /// The word itself, to wait on.
    #[inline(always)]
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_gives_each_token_once() {
        let slot = Shared::<Slot>::new().unwrap();
        let other = slot.clone();
        for token in [0, 1, 255] {
            assert_eq!(other.take(), None);
            slot.put(token);
            assert_eq!(other.take(), Some(token));
        }
        drop(slot);
        assert_eq!(other.take(), None, "the mapping lives with its last holder");
    }
}
