//! Figures of a case: of one launch, and of several launches of the same plan or of a publication.

use std::collections::BTreeMap;

use stats::{Elasticity, mean, median};

use crate::at_clock::{AtClock, ClockConversion, common_elasticity};
use crate::estimate::{Estimate, Speed};

/// The figure of a case in one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFigure {
    /// The figure of each round in which it could be measured, by the number of the round.
    pub by_round: BTreeMap<u32, f64>,
    /// The estimate over the rounds; absent without a round.
    pub estimate: Option<Estimate>,
    /// True if the launch completed. Nothing is concluded from one that did not.
    pub is_complete: bool,
    /// The clock of the estimate. Absent where it is not known, and where the core's clock does not
    /// bound the figure.
    pub clock: Option<AtClock>,
    /// Standard deviation between launches, as a share, of this figure: by earlier launches, or as
    /// assumed. Absent for figures that have the one of their case.
    pub launch_scatter: Option<f64>,
}

impl LaunchFigure {
    /// Returns the clock in GHz, of a program that was built for `target`; absent where that is not
    /// known.
    pub fn clock_ghz(&self, target: &str) -> Option<f64> {
        self.clock?.ghz(target)
    }

    /// Returns the estimate in cycles of its clock; absent where [`Self::clock_ghz`] is.
    pub fn cycles(&self, target: &str) -> Option<Estimate> {
        self.estimate?.cycles(self.clock_ghz(target)?)
    }

    /// Returns the figure at the clock of a quantum of `to_ns`, with the conversion; unchanged and
    /// without one where its clock is not known.
    fn converted_to(
        &self,
        to_ns: f64,
        elasticity: Option<Elasticity>,
    ) -> (Self, Option<ClockConversion>) {
        let mut converted = self.clone();
        let Some(clock) = self.clock else { return (converted, None) };
        let conversion = clock.conversion_to(to_ns, elasticity);
        for figure in converted.by_round.values_mut() {
            *figure *= conversion.factor();
        }
        if let Some(estimate) = &mut converted.estimate {
            *estimate = estimate.times_factor(conversion.factor(), 0.0);
        }
        converted.clock = Some(AtClock { quantum_ns: to_ns, ..clock });
        (converted, Some(conversion))
    }
}

/// A figure of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseFigure {
    /// A printed number: without rounds, so without an interval.
    Published(f64),
    /// The figures of one launch or several of the same plan.
    Measured(Vec<LaunchFigure>),
}

/// The estimates of a case from which something is concluded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountedEstimates {
    /// The estimates of the launches that count.
    pub estimates: Vec<Estimate>,
    /// True if these launches completed.
    pub are_complete: bool,
}

impl CountedEstimates {
    /// Returns the mean of the estimates; absent without one.
    pub fn mean(&self) -> Option<f64> {
        let mut values = Vec::new();
        for estimate in &self.estimates {
            values.push(estimate.value);
        }
        mean(&values)
    }

    /// Returns the sum of the squared standard errors; absent where an estimate has none.
    pub fn squared_errors(&self) -> Option<f64> {
        let mut squares = 0.0;
        for estimate in &self.estimates {
            squares += estimate.standard_error?.powi(2);
        }
        Some(squares)
    }

    /// Returns the sum of the rounds of all estimates.
    pub fn rounds(&self) -> u32 {
        let mut rounds = 0_u32;
        for estimate in &self.estimates {
            rounds = rounds.saturating_add(estimate.rounds);
        }
        rounds
    }

    /// Returns whether one of the estimates was measured at this speed.
    pub fn has_speed(&self, speed: Speed) -> bool {
        self.estimates.iter().any(|estimate| estimate.speed == speed)
    }
}

/// A figure of a case, converted to one clock.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertedFigure {
    /// The figure with all launches at that clock.
    pub figure: CaseFigure,
    /// The logarithm of the new quantum over the old one, the mean over the launches. Its
    /// uncertainty is common to all launches and not in their intervals.
    pub log_ratio: f64,
}

impl CaseFigure {
    /// Returns the estimates of the launches that count: of the complete ones, else of all; and of
    /// these only those at full speed, else those at full speed in few rounds, if there are any.
    pub fn counted_estimates(&self) -> CountedEstimates {
        let (mut complete, mut incomplete) = (Vec::new(), Vec::new());
        for launch in self.launches() {
            let Some(estimate) = launch.estimate else { continue };
            let estimates = if launch.is_complete { &mut complete } else { &mut incomplete };
            estimates.push(estimate);
        }
        let are_complete = !complete.is_empty();
        let estimates = if are_complete { complete } else { incomplete };
        let mut counted = CountedEstimates { estimates, are_complete };
        for speed in [Speed::Full, Speed::FewRounds] {
            if counted.has_speed(speed) {
                counted.estimates.retain(|estimate| estimate.speed == speed);
                break;
            }
        }
        counted
    }

    /// Returns the mean of the launches that count, with an interval by their own errors and by
    /// `launch_scatter`, the standard deviation between launches as a share of the figure. That of
    /// one launch is its estimate; absent for published figures.
    pub fn mean_estimate(&self, launch_scatter: f64) -> Option<Estimate> {
        let counted = self.counted_estimates();
        let (first, count) = (*counted.estimates.first()?, counted.estimates.len() as f64);
        let value = counted.mean()?;
        let only_value = Estimate { value, ..first };
        if count <= 1.0 || !first.speed.is_full() {
            return Some(only_value);
        }
        let Some(squares) = counted.squared_errors() else { return Some(only_value) };
        let (error, scatter) = (squares.sqrt() / count, launch_scatter / count.sqrt());
        let rounds = counted.rounds();
        let mean = Estimate::at_full_speed(value, error, rounds, scatter, first.confidence)?;
        Some(Estimate { speed: first.speed, ..mean })
    }

    /// Returns the median of the launches' clocks as a latency quantum in nanoseconds; absent where
    /// no clock is known.
    pub fn quantum_ns(&self) -> Option<f64> {
        let mut quanta = Vec::new();
        for clock in self.clocks() {
            quanta.push(clock.quantum_ns);
        }
        median(&quanta)
    }

    /// Returns the known clocks of the launches.
    pub fn clocks(&self) -> Vec<AtClock> {
        self.launches().iter().filter_map(|launch| launch.clock).collect()
    }

    /// Converts all launches to the clock of a quantum of `to_ns`. Launches without a known clock
    /// stay as they are.
    pub fn converted_to(&self, to_ns: f64, elasticity: Option<Elasticity>) -> ConvertedFigure {
        let Self::Measured(launches) = self else {
            return ConvertedFigure { figure: self.clone(), log_ratio: 0.0 };
        };
        let (mut converted, mut log_ratios) = (Vec::new(), Vec::new());
        for launch in launches {
            let (launch, conversion) = launch.converted_to(to_ns, elasticity);
            converted.push(launch);
            if let Some(conversion) = conversion {
                log_ratios.push(conversion.log_ratio);
            }
        }
        let log_ratio = mean(&log_ratios).unwrap_or(0.0);
        ConvertedFigure { figure: Self::Measured(converted), log_ratio }
    }

    /// Returns [`Self::mean_estimate`] with all launches at the median of their clocks.
    pub fn mean_at_one_clock(&self, launch_scatter: f64) -> Option<Estimate> {
        let Some(to_ns) = self.quantum_ns() else { return self.mean_estimate(launch_scatter) };
        let elasticity = common_elasticity(&self.clocks());
        let ConvertedFigure { figure, log_ratio } = self.converted_to(to_ns, elasticity);
        let mean = figure.mean_estimate(launch_scatter)?;
        Some(mean.widened_by(ClockConversion { log_ratio, elasticity }.uncertainty()))
    }

    /// Returns the largest scatter of the launches; absent where one has none of its own.
    pub(crate) fn launch_scatter(&self) -> Option<f64> {
        let mut largest = self.launches().first()?.launch_scatter?;
        for launch in self.launches() {
            largest = largest.max(launch.launch_scatter?);
        }
        Some(largest)
    }

    /// Returns the launches; empty for a published figure.
    pub fn launches(&self) -> &[LaunchFigure] {
        match self {
            Self::Published(_) => &[],
            Self::Measured(launches) => launches,
        }
    }

    /// Returns the figures by round of the first launch; absent for a published figure.
    pub fn by_round(&self) -> Option<&BTreeMap<u32, f64>> {
        self.launches().first().map(|launch| &launch.by_round)
    }
}
