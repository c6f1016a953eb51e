//! How results are shown: on the terminal, as charts and pages, and in files.
//!
//! ```text
//! terminal       report of a run: the answer, the table, the lines below it
//!   |- machine_line     what the machine was like, with the one thing to do about it
//!   |- table            columns that are left out where the terminal is too narrow
//!   `- printout         prose, tables and drawings before the width is known
//! figures        charts: what those of all experiments share
//! page, tiles    reports in HTML
//! output         options of output, standard streams, files, CSV and other formats
//! ```

pub(crate) mod figures;
pub(crate) mod machine_line;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod printout;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod tiles;
