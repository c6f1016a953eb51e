//! What is taken of a sample of a trial, declared once.

use super::TrialSample;

/// The unit of what a [`TrialMeasure`] gives.
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
    /// Its name in records, with the unit that it is told in.
    pub name: &'static str,
    /// Its name above a column.
    pub header: &'static str,
    /// The tally whose slices tell at which speed it was taken; empty of what is counted.
    pub tally: &'static str,
    /// The unit of `of`.
    pub unit: MeasureUnit,
    /// Whether it is the time of what waits for others or for devices: no clock of the core bounds
    /// that.
    pub waits: bool,
    /// The figure; absent of a sample that does not have it.
    pub of: fn(&TrialSample) -> Option<f64>,
}

impl TrialMeasure {
    /// Of what the core bounds.
    pub(super) const fn new(
        name: &'static str,
        header: &'static str,
        tally: &'static str,
        unit: MeasureUnit,
        of: fn(&TrialSample) -> Option<f64>,
    ) -> Self {
        Self { name, header, tally, unit, waits: false, of }
    }

    /// The same of what waits.
    pub(super) const fn that_waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// The figure as it is told: a time in nanoseconds.
    pub fn told(&self, sample: &TrialSample) -> Option<f64> {
        let figure = (self.of)(sample)?;
        match self.unit {
            MeasureUnit::Ns | MeasureUnit::Share => Some(figure),
            MeasureUnit::Ticks => Some(figure * sample.ns_per_tick()?),
        }
    }
}
