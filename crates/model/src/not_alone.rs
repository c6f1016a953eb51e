//! Who ran on the CPU of rings that were never alone on it.

use crate::competing::CompetingTasks;
use crate::record::RingRecord;

/// Most names that a sentence has.
const MOST_NAMES: usize = 2;

/// Returns who ran beside the rings of a run, by name: `, beside rustc`; `, beside other tasks`
/// where nobody was seen.
pub fn beside_words(record: &RingRecord) -> String {
    let names = record.company.as_ref().map_or(Vec::new(), CompetingTasks::names);
    match names.len() {
        0 => ", beside other tasks".to_string(),
        _ => format!(", beside {}", names[..names.len().min(MOST_NAMES)].join(" and ")),
    }
}
