//! Options of a tracer.

/// Options of a [`Tracer`](crate::Tracer): what it keeps, and how much memory that may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of threads that are kept at once, including ended ones that were not replaced yet. A
    /// thread takes 64 bytes of kernel memory, with `activity` 2,048; besides, each thread id that
    /// the system may give takes 4 (`/proc/sys/kernel/pid_max`). Default: 16,384.
    pub threads: u32,
    /// Whether causes, histograms and pairs are kept. Default: true.
    pub activity: bool,
    /// Number of pairs of threads that are kept; an entry takes some 80 bytes. Default: 65,536.
    pub pairs: u32,
    /// Whether every event is recorded, and how. Default: no.
    pub recording: Option<RecordingOptions>,
}

/// Options of a recording of every event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingOptions {
    /// Size of the ring buffer in bytes: a power of two, at least a page. An event takes 40. Default: 32
    /// MiB.
    pub bytes: u32,
    /// Whether wake-ups are recorded too, which costs a second probe for each switch. Default:
    /// false.
    pub wakeups: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 16_384, activity: true, pairs: 65_536, recording: None }
    }
}

impl Default for RecordingOptions {
    fn default() -> Self {
        Self { bytes: 32 << 20, wakeups: false }
    }
}

impl Options {
    /// Keeps only the CPU time and the counts of threads, which costs the least.
    pub fn times_only() -> Self {
        Self { activity: false, ..Self::default() }
    }

    /// Returns which option is out of range, if one is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if !(1..=1 << 22).contains(&self.threads) {
            return Some("threads must be from 1 to 4,194,304");
        }
        if self.activity && !(1..=1 << 24).contains(&self.pairs) {
            return Some("pairs must be from 1 to 16,777,216");
        }
        let recording = self.recording.as_ref()?;
        let in_range = (1 << 16..=1 << 30).contains(&recording.bytes);
        if in_range && recording.bytes.is_power_of_two() {
            return None;
        }
        Some("bytes of a recording must be a power of two from 64 KiB to 1 GiB")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found() {
        assert_eq!(Options::default().fault(), None);
        assert_eq!(Options::times_only().fault(), None);
        assert!(Options { threads: 0, ..Options::default() }.fault().is_some());
        assert!(Options { pairs: 0, ..Options::default() }.fault().is_some());
        let recording = Some(RecordingOptions { bytes: 100_000, wakeups: false });
        assert!(Options { recording, ..Options::default() }.fault().is_some());
    }
}
