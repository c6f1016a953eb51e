//! Cost of handing over to another CPU, from the newest sweep of placements on this machine.

use analysis::program::{Range, cost_of, unfinished};
use analysis::record::RingRecord;
use rundata::machine::Machine;
use rundata::ring::RingCase;

use super::stored_runs::{foreign_fields, newest_runs, this_machine};
use crate::engine::store::{StoredRun, header, read};

/// Cost of handing over to another CPU on this machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HandOverCost {
    /// Nanoseconds of a hop between two CPUs, above the solo: the wake-up and the switches of both.
    pub(crate) hand_over_ns: Range,
    /// Stored run that measured it.
    pub(crate) run: String,
}

/// Sweeps that are read in search of one with figures.
const MAX_SWEEPS: usize = 5;

/// Finds the cost in the newest `ring --placement sweep` of this machine, between the two CPUs of
/// which it is least.
pub(crate) fn find_hand_over_cost() -> Option<HandOverCost> {
    let here = this_machine();
    let runs = newest_runs().ok()?;
    let sweeps = runs.into_iter().filter(|run| is_complete_sweep(run, &here));
    for sweep in sweeps.take(MAX_SWEEPS) {
        let Ok(run) = read(&sweep.path) else { continue };
        if let Some(hand_over_ns) = least_hop_ns(&RingRecord::from_run(&run)) {
            return Some(HandOverCost { hand_over_ns, run: sweep.name });
        }
    }
    None
}

/// Returns the hop of the two CPUs between which it takes least, by its upper end; in nanoseconds.
fn least_hop_ns(record: &RingRecord) -> Option<Range> {
    let mut least: Option<Range> = None;
    for summary in &record.cases {
        if !is_bare_pair(&summary.case) {
            continue;
        }
        let (Some(switches), Some(cost)) = (summary.switches_per_hop, cost_of(summary)) else {
            continue;
        };
        let hop_ns = Range::from(cost).map(|ns| ns * switches.value);
        if least.is_none_or(|least| hop_ns.high.total_cmp(&least.high).is_lt()) {
            least = Some(hop_ns);
        }
    }
    least
}

/// Returns whether a stored run has pairs of CPUs, is of this machine and came to its end.
fn is_complete_sweep(entry: &StoredRun, here: &Machine) -> bool {
    let Ok(header) = header(&entry.path) else { return false };
    header.plan.rings().any(|(_, case)| is_bare_pair(case))
        && foreign_fields(&header.machine, here).is_empty()
        && entry.brief().is_ok_and(|brief| unfinished(brief.end).is_none())
}

/// Returns whether a case is a ring of two by pipe on a pair of CPUs, without work.
fn is_bare_pair(case: &RingCase) -> bool {
    case.members == 2
        && case.work.is_none()
        && case.link == "pipe"
        && case.placement.relation().is_some()
}
