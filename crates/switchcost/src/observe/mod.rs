//! Programs that run: what the tracer saw of them, and what their switches cost.

pub(crate) mod live;
pub(crate) mod processes;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod watch;
