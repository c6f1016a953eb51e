//! The first line of a comparison: its answer in the names of the sides.

use rundata::ring::Policy;

use super::answer::{
    CaseChange, ChangeAnswer, ComparedSetting, MoreNeeded, at_least, factor_or_percent, percent,
};
use super::costs::UndecidedReason;
use crate::marked;
use crate::marked::MarkedText;
use crate::results::Quantity;

/// Returns the answer of all cases in a sentence. `base` and `new` are the names of the sides.
pub(super) fn headline(changes: &[CaseChange], [base, new]: [&str; 2], limit: f64) -> MarkedText {
    match answered_cases(changes)[..] {
        [] => "the runs have no case in common: nothing was compared".into(),
        [change] => one_case(change, [base, new], limit),
        ref changes => several_cases(changes, [base, new], limit),
    }
}

/// Returns the cases that the answer counts. Rings of one are left out where there are others, which
/// have them subtracted, and so are rings of the normal policy that do not hold where the same ring
/// under fifo does.
pub(super) fn answered_cases(changes: &[CaseChange]) -> Vec<&CaseChange> {
    let has_others = !changes.iter().all(is_solo);
    let mut counted = Vec::new();
    for change in changes {
        let is_left_out = has_others && is_solo(change);
        if !is_left_out && !is_answered_under_fifo(change, changes) {
            counted.push(change);
        }
    }
    counted
}

fn is_solo(change: &CaseChange) -> bool {
    change.is_ring_of_one() && !change.is_worse_beyond_limit()
}

/// Returns whether a ring of the normal policy has no answer, as a side does not hold, and the same
/// ring under fifo has one.
fn is_answered_under_fifo(change: &CaseChange, changes: &[CaseChange]) -> bool {
    if !change.lacks_a_sound_side() || !change.has_policy(Policy::Other) {
        return false;
    }
    let mut labels = change.labels.clone();
    labels.insert(ComparedSetting::Policy.name().to_string(), Policy::Fifo.to_string());
    changes.iter().any(|fifo| fifo.labels == labels && !fifo.lacks_a_sound_side())
}

/// Returns the answer of one case:
/// `pinned is 13x faster than free (ring of 2): 1.46 us, not 19.0 us`.
fn one_case(change: &CaseChange, [base, new]: [&str; 2], limit: f64) -> MarkedText {
    let title = &change.title;
    match change.answer {
        ChangeAnswer::NotChanged => marked![
            format!("{} {base} within ", same_as(change, new)),
            MarkedText::figure(percent(limit)),
            format!(" ({title}): {} and {}", change.new_in_words(), change.base_in_words())
        ],
        ChangeAnswer::Changed { .. } => marked![
            format!("{new} is "),
            speed(change),
            format!(" than {base} ({title}): {}", times(change))
        ],
        ChangeAnswer::Bounded { ratio, .. } => {
            let sides = bounded_times(change, base);
            marked![
                format!("{new} is "),
                at_least(change.quantity, ratio),
                format!(" than {base} ({title}): {sides}")
            ]
        }
        ChangeAnswer::CannotTell { reason, more } => {
            undecided_case(change, [base, new], limit, reason, more)
        }
    }
}

fn undecided_case(
    change: &CaseChange,
    [base, new]: [&str; 2],
    limit: f64,
    reason: UndecidedReason,
    more: Option<MoreNeeded>,
) -> MarkedText {
    use UndecidedReason::{NoFullSpeed, NoInterval, NotAlone, TooWide};
    let title = &change.title;
    let why = reason.in_words([base, new]);
    if let (TooWide, Some((low, high))) = (reason, change.ratio.interval()) {
        let advice = more.map_or(String::new(), |more| format!(": {}", more.in_words()));
        return marked![
            format!("{new} may be "),
            ratio_words(change.quantity, low),
            " to ",
            ratio_words(change.quantity, high),
            format!(" than {base} ({title}){advice}")
        ];
    }
    if is_sound(change.ratio.value) {
        if let Some((low, high)) = change.interval_as_seen() {
            return marked![
                "As the core was, ",
                seen_in_session(change, [base, new], [low, high], limit),
                format!("; {why}")
            ];
        }
        if matches!(reason, NoFullSpeed | NotAlone) {
            let seen = seen_times(change);
            return format!(
                "It is not known whether {new} differs from {base} ({title}), as {why}: {seen}"
            )
            .into();
        }
        if reason == NoInterval {
            return marked![
                format!("{new} is "),
                speed(change),
                format!(" than {base} ({title}): {}; {why}", times(change))
            ];
        }
    }
    if let (true, Some(why)) = (change.quantity.is_of_trace(), change.why_undecided([base, new])) {
        return format!("{new} against {base}: undecided ({title}): {why}").into();
    }
    let advice = more.map_or(String::new(), |more| format!("; {}", more.in_words()));
    format!("{new} against {base}: undecided ({title}): {why}{advice}").into()
}

/// Returns what a session says of a core that was not at full speed:
/// `never is 32.7 % slower than always (28.0 to 37.5 %; ring of 2): ~3.27 us against ~2.46 us`.
fn seen_in_session(
    change: &CaseChange,
    [base, new]: [&str; 2],
    [low, high]: [f64; 2],
    limit: f64,
) -> MarkedText {
    let (title, seen) = (&change.title, seen_times(change));
    match ChangeAnswer::from_interval([low, high], limit) {
        Some(ChangeAnswer::NotChanged) => marked![
            format!("{} {base} within ", same_as(change, new)),
            MarkedText::figure(percent(limit)),
            format!(" ({title}): {seen}")
        ],
        Some(_) => {
            let ends = format!("{} to {}", factor_or_percent(low), factor_or_percent(high));
            marked![
                format!("{new} is "),
                speed(change),
                format!(" than {base} ({ends}; {title}): {seen}")
            ]
        }
        None => marked![
            format!("{new} may be "),
            ratio_words(change.quantity, low),
            " to ",
            ratio_words(change.quantity, high),
            format!(" than {base} ({title}): {seen}")
        ],
    }
}

/// Returns the answer of several cases:
/// `pinned is faster than free in 5 of 6 cases, slower in 1; most in ring of 64: 13x faster, ...`.
fn several_cases(changes: &[&CaseChange], [base, new]: [&str; 2], limit: f64) -> MarkedText {
    let counts = count_answers(changes, [base, new], limit);
    if let Some(most) = largest_change(changes) {
        let amount = match most.answer {
            ChangeAnswer::Bounded { ratio, .. } => {
                let amount = at_least(most.quantity, ratio);
                marked![amount, format!(", {}", bounded_times(most, base))]
            }
            _ => marked![speed(most), format!(", {}", times(most))],
        };
        return marked![format!("{counts}; most in {}: ", most.title), amount];
    }
    for change in changes {
        if change.is_seen_only() && is_sound(change.ratio.value) {
            return format!("{counts}; {}: {}", change.title, seen_times(change)).into();
        }
    }
    counts.into()
}

/// Returns how many cases have which answer, in words.
fn count_answers(changes: &[&CaseChange], [base, new]: [&str; 2], limit: f64) -> String {
    let within = format!("the same within {}", percent(limit));
    let (mut slower, mut faster, mut same, mut undecided) = (0, 0, 0, 0);
    for change in changes {
        slower += usize::from(is_slower(change));
        faster += usize::from(is_faster(change));
        same += usize::from(change.answer == ChangeAnswer::NotChanged);
        undecided += usize::from(change.reason().is_some());
    }
    let Some(first) = changes.first() else { return String::new() };
    let (slower_word, faster_word) =
        (first.quantity.direction(true), first.quantity.direction(false));
    let total = changes.len();
    let all = if total == 2 { "both cases".to_string() } else { format!("all {total} cases") };
    if undecided == total {
        return format!("{new} against {base}: undecided in {all}");
    }
    if same == total {
        return format!("{} {base} within {} in {all}", same_as(first, new), percent(limit));
    }
    if slower == total {
        return format!("{new} is {slower_word} than {base} in {all}");
    }
    if faster == total {
        return format!("{new} is {faster_word} than {base} in {all}");
    }
    let mut parts = Vec::new();
    for (count, answer) in
        [(slower, slower_word), (faster, faster_word), (same, &*within), (undecided, "undecided")]
    {
        if count > 0 {
            parts.push(format!("{answer} in {count}"));
        }
    }
    format!("{new} against {base}: {} (of {total} cases)", parts.join(", "))
}

fn is_slower(change: &CaseChange) -> bool {
    use ChangeAnswer::{Bounded, Changed};
    matches!(change.answer, Changed { worse: true, .. } | Bounded { worse: true, .. })
}

fn is_faster(change: &CaseChange) -> bool {
    use ChangeAnswer::{Bounded, Changed};
    matches!(change.answer, Changed { worse: false, .. } | Bounded { worse: false, .. })
}

/// Returns the case that changed most; absent where none did.
fn largest_change<'a>(changes: &[&'a CaseChange]) -> Option<&'a CaseChange> {
    let mut largest: Option<&CaseChange> = None;
    for change in changes {
        let is_changed = is_slower(change) || is_faster(change);
        let is_larger =
            largest.is_none_or(|known| log_change(change).total_cmp(&log_change(known)).is_ge());
        if is_changed && is_larger {
            largest = Some(change);
        }
    }
    largest
}

/// Returns how far a change is from none, as the logarithm of its ratio or of the ratio's bound.
fn log_change(change: &CaseChange) -> f64 {
    let ratio = match change.answer {
        ChangeAnswer::Bounded { ratio, .. } => Some(ratio),
        _ => change.ratio.value,
    };
    ratio.map_or(0.0, |ratio| ratio.ln().abs())
}

impl CaseChange {
    /// Returns whether it is a ring of the normal policy that is undecided because other tasks ran
    /// on its CPU: under SCHED_FIFO they wait for the ring.
    pub fn would_fifo_help(&self) -> bool {
        let is_ring = self.labels.contains_key("members");
        let is_not_alone = self.reason() == Some(UndecidedReason::NotAlone);
        is_not_alone && self.has_policy(Policy::Other) && is_ring
    }

    /// Returns whether its label says this scheduling policy.
    fn has_policy(&self, policy: Policy) -> bool {
        let label = self.labels.get(ComparedSetting::Policy.name());
        label.is_some_and(|label| label == policy.name())
    }

    /// Writes the base's figure with its unit.
    fn base_in_words(&self) -> String {
        self.quantity.value_in_words(self.base_ns)
    }

    /// Writes the new side's figure with its unit.
    fn new_in_words(&self) -> String {
        self.quantity.value_in_words(self.new_ns)
    }

    /// Returns whether it is a ring of one.
    pub(super) fn is_ring_of_one(&self) -> bool {
        self.labels.get("members").is_some_and(|members| members == "1")
    }

    /// Returns the ratio that is told beside both costs: that of the costs where a side was not at
    /// full speed and the rounds have no interval, else the tested one.
    pub fn ratio_told(&self) -> Option<f64> {
        if self.is_seen_only() && self.interval_as_seen().is_none() {
            return Some(self.new_ns / self.base_ns).filter(|ratio| is_sound(Some(*ratio)));
        }
        self.ratio.value
    }

    /// Returns whether a side was not at full speed or was measured in too few rounds.
    fn lacks_a_sound_side(&self) -> bool {
        let reason = self.reason();
        reason.is_some_and(|reason| reason.is_of_speed() || reason == UndecidedReason::FewRounds)
    }

    /// Returns whether its ratio was seen and does not hold, as a side was not at full speed.
    pub fn is_seen_only(&self) -> bool {
        self.reason().is_some_and(UndecidedReason::is_of_speed)
    }
}

fn is_sound(ratio: Option<f64>) -> bool {
    ratio.is_some_and(|ratio| ratio.is_finite() && ratio > 0.0)
}

/// Returns how fast the new side is: `13x faster`, `3.2 % slower`; the direction alone where a cost
/// came out at or below zero.
fn speed(change: &CaseChange) -> MarkedText {
    match change.ratio.value {
        Some(ratio) if is_sound(Some(ratio)) => ratio_words(change.quantity, ratio),
        _ => direction(change.quantity, change.new_ns >= change.base_ns),
    }
}

/// Returns `slower` or `faster`, of a trace `higher` or `lower`, with its mark.
fn direction(quantity: Quantity, is_more: bool) -> MarkedText {
    MarkedText::change(is_more, quantity.direction(is_more))
}

/// Returns the beginning of a sentence on a side that is like the other one.
fn same_as(change: &CaseChange, new: &str) -> String {
    if change.quantity.is_of_trace() {
        format!("{new} is the same as")
    } else {
        format!("{new} costs the same as")
    }
}

/// Returns a ratio in words: `13x faster`, `3.2 % slower`.
fn ratio_words(quantity: Quantity, ratio: f64) -> MarkedText {
    let amount = MarkedText::figure(factor_or_percent(ratio));
    marked![amount, " ", direction(quantity, ratio >= 1.0)]
}

/// Returns both costs: `1.46 us, not 19.0 us`.
fn times(change: &CaseChange) -> String {
    format!("{}, not {}", change.new_in_words(), change.base_in_words())
}

/// Returns both costs, one of them a bound: `at most 1.85 us, not 436 us`, or where the base has the
/// bound `4.10 us, base at most 1.85 us`.
fn bounded_times(change: &CaseChange, base: &str) -> String {
    match change.answer {
        ChangeAnswer::Bounded { worse: true, at_most_ns, .. } => {
            format!(
                "{}, {base} at most {}",
                change.new_in_words(),
                change.quantity.value_in_words(at_most_ns)
            )
        }
        ChangeAnswer::Bounded { at_most_ns, .. } => {
            format!(
                "at most {}, not {}",
                change.quantity.value_in_words(at_most_ns),
                change.base_in_words()
            )
        }
        _ => times(change),
    }
}

/// Returns both costs of a pair that is seen only: `~1.46 us against ~19.0 us`.
fn seen_times(change: &CaseChange) -> String {
    format!("~{} against ~{}", change.new_in_words(), change.base_in_words())
}
