//! Placement of a ring's members on CPUs, and the pairs of CPUs that a sweep chooses for each
//! relation.

use std::cmp::Reverse;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::check_within;
use crate::machine::{CpuRelation, CpuSurroundings, MAX_CPUS, Machine};
use crate::words;

/// CPUs on which the members run, as resolved on the machine that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum Placement {
    /// The members share one CPU.
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
        /// Relation of the two CPUs that a sweep chose; absent for a list that was typed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        relation: Option<CpuRelation>,
    },
}

impl Placement {
    /// Checks that there are CPUs and that their numbers are in range.
    pub fn check(&self) -> Result<(), String> {
        let cpus = self.cpus();
        check_within("number of CPUs", cpus.len(), 1..=usize::MAX)?;
        cpus.into_iter().try_for_each(|cpu| check_within("CPU", cpu, 0..=MAX_CPUS - 1))
    }

    /// Returns the CPUs that member `index` may run on; 0 is the leader.
    pub fn cpus_of(&self, index: u32) -> Vec<u32> {
        match self {
            Self::Same { cpu } => vec![*cpu],
            Self::Free { cpus } => cpus.clone(),
            Self::Pinned { cpus, .. } if cpus.is_empty() => Vec::new(),
            Self::Pinned { cpus, .. } => vec![cpus[index as usize % cpus.len()]],
        }
    }

    /// Returns every CPU that some member may run on, sorted, each once.
    pub fn cpus(&self) -> Vec<u32> {
        match self {
            Self::Same { cpu } => vec![*cpu],
            Self::Free { cpus } | Self::Pinned { cpus, .. } => {
                let mut cpus = cpus.clone();
                cpus.sort_unstable();
                cpus.dedup();
                cpus
            }
        }
    }

    /// Returns the relation of a sweep's pair of CPUs; `None` for all other placements.
    pub fn relation(&self) -> Option<CpuRelation> {
        match self {
            Self::Pinned { relation, .. } => *relation,
            Self::Same { .. } | Self::Free { .. } => None,
        }
    }

    /// Returns the placement of the solo with which a ring placed like this is compared. All pairs
    /// of a sweep with the same first CPU have the same one.
    pub fn of_solo(&self) -> Self {
        match (self, self.cpus_of(0).first()) {
            (Self::Pinned { relation: Some(_), .. }, Some(cpu)) => Self::Same { cpu: *cpu },
            _ => self.clone(),
        }
    }

    /// Returns whether the whole ring shares one CPU, so that at most one member runs at a time.
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
                if let Some(relation) = relation {
                    write!(f, "{relation}:")?;
                }
                f.write_str(&words::list(cpus))
            }
        }
    }
}

/// Builds a sweep: `first` alone, then a pair for each relation that two of the `allowed` CPUs have
/// to each other, from near to far. A pair begins with `first` where that has such a neighbour, so
/// that as many placements as possible have one solo in common. Returns an empty list where `first`
/// is not allowed.
pub fn placements_for_sweep(machine: &Machine, allowed: &[u32], first: u32) -> Vec<Placement> {
    if !allowed.contains(&first) {
        return Vec::new();
    }
    let mut cpus = Vec::new();
    for cpu in allowed {
        cpus.push(CpuSurroundings::from_machine(machine, *cpu));
    }
    let mut placements = vec![Placement::Same { cpu: first }];
    for relation in CpuRelation::ALL {
        let from_first = best_pair(machine, *relation, &cpus, |cpu| cpu == first);
        let pair = from_first.or_else(|| best_pair(machine, *relation, &cpus, |_| true));
        if let Some(cpus) = pair {
            placements.push(Placement::Pinned { cpus: cpus.to_vec(), relation: Some(*relation) });
        }
    }
    placements
}

/// Builds the placements of rings that have a pair of CPUs each: for each relation, from near to
/// far, as many pairs as the `allowed` CPUs make without one in two pairs. The first is that of a
/// sweep. Returns an empty list where there is no pair.
pub fn placements_for_pairs(machine: &Machine, allowed: &[u32], first: u32) -> Vec<Vec<Placement>> {
    let mut by_relation = Vec::new();
    for placement in placements_for_sweep(machine, allowed, first) {
        let Some(relation) = placement.relation() else { continue };
        let used = placement.cpus();
        let mut left = allowed.to_vec();
        left.retain(|cpu| !used.contains(cpu));
        left.sort_by_key(|cpu| rank_cpu(machine, *cpu));
        let mut pairs = vec![placement];
        for cpus in disjoint_pairs(machine, relation, &left) {
            pairs.push(Placement::Pinned { cpus: cpus.to_vec(), relation: Some(relation) });
        }
        by_relation.push(pairs);
    }
    by_relation
}

/// Returns pairs of that relation among CPUs that are sorted by rank, each CPU in one pair at most.
fn disjoint_pairs(machine: &Machine, relation: CpuRelation, cpus: &[u32]) -> Vec<[u32; 2]> {
    let mut left = Vec::new();
    for cpu in cpus {
        left.push(CpuSurroundings::from_machine(machine, *cpu));
    }
    let mut pairs = Vec::new();
    while !left.is_empty() {
        let one = left.remove(0);
        let mut best = None;
        for (number, other) in left.iter().enumerate() {
            if one.relation(other) == relation {
                let rank = rank_pair(machine, relation, &one, other);
                if best.as_ref().is_none_or(|(best_rank, _)| rank < *best_rank) {
                    best = Some((rank, number));
                }
            }
        }
        if let Some(number) = best.map(|(_, number)| number) {
            pairs.push([one.cpu, left.remove(number).cpu]);
        }
    }
    pairs
}

/// Returns the `allowed` CPUs in the order in which rings get one each: `first`, one of each other
/// core, then the further hardware threads of the cores.
pub fn cpus_for_spread(machine: &Machine, allowed: &[u32], first: u32) -> Vec<u32> {
    let mut others = allowed.to_vec();
    others.retain(|cpu| *cpu != first);
    others.sort_by_key(|cpu| rank_cpu(machine, *cpu));
    let (mut cpus, mut on_used_cores) = (vec![first], Vec::new());
    let mut used_cpus = siblings_with(machine, first);
    for cpu in others {
        if used_cpus.contains(&cpu) {
            on_used_cores.push(cpu);
        } else {
            used_cpus.extend(siblings_with(machine, cpu));
            cpus.push(cpu);
        }
    }
    cpus.extend(on_used_cores);
    cpus
}

/// Returns the CPUs of a CPU's core; the CPU alone where they are not known.
fn siblings_with(machine: &Machine, cpu: u32) -> Vec<u32> {
    match machine.smt_siblings_of(cpu) {
        Ok(siblings) => siblings.iter().collect(),
        Err(_) => vec![cpu],
    }
}

/// Returns the best pair of that relation that begins with a CPU that `may_begin`.
fn best_pair(
    machine: &Machine,
    relation: CpuRelation,
    cpus: &[CpuSurroundings],
    may_begin: impl Fn(u32) -> bool,
) -> Option<[u32; 2]> {
    let mut pairs = Vec::new();
    for one in cpus {
        for other in cpus {
            let is_pair = one.cpu != other.cpu && one.relation(other) == relation;
            if is_pair && may_begin(one.cpu) {
                pairs.push((rank_pair(machine, relation, one, other), [one.cpu, other.cpu]));
            }
        }
    }
    let (_, best) = pairs.into_iter().min_by(|(one, _), (other, _)| one.cmp(other))?;
    Some(best)
}

/// Ranks a pair; the lowest rank is best: the pair that fits the relation's name best, then
/// isolated CPUs, then any but CPU 0, which serves most of the kernel's own work and is left to
/// this program, then the highest numbers.
fn rank_pair(
    machine: &Machine,
    relation: CpuRelation,
    one: &CpuSurroundings,
    other: &CpuSurroundings,
) -> impl Ord {
    let distance = match relation {
        // The last cache: a nearer one is shared by few, and is on some machines only.
        CpuRelation::SharedCache => u32::MAX - one.nearest_shared_level(other).unwrap_or(0),
        CpuRelation::OtherNode => one.distance(other).unwrap_or(u32::MAX),
        _ => 0,
    };
    (distance, rank_cpu(machine, one.cpu), rank_cpu(machine, other.cpu))
}

fn rank_cpu(machine: &Machine, cpu: u32) -> (bool, bool, Reverse<u32>) {
    let is_isolated = match machine.cpu.isolated.known() {
        Some(isolated) => isolated.contains(cpu),
        None => false,
    };
    (!is_isolated, cpu == 0, Reverse(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{CacheKind, CpuCache, CpuList, LogicalCpu, NumaNode};
    use crate::reading::Reading;

    fn list(text: &str) -> CpuList {
        text.parse().unwrap()
    }

    /// A machine of `cpus` CPUs by the lists of those that share a core, a cache of a level, a
    /// node.
    fn machine(cpus: u32, cores: &[&str], caches: &[(u32, &str)], nodes: &[&str]) -> Machine {
        let mut machine = Machine::default();
        let core_of = |cpu: u32| cores.iter().map(|c| list(c)).find(|core| core.contains(cpu));
        let place = |cpu| LogicalCpu {
            cpu,
            smt_siblings: core_of(cpu).map_or(Reading::unknown("no file"), Reading::Known),
            ..LogicalCpu::default()
        };
        machine.cpu.topology = Reading::Known((0..cpus).map(place).collect());
        let cache = |(level, sharing): &(u32, &str)| CpuCache {
            of_cpu: list(sharing).as_slice()[0],
            level: Reading::Known(*level),
            kind: Reading::Known(CacheKind::Unified),
            shared_cpus: Reading::Known(list(sharing)),
            ..CpuCache::default()
        };
        machine.cpu.caches = match caches {
            [] => Reading::unknown("no folder"),
            caches => Reading::Known(caches.iter().map(cache).collect()),
        };
        let node = |(node, cpus): (usize, &&str)| NumaNode {
            node: node as u32,
            cpus: Reading::Known(list(cpus)),
            // The further in number, the further.
            distances: Reading::Known(
                (0..nodes.len()).map(|to| 10 + 10 * node.abs_diff(to) as u32).collect(),
            ),
            ..NumaNode::default()
        };
        machine.numa.nodes = Reading::Known(nodes.iter().enumerate().map(node).collect());
        machine
    }

    fn labels(machine: &Machine, allowed: &str, first: u32) -> Vec<String> {
        let all = placements_for_sweep(machine, list(allowed).as_slice(), first);
        all.iter().map(Placement::to_string).collect()
    }

    /// Two sockets as two nodes, of each two complexes of two cores with two threads.
    fn epyc() -> Machine {
        let cores = ["0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"];
        let caches = [(3, "0-1,8-9"), (3, "2-3,10-11"), (3, "4-5,12-13"), (3, "6-7,14-15")];
        let private = cores.map(|core| (2, core));
        machine(16, &cores, &[&private[..], &caches[..]].concat(), &["0-3,8-11", "4-7,12-15"])
    }

    #[test]
    fn a_machine_that_has_all_gives_a_row_for_each() {
        let wanted =
            ["same", "smt:15,7", "shared-cache:15,14", "other-cache:15,13", "other-node:15,11"];
        assert_eq!(labels(&epyc(), "0-15", 15), wanted);
    }

    #[test]
    fn only_allowed_cpus_are_taken() {
        let wanted = ["same", "smt:10,2", "shared-cache:1,0", "other-cache:10,1"];
        assert_eq!(labels(&epyc(), "0-2,10", 10), wanted);
        assert_eq!(labels(&epyc(), "3", 3), ["same"]);
        assert_eq!(labels(&epyc(), "", 3), [""; 0]);
    }

    #[test]
    fn cpu_0_is_taken_only_where_there_is_no_other_and_an_isolated_one_first() {
        assert_eq!(labels(&epyc(), "0-1,9", 9), ["same", "smt:9,1", "shared-cache:9,0"]);
        assert_eq!(labels(&epyc(), "0,8-9", 9), ["same", "smt:8,0", "shared-cache:9,8"]);
        let mut isolated = epyc();
        isolated.cpu.isolated = Reading::Known(list("6,10"));
        let found = labels(&isolated, "0-15", 10);
        assert_eq!(
            found,
            ["same", "smt:10,2", "shared-cache:10,11", "other-cache:10,9", "other-node:10,6"]
        );
    }

    #[test]
    fn a_pair_without_the_first_cpu_is_taken_where_that_has_no_such_neighbour() {
        // Two cores with two threads each, four without, each four of these with a cache of their
        // own.
        let cores = ["0-1", "2-3", "4", "5", "6", "7"];
        let caches = [(2, "4-7"), (2, "0-1"), (2, "2-3"), (3, "0-7")];
        let hybrid = machine(8, &cores, &caches, &["0-7"]);
        assert_eq!(labels(&hybrid, "0-7", 7), ["same", "smt:3,2", "shared-cache:7,3"]);
    }

    #[test]
    fn the_nearest_other_node_is_taken() {
        let four = machine(
            4,
            &["0", "1", "2", "3"],
            &[(3, "0"), (3, "1"), (3, "2"), (3, "3")],
            &["0", "1", "2", "3"],
        );
        assert_eq!(labels(&four, "0-3", 3), ["same", "other-node:3,2"]);
        assert_eq!(labels(&four, "0-1,3", 3), ["same", "other-node:3,1"]);
    }

    #[test]
    fn rings_with_a_pair_each_share_no_cpu() {
        let all = placements_for_pairs(&epyc(), list("0-15").as_slice(), 15);
        let labels: Vec<String> = all.iter().map(|pairs| pairs[0].to_string()).collect();
        let wanted = ["smt:15,7", "shared-cache:15,14", "other-cache:15,13", "other-node:15,11"];
        assert_eq!(labels, wanted);
        for pairs in &all {
            let mut cpus: Vec<u32> = pairs.iter().flat_map(Placement::cpus).collect();
            cpus.sort_unstable();
            assert_eq!(cpus, (0..16).collect::<Vec<_>>(), "{pairs:?}");
        }
        assert!(placements_for_pairs(&epyc(), &[3], 3).is_empty());
    }

    #[test]
    fn rings_with_a_cpu_each_get_a_core_each_as_long_as_there_are_cores() {
        let spread = cpus_for_spread(&epyc(), list("0-15").as_slice(), 15);
        assert_eq!(spread, [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        let spread = cpus_for_spread(&epyc(), list("0-3,8-9").as_slice(), 9);
        assert_eq!(spread, [9, 8, 3, 2, 1, 0]);
        assert_eq!(cpus_for_spread(&Machine::default(), &[0, 1], 1), [1, 0]);
    }

    #[test]
    fn what_could_not_be_read_is_not_guessed() {
        let no_caches = machine(3, &["0", "1-2"], &[], &["0-2"]);
        assert_eq!(labels(&no_caches, "0-2", 2), ["same", "smt:2,1", "unknown:2,0"]);
        assert_eq!(labels(&Machine::default(), "0-2", 2), ["same", "unknown:2,1"]);
    }

    #[test]
    fn many_cpus_are_no_trouble() {
        let count = testing::repeats(256, 1024);
        let every: Vec<String> = (0..count).map(|cpu| cpu.to_string()).collect();
        let cores: Vec<&str> = every.iter().map(String::as_str).collect();
        let (all, last) = (format!("0-{}", count - 1), count - 1);
        let large = machine(count, &cores, &[(3, &all)], &[&all]);
        let shared = format!("shared-cache:{last},{}", last - 1);
        assert_eq!(labels(&large, &all, last), ["same", &shared]);
    }

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
        let pair = Placement::Pinned { cpus: vec![3, 1], relation: Some(CpuRelation::OtherCache) };
        assert_eq!(pair.to_string(), "other-cache:3,1");
        let json = serde_json::to_value(&pair).unwrap();
        assert_eq!(json["relation"], "other-cache");
        // Runs of before sweeps have no relation.
        let old: Placement = serde_json::from_str(r#"{"mode":"pinned","cpus":[3,1]}"#).unwrap();
        assert_eq!(old, list);
    }
}
