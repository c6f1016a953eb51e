//! What the measured machine is.
