//! Comparison of reference loops and levels of a CPU, and the level that several runs of one CPU
//! know together.

use crate::plan::Reference;

/// Largest distance of a loop from its level, as a share of the level, at which it counts as at it.
/// 5 and 10 % add 1.7 % bias.
pub const TOLERANCE: f64 = 0.02;

/// Returns whether a time is within [`TOLERANCE`] of its level.
pub fn is_near(value: f64, level: f64) -> bool {
    (value - level).abs() <= TOLERANCE * level
}

impl Reference {
    /// Takes over what another run knows: a lower ratio instead of a higher one, an established one
    /// instead of one that is not, but nothing provisional instead of what is established. So two
    /// runs of which one never saw its core unshared are read by the level of the other.
    pub fn learn(&mut self, known: &Self) {
        let Some(ratio) = known.unshared_ratio else { return };
        if self.established && !known.established {
            return;
        }
        if is_lower(ratio, self.unshared_ratio) || (known.established && !self.established) {
            (self.unshared_ratio, self.established) = (Some(ratio), known.established);
        }
    }

    /// Returns what runs of one CPU know together: the lowest ratio, of the established ones if
    /// there are any.
    pub fn join(references: impl IntoIterator<Item = Self>) -> Self {
        let mut best: Option<Self> = None;
        for reference in references {
            let Some(ratio) = reference.unshared_ratio else { continue };
            let is_better = match &best {
                None => true,
                Some(best) if reference.established == best.established => {
                    let best_ratio = best.unshared_ratio.unwrap_or(f64::INFINITY);
                    ratio.total_cmp(&best_ratio).is_lt()
                }
                Some(_) => reference.established,
            };
            if is_better {
                best = Some(reference);
            }
        }
        best.unwrap_or_default()
    }

    /// Returns the reference by which a run that left `self` is read beside other runs, which know
    /// `all` together; `None` where the run keeps its own, as theirs has the same level or a higher
    /// one.
    pub fn beside(mut self, all: &Self) -> Option<Self> {
        let left = self.unshared_ratio;
        self.learn(all);
        if is_lower(self.unshared_ratio?, left) { Some(self) } else { None }
    }
}

/// Returns whether a ratio is clearly lower than the one that was known, or none was.
fn is_lower(ratio: f64, known: Option<f64>) -> bool {
    match known {
        Some(known) => ratio < known * (1.0 - TOLERANCE),
        None => true,
    }
}
