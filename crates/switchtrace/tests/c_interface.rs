//! The C example, as that of threadclock.

#[path = "../../threadclock/tests/c_interface.rs"]
mod c_interface;
