//! On which CPUs the members of a ring run.

mod sweep;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::Relation;

pub use sweep::sweep;

/// On which CPUs the members run, as resolved on the machine that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum Placement {
    /// All members on one CPU.
    Same {
        /// The CPU that was chosen.
        cpu: u32,
    },
    /// The scheduler decides among these CPUs.
    Free {
        /// The CPUs that the ring may use.
        cpus: Vec<u32>,
    },
    /// Member i on the i-th of these CPUs, starting again at the end of the list.
    Pinned {
        /// The list, in the order given.
        cpus: Vec<u32>,
        /// How the CPUs of a pair that a sweep chose lie to each other; absent in lists as typed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        relation: Option<Relation>,
    },
}

impl Placement {
    /// The CPUs that member `index` (0 is the leader) may run on.
    pub fn cpus_of(&self, index: u32) -> Vec<u32> {
        match self {
            Self::Same { cpu } => vec![*cpu],
            Self::Free { cpus } => cpus.clone(),
            Self::Pinned { cpus, .. } => {
                let slot = index as usize % cpus.len().max(1);
                cpus.get(slot).copied().into_iter().collect()
            }
        }
    }

    /// Every CPU that some member may run on, sorted, each once.
    pub fn cpus(&self) -> Vec<u32> {
        let mut all = match self {
            Self::Same { cpu } => vec![*cpu],
            Self::Free { cpus } | Self::Pinned { cpus, .. } => cpus.clone(),
        };
        all.sort_unstable();
        all.dedup();
        all
    }

    /// How the two CPUs of a sweep's pair lie to each other; absent in all other placements.
    pub fn relation(&self) -> Option<Relation> {
        match self {
            Self::Pinned { relation, .. } => *relation,
            Self::Same { .. } | Self::Free { .. } => None,
        }
    }

    /// Where the ring of one runs that a ring with this placement is compared with. All pairs of a
    /// sweep with the same first CPU have the same one.
    pub fn of_solo(&self) -> Self {
        match self {
            Self::Pinned { cpus, relation: Some(_) } => match cpus.first() {
                Some(first) => Self::Same { cpu: *first },
                None => self.clone(),
            },
            _ => self.clone(),
        }
    }

    /// Whether the whole ring shares one CPU, so that at most one member runs at a time.
    pub fn is_one_cpu(&self) -> bool {
        self.cpus().len() == 1
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same { .. } => f.write_str("same"),
            Self::Free { .. } => f.write_str("free"),
            Self::Pinned { cpus, relation } => {
                let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
                let of = relation.map_or(String::new(), |relation| format!("{relation}:"));
                write!(f, "{of}{}", list.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_members_go_round_the_list() {
        let placement = Placement::Pinned { cpus: vec![3, 1], relation: None };
        let cpus: Vec<_> = (0..4).flat_map(|i| placement.cpus_of(i)).collect();
        assert_eq!(cpus, [3, 1, 3, 1]);
        assert_eq!(placement.cpus(), [1, 3]);
        assert!(!placement.is_one_cpu());
        assert!(Placement::Same { cpu: 5 }.is_one_cpu());
    }

    #[test]
    fn a_pair_of_a_sweep_is_labelled_and_a_list_is_not() {
        let list = Placement::Pinned { cpus: vec![3, 1], relation: None };
        assert_eq!(list.to_string(), "3,1");
        assert_eq!(list.of_solo(), list);
        let pair = Placement::Pinned { cpus: vec![3, 1], relation: Some(Relation::OtherCache) };
        assert_eq!(pair.to_string(), "other-cache:3,1");
        let json = serde_json::to_value(&pair).unwrap();
        assert_eq!(json["relation"], "other-cache");
        // Runs of before sweeps have no relation.
        let old: Placement = serde_json::from_str(r#"{"mode":"pinned","cpus":[3,1]}"#).unwrap();
        assert_eq!(old, list);
    }
}
