//! What is stored of a run: [`plan::Plan`], its [`case::Case`]s, their [`case::Sample`]s, the
//! [`machine::Machine`] and the [run file](run) with all of them. Nothing is computed here that
//! needs more than one sample, and no unsafe code, input or output.
#![forbid(unsafe_code)]

pub mod bounds;
pub mod case;
pub mod competing;
pub mod experiment;
pub mod grid;
pub mod machine;
pub mod placement;
pub mod plan;
pub mod reading;
pub mod reference;
pub mod ring;
pub mod run;
pub mod stored;
pub mod trial;
mod upgrade;
pub mod words;
