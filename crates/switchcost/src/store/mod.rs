//! Run files: one folder of them, one file a run, written by one process. And the file of the CPUs' full speed.

mod file;
mod folder;
mod speed;

pub(crate) use file::RunFile;
pub(crate) use folder::{Entry, Folder, header, read};
pub(crate) use speed::{keep_speed, known_speed};
