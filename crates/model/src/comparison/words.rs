//! Answers in words.

use stats::ratio::Ratio;

use super::answer::{Answer, Change, More, Reason, Terms};
use crate::words::three_digits;

/// One case's answer.
pub(super) fn answer(answer: &Answer, ratio: &Ratio, terms: &Terms) -> String {
    match answer {
        Answer::NotChanged => format!("not changed within {}", limit(terms.limit)),
        Answer::Changed { worse, beyond_limit } => {
            let direction = if *worse { "slower" } else { "faster" };
            let beyond = match (beyond_limit, worse) {
                (true, true) => format!(", beyond {}", limit(terms.limit)),
                (true, false) => String::new(),
                (false, _) => format!(", by less than {}", limit(terms.limit)),
            };
            format!("changed: {}{direction}{beyond}", change(ratio.value))
        }
        Answer::CannotTell { reason, more } => {
            let more = match more {
                Some(More::Launches(1)) => "1 more launch of each would tell".to_string(),
                Some(More::Launches(count)) => {
                    format!("about {count} more launches of each would tell")
                }
                Some(More::Rounds(1)) => "about 1 more round would tell".to_string(),
                Some(More::Rounds(count)) => format!("about {count} more rounds would tell"),
                None => "more measurements would not tell".to_string(),
            };
            match reason {
                Reason::TooWide => format!("inconclusive: {more}"),
                Reason::FewRounds => "inconclusive: too few rounds for an interval".to_string(),
                Reason::NoFullSpeed => {
                    "inconclusive: not both were seen at the CPU's full speed".to_string()
                }
                Reason::BaseNotResolved => {
                    format!("inconclusive: the base is not resolved from zero, {more}")
                }
                Reason::NewNotResolved => {
                    format!("inconclusive: the new cost is not resolved from zero, {more}")
                }
                Reason::NoInterval => {
                    "inconclusive: published figures have no interval".to_string()
                }
            }
        }
    }
}

/// `3 %`, `0.5 %`.
fn limit(limit: f64) -> String {
    format!("{} %", crate::words::plain(limit * 100.0))
}

/// A ratio as a change, with a blank behind it: in percent up to twice the cost or half of it, then as
/// a factor. Nothing where no factor says it: of a cost that came out at or below zero.
fn change(ratio: Option<f64>) -> String {
    match ratio {
        Some(ratio @ 2.0..) => format!("{}x ", three_digits(ratio)),
        Some(ratio @ 1.0..2.0) => format!("{:.1} % ", (ratio - 1.0) * 100.0),
        Some(ratio @ 0.5..1.0) => format!("{:.1} % ", (1.0 - ratio) * 100.0),
        Some(ratio) if ratio > 0.0 => format!("{}x ", three_digits(1.0 / ratio)),
        _ => String::new(),
    }
}

/// All cases together.
pub(super) fn summary(changes: &[Change], terms: &Terms) -> String {
    let count = |is: fn(&Change) -> bool| changes.iter().filter(|change| is(change)).count();
    let worse = count(|c| matches!(c.answer, Answer::Changed { worse: true, .. }));
    let better = count(|c| matches!(c.answer, Answer::Changed { worse: false, .. }));
    let same = count(|c| c.answer == Answer::NotChanged);
    let open = count(|c| matches!(c.answer, Answer::CannotTell { .. }));
    let beyond = count(Change::is_worse_beyond_limit);
    if changes.is_empty() {
        return "no case is in both: nothing was compared".to_string();
    }
    let mut parts = Vec::new();
    if worse > 0 {
        parts.push(match beyond {
            0 => format!("{worse} slower"),
            _ => format!("{worse} slower ({beyond} beyond {})", limit(terms.limit)),
        });
    }
    if better > 0 {
        parts.push(format!("{better} faster"));
    }
    if same > 0 {
        parts.push(format!("{same} not changed within {}", limit(terms.limit)));
    }
    if open > 0 {
        parts.push(format!("{open} inconclusive"));
    }
    let of = if changes.len() == 1 { "case" } else { "cases" };
    format!("of {} {of}: {}", changes.len(), parts.join(", "))
}
