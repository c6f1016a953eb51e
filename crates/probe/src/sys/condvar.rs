//! A mutex and a condition variable of the C library in memory that members share.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;

use rustix::io::Errno;

use super::page::{Shareable, Shared};

/// Where a token is left under a mutex and waited for by a condition.
#[repr(C)]
pub struct Meeting {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    arrived: UnsafeCell<libc::pthread_cond_t>,
    /// Under the mutex.
    token: UnsafeCell<Option<u8>>,
}

// SAFETY: the mutex orders all access to the token; mutex and condition may be used from any
// thread.
unsafe impl Sync for Meeting {}
// SAFETY: zeros are a valid Meeting: PTHREAD_MUTEX_INITIALIZER and its like are zeros in glibc and
// musl, and both are initialised before use all the same; None is read only after a store.
unsafe impl Shareable for Meeting {}

fn check(status: c_int) -> Result<(), Errno> {
    match status {
        0 => Ok(()),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

impl Meeting {
    /// A new one, for threads of one process or also for processes; else the call that failed.
    pub fn new(between_processes: bool) -> Result<Shared<Self>, (&'static str, Errno)> {
        let meeting = Shared::<Self>::new().map_err(|errno| ("mmap", errno))?;
        meeting.prepare(between_processes).map_err(|errno| ("pthread_cond_init", errno))?;
        Ok(meeting)
    }

    /// Of a meeting that nobody else knows yet.
    fn prepare(&self, between_processes: bool) -> Result<(), Errno> {
        let shared = match between_processes {
            true => libc::PTHREAD_PROCESS_SHARED,
            false => libc::PTHREAD_PROCESS_PRIVATE,
        };
        let mut of_mutex = MaybeUninit::uninit();
        let mut of_condition = MaybeUninit::uninit();
        // SAFETY: each attribute is initialised before it is used; nobody else knows the meeting
        // yet, so that writing to it is exclusive.
        unsafe {
            check(libc::pthread_mutexattr_init(of_mutex.as_mut_ptr()))?;
            check(libc::pthread_mutexattr_setpshared(of_mutex.as_mut_ptr(), shared))?;
            check(libc::pthread_mutex_init(self.mutex.get(), of_mutex.as_ptr()))?;
            check(libc::pthread_condattr_init(of_condition.as_mut_ptr()))?;
            check(libc::pthread_condattr_setpshared(of_condition.as_mut_ptr(), shared))?;
            check(libc::pthread_cond_init(self.arrived.get(), of_condition.as_ptr()))?;
            *self.token.get() = None;
        }
        Ok(())
    }

    /// Leaves the token and signals. The signal comes after the unlock: sent before it, a receiver
    /// that preempts the sender would only run into the mutex, and switch back.
    #[inline(always)]
    pub fn put(&self, token: u8) -> Result<(), Errno> {
        // SAFETY: mutex and condition are initialised; the token is written under the mutex.
        unsafe {
            check(libc::pthread_mutex_lock(self.mutex.get()))?;
            *self.token.get() = Some(token);
            check(libc::pthread_mutex_unlock(self.mutex.get()))?;
            check(libc::pthread_cond_signal(self.arrived.get()))
        }
    }

    /// Waits until there is a token and takes it.
    #[inline(always)]
    pub fn take(&self) -> Result<u8, Errno> {
        // SAFETY: as above; the wait holds the mutex when it returns.
        unsafe {
            check(libc::pthread_mutex_lock(self.mutex.get()))?;
            let token = loop {
                if let Some(token) = (*self.token.get()).take() {
                    break token;
                }
                check(libc::pthread_cond_wait(self.arrived.get(), self.mutex.get()))?;
            };
            check(libc::pthread_mutex_unlock(self.mutex.get()))?;
            Ok(token)
        }
    }
}
