//! Was the machine quiet enough for the figures to mean something?

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::pairing::Grouped;
use crate::sample::{Disturbance, Sample};
use crate::stats::{Rounds, mad_sigma, median};

/// How quiet the machine was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoiseLevel {
    /// Differences of a few percent can be seen.
    Quiet,
    /// Figures stand, within their intervals; small differences drown.
    Noisy,
    /// The figures say more about the neighbours than about switching.
    Unusable,
    /// Too few rounds to tell.
    Unknown,
}

/// The verdict on the machine's noise and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseVerdict {
    /// How quiet.
    pub level: NoiseLevel,
    /// Relative scatter of a case from round to round (MAD times 1.4826 over median), the median
    /// over cases. Absent below two rounds.
    pub round_spread: Option<f64>,
    /// Share of samples that were disturbed, 0 to 1.
    pub disturbed_share: f64,
    /// What it was, in words; empty when quiet.
    pub reasons: Vec<String>,
}

/// Above this scatter between rounds a machine is called noisy, above [`UNUSABLE_SPREAD`] unusable.
pub const NOISY_SPREAD: f64 = 0.05;
/// See [`NOISY_SPREAD`].
pub const UNUSABLE_SPREAD: f64 = 0.25;
/// Above this share of disturbed samples a machine is called noisy, above
/// [`UNUSABLE_DISTURBED`] unusable.
pub const NOISY_DISTURBED: f64 = 0.10;
/// See [`NOISY_DISTURBED`].
pub const UNUSABLE_DISTURBED: f64 = 0.50;

/// Judges the noise of a run from all its samples.
pub fn judge(cases: &[Case], samples: &[Sample], grouped: &Grouped) -> NoiseVerdict {
    let spreads: Vec<f64> = (0..cases.len()).filter_map(|case| spread(grouped, case)).collect();
    let round_spread = median(&spreads);
    let kinds = Kinds::count(cases, samples);
    let disturbed_share = kinds.disturbed as f64 / samples.len().max(1) as f64;
    let level = match round_spread {
        None => NoiseLevel::Unknown,
        Some(s) if s > UNUSABLE_SPREAD || disturbed_share > UNUSABLE_DISTURBED => {
            NoiseLevel::Unusable
        }
        Some(s) if s > NOISY_SPREAD || disturbed_share > NOISY_DISTURBED => NoiseLevel::Noisy,
        Some(_) => NoiseLevel::Quiet,
    };
    let mut reasons = kinds.in_words(samples.len());
    match round_spread {
        None => reasons.insert(0, "a single round cannot tell".to_string()),
        Some(s) if s > NOISY_SPREAD => {
            reasons.insert(0, format!("rounds scatter by {:.0} %", s * 100.0));
        }
        Some(_) => {}
    }
    NoiseVerdict { level, round_spread, disturbed_share, reasons }
}

fn spread(grouped: &Grouped, case: usize) -> Option<f64> {
    let single = grouped.single(case, Sample::ns_per_hop);
    let figures: Vec<f64> = (0..single.len()).map(|round| single.figure(round)).collect();
    Some(mad_sigma(&figures)? / median(&figures)?)
}

/// Disturbed samples by what disturbed them.
#[derive(Default)]
struct Kinds {
    disturbed: usize,
    steal: usize,
    other_work: usize,
    major_faults: usize,
    migrations: usize,
}

impl Kinds {
    fn count(cases: &[Case], samples: &[Sample]) -> Self {
        let mut kinds = Self::default();
        for sample in samples {
            let Some(case) = cases.get(sample.case) else { continue };
            let disturbances = sample.disturbances(case);
            kinds.disturbed += usize::from(!disturbances.is_empty());
            for disturbance in disturbances {
                *match disturbance {
                    Disturbance::Steal { .. } => &mut kinds.steal,
                    Disturbance::OtherWork { .. } => &mut kinds.other_work,
                    Disturbance::MajorFaults { .. } => &mut kinds.major_faults,
                    Disturbance::Migrations { .. } => &mut kinds.migrations,
                } += 1;
            }
        }
        kinds
    }

    fn in_words(&self, samples: usize) -> Vec<String> {
        [
            (self.steal, "lost time to the hypervisor (steal)"),
            (self.other_work, "shared the CPU with other work"),
            (self.major_faults, "waited for pages"),
            (self.migrations, "saw a pinned member move"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} of {samples} samples {what}"))
        .collect()
    }
}

impl NoiseVerdict {
    /// One sentence: the level and why.
    pub fn in_words(&self) -> String {
        let level = match self.level {
            NoiseLevel::Quiet => "quiet",
            NoiseLevel::Noisy => "noisy",
            NoiseLevel::Unusable => "unusable",
            NoiseLevel::Unknown => "cannot tell",
        };
        let mut facts = Vec::new();
        if let Some(spread) = self.round_spread.filter(|s| *s <= NOISY_SPREAD) {
            facts.push(format!("rounds scatter by {:.1} %", spread * 100.0));
        }
        facts.extend(self.reasons.iter().cloned());
        format!("{level} ({})", facts.join("; "))
    }
}
