//! Waits for events.

use std::thread;
use std::time::{Duration, Instant};

/// Limits the wait for an event: even on the slowest machine only a test that hangs takes so long.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Calls `ask` every 2 ms until it returns `Some`: a test waits for its event, however slow the machine
/// is.
///
/// # Panics
///
/// If no answer came within [`PATIENCE`].
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(answer) = ask() {
            return answer;
        }
        thread::sleep(Duration::from_millis(2));
    }
    panic!("no {what} after {PATIENCE:?}");
}
