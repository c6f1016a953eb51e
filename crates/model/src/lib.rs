//! The nouns of switchcost and all its arithmetic. No unsafe code, no input or output, and no
//! randomness without a seed: the same samples always give the same record.
//!
//! Data flows one way: [`plan::Plan`] -> [`case::Case`]s in shuffled rounds -> [`case::Sample`]s
//! -> [`run::Run`] -> [`table::Table`] -> [`record::Record`].
#![forbid(unsafe_code)]

pub mod at_clock;
pub mod bounds;
pub mod case;
pub mod comparison;
pub mod competing;
pub mod cost;
pub mod curve;
pub mod estimate;
pub mod experiment;
pub mod explain;
pub mod findings;
pub mod grid;
pub mod jump;
pub mod looks;
pub mod machine;
pub mod marked;
pub mod noise;
pub mod not_alone;
pub mod parts;
pub mod placement;
pub mod plan;
pub mod program;
pub mod published;
pub mod quote;
pub mod reading;
pub mod record;
pub mod regions;
pub mod response;
pub mod ring;
pub mod run;
pub mod scaling;
pub mod speed;
pub mod subject;
pub mod summary;
pub mod summary_line;
pub mod table;
pub mod trend;
pub mod trial;
pub mod used;
pub mod words;
