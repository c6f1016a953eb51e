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
        let Some(ratio) = known.unshared_ratio.filter(|_| known.established || !self.established)
        else {
            return;
        };
        let is_lower = self.unshared_ratio.is_none_or(|own| ratio < own * (1.0 - TOLERANCE));
        if is_lower || (known.established && !self.established) {
            (self.unshared_ratio, self.established) = (Some(ratio), known.established);
        }
    }

    /// Returns what runs of one CPU know together: the lowest ratio, of the established ones if
    /// there are any.
    pub fn of_all(all: impl IntoIterator<Item = Self>) -> Self {
        let rank = |of: &Self| (!of.established, of.unshared_ratio.unwrap_or(f64::INFINITY));
        let order = |a: &Self, b: &Self| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        all.into_iter().filter(|of| of.unshared_ratio.is_some()).min_by(order).unwrap_or_default()
    }

    /// Returns the reference by which a run that left `self` is read beside other runs, which know
    /// `all` together; `None` where the run keeps its own, as theirs has the same level or a higher
    /// one.
    pub fn beside(mut self, all: &Self) -> Option<Self> {
        let own = self.unshared_ratio;
        self.learn(all);
        let is_lower = |own: f64| self.unshared_ratio.is_some_and(|r| r < own * (1.0 - TOLERANCE));
        own.is_none_or(is_lower).then_some(self).filter(|of| of.unshared_ratio.is_some())
    }
}
