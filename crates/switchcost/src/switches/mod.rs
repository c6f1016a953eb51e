//! Every switch of the machine, as the tracer sees it: live (`top`) and for a while (`trace`).

pub(crate) mod top;
pub(crate) mod trace;
