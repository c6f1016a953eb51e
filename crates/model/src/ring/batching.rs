//! How a worker makes samples of a ring.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a worker batches laps into samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RingBatching")]
pub struct Batching {
    /// Laps of every sample; calibrated in each worker when absent.
    pub laps: Option<u64>,
    /// Wanted duration of a calibrated sample, in nanoseconds.
    pub sample_ns: u64,
    /// Samples that a worker takes in one round, at most.
    pub samples_per_round: u32,
    /// A worker takes no further sample once its samples have lasted this long, in nanoseconds.
    pub enough_ns: u64,
    /// Wanted duration of a slice of a sample, in nanoseconds, between two reference quanta; absent in
    /// plans whose samples are not cut into slices. No slice is shorter than a lap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// How often a worker measures, beside its samples, each member's solo, the ring, and each solo again, at
    /// most; absent where solos are rings of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triples: Option<u32>,
    /// At how many places of its memory a worker tries a working set that was given huge pages, at most; it measures
    /// at the one where a lap took least. Absent where it tries none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u32>,
}

/// A slice as timed without a neighbour on the core. A neighbour that comes for less than a slice and is gone
/// again is seen by no quantum: of slices of 1 ms most have had one such on a core that is shared half of the
/// time, of these few have (docs/validation.md).
pub const SLICE_NS: u64 = 250_000;

impl Default for Batching {
    /// 10 ms a sample: at least one timer tick down to HZ=100, so that the kernel's user/system
    /// split has something to say, and long enough that two clock reads do not count.
    fn default() -> Self {
        Self {
            laps: None,
            sample_ns: 10_000_000,
            samples_per_round: 3,
            enough_ns: 250_000_000,
            slice_ns: Some(SLICE_NS),
            triples: None,
            places: None,
        }
    }
}
