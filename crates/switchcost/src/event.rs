//! Something that happens once: the end of a command, a signal that asks to stop.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Once set it stays so, for all who wait for it.
#[derive(Clone, Default)]
pub(crate) struct Event(Arc<(Mutex<bool>, Condvar)>);

impl Event {
    /// Ends all waits, those to come too.
    pub(crate) fn set(&self) {
        let (is_set, waiting) = &*self.0;
        *is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        waiting.notify_all();
    }

    /// Waits for so long, or without end; gives whether it is set.
    pub(crate) fn wait(&self, longest: Option<Duration>) -> bool {
        let (is_set, waiting) = &*self.0;
        let is_set = is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = longest.unwrap_or(Duration::MAX);
        let waited = waiting.wait_timeout_while(is_set, longest, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_waits_in_other_threads_and_later_ones() {
        let event = Event::default();
        assert!(!event.wait(Some(Duration::from_millis(1))));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| event.wait(None));
            event.set();
            assert!(waits.join().unwrap());
        });
        assert!(event.wait(None));
    }
}
