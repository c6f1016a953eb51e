//! Measured points, and what is assumed of their errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EQUIVALENCE;
use crate::curve::{LARGEST_COST, levels, sound_error};

/// The cost of one switch in a ring of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Members of the ring.
    pub members: u32,
    /// Cost of one switch; signed, a difference of two rings may be below zero.
    pub cost_ns: f64,
    /// Its standard error in ns, if it is known.
    pub standard_error_ns: Option<f64>,
}

impl Point {
    fn usable(&self) -> bool {
        self.members > 0 && self.cost_ns.abs() <= LARGEST_COST
    }

    fn standard_error(&self) -> Option<f64> {
        sound_error(self.standard_error_ns)
    }
}

/// Where the size of the errors is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// Every point came with its standard error.
    Known,
    /// Errors in proportion to the cost, their size estimated from the scatter about the law.
    Estimated,
}

/// One usable point, in units of [`Prepared::unit`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    pub(super) members: f64,
    pub(super) cost: f64,
    /// 1 / standard error.
    pub(super) precision: f64,
}

/// The usable points in order of size, with the standard errors that the fits use.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) observations: Vec<Observation>,
    /// Different sizes, ascending.
    pub(super) sizes: Vec<u32>,
    /// The largest absolute cost. All fits work in this unit, so that they depend on ratios only.
    pub(super) unit: f64,
    pub(super) noise: Noise,
    pub(super) ignored: usize,
}

impl Prepared {
    pub(super) fn new(points: &[Point]) -> Self {
        let mut usable: Vec<Point> = points.iter().copied().filter(Point::usable).collect();
        usable.sort_by(|a, b| a.members.cmp(&b.members).then(a.cost_ns.total_cmp(&b.cost_ns)));
        let mut sizes: Vec<u32> = usable.iter().map(|point| point.members).collect();
        sizes.dedup();
        let unit = usable.iter().map(|p| p.cost_ns.abs()).fold(0.0, f64::max);
        let known = usable.iter().all(|point| point.standard_error().is_some());
        let noise = if known { Noise::Known } else { Noise::Estimated };
        let observations = if unit > 0.0 { observe(&usable, unit) } else { Vec::new() };
        Prepared { observations, sizes, unit, noise, ignored: points.len() - usable.len() }
    }

    pub(super) fn smallest(&self) -> f64 {
        self.sizes.first().copied().map_or(0.0, f64::from)
    }

    pub(super) fn largest(&self) -> f64 {
        self.sizes.last().copied().map_or(0.0, f64::from)
    }
}

fn observe(usable: &[Point], unit: f64) -> Vec<Observation> {
    let costs: Vec<f64> = usable.iter().map(|point| point.cost_ns / unit).collect();
    let scales = levels(&costs);
    let errors: Vec<Option<f64>> =
        usable.iter().map(|point| point.standard_error().map(|error| error / unit)).collect();
    // A point without a standard error among points with one: as uncertain as the worst of them.
    let worst = errors
        .iter()
        .zip(&scales)
        .filter_map(|(error, scale)| error.map(|error| error / scale))
        .fold(0.0, f64::max);
    usable
        .iter()
        .enumerate()
        .map(|(i, point)| {
            let error = errors[i].unwrap_or(worst * scales[i]);
            Observation {
                members: f64::from(point.members),
                cost: costs[i],
                precision: 1.0 / error.hypot(EQUIVALENCE * scales[i]),
            }
        })
        .collect()
}
