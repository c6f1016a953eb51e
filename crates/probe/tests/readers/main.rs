//! What is read of the machine and of programs, on captured trees.
// clippy.toml allows it in tests, but does not know their helpers for such.
#![allow(clippy::unwrap_used)]

mod machine;
mod program;
