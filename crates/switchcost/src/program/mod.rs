//! The commands, a file or folder each, and the root of all arguments.

mod chart;
pub(crate) mod cli;
pub(crate) mod compare;
mod first_answer;
pub(crate) mod fleet;
mod help;
pub(crate) mod hints;
pub(crate) mod history;
pub(crate) mod measure;
pub(crate) mod measured;
pub(crate) mod report;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod session;
mod short_help;
pub(crate) mod trend;
