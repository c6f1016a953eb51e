//! How two CPUs lie to each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cache, CpuList, Machine};
use crate::experiment::named;

/// How two different CPUs lie to each other, from near to far.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Hardware threads of one core.
    Smt,
    /// Two cores that share a cache.
    SharedCache,
    /// Two cores of one memory node that share no cache.
    OtherCache,
    /// CPUs of two memory nodes.
    OtherNode,
    /// Two CPUs of which it could not be read whether they share a core or a cache.
    Unknown,
}

named!(
    Relation,
    "relation of two CPUs",
    Smt => "smt",
    SharedCache => "shared-cache",
    OtherCache => "other-cache",
    OtherNode => "other-node",
    Unknown => "unknown"
);

impl Relation {
    /// What it means, for reports.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Smt => "hardware threads of one core",
            Self::SharedCache => "two cores that share a cache",
            Self::OtherCache => "two cores of one memory node that share no cache",
            Self::OtherNode => "two memory nodes",
            Self::Unknown => "two CPUs of which it could not be read what they share",
        }
    }
}

/// All that the relations of a CPU rest on.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The CPU.
    pub cpu: u32,
    siblings: Option<&'a CpuList>,
    caches: Vec<&'a Cache>,
    node: Option<(u32, Option<&'a [u32]>)>,
}

impl<'a> Surroundings<'a> {
    /// Those of `cpu`. What could not be read is missing.
    pub fn of(machine: &'a Machine, cpu: u32) -> Self {
        let topology = machine.cpu.topology.known().map(Vec::as_slice).unwrap_or_default();
        let place = topology.iter().find(|place| place.cpu == cpu);
        let caches = machine.data_caches_of(cpu).known().cloned().unwrap_or_default();
        let nodes = machine.numa.nodes.known().map(Vec::as_slice).unwrap_or_default();
        let node = nodes.iter().find(|n| n.cpus.known().is_some_and(|cpus| cpus.contains(cpu)));
        Self {
            cpu,
            siblings: place.and_then(|place| place.smt_siblings.known()),
            caches,
            node: node.map(|node| (node.node, node.distances.known().map(Vec::as_slice))),
        }
    }

    /// How another CPU lies to this one. A machine without nodes is one node.
    pub fn relation(&self, other: &Self) -> Relation {
        if self.siblings.is_some_and(|siblings| siblings.contains(other.cpu)) {
            return Relation::Smt;
        }
        if let (Some((one, _)), Some((another, _))) = (self.node, other.node)
            && one != another
        {
            return Relation::OtherNode;
        }
        match (self.siblings, self.shares_cache(other)) {
            (Some(_), Some(true)) => Relation::SharedCache,
            (Some(_), Some(false)) => Relation::OtherCache,
            _ => Relation::Unknown,
        }
    }

    /// The level of the nearest data cache that both use.
    pub fn nearest_shared_level(&self, other: &Self) -> Option<u32> {
        let shared = self.caches.iter().filter(|cache| cache.serves(other.cpu));
        shared.filter_map(|cache| cache.level.known().copied()).min()
    }

    /// The distance to another CPU's node by the firmware's table, 10 being the own one.
    pub fn distance(&self, other: &Self) -> Option<u32> {
        let (_, distances) = self.node?;
        distances?.get(other.node?.0 as usize).copied()
    }

    /// Absent where a cache of either could not be read.
    fn shares_cache(&self, other: &Self) -> Option<bool> {
        if self.caches.iter().any(|cache| cache.serves(other.cpu)) {
            return Some(true);
        }
        let is_known = |of: &Self| {
            !of.caches.is_empty() && of.caches.iter().all(|c| c.shared_cpus.known().is_some())
        };
        (is_known(self) && is_known(other)).then_some(false)
    }
}
