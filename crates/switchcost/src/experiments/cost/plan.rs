//! `switchcost cost`, from what was typed to a plan.

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

/// Strides that are walked by default: the paper's.
const DEFAULT_STRIDES: [u64; 1] = [128];

/// Size of a page of the TLB grid.
const PAGE_BYTES: u64 = 4096;

/// Time of the one sample of a worker: some hundreds of hops, whose switches are counted exactly.
const SAMPLE_NS: u64 = 4_000_000;

/// Most triples of a worker: workers differ by far more than triples of one do.
const MAX_TRIPLES: u32 = 4;

/// Places of the working set that a worker tries: on a guest whose host gives it its huge pages
/// piece by piece, a third to nine tenths of them have pages that meet in the cache.
const PLACES: u32 = 32;

/// Plans the costs by working set, with notes on what was granted and what was not.
pub(crate) fn plan(args: &CostArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let (allowed, machine) = (&here.allowed, &here.machine);
    let free = here.current_load().shares.least_used(allowed);
    let quiet = placement::choose_quiet(&free, machine);
    let placement = here.placement(&args.placement, quiet)?;
    let mut notices: Vec<Notice> = Vec::new();
    if let (Some(cpu), PlacementArg::Same) = (quiet, &args.placement) {
        notices.push(setting::describe_chosen_cpu(cpu, machine).into());
    }
    let own_cpu = allowed.iter().any(|cpu| !placement.cpus().contains(cpu));
    let (policy, priority) = take_policy(args, own_cpu, &mut notices)?;
    let (works, skipped) = works(args, quiet, machine)?;
    notices.extend(skipped.map(Notice::from));
    let (works, too_short) = fit_works(works, args);
    notices.extend(too_short);
    notices.extend(describe_no_huge_pages(args, machine).map(Notice::from));
    let mut members = args.members.clone();
    members.retain(|size| *size > 1);
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
    let mut cases = Vec::new();
    for members in members {
        let without_work =
            RingCase { members, kind: args.kind, policy, priority, ..pair(placement.clone()) };
        cases.push(without_work.clone());
        for work in &works {
            cases.push(RingCase { work: Some(*work), ..without_work.clone() });
        }
    }
    if placement.is_one_cpu() {
        cases.extend(yield_rings(&placement));
    }
    let (events, not_counted) = events::choose(&args.events, Some(&placement))?;
    notices.extend(Notice::from_texts(not_counted));
    // One sample a worker, for the counts, and then the ring between solos on the same memory.
    let batching = plan::Batching::of_rings(RingBatching {
        laps: args.laps,
        sample_ns: SAMPLE_NS,
        samples_per_round: 1,
        triples: Some(MAX_TRIPLES),
        places: Some(PLACES),
        events,
        ..RingBatching::default()
    });
    Ok((args.effort.plan(Experiment::Cost, cases, batching), notices))
}

/// Time that a MiB of a member's array adds to a case.
const MIB_TIME: Duration = Duration::from_millis(10);
const MIB: f64 = (1 << 20) as f64;

/// Members of the rings that switch by sched_yield: one, the fewest that switch, and more than the
/// first-level caches hold kernel data of.
const YIELDING_MEMBERS: [u32; 3] = [1, 2, 64];

/// Kinds of the members of these rings.
const YIELDING_KINDS: [MemberKind; 2] = [MemberKind::Thread, MemberKind::Process];

/// Builds rings without work whose members only yield, of threads and of processes, under the
/// policy of most programs: the cost of a program's involuntary switches is read from them.
fn yield_rings(placement: &Placement) -> Vec<RingCase> {
    let mut rings = Vec::new();
    for kind in YIELDING_KINDS {
        for members in YIELDING_MEMBERS {
            let link = "yield".to_string();
            rings.push(RingCase { members, kind, link, ..pair(placement.clone()) });
        }
    }
    rings
}

/// Returns the working sets of the arrays for which the budget suffices, and a note if some were
/// left out.
fn fit_works(mut works: Vec<Work>, args: &CostArgs) -> (Vec<Work>, Option<Notice>) {
    let mut arrays: Vec<u64> = works.iter().map(|work| work.bytes).collect();
    arrays.sort_unstable();
    arrays.dedup();
    let each = (works.len() * args.members.len()).div_ceil(arrays.len().max(1));
    let most = args.members.iter().copied().max().unwrap_or(0);
    let others = args.members.len() + YIELDING_MEMBERS.len() * YIELDING_KINDS.len();
    let (kept, note) = args.effort.fitting(&arrays, each, others, |bytes| {
        MIB_TIME.mul_f64(bytes as f64 / MIB * f64::from(most))
    });
    works.retain(|work| kept.contains(&work.bytes));
    (works, note)
}

/// A way of walking with its strides and arrays.
struct WalkGrid {
    walk: Walk,
    strides: Vec<u64>,
    arrays: Vec<u64>,
}

impl WalkGrid {
    /// Builds the grid of a walk: strides and arrays that were asked for, or those of its own.
    fn new(walk: Walk, args: &CostArgs, cpu: Option<u32>, machine: &Machine) -> Self {
        let (strides, arrays) = match walk {
            Walk::Whole => {
                let strides = args.stride.clone().unwrap_or_else(|| DEFAULT_STRIDES.to_vec());
                (strides, doubled_arrays(machine, cpu, args.deep))
            }
            Walk::Chase => (vec![LINE_BYTES], dense_arrays(machine, cpu, args.deep)),
            Walk::Sparse => (vec![PAGE_BYTES], page_arrays()),
        };
        Self { walk, strides, arrays: args.array.clone().unwrap_or(arrays) }
    }
}

/// Returns the grid of each way of walking that was asked for.
fn grids(args: &CostArgs, cpu: Option<u32>, machine: &Machine) -> Vec<WalkGrid> {
    let walks = if args.tlb { vec![Walk::Sparse] } else { each_once(args.walk.iter().copied()) };
    let mut grids = Vec::new();
    for walk in walks {
        grids.push(WalkGrid::new(walk, args, cpu, machine));
    }
    grids
}

/// Returns all working sets, and a note on those whose stride is longer than the array.
fn works(
    args: &CostArgs,
    cpu: Option<u32>,
    machine: &Machine,
) -> Result<(Vec<Work>, Option<String>)> {
    let ops = each_once(args.op.iter().copied());
    let (mut works, mut too_small) = (Vec::new(), Vec::new());
    for WalkGrid { walk, strides, arrays } in grids(args, cpu, machine) {
        let count_before = works.len();
        for stride in &strides {
            Work::check_stride(*stride).map_err(usage)?;
        }
        for stride in strides {
            for bytes in &arrays {
                let Some(work) = fitting_work(*bytes, stride)? else {
                    too_small.push(format!("{bytes} by {stride}"));
                    continue;
                };
                for op in &ops {
                    works.push(Work { op: *op, walk, huge_pages: args.huge_pages, ..work });
                }
            }
        }
        if works.len() == count_before {
            let too_small = too_small.join(", ");
            return Err(usage(format!("--stride: larger than every array (--array): {too_small}")));
        }
    }
    too_small.dedup();
    if too_small.is_empty() {
        return Ok((works, None));
    }
    let too_small = too_small.join(", ");
    let note = format!("left out, as the stride is longer than the array: {too_small}");
    Ok((works, Some(note)))
}

/// Builds a working set; `None` if the stride is longer than the array. An array that no stride
/// fits is an error.
fn fitting_work(bytes: u64, stride: u64) -> Result<Option<Work>> {
    // Any stride fits an array that is as long: what is wrong then is the array.
    Work::new(bytes, stride.min(bytes).max(8), AccessKind::Read)
        .map_err(|error| usage(error.describe("--array")))?;
    Ok(Work::new(bytes, stride, AccessKind::Read).ok())
}

/// Returns the policy and its priority, and adds a note on what was granted.
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
    if asked.is_realtime() {
        match policy::highest_priority(asked) {
            Ok(priority) => {
                notices.push(setting::describe_granted(asked, priority).into());
                return Ok((asked, Some(priority)));
            }
            Err(errno) if args.policy.is_none() => {
                notices.push(setting::describe_refused(asked, errno).into());
                return Ok((Policy::Other, None));
            }
            // What was asked for by name is refused below.
            Err(_) => {}
        }
    }
    ring::check_policy(asked).with_context(|| format!("--policy {asked}"))?;
    Ok((asked, None))
}

/// Returns a note on huge pages that were asked for and that this kernel does not give.
fn describe_no_huge_pages(args: &CostArgs, machine: &Machine) -> Option<String> {
    if !args.huge_pages {
        return None;
    }
    let why = match machine.memory.thp_enabled.known().map(String::as_str) {
        Some("always" | "madvise") => return None,
        Some(setting) => format!("transparent huge pages are '{setting}' here"),
        None => "this kernel does not say whether it has transparent huge pages".to_string(),
    };
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    Some(format!("not granted: --huge-pages on: {why} ({file})"))
}

/// Size of the smallest array.
const MIN_ARRAY_BYTES: u64 = 1 << 10;

/// Size of the private cache that is assumed where the machine does not tell.
const ASSUMED_PRIVATE_BYTES: u64 = 512 << 10;

/// Size of the first cache that is assumed where the machine does not tell.
const ASSUMED_FIRST_BYTES: u64 = 32 << 10;

/// Smallest number of pages of a TLB grid.
const MIN_PAGES: u64 = 4;

/// Largest number of pages of a TLB grid: past the second-level TLB of any processor on sale.
const MAX_PAGES: u64 = 4096;

/// Sizes between which the arrays of a CPU lie.
struct ArraySpan {
    /// Size of the CPU's last private cache.
    private: u64,
    /// Largest array: four times that cache, or, if it is to be deep, at least twice the largest
    /// cache of the machine.
    end: u64,
}

impl ArraySpan {
    fn new(machine: &Machine, cpu: Option<u32>, is_deep: bool) -> Self {
        let private = match private_cache_bytes(machine, cpu) {
            Some(bytes) if bytes >= MIN_ARRAY_BYTES => bytes,
            _ => ASSUMED_PRIVATE_BYTES,
        };
        let mut end = 4 * private;
        if is_deep {
            let largest = machine.largest_cache().ok().and_then(cache_bytes);
            end = end.max(2 * largest.unwrap_or(0));
        }
        Self { private, end }
    }
}

fn private_cache_bytes(machine: &Machine, cpu: Option<u32>) -> Option<u64> {
    cache_bytes(machine.last_private_cache(cpu?).ok()?)
}

fn cache_bytes(cache: &CpuCache) -> Option<u64> {
    cache.size_bytes.known().copied()
}

/// Returns arrays from 1 KiB to the end of the span, in doublings.
fn doubled_arrays(machine: &Machine, cpu: Option<u32>, is_deep: bool) -> Vec<u64> {
    let ArraySpan { private, end } = ArraySpan::new(machine, cpu, is_deep);
    // Parts of the cache itself, whatever its size: a half and a whole of it are among them.
    let mut sizes = doublings(MIN_ARRAY_BYTES, private / 8);
    sizes.extend(doublings(private / 4, end));
    whole_lines(sizes)
}

/// Returns arrays of a chase, two a doubling, from half of the first cache, or just below, to the
/// end of the span: costs peak where one array fits into a cache and two do not, at the first as
/// well as at the last. Among them are a half and a whole of the last private cache; no array at
/// all is always measured beside.
fn dense_arrays(machine: &Machine, cpu: Option<u32>, is_deep: bool) -> Vec<u64> {
    let ArraySpan { private, end } = ArraySpan::new(machine, cpu, is_deep);
    let first = first_cache_bytes(machine, cpu).unwrap_or(ASSUMED_FIRST_BYTES).min(private);
    let half_of_first = (first / 2).max(MIN_ARRAY_BYTES);
    // Halves of the private cache, so that the cache itself is among the sizes.
    let mut lowest = private;
    while lowest > half_of_first && lowest / 2 >= MIN_ARRAY_BYTES {
        lowest /= 2;
    }
    let mut sizes = whole_lines(two_a_doubling(lowest, end));
    let below_half = sizes.partition_point(|size| *size <= half_of_first);
    sizes.drain(..below_half.saturating_sub(1));
    sizes
}

/// Returns the size of the smallest data cache of `cpu`.
fn first_cache_bytes(machine: &Machine, cpu: Option<u32>) -> Option<u64> {
    let mut sizes = Vec::new();
    for cache in machine.cpu.caches.known()? {
        if cache.holds_data() && cache.serves(cpu?) {
            sizes.extend(cache_bytes(cache));
        }
    }
    sizes.into_iter().min()
}

/// Returns `first`, twice as much and so on, up to `last`.
fn doublings(first: u64, last: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut next = Some(first);
    while let Some(size) = next {
        if size > last {
            break;
        }
        sizes.push(size);
        next = size.checked_mul(2);
    }
    sizes
}

/// Returns doublings from `first` to `last`, and one and a half of each: round numbers, where even
/// steps would be of the root of two. More of them than the default budget can resolve would each
/// be known the worse.
fn two_a_doubling(first: u64, last: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    for size in doublings(first, last) {
        sizes.extend([size, size + size / 2]);
    }
    sizes.retain(|size| *size <= last);
    sizes
}

/// Rounds sizes down to whole lines; returns them ascending, each once.
fn whole_lines(mut sizes: Vec<u64>) -> Vec<u64> {
    for size in &mut sizes {
        *size -= *size % LINE_BYTES;
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns arrays of so many pages for the TLB, two a doubling.
fn page_arrays() -> Vec<u64> {
    let mut arrays = two_a_doubling(MIN_PAGES, MAX_PAGES);
    for pages in &mut arrays {
        *pages *= PAGE_BYTES;
    }
    arrays
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
        let sizes: Vec<u64> =
            doubled_arrays(&machine(512), Some(0), false).iter().map(kib).collect();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]);
        let near: Vec<u64> = dense_arrays(&machine(512), Some(0), false).iter().map(kib).collect();
        let dense_sizes = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];
        assert_eq!(near, dense_sizes);
        // 48 KiB and 2 MiB: from a half of the first to four times the second.
        let mut larger = machine(2048);
        if let Reading::Known(caches) = &mut larger.cpu.caches {
            caches[0].size_bytes = Reading::Known(48 << 10);
        }
        let sizes = dense_arrays(&larger, Some(0), false);
        assert_eq!((sizes[0] >> 10, sizes[1] >> 10, sizes.last()), (24, 32, Some(&(8 << 20))));
        for pair in sizes.windows(2) {
            let ratio = pair[1] as f64 / pair[0] as f64;
            assert!((1.3..1.55).contains(&ratio), "{sizes:?}");
        }
        // Where nothing is known, as if there were 32 and 512 KiB.
        let unknown: Vec<u64> =
            dense_arrays(&Machine::default(), None, false).iter().map(kib).collect();
        assert_eq!(unknown, dense_sizes);
        let deep = doubled_arrays(&machine(512), Some(0), true);
        assert_eq!(deep.last(), Some(&(64 << 20)));
    }

    #[test]
    fn arrays_are_of_whole_lines_whatever_the_cache() {
        for private in [48, 1280, 1536, 2048] {
            for sizes in
                [doubled_arrays, dense_arrays].map(|grid| grid(&machine(private), Some(0), true))
            {
                assert!(sizes.iter().all(|size| size % LINE_BYTES == 0), "{sizes:?}");
                assert!(sizes.is_sorted() && sizes.contains(&(private << 9)), "{sizes:?}");
            }
        }
        assert_eq!(doubled_arrays(&Machine::default(), Some(0), true).last(), Some(&(2 << 20)));
    }

    #[test]
    fn pages_go_past_any_tlb() {
        let pages: Vec<u64> = page_arrays().iter().map(|bytes| bytes / PAGE_BYTES).collect();
        assert_eq!(pages[..5], [4, 6, 8, 12, 16]);
        assert_eq!(pages.last(), Some(&MAX_PAGES));
    }
}
