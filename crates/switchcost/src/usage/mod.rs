//! What a command used.

pub(crate) mod profile;
pub(crate) mod run;
