//! Architectures whose registers nobody has written down here yet.

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
