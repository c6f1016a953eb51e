//! Waits for events.

use std::thread;
use std::time::{Duration, Instant};

/// The longest wait for an event: only what hangs takes so long, on the slowest machine too.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Asks again and again until there is an answer: what has to come is waited for, however slow the machine is.
///
/// # Panics
///
/// After [`PATIENCE`].
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
