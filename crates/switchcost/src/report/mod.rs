//! How anything is shown: output streams and files, terminal tables, words for an estimate, charts
//! of rounds, tiles of a report.

pub(crate) mod figures;
pub(crate) mod machine_line;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod printout;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod tiles;
