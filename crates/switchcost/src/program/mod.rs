//! The commands. `cli.rs` declares all that may be typed and calls one function for each command:
//! that is where a run of this program begins.
//!
//! - Measuring: `first_answer` (no command at all), `measure`, `session` (`compare --ab`). The other
//!   experiments need no file here: `cli.rs` measures the plan of their room.
//! - Stored runs: `runs`, `compare`, `trend`, `report`, `history` (published machines).
//! - Help: `help`, `short_help` (`-h`), `hints` (behind errors), `schema`.
//! - For other programs: `chart` draws figures of theirs, `fleet` starts the Python package.

mod chart;
pub(crate) mod cli;
mod compare;
mod first_answer;
mod fleet;
mod help;
mod hints;
mod history;
mod measure;
mod report;
mod runs;
mod schema;
mod session;
mod short_help;
mod trend;
