//! Sets of CPUs in the kernel's list format (`0-3,8`), and the relation of two CPUs to each other.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CpuCache, Machine};
use crate::experiment::named;

/// CPU numbers at or above this are refused; the largest `CONFIG_NR_CPUS` of any architecture is
/// 8,192. Without a bound, `0-4294967295` in a damaged file would fill the memory.
pub const MAX_CPUS: u32 = 65_536;

/// A set of CPU numbers, sorted and each once. Text and JSON hold it in the kernel's list format
/// (`0-3,8`; empty for none), see "List format" in cpuset(7).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CpuList(Vec<u32>);

impl CpuList {
    /// Returns the CPU numbers, rising.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// Iterates over the CPU numbers, rising.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Returns the number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// Returns whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &CpuList) -> bool {
        self.iter().all(|cpu| other.contains(cpu))
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        CpuList(cpus)
    }
}

impl FromStr for CpuList {
    /// Names the bad item.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(CpuList::default());
        }
        // A set, not a list of ranges: `0-65535` a thousand times over stays small.
        let mut present = Vec::new();
        for item in text.split(',') {
            let (first, last) = parse_item(item.trim())?;
            if present.len() <= last as usize {
                present.resize(last as usize + 1, false);
            }
            present[first as usize..=last as usize].fill(true);
        }
        let mut cpus = Vec::new();
        for (cpu, is_present) in (0..).zip(present) {
            if is_present {
                cpus.push(cpu);
            }
        }
        Ok(CpuList(cpus))
    }
}

fn parse_item(item: &str) -> Result<(u32, u32), String> {
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    let (first, last) = (parse_number(first, item)?, parse_number(last, item)?);
    if first > last {
        return Err(format!("the range '{item}' ends before it begins"));
    }
    Ok((first, last))
}

/// Reads a CPU number; an error names the item in which it stands.
fn parse_number(text: &str, item: &str) -> Result<u32, String> {
    match text.parse::<u64>() {
        Ok(cpu) if cpu < u64::from(MAX_CPUS) => Ok(cpu as u32),
        Ok(_) => Err(format!("'{item}' names a CPU of {MAX_CPUS} or more")),
        Err(_) => Err(format!("'{item}' is neither a CPU number nor a range")),
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = Vec::new();
        for run in self.0.chunk_by(|cpu, next| cpu + 1 == *next) {
            items.push(match run {
                [first, .., last] => format!("{first}-{last}"),
                _ => run[0].to_string(),
            });
        }
        f.write_str(&items.join(","))
    }
}

impl TryFrom<String> for CpuList {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> String {
        list.to_string()
    }
}

/// Relation of two different CPUs, from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpuRelation {
    /// Hardware threads of one core.
    Smt,
    /// Two cores that share a cache.
    SharedCache,
    /// Two cores of one memory node that share no cache.
    OtherCache,
    /// CPUs of two memory nodes.
    OtherNode,
    /// Two CPUs of which the kernel does not say whether they share a core or a cache.
    Unknown,
}

named!(
    CpuRelation,
    "relation of two CPUs",
    Smt => "smt",
    SharedCache => "shared-cache",
    OtherCache => "other-cache",
    OtherNode => "other-node",
    Unknown => "unknown"
);

impl CpuRelation {
    /// Describes the relation, for reports.
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

/// Siblings, caches and memory node of a CPU, from which its relations follow.
#[derive(Debug)]
pub struct CpuSurroundings<'a> {
    /// The CPU.
    pub cpu: u32,
    siblings: Option<&'a CpuList>,
    caches: Vec<&'a CpuCache>,
    node: Option<(u32, Option<&'a [u32]>)>,
}

impl<'a> CpuSurroundings<'a> {
    /// Collects them for `cpu`. A fact that could not be read is missing.
    pub fn from_machine(machine: &'a Machine, cpu: u32) -> Self {
        let topology = machine.cpu.topology.known().map(Vec::as_slice).unwrap_or_default();
        let place = topology.iter().find(|place| place.cpu == cpu);
        let caches = machine.data_caches_of(cpu).unwrap_or_default();
        let nodes = machine.numa.nodes.known().map(Vec::as_slice).unwrap_or_default();
        let node = nodes.iter().find(|n| n.cpus.known().is_some_and(|cpus| cpus.contains(cpu)));
        Self {
            cpu,
            siblings: place.and_then(|place| place.smt_siblings.known()),
            caches,
            node: node.map(|node| (node.node, node.distances.known().map(Vec::as_slice))),
        }
    }

    /// Returns the relation to another CPU. A machine without nodes is one node.
    pub fn relation(&self, other: &Self) -> CpuRelation {
        if self.siblings.is_some_and(|siblings| siblings.contains(other.cpu)) {
            return CpuRelation::Smt;
        }
        if let (Some((one, _)), Some((another, _))) = (self.node, other.node) {
            if one != another {
                return CpuRelation::OtherNode;
            }
        }
        match (self.siblings, self.shares_cache(other)) {
            (Some(_), Some(true)) => CpuRelation::SharedCache,
            (Some(_), Some(false)) => CpuRelation::OtherCache,
            _ => CpuRelation::Unknown,
        }
    }

    /// Returns the level of the nearest data cache that both use.
    pub fn nearest_shared_level(&self, other: &Self) -> Option<u32> {
        let mut nearest: Option<u32> = None;
        for cache in &self.caches {
            if let (true, Some(level)) = (cache.serves(other.cpu), cache.level.known()) {
                nearest = Some(nearest.unwrap_or(*level).min(*level));
            }
        }
        nearest
    }

    /// Returns the distance to another CPU's node by the firmware's table; a node has 10 to itself.
    pub fn distance(&self, other: &Self) -> Option<u32> {
        let (_, distances) = self.node?;
        distances?.get(other.node?.0 as usize).copied()
    }

    /// Returns whether both use one cache; `None` where a cache of either could not be read.
    fn shares_cache(&self, other: &Self) -> Option<bool> {
        if self.caches.iter().any(|cache| cache.serves(other.cpu)) {
            return Some(true);
        }
        if self.has_known_caches() && other.has_known_caches() { Some(false) } else { None }
    }

    fn has_known_caches(&self) -> bool {
        let are_known = self.caches.iter().all(|cache| cache.shared_cpus.known().is_some());
        are_known && !self.caches.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernels_format_is_read_and_printed() {
        for (text, cpus) in [
            ("", vec![]),
            ("0", vec![0]),
            ("0-3,8", vec![0, 1, 2, 3, 8]),
            ("0-1,4-5,7", vec![0, 1, 4, 5, 7]),
        ] {
            let list: CpuList = text.parse().unwrap();
            assert_eq!(list.as_slice(), cpus);
            assert_eq!(list.to_string(), text);
        }
        assert_eq!("8,0-2,1\n".parse::<CpuList>().unwrap().to_string(), "0-2,8");
    }

    #[test]
    fn errors_name_the_bad_item() {
        for (text, message) in [
            ("0-3,x", "'x' is neither a CPU number nor a range"),
            ("0,,2", "'' is neither a CPU number nor a range"),
            ("-1", "'-1' is neither a CPU number nor a range"),
            ("0,5-2", "the range '5-2' ends before it begins"),
            ("0-4294967295", "'0-4294967295' names a CPU of 65536 or more"),
        ] {
            assert_eq!(text.parse::<CpuList>().unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(cpus in proptest::collection::vec(0_u32..300, 0..40)) {
            let list: CpuList = cpus.into_iter().collect();
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }

        #[test]
        fn any_text_is_a_list_or_an_error(text: String) {
            let _ = text.parse::<CpuList>();
        }
    }
}
