//! The verdict in words.

use stats::{Growth, Permutation};

use super::{CONFIDENCE, Comparison, Setting, Verdict};
use crate::words::{percent, times};

impl Verdict {
    /// Which setting's intervals grew under the disturbance and by how much, how the means moved, and
    /// which setting bore it better; one sentence each, without the last full stop.
    #[must_use]
    pub fn in_words(&self) -> String {
        let settings = [
            (Setting::Augmented, self.augmented, self.augmented_by_chance),
            (Setting::Plain, self.plain, self.plain_by_chance),
        ];
        let mut told: Vec<String> =
            settings.map(|(setting, growth, chance)| self.tell(setting, growth, chance)).into();
        if let Some(growth) = self.plain_over_augmented {
            let factor = with_range(growth);
            told.push(match growth {
                Growth { low, .. } if low > 1.0 && self.moved_apart(true) => {
                    format!("the plain setting's grew {factor} as much as the augmented one's")
                }
                Growth { high, .. } if high < 1.0 && self.moved_apart(false) => {
                    format!("the plain setting's grew only {factor} as much as the augmented one's")
                }
                _ => format!("which setting bore the disturbance better is not resolved, {factor}"),
            });
        }
        format!("{} ({:.0} % intervals)", told.join(". "), 100.0 * CONFIDENCE)
    }

    /// Whether one setting's own growth, or the other's shrinking, is more than chance; taken for granted
    /// where single times are not known.
    fn moved_apart(&self, plain_more: bool) -> bool {
        let (more, less) = match plain_more {
            true => (self.plain_by_chance, self.augmented_by_chance),
            false => (self.augmented_by_chance, self.plain_by_chance),
        };
        more.is_none_or(|more| more.grew(CONFIDENCE))
            || less.is_none_or(|less| less.shrank(CONFIDENCE))
    }

    fn tell(
        &self,
        setting: Setting,
        growth: Option<Growth>,
        by_chance: Option<Permutation>,
    ) -> String {
        let name = format!("{setting} setting");
        let moved = self.moves(setting);
        let Some(growth) = growth else {
            return format!(
                "{name}: inconclusive, it needs two runs or more in both environments, and some scatter in each{moved}"
            );
        };
        let factor = with_range(growth);
        let told_by_chance = |share: f64| {
            format!(
                "{name}: growth of its interval not resolved, {factor}: swapping quiet and disturbed within rounds does as much in {} of the ways{moved}",
                percent(share)
            )
        };
        match growth {
            Growth { low, .. }
                if low > 1.0 && by_chance.is_some_and(|chance| !chance.grew(CONFIDENCE)) =>
            {
                told_by_chance(by_chance.map_or(1.0, |chance| chance.up))
            }
            Growth { high, .. }
                if high < 1.0 && by_chance.is_some_and(|chance| !chance.shrank(CONFIDENCE)) =>
            {
                told_by_chance(by_chance.map_or(1.0, |chance| chance.down))
            }
            Growth { low, .. } if low > 1.0 => {
                format!("{name}: its interval grew {factor} under the disturbance{moved}")
            }
            Growth { high, .. } if high < 1.0 => {
                format!("{name}: its interval shrank under the disturbance, to {factor}{moved}")
            }
            _ => format!("{name}: growth of its interval not resolved, {factor}{moved}"),
        }
    }

    /// The smallest and the largest move of the setting's means, and how many are resolved.
    fn moves(&self, setting: Setting) -> String {
        let of_setting = |c: &&Comparison| c.setting == setting;
        let moves: Vec<_> =
            self.comparisons.iter().filter(of_setting).filter_map(|c| c.moved).collect();
        let parts = moves.iter().map(|moved| 100.0 * moved.part);
        let Some(least) = parts.clone().reduce(f64::min) else {
            return String::new();
        };
        let most = parts.fold(least, f64::max);
        let resolved = moves.iter().filter(|moved| moved.is_resolved()).count();
        let range = match moves.len() {
            1 => format!("its mean moved by {most:+.1} %"),
            _ => format!("its means moved by {least:+.1} to {most:+.1} %"),
        };
        format!("; {range} ({resolved} of {} resolved)", moves.len())
    }
}

fn with_range(growth: Growth) -> String {
    format!("{} ({} to {})", times(growth.ratio), times(growth.low), times(growth.high))
}
