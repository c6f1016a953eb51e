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
        let name = Path::new(word).file_name().and_then(|name| name.to_str());
        setters.extend(name.filter(|name| PRIORITY_SETTERS.contains(name)));
    }
    setters
}

impl Comparison {
    /// Whether rings under SCHED_FIFO on both sides would help: a case waits for that, and no
    /// prefix sets what fifo would undo. `typed` are the words of the prefixes where they are
    /// known; what was stored of them may be masked.
    pub fn would_fifo_help(&self, typed: &[String]) -> bool {
        self.changes.iter().any(CaseChange::would_fifo_help) && self.setters(typed).is_empty()
    }

    /// Returns the real-time policy of all rings under which a nice value, set by a prefix, has no
    /// effect; `None` where it has one or none is set. `typed` as in [`Self::would_fifo_help`].
    pub fn policy_without_nice(&self, typed: &[String]) -> Option<&str> {
        let is_nice = self.setters(typed).iter().any(|name| NICE_SETTERS.contains(name));
        let policy = self.changes.first()?.labels.get(ComparedSetting::Policy.name())?;
        let is_realtime = [Policy::Fifo, Policy::Rr].iter().any(|known| known.name() == policy);
        let is_same =
            |change: &CaseChange| change.labels.get(ComparedSetting::Policy.name()) == Some(policy);
        (is_nice && is_realtime && self.changes.iter().all(is_same)).then_some(policy)
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
