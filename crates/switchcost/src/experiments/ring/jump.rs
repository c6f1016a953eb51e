//! The sentence on the jump of the cost of a switch as the ring grows.

use analysis::cost::MachineLevels;
use analysis::jump::{self, SizedCost};
use analysis::record::RingRecord;
use analysis::regions::SizeAxis;
use rundata::run::unfinished;

use crate::experiments::cost::answer::causes_in_words;

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
        if let Ok(quoted) = cost.quote_cost() {
            costs.push((u64::from(ring.case.members), quoted));
        }
    }
    costs.sort_by_key(|(members, _)| *members);
    let is_one_series = costs.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let (true, Some(jump)) = (is_one_series, jump::largest_jump(&costs)) else {
        return String::new();
    };
    let levels = MachineLevels::from_machine(&record.header.machine, &record.header.plan);
    let candidates = levels.candidates(&jump, &SizeAxis::MEMBERS, 2, work);
    format!(" It {}.{}", jump.in_words(&SizeAxis::MEMBERS), causes_in_words(&candidates))
}
