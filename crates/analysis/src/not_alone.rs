//! Names the tasks that ran on the CPU of rings that were never alone on it.

use crate::record::RingRecord;

/// Most names that a sentence has.
const MOST_NAMES: usize = 2;

/// Returns the competing tasks of a run by name: ` while rustc ran`; ` while other tasks ran` where
/// none was seen.
pub fn beside_words(record: &RingRecord) -> String {
    let mut names = match &record.competing_tasks {
        Some(competing) => competing.names(),
        None => Vec::new(),
    };
    names.truncate(MOST_NAMES);
    if names.is_empty() {
        return " while other tasks ran".to_string();
    }
    format!(" while {} ran", names.join(" and "))
}
