//! Computes from a run: costs with intervals, laws, findings, comparisons, trends. No unsafe code,
//! no input or output, and no randomness without a seed: the same samples always give the same
//! figures.
//!
//! Data flows one way: [`rundata::run::Run`] -> [`table::Table`] (which slices are clean, what each
//! round gives) -> [`estimate::Estimate`]s -> [`record::Record`], [`results::Results`].
#![forbid(unsafe_code)]

pub mod at_clock;
pub mod comparison;
pub mod cost;
pub mod curve;
pub mod estimate;
pub mod explain;
pub mod facts;
pub mod findings;
pub mod interim;
pub mod jump;
pub mod marked;
pub mod measures;
pub mod noise;
pub mod not_alone;
pub mod parts;
pub mod program;
pub mod published;
pub mod quote;
pub mod record;
pub mod regions;
pub mod response;
pub mod results;
pub mod rings_at_once;
pub mod scaling;
pub mod setting_changes;
pub mod speed;
pub mod summary;
pub mod summary_line;
pub mod table;
pub mod trend;
pub mod used;
