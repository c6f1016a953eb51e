//! What registers in use add to a switch.

use model::record::{CaseSummary, Record};
use model::state::State;

use super::comparison::Comparison;
use super::parts::{self, figure, interval_words};

/// A row for each ring of several whose members have a state, with the cost of its switch and what that
/// is above state none; nothing without such rings.
pub(super) fn table(record: &Record) -> Option<String> {
    let comparison = Comparison::of(record);
    let has_state = |case: &&CaseSummary| case.case.members > 1 && case.case.state.is_some();
    let rings: Vec<_> = comparison.in_order(record).into_iter().filter(has_state).collect();
    if rings.is_empty() {
        return None;
    }
    let columns = ["registers", "ring", "ns/switch", "interval", "above none", "interval"];
    let mut table = parts::table(columns.map(String::from).to_vec());
    for case in &rings {
        table.add_row(row(&comparison, case));
    }
    parts::align(&mut table);
    let mut states: Vec<State> = rings.iter().filter_map(|case| case.case.state).collect();
    states.sort();
    states.dedup();
    let words = states.iter().map(|state| format!("{state}: {}", state.in_words()));
    Some(format!(
        "{table}\n\nabove none: ns/switch less that of none, paired within rounds, median and 95 % interval\n{}",
        words.collect::<Vec<_>>().join("\n")
    ))
}

fn row(comparison: &Comparison, case: &CaseSummary) -> Vec<String> {
    let state = case.case.state;
    let pair = |estimate: Option<&model::estimate::Estimate>| {
        let value = figure(estimate.map(|e| e.value));
        [value, estimate.map_or("-".to_string(), interval_words)]
    };
    let above = match state {
        Some(State::None) => ["-".to_string(), "(none)".to_string()],
        _ => pair(case.ns_per_switch_above_none.as_ref()),
    };
    let name = state.map_or("-", State::name).to_string();
    let ring = comparison.ring_but_state(&case.case);
    let cost = pair(case.ns_per_switch_above_solo.as_ref());
    [vec![name, ring], cost.to_vec(), above.to_vec()].concat()
}
