//! What is measured, a folder each. In one `mod` is what may be typed, `plan` the plan from it,
//! `answer`, `table` and `figures` what is shown. What several share is beside them: links, events,
//! measures of trials. `registry` knows which record an experiment has.

pub(crate) mod clock;
pub(crate) mod cost;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod links;
pub(crate) mod measures;
pub(crate) mod response;
pub(crate) mod ring;
