//! The experiments, a folder each: `mod` has the options, `plan` makes the plan from them, and
//! `answer`, `table` and `figures` make the report. Beside them is what several experiments share:
//! links, events, measures of trials. `registry` knows which record an experiment has.

pub(crate) mod clock;
pub(crate) mod cost;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod links;
pub(crate) mod measures;
pub(crate) mod response;
pub(crate) mod ring;
