//! What `switchcost cost` says: direct, total and indirect cost of a switch by working set (Li, Ding
//! and Shen 2007), where their course breaks, and what of the machine lies there.
//!
//! c1 = (hop(N) - hop(1)) / switches without work, c2 the same with work, both with their solo ring;
//! indirect = c2 - c1. All are taken within rounds ([`crate::pairing`]).

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{Kind, Walk, Work};
use crate::curve::{Point, point};
use crate::estimate::Estimate;
use crate::machine::{Cache, Machine};
use crate::pairing::Grouped;
use crate::plan::Plan;
use crate::regions::{self, Axis, Beside, Breaks, Level, Regions, beside};
use crate::summary::CaseSummary;

/// The direct cost c1 of one ring size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direct {
    /// Ring size.
    pub members: u32,
    /// Number of the ring without work.
    pub case: usize,
    /// c1 in ns; absent where it was not measured or never switched.
    pub cost_ns: Option<Estimate>,
}

/// All that the samples say of the cost of switches by working set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// c1, by ring size.
    pub direct: Vec<Direct>,
    /// c2 and the indirect cost by array, a curve for each size of ring, stride and kind of access.
    pub curves: Vec<Curve>,
    /// c2 by ring size, where several sizes were measured.
    pub by_members: Vec<MembersCurve>,
}

impl Cost {
    /// Reads the summaries of a run's cases.
    pub(crate) fn of(
        plan: &Plan,
        grouped: &Grouped,
        cases: &[CaseSummary],
        machine: &Machine,
    ) -> Self {
        let bare = |(case, of): (usize, &CaseSummary)| {
            let (members, cost_ns) = (of.case.members, of.ns_per_switch_above_solo);
            let is_bare = members > 1 && of.case.work.is_none() && is_main(cases, of);
            is_bare.then_some(Direct { members, case, cost_ns })
        };
        let mut direct: Vec<Direct> = cases.iter().enumerate().filter_map(bare).collect();
        direct.sort_by_key(|of| of.members);
        let levels = Levels::of(machine, plan);
        Self {
            curves: by_array(grouped, cases, &direct, &levels),
            by_members: by_members(cases, &levels),
            direct,
        }
    }
}

/// Whether a ring passes its token as the first does: others are measured beside for what they switch by.
fn is_main(cases: &[CaseSummary], of: &CaseSummary) -> bool {
    cases.first().is_some_and(|first| first.case.link == of.case.link)
}

/// Numbers of the cases of several members that have the same key, in the order of the first of each.
pub(crate) fn alike<K: PartialEq>(
    cases: &[CaseSummary],
    key: impl Fn(&CaseSummary) -> Option<K>,
) -> Vec<(K, Vec<usize>)> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for (index, of) in cases.iter().enumerate().filter(|(_, of)| of.case.members > 1) {
        let Some(key) = key(of) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, indices)) => indices.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    groups
}

/// What a switch costs at one array size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostPoint {
    /// Number of the ring.
    pub case: usize,
    /// Array of each member in bytes.
    pub array_bytes: u64,
    /// c2 in ns; absent where it was not measured or never switched.
    pub total_ns: Option<Estimate>,
    /// c2 - c1 in ns, within rounds; absent as `total_ns`, or without c1.
    pub indirect_ns: Option<Estimate>,
    /// Switches per hop of the ring, as the kernel counted them.
    pub switches_per_hop: Option<Estimate>,
}

/// What is read from a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Of two members that touch every element: the regions of Li, Ding and Shen.
    Regions(Regions),
    /// Of others: the course of the cost only.
    Breaks(Breaks),
}

impl Outcome {
    /// The course of the cost.
    pub fn breaks(&self) -> &Breaks {
        match self {
            Self::Regions(regions) => &regions.breaks,
            Self::Breaks(breaks) => breaks,
        }
    }

    /// The regions, where they were asked for.
    pub fn regions(&self) -> Option<&Regions> {
        match self {
            Self::Regions(regions) => Some(regions),
            Self::Breaks(_) => None,
        }
    }
}

/// c2 and the indirect cost against the array, for cases that differ in nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Ring size.
    pub members: u32,
    /// How the array is walked; its `bytes` are those of the smallest array.
    pub work: Work,
    /// The points, by array.
    pub points: Vec<CostPoint>,
    /// Where the course of c2 breaks.
    pub outcome: Outcome,
    /// For each break, what of the machine lies there; absent where nothing is known of it.
    pub beside: Vec<Option<Beside>>,
    /// The outcome in a sentence.
    pub in_words: String,
}

fn by_array(
    grouped: &Grouped,
    cases: &[CaseSummary],
    direct: &[Direct],
    levels: &Levels,
) -> Vec<Curve> {
    let bytes = |index: usize| cases[index].case.work.map_or(0, |work| work.bytes);
    let key = |of: &CaseSummary| Some((of.case.members, Work { bytes: 0, ..of.case.work? }));
    let curve = |((members, work), mut indices): ((u32, Work), Vec<usize>)| {
        indices.sort_by_key(|index| bytes(*index));
        let direct = direct.iter().find(|direct| direct.members == members);
        let points: Vec<CostPoint> = indices
            .iter()
            .map(|index| CostPoint {
                case: *index,
                array_bytes: bytes(*index),
                total_ns: cases[*index].ns_per_switch_above_solo,
                // A random stream of its own, apart from those of the summaries.
                indirect_ns: direct
                    .and_then(|d| grouped.difference(*index, d.case, (1 << 32) + *index as u64)),
                switches_per_hop: cases[*index].switches_per_hop,
            })
            .collect();
        let work = Work { bytes: bytes(indices[0]), ..work };
        read(members, work, points, direct.and_then(|d| d.cost_ns.as_ref()), levels)
    };
    alike(cases, key).into_iter().map(curve).collect()
}

fn read(
    members: u32,
    work: Work,
    points: Vec<CostPoint>,
    direct: Option<&Estimate>,
    levels: &Levels,
) -> Curve {
    let sparse = work.walk == Walk::Sparse;
    let measured = |of: &CostPoint| {
        let touches = || Work { bytes: of.array_bytes, ..work }.touches();
        Some(point(if sparse { touches() } else { of.array_bytes }, of.total_ns.as_ref()?))
    };
    let found: Vec<Point> = points.iter().filter_map(measured).collect();
    let direct = direct.map(|direct| regions::Direct {
        cost_ns: direct.value,
        low_ns: direct.low,
        high_ns: direct.high,
    });
    let outcome = match (sparse, members) {
        (false, 2) => Outcome::Regions(regions::regions(&found, direct)),
        (false, _) => Outcome::Breaks(regions::breaks(Axis::ARRAY, &found)),
        (true, _) => Outcome::Breaks(regions::breaks(Axis::PAGES, &found)),
    };
    let regions = outcome.regions().map(Regions::in_words);
    let in_words = regions.unwrap_or_else(|| outcome.breaks().in_words());
    let levels = if sparse { levels.for_pages() } else { levels.for_arrays() };
    let beside = outcome.breaks().breaks.iter().map(|found| beside(found, &levels)).collect();
    Curve { members, work, points, outcome, beside, in_words }
}

/// The fewest sizes that are a course and no mere comparison.
const FEWEST: usize = 3;

/// c2 (without work c1) against the size of the ring, for cases that differ in nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MembersCurve {
    /// What each member touches per hop; nothing when absent.
    pub work: Option<Work>,
    /// Numbers of the rings, by size.
    pub cases: Vec<usize>,
    /// The course of the cost.
    pub breaks: Breaks,
    /// For each break, what of the machine lies there; absent where nothing is known of it.
    pub beside: Vec<Option<Beside>>,
    /// The course in a sentence.
    pub in_words: String,
}

fn by_members(cases: &[CaseSummary], levels: &Levels) -> Vec<MembersCurve> {
    let curve = |(work, mut indices): (Option<Work>, Vec<usize>)| {
        indices.sort_by_key(|index| cases[*index].case.members);
        let points: Vec<Point> = indices.iter().filter_map(|index| cases[*index].point()).collect();
        let breaks = regions::breaks(Axis::MEMBERS, &points);
        let levels = levels.for_members(work.map_or(0, |work| work.fetched_bytes()));
        let beside = breaks.breaks.iter().map(|found| beside(found, &levels)).collect();
        MembersCurve { work, cases: indices, in_words: breaks.in_words(), breaks, beside }
    };
    let groups = alike(cases, |of| is_main(cases, of).then_some(of.case.work)).into_iter();
    groups.filter(|(_, indices)| indices.len() >= FEWEST).map(curve).collect()
}

/// Address spaces that Linux on x86 keeps apart in a CPU's TLB (TLB_NR_DYN_ASIDS,
/// arch/x86/include/asm/tlbflush.h).
const X86_ADDRESS_SPACES: u64 = 6;

/// The data caches of the CPU that was measured on, and what else limits it.
pub struct Levels<'a> {
    caches: Vec<&'a Cache>,
    address_spaces: Option<u64>,
}

impl<'a> Levels<'a> {
    /// The levels that one CPU of those measured on reaches.
    pub fn of(machine: &'a Machine, plan: &Plan) -> Self {
        let cpu = plan.cpus().first().copied().unwrap_or(0);
        let caches = machine.data_caches_of(cpu).unwrap_or_default();
        let vendor = machine.cpu.models.known().and_then(|models| models.first()?.vendor.known());
        let is_x86 =
            vendor.is_some_and(|vendor| ["AuthenticAMD", "GenuineIntel"].contains(&&**vendor));
        let processes = plan.rings().next().is_some_and(|(_, case)| case.kind == Kind::Process);
        let address_spaces = (is_x86 && processes).then_some(X86_ADDRESS_SPACES);
        Self { caches, address_spaces }
    }

    /// Those of which the size is known, as `size` makes it of the cache and its bytes.
    fn each(&self, what: &str, size: impl Fn(&Cache, u64) -> Option<u64>) -> Vec<Level> {
        let level = |cache: &&Cache| {
            let (level, bytes) = (cache.level.known()?, *cache.size_bytes.known()?);
            Some(Level { name: format!("{what}L{level}"), size: size(cache, bytes)? })
        };
        self.caches.iter().filter_map(level).collect()
    }

    /// For bytes of one array.
    pub fn for_arrays(&self) -> Vec<Level> {
        self.each("", |_, bytes| Some(bytes))
    }

    /// For pages of which one line is touched.
    pub fn for_pages(&self) -> Vec<Level> {
        self.each("lines of ", |cache, bytes| bytes.checked_div(*cache.line_bytes.known()?))
    }

    /// For members that touch so many bytes each.
    fn for_members(&self, touched: u64) -> Vec<Level> {
        let mut all = self.each("arrays in ", |_, bytes| bytes.checked_div(touched));
        let name = "address spaces in the TLB".to_string();
        all.extend(self.address_spaces.map(|size| Level { name, size }));
        all
    }
}
