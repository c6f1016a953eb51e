//! Changes of the machine's settings while a run went on, in words.

use std::collections::BTreeSet;

use rundata::run::{Run, SettingChange};

use crate::comparison::machine_differences;

/// Most changes that a warning names, and most settings of one.
const MAX_NAMED: usize = 3;

/// Returns the warnings of a run: lines of its file that could not be read, and changed settings.
pub fn run_warnings(run: &Run) -> Vec<String> {
    let mut warnings = run.warnings.clone();
    warnings.extend(change_warning(run));
    warnings
}

/// Returns what changed, when, and what became of the rounds; `None` without a change.
pub fn change_warning(run: &Run) -> Option<String> {
    let mut changes = Vec::new();
    for change in run.setting_changes.iter().filter(|change| !change.differences.is_empty()) {
        changes.push(change_in_words(change));
    }
    if changes.is_empty() {
        return None;
    }
    let more = changes.len().saturating_sub(MAX_NAMED);
    changes.truncate(MAX_NAMED);
    if more > 0 {
        changes.push(format!("{more} more changes"));
    }
    let rounds: BTreeSet<u32> = run.set_aside.iter().map(|sample| sample.round()).collect();
    Some(format!(
        "settings of the machine changed during the run: {}; {} of {} rounds, under other settings, \
         not used: measure again",
        changes.join(", then "),
        rounds.len(),
        run.rounds(),
    ))
}

/// Returns `scheduler kernel -> lavd at 12:03:04 UTC (round 5)`.
fn change_in_words(change: &SettingChange) -> String {
    let mut settings = machine_differences(&change.differences);
    settings.truncate(MAX_NAMED);
    let time = change.at.get(11..19).unwrap_or(&change.at);
    format!("{} at {time} UTC (round {})", settings.join(" and "), change.round)
}

#[cfg(test)]
mod tests {
    use rundata::machine::FieldDifference;
    use rundata::run::RunFileLine;
    use serde_json::{Value, json};

    use super::*;

    const V1: &str = include_str!("../../rundata/tests/fixtures/run-v1.jsonl");

    fn difference(field: &str, base: Value, other: Value) -> FieldDifference {
        FieldDifference { field: field.to_string(), base, other }
    }

    fn scheduler_loaded(round: u32) -> SettingChange {
        SettingChange {
            round,
            at: "2026-11-29T12:03:04Z".to_string(),
            differences: vec![
                difference("scheduler.name", json!("kernel"), json!("lavd")),
                difference("scheduler.sched_ext.enable_seq", json!(0), json!(1)),
            ],
        }
    }

    /// Returns the fixture with changes behind its last line.
    fn changed(changes: &[SettingChange]) -> Run {
        let mut text = V1.to_string();
        for change in changes {
            text += &serde_json::to_string(&RunFileLine::Setting(change.clone())).expect("JSON");
            text += "\n";
        }
        Run::parse(&text).expect("a run file")
    }

    #[test]
    fn rounds_under_another_scheduler_are_not_mixed_with_the_others_wherever_it_came() {
        let whole = Run::parse(V1).expect("a run file");
        let rounds = whole.rounds();
        for round in 0..rounds {
            let run = changed(&[scheduler_loaded(round)]);
            assert!(run.samples.iter().all(|sample| sample.round() < round));
            assert!(run.set_aside.iter().all(|sample| sample.round() >= round));
            assert_eq!(run.samples.len() + run.set_aside.len(), whole.samples.len());
            assert_eq!(run.rounds(), rounds, "a resumed run goes on behind all of them");
            let warnings = run_warnings(&run);
            let [warning] = &warnings[..] else { panic!("{warnings:?}") };
            let words = format!("scheduler kernel -> lavd at 12:03:04 UTC (round {round}); ");
            assert!(warning.contains(&words), "{warning}");
            let lost = format!("{} of {rounds} rounds", rounds - round);
            assert!(warning.contains(&lost), "{warning}");
        }
        assert!(run_warnings(&whole).is_empty());
    }

    #[test]
    fn settings_that_came_back_hold_again() {
        let back = SettingChange {
            round: 3,
            at: "2026-11-29T12:03:09Z".to_string(),
            differences: Vec::new(),
        };
        let run = changed(&[scheduler_loaded(1), back]);
        let rounds: BTreeSet<u32> = run.set_aside.iter().map(|sample| sample.round()).collect();
        assert_eq!(rounds, BTreeSet::from([1, 2]));
        let rest: BTreeSet<u32> = run.samples.iter().map(|sample| sample.round()).collect();
        assert!(rest.contains(&0) && rest.contains(&3), "{rest:?}");
    }

    #[test]
    fn a_governor_is_named_with_both_states() {
        let run = changed(&[SettingChange {
            round: 0,
            at: "2026-11-29T12:03:04Z".to_string(),
            differences: vec![difference(
                "frequency.governor",
                json!("performance"),
                json!("powersave"),
            )],
        }]);
        let words = "frequency settings (governor) performance -> powersave at 12:03:04 UTC";
        assert!(run_warnings(&run)[0].contains(words), "{:?}", run_warnings(&run));
    }
}
