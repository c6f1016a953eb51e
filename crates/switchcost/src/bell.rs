//! What a wait can be ended by before its time: the end of a command, a signal that asks to stop.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A bell: once rung it stays so, for all who wait for it.
#[derive(Clone, Default)]
pub(crate) struct Bell(Arc<(Mutex<bool>, Condvar)>);

impl Bell {
    /// Ends all waits, those to come too.
    pub(crate) fn ring(&self) {
        let (rung, waiting) = &*self.0;
        *rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        waiting.notify_all();
    }

    /// Waits for so long, or without end; gives whether the bell was rung.
    pub(crate) fn wait(&self, longest: Option<Duration>) -> bool {
        let (rung, waiting) = &*self.0;
        let rung = rung.lock().unwrap_or_else(PoisonError::into_inner);
        let is_silent = |rung: &mut bool| !*rung;
        match longest {
            None => *waiting.wait_while(rung, is_silent).unwrap_or_else(PoisonError::into_inner),
            Some(longest) => {
                let waited = waiting.wait_timeout_while(rung, longest, is_silent);
                *waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_bell_ends_waits_in_other_threads_and_later_ones() {
        let bell = Bell::default();
        assert!(!bell.wait(Some(Duration::from_millis(1))));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| bell.wait(None));
            bell.ring();
            assert!(waits.join().unwrap());
        });
        assert!(bell.wait(None));
    }
}
