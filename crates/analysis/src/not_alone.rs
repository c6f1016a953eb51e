//! Who ran on the CPU of rings that were never alone on it.

use rundata::competing::CompetingTasks;

use crate::record::RingRecord;

/// Most names that a sentence has.
const MOST_NAMES: usize = 2;

/// Returns who ran beside the rings of a run, by name: ` while rustc ran`; ` while other tasks ran`
/// where nobody was seen.
pub fn beside_words(record: &RingRecord) -> String {
    let names = record.company.as_ref().map_or(Vec::new(), CompetingTasks::names);
    match names.len() {
        0 => " while other tasks ran".to_string(),
        _ => format!(" while {} ran", names[..names.len().min(MOST_NAMES)].join(" and ")),
    }
}
