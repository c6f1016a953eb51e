//! What a switch costs by each link, beside the pipe's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::pairing::Grouped;
use crate::plan::Plan;
use crate::ring::{Case, Sample};
use crate::summary::HARDLY_SWITCHES_PER_HOP;
use stats::median;

/// The link that the others are set beside.
pub const REFERENCE: &str = "pipe";

/// A ring of two by one link. What it costs stands in the summary of its case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkCost {
    /// Number of the case in the plan.
    pub case: usize,
    /// The link.
    pub link: String,
    /// Cost of a counted switch above solo by this link less that by pipe, in nanoseconds, paired within
    /// rounds. Absent for the pipe itself, for a link that does not switch, and without a ring by pipe.
    pub above_pipe_ns: Option<Estimate>,
}

pub(super) fn find(plan: &Plan, grouped: &Grouped) -> Vec<LinkCost> {
    let is_compared = |case: &Case| case.members == 2 && case.work.is_none();
    let switches = |ring: usize| {
        let counted: Vec<f64> = grouped.samples(ring).map(Sample::switches_per_hop).collect();
        median(&counted).is_none_or(|counted| counted >= HARDLY_SWITCHES_PER_HOP)
    };
    let cost = |(index, case): (usize, &Case)| {
        let by_pipe = Case { link: REFERENCE.to_string(), ..case.clone() };
        let pipe = plan.find_ring(|other| *other == by_pipe);
        let above = |pipe: usize| grouped.difference(index, pipe, grouped.rank(index));
        LinkCost {
            case: index,
            link: case.link.clone(),
            above_pipe_ns: pipe.filter(|pipe| *pipe != index && switches(index)).and_then(above),
        }
    };
    plan.rings().filter(|(_, case)| is_compared(case)).map(cost).collect()
}
