//! Where the cost of a switch jumps as the ring grows.

use analysis::cost::MachineLevels;
use analysis::jump::{self, SizedCost};
use analysis::record::RingRecord;
use analysis::regions::SizeAxis;
use analysis::summary::CaseSummary;
use rundata::run::unfinished;

/// ` It jumps from 1.54 us to 1.80 us at 5 members, 1.17x (1.14x to 1.20x). Possible causes: L1 48
/// KiB.`; nothing where no jump is resolved, or the run did not end. Of rings that differ in their
/// size only.
pub(super) fn sentence(record: &RingRecord) -> String {
    if unfinished(record.end.as_ref()).is_some() {
        return String::new();
    }
    let rings = record.cases.iter().filter(|of| of.case.members > 1);
    let place = |of: &CaseSummary| {
        let cost = of.ns_per_switch_above_solo?.quote_cost().ok()?;
        Some((u64::from(of.case.members), cost))
    };
    let mut places: Vec<SizedCost> = rings.clone().filter_map(place).collect();
    places.sort_by_key(|(members, _)| *members);
    let is_one_series = places.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let Some(jump) = jump::largest_jump(&places).filter(|_| is_one_series) else {
        return String::new();
    };
    let levels = MachineLevels::from_machine(&record.header.machine, &record.header.plan);
    let work = rings.clone().find_map(|of| of.case.work);
    let found = levels.candidates(&jump, &SizeAxis::MEMBERS, 2, work);
    let names: Vec<&str> = found.iter().map(|of| of.name.as_str()).collect();
    let beside = match names.is_empty() {
        true => String::new(),
        false => format!(" Possible causes: {}.", names.join("; ")),
    };
    format!(" It {}.{beside}", jump.in_words(&SizeAxis::MEMBERS))
}
