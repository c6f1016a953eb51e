//! `switchcost cost`, from what was typed to a plan.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use probe::{placement, policy, ring};
use rundata::experiment::Experiment;
use rundata::machine::{CpuCache, Machine};
use rundata::notice::Notice;
use rundata::placement::Placement;
use rundata::plan;
use rundata::ring::{
    AccessKind, LINE_BYTES, MemberKind, Policy, RingBatching, RingCase, Walk, Work,
};

use super::CostArgs;
use crate::base::failure::usage;
use crate::base::values::each_once;
use crate::engine::setting::{self, LocalHost, PlacementArg, PlanWithNotices, pair};
use crate::experiments::events;

/// The stride where none is asked for: the paper's.
const STRIDES: [u64; 1] = [128];

/// The page of the TLB grid.
const PAGE_BYTES: u64 = 4096;

/// Of the one sample of a worker: some hundreds of hops, whose switches are counted exactly.
const SAMPLE_NS: u64 = 4_000_000;

/// Triples of a worker, at most: workers differ by far more than triples of one do.
const TRIPLES: u32 = 4;

/// Places of the working set that a worker tries: on a guest whose host gives it its huge pages
/// piece by piece, a third to nine tenths of them have pages that meet in the cache.
const PLACES: u32 = 32;

/// The plan of `switchcost cost`, and what was granted of the augmented setting and what was not.
pub(crate) fn plan(args: &CostArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let (allowed, machine) = (&here.allowed, &here.machine);
    let free = here.current_load().shares.least_used(allowed);
    let quiet = placement::choose_quiet(&free, machine);
    let placement = here.placement(&args.placement, quiet)?;
    // Why this CPU, where it was chosen here.
    let chosen = quiet.filter(|_| args.placement == PlacementArg::Same);
    let chosen = chosen.map(|cpu| setting::describe_chosen_cpu(cpu, machine));
    let mut notices: Vec<Notice> = chosen.into_iter().map(Notice::from).collect();
    let own_cpu = allowed.iter().any(|cpu| !placement.cpus().contains(cpu));
    let (policy, priority) = take_policy(args, own_cpu, &mut notices)?;
    let (works, skipped) = works(args, quiet, machine)?;
    notices.extend(skipped.map(Notice::from));
    let (works, too_short) = fitting(works, args);
    notices.extend(too_short);
    notices.extend(without_huge_pages(args, machine).map(Notice::from));
    let members: Vec<u32> = args.members.iter().copied().filter(|size| *size > 1).collect();
    let Some(largest) = members.iter().max() else {
        return Err(usage(
            "--members 1: each member's solo is measured with its ring (accepted: 2 or more)",
        ));
    };
    let most = works.iter().map(|work| work.bytes).max().unwrap_or(0);
    here.check_memory(
        &format!("--array {most} in {largest} members"),
        u128::from(most) * u128::from(*largest),
        "smaller arrays or fewer --members",
    )?;
    let case = |members: u32, work: Option<Work>| {
        let kind = args.kind;
        RingCase { members, kind, work, policy, priority, ..pair(placement.clone()) }
    };
    let with_and_without = || std::iter::once(None).chain(works.iter().copied().map(Some));
    let grid = members.iter().flat_map(|m| with_and_without().map(|work| case(*m, work)));
    let grid =
        grid.chain(placement.is_one_cpu().then(|| by_yield(&placement)).into_iter().flatten());
    let (events, not_counted) = events::choose(&args.events, Some(&placement))?;
    notices.extend(not_counted.into_iter().map(Notice::from));
    // One sample a worker, for the counts, and then the ring between solos on the same memory.
    let batching = plan::Batching::of_rings(RingBatching {
        laps: args.laps,
        sample_ns: SAMPLE_NS,
        samples_per_round: 1,
        triples: Some(TRIPLES),
        places: Some(PLACES),
        events,
        ..RingBatching::default()
    });
    Ok((args.effort.plan(Experiment::Cost, grid, batching), notices))
}

/// What a MiB of a member's array adds to the time of a case, and a MiB.
const MEMORY: Duration = Duration::from_millis(10);
const MIB: f64 = (1 << 20) as f64;

/// Members of the rings that switch by sched_yield: one, the fewest that switch, and more than the
/// first-level caches hold kernel data of.
const YIELDING: [u32; 3] = [1, 2, 64];

/// What their members are.
const YIELDING_KINDS: [MemberKind; 2] = [MemberKind::Thread, MemberKind::Process];

/// Rings without work whose members only yield, of threads and of processes, under the policy of
/// most programs: what a program's involuntary switches cost is read from them.
fn by_yield(placement: &Placement) -> impl Iterator<Item = RingCase> {
    let yielding = |kind: MemberKind, members: u32| {
        let link = "yield".to_string();
        RingCase { members, kind, link, ..pair(placement.clone()) }
    };
    YIELDING_KINDS.into_iter().flat_map(move |kind| YIELDING.map(|members| yielding(kind, members)))
}

/// The working sets of the arrays for which the budget suffices, and a note if some were left out.
fn fitting(works: Vec<Work>, args: &CostArgs) -> (Vec<Work>, Option<Notice>) {
    let arrays: Vec<u64> =
        works.iter().map(|work| work.bytes).collect::<BTreeSet<_>>().into_iter().collect();
    let each = (works.len() * args.members.len()).div_ceil(arrays.len().max(1));
    let most = args.members.iter().copied().max().unwrap_or(0);
    let others = args.members.len() + YIELDING.len() * YIELDING_KINDS.len();
    let (kept, note) = args.effort.fitting(&arrays, each, others, |bytes| {
        MEMORY.mul_f64(bytes as f64 / MIB * f64::from(most))
    });
    (works.into_iter().filter(|work| kept.contains(&work.bytes)).collect(), note)
}

/// The ways of walking that were asked for, each with its strides and the arrays of its own grid.
fn grids(args: &CostArgs, cpu: Option<u32>, machine: &Machine) -> Vec<(Walk, Vec<u64>, Vec<u64>)> {
    let part = |walk: Walk| {
        let (strides, arrays) = match walk {
            Walk::Whole => (args.stride.clone(), arrays(machine, cpu, args.deep)),
            Walk::Chase => (Some(vec![LINE_BYTES]), dense(machine, cpu, args.deep)),
            Walk::Sparse => (
                Some(vec![PAGE_BYTES]),
                pages().into_iter().map(|pages| pages * PAGE_BYTES).collect(),
            ),
        };
        (walk, strides.unwrap_or_else(|| STRIDES.to_vec()), args.array.clone().unwrap_or(arrays))
    };
    match args.tlb {
        true => vec![part(Walk::Sparse)],
        false => each_once(args.walk.iter().copied()).into_iter().map(part).collect(),
    }
}

/// All working sets, and a note on those that cannot be walked by some stride.
fn works(
    args: &CostArgs,
    cpu: Option<u32>,
    machine: &Machine,
) -> Result<(Vec<Work>, Option<String>)> {
    let (mut works, mut too_small) = (Vec::new(), Vec::new());
    for (walk, strides, arrays) in grids(args, cpu, machine) {
        let before = works.len();
        for stride in &strides {
            Work::check_stride(*stride).map_err(usage)?;
        }
        for (stride, bytes) in strides.iter().flat_map(|s| arrays.iter().map(move |b| (*s, *b))) {
            // Any stride fits an array that is as long: what is wrong then is the array.
            Work::new(bytes, stride.min(bytes).max(8), AccessKind::Read)
                .map_err(|error| usage(error.describe("--array")))?;
            match Work::new(bytes, stride, AccessKind::Read) {
                Ok(work) => {
                    let huge_pages = args.huge_pages;
                    let ops = each_once(args.op.iter().copied()).into_iter();
                    works.extend(ops.map(|op| Work { op, walk, huge_pages, ..work }));
                }
                Err(_) => too_small.push(format!("{bytes} by {stride}")),
            }
        }
        if works.len() == before {
            let too_small = too_small.join(", ");
            return Err(usage(format!("--stride: larger than every array (--array): {too_small}")));
        }
    }
    too_small.dedup();
    let too_small = too_small.join(", ");
    let left_out = (!too_small.is_empty())
        .then(|| format!("left out, as the stride is longer than the array: {too_small}"));
    Ok((works, left_out))
}

/// The policy and its priority, and a note on what was granted.
fn take_policy(
    args: &CostArgs,
    own_cpu: bool,
    notices: &mut Vec<Notice>,
) -> Result<(Policy, Option<u32>)> {
    let asked = args.policy.unwrap_or(if own_cpu { Policy::Fifo } else { Policy::Other });
    // Where this program has no CPU of its own a real-time ring could keep it from being stopped.
    if !own_cpu && asked.is_realtime() {
        return Err(usage(format!(
            "--policy {asked}: the ring would take every CPU that this program may use, and \
             under a real-time policy could not be watched (accepted here: other, batch; or leave \
             a CPU out: --placement)"
        )));
    }
    if !own_cpu && args.policy.is_none() {
        notices.push(
            "SCHED_FIFO is not used, as no CPU is left to watch the ring from; SCHED_OTHER instead"
                .to_string()
                .into(),
        );
    }
    match asked.is_realtime().then(|| policy::highest_priority(asked)) {
        Some(Ok(priority)) => {
            notices.push(setting::describe_granted(asked, priority).into());
            Ok((asked, Some(priority)))
        }
        Some(Err(errno)) if args.policy.is_none() => {
            notices.push(setting::describe_refused(asked, errno).into());
            Ok((Policy::Other, None))
        }
        _ => {
            ring::check_policy(asked).with_context(|| format!("--policy {asked}"))?;
            Ok((asked, None))
        }
    }
}

/// Huge pages that were asked for and that this kernel does not give.
fn without_huge_pages(args: &CostArgs, machine: &Machine) -> Option<String> {
    let why = match machine.memory.thp_enabled.known().map(String::as_str) {
        _ if !args.huge_pages => return None,
        Some("always" | "madvise") => return None,
        Some(other) => format!("transparent huge pages are '{other}' here"),
        None => "this kernel does not say whether it has transparent huge pages".to_string(),
    };
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    Some(format!("not granted: --huge-pages on: {why} ({file})"))
}

/// The smallest array.
const SMALLEST: u64 = 1 << 10;

/// The private cache that is assumed where the machine does not say.
const COMMON_PRIVATE: u64 = 512 << 10;

/// The first cache that is assumed where the machine does not say.
const COMMON_FIRST: u64 = 32 << 10;

/// Pages of a TLB grid at the least.
const FEWEST_PAGES: u64 = 4;

/// Pages of a TLB grid: past the second-level TLB of any processor on sale.
const MOST_PAGES: u64 = 4096;

/// The private cache of `cpu`, and where its grid ends: at four times that cache, or `deep` at
/// twice the largest.
fn span(machine: &Machine, cpu: Option<u32>, deep: bool) -> (u64, u64) {
    let size = |cache: &CpuCache| cache.size_bytes.known().copied();
    let private = cpu.and_then(|cpu| size(machine.last_private_cache(cpu).ok()?));
    let private = private.filter(|size| *size >= SMALLEST).unwrap_or(COMMON_PRIVATE);
    let largest = machine.largest_cache().ok().and_then(size);
    match largest.filter(|_| deep) {
        Some(largest) => (private, (4 * private).max(2 * largest)),
        None => (private, 4 * private),
    }
}

/// Arrays from 1 KiB to the end of the span, in doublings.
fn arrays(machine: &Machine, cpu: Option<u32>, deep: bool) -> Vec<u64> {
    let (private, end) = span(machine, cpu, deep);
    // Parts of the cache itself, whatever its size: a half and a whole of it are among them.
    let small = doublings(SMALLEST, private / 8);
    tidy(small.chain(doublings(private / 4, end)))
}

/// Arrays of a chase, two a doubling, from half of the first cache, or just below, to the end of
/// the span: costs peak where one array fits into a cache and two do not, at the first as well as
/// at the last. Among them are a half and a whole of the last private cache; no array at all is
/// always measured beside.
fn dense(machine: &Machine, cpu: Option<u32>, deep: bool) -> Vec<u64> {
    let (private, end) = span(machine, cpu, deep);
    let first = first_cache(machine, cpu).unwrap_or(COMMON_FIRST).min(private);
    let half_of_first = (first / 2).max(SMALLEST);
    // Halves of the private cache, so that the cache itself is among the sizes.
    let mut lowest = private;
    while lowest > half_of_first && lowest / 2 >= SMALLEST {
        lowest /= 2;
    }
    let mut sizes = tidy(two_a_doubling(lowest, end));
    let below_half = sizes.partition_point(|size| *size <= half_of_first);
    sizes.drain(..below_half.saturating_sub(1));
    sizes
}

/// The smallest data cache of `cpu`.
fn first_cache(machine: &Machine, cpu: Option<u32>) -> Option<u64> {
    let caches = machine.cpu.caches.known()?.iter();
    let own = caches.filter(|cache| cache.holds_data() && cpu.is_some_and(|cpu| cache.serves(cpu)));
    own.filter_map(|cache| cache.size_bytes.known().copied()).min()
}

/// `first`, twice as much and so on, up to `last`.
fn doublings(first: u64, last: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(first), |size| size.checked_mul(2)).take_while(move |s| *s <= last)
}

/// Doublings from `first` to `last`, and one and a half of each: round numbers, where even steps
/// would be of the root of two. More of them than the default budget can resolve would each be
/// known the worse.
fn two_a_doubling(first: u64, last: u64) -> impl Iterator<Item = u64> {
    doublings(first, last).flat_map(|size| [size, size + size / 2]).filter(move |s| *s <= last)
}

/// Whole lines, ascending, each once.
fn tidy(sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let lines = sizes.map(|size| size - size % LINE_BYTES);
    lines.collect::<BTreeSet<u64>>().into_iter().collect()
}

/// Numbers of pages for the TLB, two a doubling.
fn pages() -> Vec<u64> {
    two_a_doubling(FEWEST_PAGES, MOST_PAGES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rundata::machine::{CacheKind, LogicalCpu};
    use rundata::reading::Reading;

    fn machine(private_kib: u64) -> Machine {
        let cache = |level: u32, kib: u64, cpus: &str| CpuCache {
            level: Reading::Known(level),
            kind: Reading::Known(CacheKind::Unified),
            size_bytes: Reading::Known(kib << 10),
            shared_cpus: cpus.parse().map_or(Reading::unknown("bad"), Reading::Known),
            ..CpuCache::default()
        };
        let mut machine = Machine::default();
        let own = Reading::Known("0".parse().expect("a list"));
        machine.cpu.topology =
            Reading::Known(vec![LogicalCpu { smt_siblings: own, ..LogicalCpu::default() }]);
        machine.cpu.caches = Reading::Known(vec![
            cache(1, 32, "0"),
            cache(2, private_kib, "0"),
            cache(3, 32 << 10, "0-1"),
        ]);
        machine
    }

    #[test]
    fn arrays_are_doublings_and_dense_ones_two_each_from_half_the_first_cache_on() {
        let kib = |bytes: &u64| bytes >> 10;
        let sizes: Vec<u64> = arrays(&machine(512), Some(0), false).iter().map(kib).collect();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]);
        let near: Vec<u64> = dense(&machine(512), Some(0), false).iter().map(kib).collect();
        let dense_sizes = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];
        assert_eq!(near, dense_sizes);
        // 48 KiB and 2 MiB: from a half of the first to four times the second.
        let mut larger = machine(2048);
        if let Reading::Known(caches) = &mut larger.cpu.caches {
            caches[0].size_bytes = Reading::Known(48 << 10);
        }
        let sizes = dense(&larger, Some(0), false);
        assert_eq!((sizes[0] >> 10, sizes[1] >> 10, sizes.last()), (24, 32, Some(&(8 << 20))));
        for pair in sizes.windows(2) {
            let ratio = pair[1] as f64 / pair[0] as f64;
            assert!((1.3..1.55).contains(&ratio), "{sizes:?}");
        }
        // Where nothing is known, as if there were 32 and 512 KiB.
        let unknown: Vec<u64> = dense(&Machine::default(), None, false).iter().map(kib).collect();
        assert_eq!(unknown, dense_sizes);
        let deep = arrays(&machine(512), Some(0), true);
        assert_eq!(deep.last(), Some(&(64 << 20)));
    }

    #[test]
    fn arrays_are_of_whole_lines_whatever_the_cache() {
        for private in [48, 1280, 1536, 2048] {
            for sizes in [arrays, dense].map(|grid| grid(&machine(private), Some(0), true)) {
                assert!(sizes.iter().all(|size| size % LINE_BYTES == 0), "{sizes:?}");
                assert!(sizes.is_sorted() && sizes.contains(&(private << 9)), "{sizes:?}");
            }
        }
        assert_eq!(arrays(&Machine::default(), Some(0), true).last(), Some(&(2 << 20)));
    }

    #[test]
    fn pages_go_past_any_tlb() {
        let pages = pages();
        assert_eq!(pages[..5], [4, 6, 8, 12, 16]);
        assert_eq!(pages.last(), Some(&MOST_PAGES));
    }
}
