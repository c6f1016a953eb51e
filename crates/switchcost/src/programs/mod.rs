//! Programs of the user: what running them uses (`run`), what their calls cost (`profile`), what a
//! preemption costs them (`sensitivity`), what switching costs a process (`watch`: `cost --pid`).

pub(crate) mod profile;
pub(crate) mod run;
pub(crate) mod sensitivity;
pub(crate) mod watch;
