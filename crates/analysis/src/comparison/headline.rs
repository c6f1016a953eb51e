//! What a comparison says first: its answer in the names that its reader gave.

use rundata::ring::Policy;
use rundata::words::{three_digits, time};

use super::answer::{CaseChange, ChangeAnswer, ComparedSetting, FACTOR, at_least, percent};
use super::costs::UndecidedReason;
use crate::marked;
use crate::marked::MarkedText;

/// The answer of all cases, in a sentence. `base` and `new` are what the sides are called.
pub(super) fn headline(changes: &[CaseChange], [base, new]: [&str; 2], limit: f64) -> MarkedText {
    let asked: Vec<&CaseChange> = asked(changes).collect();
    match &asked[..] {
        [] => "the runs have no case in common: nothing was compared".into(),
        [change] => of_one(change, [base, new], limit),
        _ => of_several(&asked, [base, new], limit),
    }
}

/// The cases that were asked about: without the rings of one, of which the others are taken off,
/// where there are others, and without those of the normal policy that do not hold where the same
/// ring under fifo does.
pub(super) fn asked(changes: &[CaseChange]) -> impl Iterator<Item = &CaseChange> {
    let is_solo = |change: &CaseChange| change.is_ring_of_one() && !change.is_worse_beyond_limit();
    let are_all = changes.iter().all(is_solo);
    changes
        .iter()
        .filter(move |change| are_all || !is_solo(change))
        .filter(move |change| !is_answered_under_fifo(change, changes))
}

/// Whether a ring of the normal policy has no answer, as a side does not hold, and the same ring
/// under fifo has one.
fn is_answered_under_fifo(change: &CaseChange, all: &[CaseChange]) -> bool {
    if !change.lacks_a_sound_side() {
        return false;
    }
    let mut labels = change.labels.clone();
    let policy =
        labels.insert(ComparedSetting::Policy.name().to_string(), Policy::Fifo.to_string());
    policy.is_some_and(|policy| policy == Policy::Other.name())
        && all.iter().any(|other| other.labels == labels && !other.lacks_a_sound_side())
}

/// `pinned is 13x faster than free (ring of 2): 1.46 us, not 19.0 us`.
fn of_one(change: &CaseChange, [base, new]: [&str; 2], limit: f64) -> MarkedText {
    let title = &change.title;
    match change.answer {
        ChangeAnswer::NotChanged => marked![
            format!("{new} costs the same as {base} within "),
            MarkedText::figure(percent(limit)),
            format!(" ({title}): {} and {}", time(change.new_ns), time(change.base_ns))
        ],
        ChangeAnswer::Changed { .. } => marked![
            format!("{new} is "),
            speed(change),
            format!(" than {base} ({title}): {}", times(change))
        ],
        ChangeAnswer::Bounded { ratio, .. } => {
            let sides = bounded_times(change, [base, new]);
            marked![
                format!("{new} is "),
                at_least(ratio),
                format!(" than {base} ({title}): {sides}")
            ]
        }
        ChangeAnswer::CannotTell { reason, more } => {
            let why = reason.in_words([base, new]);
            match (reason, more, change.ratio.interval()) {
                (UndecidedReason::TooWide, more, Some((low, high))) => {
                    let more = more.map_or(String::new(), |more| format!(": {}", more.in_words()));
                    marked![
                        format!("{new} may be "),
                        factor_or_percent(low),
                        " to ",
                        factor_or_percent(high),
                        format!(" than {base} ({title}){more}")
                    ]
                }
                (UndecidedReason::NoFullSpeed | UndecidedReason::NotAlone, ..)
                    if is_sound(change.ratio.value) =>
                {
                    format!(
                        "It is not known whether {new} differs from {base} ({title}), as {why}: {}",
                        seen_times(change)
                    )
                    .into()
                }
                (UndecidedReason::NoInterval, ..) if is_sound(change.ratio.value) => marked![
                    format!("{new} is "),
                    speed(change),
                    format!(" than {base} ({title}): {}; {why}", times(change))
                ],
                (_, Some(more), _) => {
                    let more = more.in_words();
                    format!("{new} against {base}: undecided ({title}): {why}; {more}").into()
                }
                _ => format!("{new} against {base}: undecided ({title}): {why}").into(),
            }
        }
    }
}

/// `pinned is faster than free in 5 of 6 cases, slower in 1; most in ring of 64: 13x faster, ...`.
fn of_several(changes: &[&CaseChange], [base, new]: [&str; 2], limit: f64) -> MarkedText {
    let count = |is: fn(&CaseChange) -> bool| changes.iter().filter(|change| is(change)).count();
    let within = format!("the same within {}", percent(limit));
    let counts = [
        (count(is_slower), "slower"),
        (count(is_faster), "faster"),
        (count(|c| c.answer == ChangeAnswer::NotChanged), within.as_str()),
        (count(|c| c.reason().is_some()), "undecided"),
    ];
    let all = changes.len();
    let some: Vec<&(usize, &str)> = counts.iter().filter(|(count, _)| *count > 0).collect();
    let whole = if all == 2 { "both cases".to_string() } else { format!("all {all} cases") };
    let counted = match &some[..] {
        [(_, "undecided")] => format!("{new} against {base}: undecided in {whole}"),
        [(_, how)] if *how == within => {
            format!("{new} costs the same as {base} within {} in {whole}", percent(limit))
        }
        [(_, how)] => format!("{new} is {how} than {base} in {whole}"),
        _ => {
            let parts = some.iter().map(|(count, how)| format!("{how} in {count}"));
            let parts: Vec<String> = parts.collect();
            format!("{new} against {base}: {} (of {all} cases)", parts.join(", "))
        }
    };
    let changed = changes.iter().filter(|change| is_slower(change) || is_faster(change));
    if let Some(most) = changed.max_by(|one, other| size(one).total_cmp(&size(other))) {
        let how = match most.answer {
            ChangeAnswer::Bounded { ratio, .. } => {
                marked![at_least(ratio), format!(", {}", bounded_times(most, [base, new]))]
            }
            _ => marked![speed(most), format!(", {}", times(most))],
        };
        return marked![format!("{counted}; most in {}: ", most.title), how];
    }
    let seen = changes.iter().find(|change| change.is_seen_only() && is_sound(change.ratio.value));
    match seen {
        Some(seen) => format!("{counted}; {}: {}", seen.title, seen_times(seen)).into(),
        None => counted.into(),
    }
}

fn is_slower(change: &CaseChange) -> bool {
    matches!(
        change.answer,
        ChangeAnswer::Changed { worse: true, .. } | ChangeAnswer::Bounded { worse: true, .. }
    )
}

fn is_faster(change: &CaseChange) -> bool {
    use ChangeAnswer::{Bounded, Changed};
    matches!(change.answer, Changed { worse: false, .. } | Bounded { worse: false, .. })
}

/// How far a change is from none, as the logarithm of its ratio or of the bound of that.
fn size(change: &CaseChange) -> f64 {
    let ratio = match change.answer {
        ChangeAnswer::Bounded { ratio, .. } => Some(ratio),
        _ => change.ratio.value,
    };
    ratio.map_or(0.0, |ratio| ratio.ln().abs())
}

impl CaseChange {
    /// Whether it is a ring of the normal policy that is undecided because other tasks ran on its
    /// CPU: these wait for a ring under SCHED_FIFO.
    pub fn would_fifo_help(&self) -> bool {
        let is_normal = self
            .labels
            .get(ComparedSetting::Policy.name())
            .is_some_and(|policy| policy == Policy::Other.name());
        let is_ring = self.labels.contains_key("members");
        self.reason() == Some(UndecidedReason::NotAlone) && is_normal && is_ring
    }

    /// Whether it is a ring of one.
    pub(super) fn is_ring_of_one(&self) -> bool {
        self.labels.get("members").is_some_and(|members| members == "1")
    }

    /// Returns the ratio to be told beside both costs: where a side was not at full speed theirs,
    /// else the tested one.
    pub fn ratio_told(&self) -> Option<f64> {
        if self.is_seen_only() {
            return Some(self.new_ns / self.base_ns).filter(|ratio| is_sound(Some(*ratio)));
        }
        self.ratio.value
    }

    /// Whether a side was not at full speed or was measured in too few rounds.
    fn lacks_a_sound_side(&self) -> bool {
        let reason = self.reason();
        reason.is_some_and(|reason| reason.is_of_speed() || reason == UndecidedReason::FewRounds)
    }

    /// Whether its ratio was seen and does not hold: a side was not at full speed.
    pub fn is_seen_only(&self) -> bool {
        self.reason().is_some_and(UndecidedReason::is_of_speed)
    }
}

fn is_sound(ratio: Option<f64>) -> bool {
    ratio.is_some_and(|ratio| ratio.is_finite() && ratio > 0.0)
}

/// `13x faster`, `3.2 % slower`.
fn speed(change: &CaseChange) -> MarkedText {
    match change.ratio.value {
        Some(ratio) if is_sound(Some(ratio)) => factor_or_percent(ratio),
        // Of a cost that came out at or below zero no factor says it.
        _ => MarkedText::direction(change.new_ns >= change.base_ns),
    }
}

fn factor_or_percent(ratio: f64) -> MarkedText {
    let factor = ratio.max(1.0 / ratio);
    let figure = if factor < FACTOR {
        format!("{:.1} %", (ratio - 1.0).abs() * 100.0)
    } else {
        format!("{}x", three_digits(factor))
    };
    marked![MarkedText::figure(figure), " ", MarkedText::direction(ratio >= 1.0)]
}

/// `1.46 us, not 19.0 us`.
fn times(change: &CaseChange) -> String {
    format!("{}, not {}", time(change.new_ns), time(change.base_ns))
}

/// `at most 1.85 us, not 436 us`; of a base that has the bound `4.10 us, base at most 1.85 us`.
fn bounded_times(change: &CaseChange, [base, _]: [&str; 2]) -> String {
    match change.answer {
        ChangeAnswer::Bounded { worse: true, at_most_ns, .. } => {
            format!("{}, {base} at most {}", time(change.new_ns), time(at_most_ns))
        }
        ChangeAnswer::Bounded { at_most_ns, .. } => {
            format!("at most {}, not {}", time(at_most_ns), time(change.base_ns))
        }
        _ => times(change),
    }
}

/// `~1.46 us against ~19.0 us`: what was seen, of which nothing follows.
fn seen_times(change: &CaseChange) -> String {
    format!("~{} against ~{}", time(change.new_ns), time(change.base_ns))
}
