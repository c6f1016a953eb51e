//! Hines, Wyatt and Chang (2000): Pentium Pro, 166 MHz, Linux 2.2.14; `data/hines2000.csv`.

/// The cost of one call in CPU cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallCycles {
    /// Mean.
    pub mean_cycles: f64,
    /// Standard deviation.
    pub sd_cycles: f64,
}

/// Cost of getrusage() (their table 1).
pub const GETRUSAGE: CallCycles = CallCycles { mean_cycles: 416.0, sd_cycles: 161.0 };
/// Cost of their getpinfo() (table 1).
pub const GETPINFO: CallCycles = CallCycles { mean_cycles: 213.0, sd_cycles: 66.0 };
/// Cost of malloc of a small block, mean in cycles (table 2).
pub const MALLOC_CYCLES: f64 = 591.0;
/// Gain of getpinfo() over getrusage() in precision, in percent (section 4).
pub const PRECISION_GAIN_PERCENT: f64 = 527.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cells of the line that begins so, without its two names.
    fn cells(start: &str) -> Vec<Option<f64>> {
        let table = include_str!("../../data/hines2000.csv");
        let line = table.lines().find(|line| line.starts_with(start)).expect(start);
        line.split(',').skip(2).map(|cell| cell.parse().ok()).collect()
    }

    #[test]
    fn the_constants_are_those_of_the_table() {
        for (start, call) in
            [("call_overhead,getrusage,", GETRUSAGE), ("call_overhead,getpinfo,", GETPINFO)]
        {
            assert_eq!(cells(start)[..2], [Some(call.mean_cycles), Some(call.sd_cycles)]);
        }
        assert_eq!(cells("malloc_small_block,getpinfo,")[0], Some(MALLOC_CYCLES));
        assert_eq!(cells("precision_gain_primes_percent,")[0], Some(PRECISION_GAIN_PERCENT));
    }
}
