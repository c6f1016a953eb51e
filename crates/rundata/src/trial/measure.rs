//! Measures: the figures that are computed from a sample of a trial, each declared once.

use super::TrialSample;

/// Unit of a [`TrialMeasure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureUnit {
    /// Nanoseconds.
    Ns,
    /// Ticks of the time-stamp counter; told in nanoseconds.
    Ticks,
    /// A share of the time.
    Share,
}

/// A figure of a trial, taken of each sample. The first of a trial stands for it.
#[derive(Clone, Copy, Debug)]
pub struct TrialMeasure {
    /// Name in records, which ends in the unit.
    pub name: &'static str,
    /// Name above a column.
    pub header: &'static str,
    /// Name of the tally whose slices show at which speed it was taken; empty for counts.
    pub tally: &'static str,
    /// Unit that `compute` returns.
    pub unit: MeasureUnit,
    /// `true` for the time of something that waits for others or for devices: no clock of the core
    /// bounds it.
    pub waits: bool,
    /// Computes the figure; `None` for a sample that does not have it.
    pub compute: fn(&TrialSample) -> Option<f64>,
}

impl TrialMeasure {
    /// Declares a measure that the core's clock bounds.
    pub(super) const fn new(
        name: &'static str,
        header: &'static str,
        tally: &'static str,
        unit: MeasureUnit,
        compute: fn(&TrialSample) -> Option<f64>,
    ) -> Self {
        Self { name, header, tally, unit, waits: false, compute }
    }

    /// Marks it as one that waits.
    pub(super) const fn that_waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// Returns the figure as it is printed: a time in nanoseconds.
    pub fn told(&self, sample: &TrialSample) -> Option<f64> {
        let figure = (self.compute)(sample)?;
        match self.unit {
            MeasureUnit::Ns | MeasureUnit::Share => Some(figure),
            MeasureUnit::Ticks => Some(figure * sample.ns_per_tick()?),
        }
    }
}
