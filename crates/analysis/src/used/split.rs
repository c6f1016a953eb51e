//! The split of CPU time into user and system time.

use rundata::machine::CpuAccounting;
use rundata::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part with the 95 % interval that sampling leaves; the interval holds all that is possible where
/// children, whose ticks are not known, have a part in it ([`UserSplit::with_children`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Part")]
pub struct UserPart {
    /// The part, from 0 to 1.
    pub value: f64,
    /// Lower end, from 0 to 1.
    pub low: f64,
    /// Upper end, from 0 to 1.
    pub high: f64,
}

/// The user part of the CPU time of all runs of a command, and the ticks that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Split")]
pub struct UserSplit {
    /// Accounting of the kernel; tick sampling is assumed where it is unknown.
    pub accounting: Reading<CpuAccounting>,
    /// Nanoseconds between two ticks: the resolution of one run's figures.
    pub tick_ns: Reading<u64>,
    /// The command's own ticks that the split rests on, over all runs; absent where it rests on
    /// none.
    pub ticks: Option<f64>,
    /// The user part of the CPU time: that of the ticks, or the kernel's own where children have a
    /// part in it. Absent where fewer than five ticks fell into all runs.
    pub user: Option<UserPart>,
    /// True if children, whose own ticks are not known, have a part in it: the kernel counts the
    /// whole time of a process that never saw a tick as user time.
    pub with_children: bool,
}

/// Smallest part of the CPU time that counts as all of it: the clocks are read one after the other,
/// and wait4(2) rounds to microseconds.
const MIN_WHOLE_PART: f64 = 0.99;

/// Fewest ticks that a split rests on: of four that are all user, half may be system.
const MIN_TICKS: f64 = 5.0;

/// CPU time over all runs of a command, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct CpuTimeSums {
    /// User and system time.
    pub cpu: f64,
    /// User time by the kernel's accounting.
    pub user: f64,
    /// User and system time of the command's own threads; equal to `cpu` where that is not known, as
    /// then children are ignored.
    pub own: f64,
    /// User time of its own threads, as the tick sampled it.
    pub sampled_user: f64,
    /// User and system time, as the tick sampled it.
    pub sampled: f64,
}

impl UserSplit {
    /// Returns the split over all runs of one command.
    pub fn from_sums(
        sums: CpuTimeSums,
        accounting: Reading<CpuAccounting>,
        tick_ns: Reading<u64>,
    ) -> Self {
        let CpuTimeSums { cpu, user, own, sampled_user, sampled } = sums;
        let with_children = own < MIN_WHOLE_PART * cpu;
        let is_precise = accounting.known() == Some(&CpuAccounting::Precise);
        let tick = match tick_ns.known() {
            Some(ns) if *ns > 0 => Some(*ns as f64),
            _ => None,
        };
        let ticks = tick.map(|ns| sampled / ns);
        let part = if cpu <= 0.0 {
            None
        } else if is_precise {
            let value = (user / cpu).clamp(0.0, 1.0);
            Some(UserPart { value, low: value, high: value })
        } else if with_children && has_enough_ticks(cpu, tick) {
            let own = UserPart::from_ticks(sampled_user, sampled, ticks).as_share(own / cpu);
            let value = (user / cpu).clamp(own.low, own.high);
            Some(UserPart { value, ..own })
        } else if !with_children && has_enough_ticks(sampled, tick) {
            Some(UserPart::from_ticks(sampled_user, sampled, ticks))
        } else {
            None
        };
        let ticks = ticks.filter(|ticks| !is_precise && *ticks > 0.0);
        Self { accounting, tick_ns, ticks, user: part, with_children }
    }
}

/// Returns whether so many nanoseconds hold enough ticks of the given length.
fn has_enough_ticks(ns: f64, tick_ns: Option<f64>) -> bool {
    tick_ns.is_some_and(|tick_ns| ns >= MIN_TICKS * tick_ns)
}

impl UserPart {
    /// Returns the user part of `sampled` ns that rest on `ticks`; without ticks any part is
    /// possible.
    fn from_ticks(user: f64, sampled: f64, ticks: Option<f64>) -> Self {
        match ticks {
            Some(ticks) if ticks >= 1.0 => wilson((user / sampled).clamp(0.0, 1.0), ticks),
            _ => Self { value: 0.5, low: 0.0, high: 1.0 },
        }
    }

    /// Returns the part of a longer time, of which this time is `share` and of whose rest nothing is
    /// known.
    fn as_share(self, share: f64) -> Self {
        let share = share.clamp(0.0, 1.0);
        Self {
            value: self.value * share,
            low: self.low * share,
            high: (self.high * share + 1.0 - share).min(1.0),
        }
    }
}

/// The standard normal distribution's quantile of 0.975.
const Z: f64 = 1.959_963_984_540_054;

/// Returns Wilson's interval (1927, J. Am. Stat. Assoc. 22) for a part of which `value` was seen in `count`
/// independent draws.
fn wilson(value: f64, count: f64) -> UserPart {
    let z2 = Z * Z / count;
    let middle = (value + z2 / 2.0) / (1.0 + z2);
    let half = (value * (1.0 - value) * z2 + z2 * z2 / 4.0).sqrt() / (1.0 + z2);
    UserPart { value, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::wilson;

    #[test]
    fn known_answers_of_wilson() {
        // Newcombe (1998, Statistics in Medicine 17), table I, method 3: 81 of 263 gives 0.2553 to
        // 0.3662; 15 of 148, 0.0624 to 0.1605; 0 of 20, 0 to 0.1611; 1 of 29, 0.0061 to 0.1718.
        for (hits, count, low, high) in [
            (81.0, 263.0, 0.2553, 0.3662),
            (15.0, 148.0, 0.0624, 0.1605),
            (0.0, 20.0, 0.0, 0.1611),
            (1.0, 29.0, 0.0061, 0.1718),
        ] {
            let part = wilson(hits / count, count);
            assert!((part.low - low).abs() < 5e-5, "{part:?}");
            assert!((part.high - high).abs() < 5e-5, "{part:?}");
        }
    }
}
