//! Counts as they are given to programs that took none, or of which none are known.

use std::process::ExitCode;

use super::Call;
use crate::failure::say;

/// What is taken where nothing is said, and at most.
pub(super) struct Count {
    pub(super) default: u32,
    pub(super) most: u32,
}

/// Loops of a program that had so many.
pub(super) fn loops(default: u32) -> [Count; 1] {
    [Count { default, most: u32::MAX }]
}

/// Trials: each one's outcome is kept.
pub(super) const TRIALS: Count = Count { default: 1_000, most: 1_000_000 };

/// Up to `N` counts above zero. `words` says what they are.
pub(super) fn counts<const N: usize>(
    call: &Call,
    words: &str,
    known: [Count; N],
) -> Result<[u32; N], ExitCode> {
    if call.args.len() > N {
        say(&format!("usage: {} {words}", call.name));
        return Err(ExitCode::from(2));
    }
    let mut counts = known.each_ref().map(|count| count.default);
    for ((count, word), known) in counts.iter_mut().zip(&call.args).zip(&known) {
        let text = word.to_string_lossy();
        *count = match text.parse() {
            Ok(number @ 1..) if number <= known.most => number,
            _ => {
                let accepted = format!("accepted: whole numbers from 1 to {}", known.most);
                say(&format!("{}: '{text}' ({accepted})", call.name));
                say(&format!("usage: {} {words}", call.name));
                return Err(ExitCode::from(2));
            }
        };
    }
    Ok(counts)
}

/// Sizes and trials for each: the paper's 100 to 5000 by 100, or the one size that is asked for, and
/// 1000 trials.
pub(super) fn sizes(call: &Call, words: &str, most: u32) -> Result<(Vec<u32>, u32), ExitCode> {
    let [size, trials] = counts(call, words, [Count { default: 0, most }, TRIALS])?;
    let sizes = match size {
        0 => (100..=5_000).step_by(100).collect(),
        size => vec![size],
    };
    Ok((sizes, trials))
}
