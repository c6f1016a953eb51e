//! User and system time: what is known of the split.

use rundata::machine::CpuAccounting;
use rundata::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part with the 95 % interval that sampling leaves it; where children have a part in it whose
/// ticks are not known ([`Split::with_children`]), with all that it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// From 0 to 1.
    pub value: f64,
    /// Lower end, from 0 to 1.
    pub low: f64,
    /// Upper end, from 0 to 1.
    pub high: f64,
}

/// The user part of the CPU time of all runs of a command, and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// How the kernel accounts; tick sampling is assumed where that is unknown.
    pub accounting: Reading<CpuAccounting>,
    /// Nanoseconds between two ticks: the resolution of one run's figures.
    pub tick_ns: Reading<u64>,
    /// The command's own ticks that the split rests on, over all runs; absent where it rests on
    /// none.
    pub ticks: Option<f64>,
    /// Of the CPU time, the user part: that of the ticks, or where children have a part in it the
    /// kernel's own. Absent where fewer than five ticks fell into all runs.
    pub user: Option<Part>,
    /// Whether children have a part in it whose own ticks are not known: the kernel calls a process
    /// that never saw a tick all user.
    pub with_children: bool,
}

/// Own CPU time is all of it if no more than this part is missing: the clocks are read one after
/// the other, and wait4(2) rounds to microseconds.
const ALL: f64 = 0.99;

/// Fewer ticks than these say next to nothing: of four that are all user, half may be system.
const LEAST_TICKS: f64 = 5.0;

/// CPU time over all runs of a command, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// User and system time.
    pub cpu: f64,
    /// User time, as the kernel tells it.
    pub user: f64,
    /// User and system time of the command's own threads; all of it where that is not known, as
    /// then nothing is said of children.
    pub own: f64,
    /// User time of its own threads, as the tick sampled it.
    pub sampled_user: f64,
    /// User and system time, as the tick sampled it.
    pub sampled: f64,
}

impl Split {
    /// The split over all runs of one command.
    pub fn of(sums: Sums, (accounting, tick_ns): (Reading<CpuAccounting>, Reading<u64>)) -> Self {
        let Sums { cpu, user, own, sampled_user, sampled } = sums;
        let with_children = own < ALL * cpu;
        let precise = accounting.known() == Some(&CpuAccounting::Precise);
        let per_tick = tick_ns.known().copied().filter(|ns| *ns > 0).map(|ns| ns as f64);
        let ticks = per_tick.map(|ns| sampled / ns);
        let enough = |ns: f64| per_tick.is_some_and(|tick| ns >= LEAST_TICKS * tick);
        let part = if cpu <= 0.0 {
            None
        } else if precise {
            let value = (user / cpu).clamp(0.0, 1.0);
            Some(Part { value, low: value, high: value })
        } else if with_children {
            let own = Part::of_ticks(sampled_user, sampled, ticks).of_whole(own / cpu);
            let value = (user / cpu).clamp(own.low, own.high);
            enough(cpu).then_some(Part { value, ..own })
        } else {
            enough(sampled).then(|| Part::of_ticks(sampled_user, sampled, ticks))
        };
        Self {
            accounting,
            tick_ns,
            ticks: ticks.filter(|ticks| !precise && *ticks > 0.0),
            user: part,
            with_children,
        }
    }
}

impl Part {
    /// The user part of `sampled` ns that rest on `ticks`; anything, where there are none.
    fn of_ticks(user: f64, sampled: f64, ticks: Option<f64>) -> Self {
        match ticks {
            Some(ticks) if ticks >= 1.0 => wilson((user / sampled).clamp(0.0, 1.0), ticks),
            _ => Self { value: 0.5, low: 0.0, high: 1.0 },
        }
    }

    /// Of more, of which it is `share`, and of whose rest nothing is known.
    fn of_whole(self, share: f64) -> Self {
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

/// Wilson's interval (1927, J. Am. Stat. Assoc. 22) for a part of which `value` was seen in `count`
/// independent draws.
fn wilson(value: f64, count: f64) -> Part {
    let z2 = Z * Z / count;
    let middle = (value + z2 / 2.0) / (1.0 + z2);
    let half = (value * (1.0 - value) * z2 + z2 * z2 / 4.0).sqrt() / (1.0 + z2);
    Part { value, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
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
