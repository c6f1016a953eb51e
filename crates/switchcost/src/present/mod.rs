//! How anything is shown: output streams and files, terminal tables, words for an estimate, charts
//! of rounds.

pub(crate) mod figures;
pub(crate) mod output;
pub(crate) mod table;
pub(crate) mod terminal;
