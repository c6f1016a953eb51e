//! Statistics for repeated measurements: numbers in, numbers out.
//!
//! - location and spread: [`median`], [`midmean`], [`quantile`], [`mad_sigma`];
//! - intervals: [`bootstrap`], [`PooledMedian`] for figures that come in rounds, [`SampleSummary`] for normal ones,
//!   [`quantile_ranks`] and, of values in clusters, [`clustered_quantile_ranks`];
//! - scatters: [`ScatterGrowth`], [`PooledGrowth`], [`Permutation`], [`scatter_between_groups`];
//! - ratios of two costs: [`ratio`];
//! - curves with turns: [`changepoint`];
//! - by which power a figure goes with a level: [`estimate_elasticity`];
//! - how many kinds there are, by a sample of them: [`estimate_richness`];
//! - [periods](find_period) in moments, and [histograms](Histogram), also in [parts of octaves](OctaveScale).
//!
//! Deterministic: what is random is drawn from a seed. No input or output, no unsafe code.
#![forbid(unsafe_code)]

mod bootstrap;
pub mod changepoint;
mod clusters;
mod distributions;
mod elasticity;
mod few;
mod histogram;
mod least_squares;
mod location;
mod octaves;
mod periods;
pub mod ratio;
mod richness;
mod scatter;

pub use bootstrap::{BootstrapEstimate, PooledMedian, bootstrap};
pub use clusters::{ClusterCounts, clustered_quantile_ranks};
pub use distributions::{normal_quantile, student_quantile};
pub use elasticity::{
    Elasticity, FigureAtLevel, estimate_elasticity, fit_elasticity, group_by_level, has_level_span,
};
pub use few::{FewFigures, PriorScatter};
pub use histogram::{Histogram, HistogramBin};
pub use least_squares::{FitRow, LeastSquaresFit, least_squares, nonnegative_least_squares};
pub use location::{
    Center, Interval, MeanShift, SampleSummary, mad_sigma, mean, median, median_interval, midmean,
    quantile, quantile_ranks, weighted_median,
};
pub use octaves::OctaveScale;
pub use periods::{MomentWindows, Period, find_period};
pub use richness::{Richness, estimate_richness};
pub use scatter::{
    GroupEstimate, Permutation, PooledGrowth, ScatterGrowth, scatter_between_groups,
};

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
