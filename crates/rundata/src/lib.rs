//! The data of a run as it is stored: [`plan::Plan`], its [`case::Case`]s, their [`case::Sample`]s,
//! the [`machine::Machine`] and the [run file](run) with all of them. Nothing is computed here that
//! needs more than one sample, and there is no unsafe code, input or output.
//!
//! A plan lists cases, for example the rings of 1, 2 and 4 members. A run goes through them in
//! rounds, in shuffled order; each round starts a fresh worker for a case, which returns a few
//! samples. So the run file of 10 rounds has the header with plan and machine, some 90 lines of
//! samples and an end line. `stored` has the form of cases and samples in the file, `upgrade` reads
//! what older programs wrote.
#![forbid(unsafe_code)]

pub mod bounds;
pub mod case;
pub mod competing;
pub mod experiment;
pub mod machine;
pub mod notice;
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
