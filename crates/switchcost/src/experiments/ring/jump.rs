//! Where the cost of a switch jumps as the ring grows.

use analysis::cost::MachineLevels;
use analysis::jump::{self, SizedCost};
use analysis::record::RingRecord;
use analysis::regions::SizeAxis;
use rundata::run::unfinished;

/// Returns ` It jumps from 1.54 us to 1.80 us at 5 members, 1.17x (1.14x to 1.20x). Possible causes:
/// L1 48 KiB.`; empty where no jump is resolved, or the run did not end.
///
/// The rings must differ in their size only.
pub(super) fn sentence(record: &RingRecord) -> String {
    if unfinished(record.end.as_ref()).is_some() {
        return String::new();
    }
    let mut costs: Vec<SizedCost> = Vec::new();
    let mut work = None;
    for ring in record.cases.iter().filter(|summary| summary.case.members > 1) {
        work = work.or(ring.case.work);
        let Some(cost) = ring.ns_per_switch_above_solo else { continue };
        costs.extend(cost.quote_cost().ok().map(|cost| (u64::from(ring.case.members), cost)));
    }
    costs.sort_by_key(|(members, _)| *members);
    let is_one_series = costs.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let Some(jump) = jump::largest_jump(&costs).filter(|_| is_one_series) else {
        return String::new();
    };
    let levels = MachineLevels::from_machine(&record.header.machine, &record.header.plan);
    let candidates = levels.candidates(&jump, &SizeAxis::MEMBERS, 2, work);
    let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    let causes = if names.is_empty() {
        String::new()
    } else {
        format!(" Possible causes: {}.", names.join("; "))
    };
    format!(" It {}.{causes}", jump.in_words(&SizeAxis::MEMBERS))
}
