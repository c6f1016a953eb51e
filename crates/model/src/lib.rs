//! The nouns of switchcost and all its arithmetic. No unsafe code, no input or output, and no
//! randomness without a seed: the same samples always give the same record.
//!
//! Data flows one way: [`plan::Plan`] -> [`case::Case`]s in shuffled rounds -> [`sample::Sample`]s
//! -> [`run::Run`] -> [`record::Record`].
#![forbid(unsafe_code)]

pub mod case;
pub mod command_use;
pub mod company;
pub mod comparison;
pub mod cost;
mod curve;
pub mod estimate;
pub mod glance;
pub mod grid;
pub mod histogram;
pub mod instrument;
pub mod interference;
pub mod machine;
pub mod noise;
pub mod pairing;
pub mod periodic;
pub mod placement;
pub mod plan;
pub mod program_cost;
pub mod published;
pub mod reading;
pub mod record;
pub mod regions;
pub mod response;
pub mod ring;
pub mod run;
pub mod sample;
pub mod scaling;
pub mod speed;
pub mod state;
pub mod stats;
pub mod subject;
pub mod trial;
pub mod words;
