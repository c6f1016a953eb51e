//! Programs that run: the processes that are meant, and what the tracer counts of each.

pub(crate) mod live;
pub(crate) mod processes;
