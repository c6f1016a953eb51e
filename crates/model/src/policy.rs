//! Scheduling policies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named::named;

/// The scheduling policy of every member (sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// SCHED_OTHER, the normal policy.
    Other,
    /// SCHED_BATCH: normal, without wake-up preemption.
    Batch,
    /// SCHED_FIFO at the lowest real-time priority, which already outranks all normal tasks.
    Fifo,
    /// SCHED_RR at the lowest real-time priority.
    Rr,
}

impl Policy {
    /// The real-time priority asked of the kernel; 0 for the normal policies.
    pub fn priority(self) -> i32 {
        match self {
            Self::Other | Self::Batch => 0,
            Self::Fifo | Self::Rr => 1,
        }
    }

    /// Whether the kernel asks for a privilege before it grants the policy.
    pub fn is_realtime(self) -> bool {
        self.priority() > 0
    }
}

named!(Policy, "policy", Other => "other", Fifo => "fifo", Rr => "rr", Batch => "batch");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(*policy));
        }
        let error = "realtime".parse::<Policy>().unwrap_err();
        assert!(error.contains("realtime") && error.contains("fifo"), "{error}");
    }
}
