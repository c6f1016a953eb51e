//! The ring as an instrument: its case, its sample and its record under one name.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::instrument::{Instrument, Numbered};
use crate::pairing::Grouped;
use crate::plan::{Batching, Plan};
use crate::record::{Record, summaries, worst_precision};
use crate::run::{Failure, Run};
use crate::sample::Sample;
use crate::speed::{CaseSlices, FEWEST_ROUNDS, Level};

/// The ring: members that pass a token round, on which the cost of a switch rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ring;

impl Instrument for Ring {
    type Case = Case;
    type Sample = Sample;
    type Batching = Batching;
    type Record = Record;

    const NAME: &'static str = "ring";
    const EXPERIMENTS: &'static [&'static str] = &["ring", crate::cost::EXPERIMENT];

    fn title(case: &Case) -> String {
        let mut title = format!("ring of {}", case.members);
        // The link that goes without saying.
        if case.link != "pipe" {
            title.push_str(&format!(" by {}", case.link));
        }
        if let Some(work) = &case.work {
            title.push_str(&format!(" with {}", work.in_words()));
        }
        if case.placement.relation().is_some() {
            title.push_str(&format!(" on {}", case.placement));
        }
        if let Some(state) = case.state {
            title.push_str(&format!(" with registers {state}"));
        }
        title
    }

    /// What is subtracted from one another: a ring, its solo ring, and the same with other registers
    /// in use.
    fn belong_together(one: &Case, other: &Case) -> bool {
        let bare = |case: &Case| Case { state: None, ..case.solo() };
        bare(one) == bare(other)
    }

    fn cpus(case: &Case) -> Vec<u32> {
        case.placement.cpus()
    }

    fn needs_as_much(other: &Case, failed: &Case) -> bool {
        let bytes = |case: &Case| case.work.map_or(0, |work| work.bytes);
        // All that is needed lies in members and bytes; how the bytes are walked needs nothing.
        let same_kind = Case { members: other.members, work: other.work, ..failed.clone() };
        same_kind == *other && other.members >= failed.members && bytes(other) >= bytes(failed)
    }

    fn worst_precision(plan: &Plan, samples: &[Sample], failures: &[Failure]) -> Option<f64> {
        worst_precision(&summaries(plan, &Grouped::new(plan, samples), failures))
    }

    fn lacking(plan: &Plan, samples: &[Sample]) -> Vec<usize> {
        let grouped = Grouped::new(plan, samples);
        let lacks = |case: &usize| grouped.is_judged(*case) && !grouped.has_full_speed(*case);
        (0..plan.cases.len()).filter(lacks).collect()
    }

    /// Of working sets, whose intervals differ most: the wider half, but every fourth round all. Those that can
    /// mostly not be judged take the most time and are left out, unless it is all.
    fn focus(plan: &Plan, samples: &[Sample], round: u32) -> Option<Vec<usize>> {
        if plan.batching.triples.is_none() || round < FEWEST_ROUNDS || round.is_multiple_of(4) {
            return None;
        }
        let grouped = Grouped::new(plan, samples);
        let width = |case: usize| {
            let estimate = grouped.above_solo(case, 0);
            estimate.and_then(|estimate| estimate.relative_half_width()).unwrap_or(f64::INFINITY)
        };
        let all: Vec<usize> = (0..plan.cases.len()).collect();
        let is_judged =
            |case: &usize| grouped.slices(*case).is_some_and(CaseSlices::is_mostly_judged);
        let mut judged: Vec<usize> = all.iter().copied().filter(is_judged).collect();
        if judged.is_empty() {
            judged = all;
        }
        let mut widths: Vec<(usize, f64)> =
            judged.into_iter().map(|case| (case, width(case))).collect();
        widths.sort_by(|one, other| other.1.total_cmp(&one.1));
        widths.truncate(widths.len().div_ceil(2));
        Some(widths.into_iter().map(|(case, _)| case).collect())
    }

    fn levels(plan: &Plan, samples: &[Sample]) -> BTreeMap<Vec<u32>, Level> {
        Grouped::new(plan, samples).levels().clone()
    }

    fn record(run: &Run) -> Record {
        Record::of(run)
    }
}

impl Numbered for Sample {
    fn case(&self) -> usize {
        self.case
    }
    fn round(&self) -> u32 {
        self.round
    }
}
