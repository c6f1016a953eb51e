//! Vector registers put in use, and out of it, so that a switch has them to save or has not.

#[cfg(target_arch = "aarch64")]
#[path = "registers/aarch64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "registers/x86_64.rs"]
mod arch;
/// Architectures whose registers nobody has written down here yet.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    use std::marker::PhantomData;

    use model::state::State;

    use super::{NoRegisters, Registers, WithRegisters};

    pub(super) fn missing(state: State) -> Option<String> {
        match state {
            State::None => None,
            other => Some(format!("{other} is not known on {}", std::env::consts::ARCH)),
        }
    }

    /// `state` is none that is missing.
    pub(super) fn with<T: WithRegisters>(_: State, what: T) -> T::Output {
        what.with(Registers::<NoRegisters>(PhantomData))
    }

    pub(super) fn clear() {}

    /// Not told.
    #[cfg(test)]
    pub fn in_use() -> Option<u32> {
        None
    }

    /// Not known.
    #[cfg(test)]
    pub fn last_register() -> u64 {
        0
    }
}

use std::marker::PhantomData;

use model::state::State;

/// Registers that this CPU has, of the kind `K`.
pub struct Registers<K>(PhantomData<fn() -> K>);

// Derived, they would ask the same of `K`.
impl<K> Clone for Registers<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Registers<K> {}

/// Kinds of registers; implemented in the files of the architectures only.
pub trait RegisterKind: 'static {
    /// Writes to each of them.
    ///
    /// # Safety
    ///
    /// The CPU and the kernel have the registers.
    unsafe fn write();
}

/// No registers.
pub struct NoRegisters;

impl RegisterKind for NoRegisters {
    #[inline(always)]
    unsafe fn write() {}
}

/// What is done with the registers of a state; called with their kind as a type, so that the code is
/// compiled for each.
pub trait WithRegisters {
    /// What comes of it.
    type Output;
    /// Does it.
    fn with<K: RegisterKind>(self, registers: Registers<K>) -> Self::Output;
}

/// Gives the registers of `state` to `what`, or says which feature this CPU lacks.
pub fn with_registers<T: WithRegisters>(state: State, what: T) -> Result<T::Output, String> {
    arch::missing(state).map_or(Ok(()), Err)?;
    Ok(match state {
        State::None => what.with(Registers::<NoRegisters>(PhantomData)),
        state => arch::with(state, what),
    })
}

/// Whether this CPU has the registers of a state; if not, which feature it lacks.
pub fn has_registers(state: State) -> Result<(), String> {
    struct Nothing;
    impl WithRegisters for Nothing {
        type Output = ();
        fn with<K: RegisterKind>(self, _: Registers<K>) {}
    }
    with_registers(state, Nothing)
}

impl<K: RegisterKind> Registers<K> {
    /// Writes all of them.
    #[inline(always)]
    pub fn write(self) {
        // SAFETY: one of this type exists only where the CPU has them (`with_registers`).
        unsafe { K::write() }
    }

    /// Puts all vector registers into their initial configuration, where the architecture has one.
    pub fn clear(self) {
        arch::clear();
    }
}

#[cfg(test)]
pub use arch::{in_use, last_register};
