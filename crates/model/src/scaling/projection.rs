//! Sloan's projected column.

/// CPU time that `members` would need if every switch cost what it costs in a ring of two.
///
/// `two_process_cpu` is the CPU time of a ring of two, in any unit, for the same number of laps.
/// Source: Sloan 1992, "Results" (column *Proj*): cpu(2) * N / 2.
#[must_use]
pub fn projected(two_process_cpu: f64, members: u32) -> f64 {
    two_process_cpu * f64::from(members) / 2.0
}
