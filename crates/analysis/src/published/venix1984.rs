//! VenturCom, "VENIX Kernel Response Time" (1984): `data/venix1984.csv` as typed values.

use serde::Deserialize;

use super::{PublishedError, parse_rows, positive};

const CSV: &str = include_str!("../../data/venix1984.csv");

/// The times of one processor, in milliseconds as printed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct VenixProcessor {
    /// Name of the processor.
    #[serde(rename = "processor")]
    pub name: String,
    /// Clock of the processor; absent where the memorandum does not say it.
    pub clock_mhz: Option<f64>,
    /// A system call: getuid.
    #[serde(rename = "syscall_overhead_ms", deserialize_with = "positive")]
    pub system_call_ms: f64,
    /// Average interrupt latency, estimated.
    #[serde(deserialize_with = "positive")]
    pub interrupt_latency_ms: f64,
    /// A signal to oneself, caught and its handler installed again.
    #[serde(rename = "signal_time_ms", deserialize_with = "positive")]
    pub signal_ms: f64,
    /// The kernel's part of the signal.
    #[serde(rename = "signal_kernel_ms", deserialize_with = "positive")]
    pub kernel_processing_ms: f64,
    /// A loop of two processes that send each other a signal.
    #[serde(rename = "twosig_loop_ms", deserialize_with = "positive")]
    pub two_process_loop_ms: f64,
    /// A context switch.
    #[serde(deserialize_with = "positive")]
    pub context_switch_ms: f64,
}

/// Returns the processors of the built-in file.
pub fn published() -> Result<Vec<VenixProcessor>, PublishedError> {
    parse_rows("venix1984.csv", CSV)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_processors_as_printed() {
        let processors = published().unwrap();
        let names: Vec<&str> = processors.iter().map(|processor| &*processor.name).collect();
        assert_eq!(names, ["80186", "8088", "LSI 11/23"]);
        let clocks: Vec<Option<f64>> =
            processors.iter().map(|processor| processor.clock_mhz).collect();
        assert_eq!(clocks, [Some(8.0), Some(4.77), None]);
        let VenixProcessor { system_call_ms, context_switch_ms, .. } = processors[0];
        assert_eq!((system_call_ms, context_switch_ms), (0.36, 1.5));
        let last = &processors[2];
        assert_eq!((last.signal_ms, last.two_process_loop_ms), (4.6, 13.5));
    }

    #[test]
    fn a_bad_line_of_a_processor_is_named() {
        for (line, word) in [
            ("80186,8,0.36", "3 fields"),
            ("80186,8,,0.1,1.2,0.2,5.4,1.5", "cannot parse float"),
            ("80186,8,0,0.1,1.2,0.2,5.4,1.5", "0 is not above 0"),
            ("80186,8,0.36,0.1,1.2,0.2,5.4,inf", "inf is not above 0"),
        ] {
            let text = format!("{CSV}{line}\n");
            let error = parse_rows::<VenixProcessor>("venix1984.csv", &text).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(word) && error.contains("line: 6"), "{error}");
        }
    }
}
