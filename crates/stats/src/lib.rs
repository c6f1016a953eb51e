//! Statistics for repeated measurements: numbers in, numbers out.
//!
//! - location and spread: [`median`], [`midmean`], [`quantile`], [`mad_sigma`];
//! - intervals: [`bootstrap`], [`Pooled`] for figures that come in rounds, [`Summary`] for normal ones;
//! - scatters: [`Growth`], [`PooledGrowth`], [`Permutation`], [`scatter_between`];
//! - ratios of two costs: [`ratio`];
//! - curves with turns: [`changepoint`];
//! - by which power a figure goes with a level: [`elasticity`];
//! - how many kinds there are, by a sample of them: [`richness`];
//! - [periods](find_period) in moments, and [histograms](Histogram).
//!
//! Deterministic: what is random is drawn from a seed. No input or output, no unsafe code.
#![forbid(unsafe_code)]

mod bootstrap;
pub mod changepoint;
mod elasticity;
mod few;
mod histogram;
mod least_squares;
mod location;
mod periods;
pub mod ratio;
mod richness;
mod scatter;

pub use bootstrap::{Bootstrapped, Pooled, bootstrap};
pub use elasticity::{AtLevel, Elasticity, elasticity, elasticity_of, same_level, tells_power};
pub use few::{FewFigures, PriorScatter};
pub use histogram::{Bin, Histogram};
pub use least_squares::{Row, Solution, least_squares, nonnegative};
pub use location::{
    Center, Interval, Moved, Summary, mad_sigma, mean, median, median_interval, midmean,
    normal_quantile, quantile, quantile_ranks, student_quantile, weighted_median,
};
pub use periods::{Period, Windows, find_period};
pub use richness::{Richness, richness};
pub use scatter::{Group, Growth, Permutation, PooledGrowth, scatter_between};

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
