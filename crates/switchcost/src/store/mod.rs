//! Run files: one folder of them, one file a run, written by one process.

mod file;
mod folder;

pub(crate) use file::RunFile;
pub(crate) use folder::{Entry, Folder, experiment, header, read};
