//! Tests of the model from outside: one binary, as each of its own would have to be linked.

mod li2007;
mod parts;
mod run_file;
mod sloan1992;
mod states;
mod summary_line;
mod trials_file;
