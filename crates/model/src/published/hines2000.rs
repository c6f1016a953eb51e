//! Hines, Wyatt and Chang (2000): Pentium Pro, 166 MHz, Linux 2.2.14; `data/hines2000.csv`.

/// The cost of one call in CPU cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Mean.
    pub mean_cycles: f64,
    /// Standard deviation.
    pub sd_cycles: f64,
}

/// getrusage() (their table 1).
pub const GETRUSAGE: Call = Call { mean_cycles: 416.0, sd_cycles: 161.0 };
/// Their getpinfo() (table 1).
pub const GETPINFO: Call = Call { mean_cycles: 213.0, sd_cycles: 66.0 };
/// malloc of a small block, mean in cycles (table 2).
pub const MALLOC_CYCLES: f64 = 591.0;
/// What getpinfo() gains over getrusage() in precision, in percent (section 4).
pub const PRECISION_GAIN_PERCENT: f64 = 527.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_the_table() {
        let table = include_str!("../../../../data/hines2000.csv");
        let of = |start: &str| {
            let line = table.lines().find(|line| line.starts_with(start)).expect(start);
            let cells: Vec<&str> = line.split(',').collect();
            (cells[2].parse::<f64>().ok(), cells[3].parse::<f64>().ok())
        };
        let call = |call: Call| (Some(call.mean_cycles), Some(call.sd_cycles));
        assert_eq!(of("call_overhead,getrusage,"), call(GETRUSAGE));
        assert_eq!(of("call_overhead,getpinfo,"), call(GETPINFO));
        assert_eq!(of("malloc_small_block,getpinfo,").0, Some(MALLOC_CYCLES));
        assert_eq!(of("precision_gain_primes_percent,").0, Some(PRECISION_GAIN_PERCENT));
    }
}
