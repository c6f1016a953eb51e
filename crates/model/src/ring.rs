//! The ring as an instrument: its case, its sample and its record under one name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::instrument::{Instrument, Numbered};
use crate::pairing::Grouped;
use crate::plan::{Batching, Plan};
use crate::record::{Record, summaries, worst_precision};
use crate::run::{Failure, Run};
use crate::sample::Sample;

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
        worst_precision(&summaries(plan, &Grouped::new(samples), failures))
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
