//! Prefixes of a session that set a priority or a policy, which SCHED_FIFO for all would undo.

use std::path::Path;

use rundata::ring::Policy;

use super::Comparison;
use super::answer::{CaseChange, ComparedSetting};
use crate::results::Origin;

/// Commands that set a priority or a policy.
const PRIORITY_SETTERS: [&str; 4] = ["nice", "renice", "chrt", "schedtool"];

/// Commands of these that set the nice value alone.
const NICE_SETTERS: [&str; 2] = ["nice", "renice"];

/// Returns the names of commands among these words that set a priority or a policy.
pub fn priority_setters(words: &[String]) -> Vec<&str> {
    let mut setters = Vec::new();
    for word in words {
        let Some(name) = Path::new(word).file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if PRIORITY_SETTERS.contains(&name) {
            setters.push(name);
        }
    }
    setters
}

impl Comparison {
    /// Returns whether rings under SCHED_FIFO on both sides would help: a case waits for that, and
    /// no prefix sets what fifo would undo. `typed` are the words of the prefixes where they are
    /// known; the stored ones may be masked.
    pub fn would_fifo_help(&self, typed: &[String]) -> bool {
        self.changes.iter().any(CaseChange::would_fifo_help) && self.setters(typed).is_empty()
    }

    /// Returns the real-time policy of all rings under which a nice value, set by a prefix, has no
    /// effect; `None` where it has one or none is set. `typed` as in [`Self::would_fifo_help`].
    pub fn policy_without_nice(&self, typed: &[String]) -> Option<&str> {
        let label = ComparedSetting::Policy.name();
        let policy = self.changes.first()?.labels.get(label)?;
        if ![Policy::Fifo.name(), Policy::Rr.name()].contains(&policy.as_str()) {
            return None;
        }
        let sets_nice = self.setters(typed).iter().any(|name| NICE_SETTERS.contains(name));
        let have_policy =
            self.changes.iter().all(|change| change.labels.get(label) == Some(policy));
        if sets_nice && have_policy { Some(policy) } else { None }
    }

    fn setters<'a>(&'a self, typed: &'a [String]) -> Vec<&'a str> {
        let mut setters = priority_setters(typed);
        for side in [&self.base, &self.new] {
            if let Origin::Run { session: Some(session), .. } = &side.origin {
                setters.extend(priority_setters(&session.prefix));
            }
        }
        setters
    }
}
