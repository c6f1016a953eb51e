//! Processes that run: their names, and what the tracer counts of each.

pub(crate) mod live;
pub(crate) mod processes;
