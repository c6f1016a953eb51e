//! The library that `switchcost profile` preloads into a command, and the shared memory in which it
//! counts.
//!
//! [`layout`] is what both ends know. The rest is in the library alone (feature `interpose`), which
//! switchcost's build script builds as a shared object of its own and puts into the program.

// No std: it would be nine tenths of the library.
#![no_std]

pub mod bins;
pub mod layout;
pub mod symbols;

#[cfg(feature = "interpose")]
mod interpose;
