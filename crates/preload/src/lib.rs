//! The library that `switchcost profile` preloads into a command, and the shared memory in which it
//! counts.
//!
//! ```text
//! switchcost profile                           the command, with the library preloaded
//! renames the stubs (symbols)                  malloc(100) -> our malloc -> next malloc
//! creates the shared memory (layout)  <------- counts the call in its thread's slot
//! reads the cells afterwards (bins)
//! ```
//!
//! [`layout`], [`bins`] and [`symbols`] are for both sides. `interpose` is in the library alone
//! (feature `interpose`), which switchcost's build script builds as a shared object of its own and
//! puts into the program.

// Without std, which would be nine tenths of the library.
#![no_std]

pub mod bins;
pub mod layout;
pub mod symbols;

#[cfg(feature = "interpose")]
mod interpose;
