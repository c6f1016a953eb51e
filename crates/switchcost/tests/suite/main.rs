//! All tests of the program: one binary, as each of its own would have to be linked.

mod common;

mod bad_input;
mod classic;
mod classic_links;
mod classic_sweep;
mod cli;
mod clock;
mod company;
mod compare;
mod cost;
mod drawings;
mod endings;
mod exports;
mod hidden;
mod interference;
mod interrupts;
mod links;
mod measure;
mod outputs;
mod policies;
mod program;
mod report;
mod report_browser;
mod response;
mod ring;
mod rooms;
mod run;
mod run_signals;
mod runs;
mod screen;
mod sessions;
mod snapshots;
mod sweep;
mod top;
mod trace;
