//! What of the machine a working set, or a number of members, may outgrow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::jump::CostJump;
use crate::regions::{MachineLevel, SizeAxis};
use rundata::machine::{Cache, Machine, Tlb};
use rundata::plan::Plan;
use rundata::ring::{Kind, Walk, Work};
use rundata::words::bytes;

/// Address spaces that Linux on x86 keeps apart in a CPU's TLB (TLB_NR_DYN_ASIDS,
/// arch/x86/include/asm/tlbflush.h).
const X86_ADDRESS_SPACES: u64 = 6;

/// So many of them others may take: the kernel's threads run in the last one's, a task beside the
/// ring in its own.
const TAKEN_BY_OTHERS: u64 = 2;

/// Runnable tasks that CFS, the scheduler before Linux 6.6, gives a turn each within its latency
/// (sched_nr_latency, kernel/sched/fair.c): of more than these each turn is as short as it may be.
const CFS_TASKS: u64 = 8;
/// The first kernel without CFS.
const EEVDF: (u32, u32) = (6, 6);

/// Where a cache of a size of 1 begins to overflow, as pages fall into its sets by chance, and
/// where it has.
const OVERFLOWS: (f64, f64) = (0.5, 1.3);

/// Something of the machine that ends at the place of a jump: it may be its cause, and need not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Candidate")]
pub struct JumpCandidate {
    /// `L1 48 KiB`.
    pub name: String,
}

/// The data caches of the CPU that was measured on, and what else limits it.
pub struct MachineLevels<'a> {
    caches: Vec<&'a Cache>,
    tlbs: &'a [Tlb],
    address_spaces: Option<u64>,
    runnable: Option<u64>,
}

impl<'a> MachineLevels<'a> {
    /// The levels that one CPU of those measured on reaches.
    pub fn from_machine(machine: &'a Machine, plan: &Plan) -> Self {
        let cpu = plan.cpus().first().copied().unwrap_or(0);
        let caches = machine.data_caches_of(cpu).unwrap_or_default();
        let vendor = machine.cpu.models.known().and_then(|models| models.first()?.vendor.known());
        let is_x86 =
            vendor.is_some_and(|vendor| ["AuthenticAMD", "GenuineIntel"].contains(&&**vendor));
        let first = plan.rings().map(|(_, case)| case).next();
        let first = first.filter(|case| case.placement.is_one_cpu());
        let processes = first.is_some_and(|case| case.kind == Kind::Process);
        let address_spaces = (is_x86 && processes).then_some(X86_ADDRESS_SPACES);
        let kernel = machine.kernel.release.known().and_then(|release| version(release));
        // Of other links no more than two members are runnable at once.
        let all_run = first.is_some_and(|case| case.link == "yield" && !case.policy.is_realtime());
        let runnable = (all_run && kernel.is_some_and(|of| of < EEVDF)).then_some(CFS_TASKS);
        let tlbs = machine.cpu.tlbs.known().map_or(&[][..], Vec::as_slice);
        Self { caches, tlbs, address_spaces, runnable }
    }

    /// Those of which the size is known, as `size` makes it of the cache and its bytes.
    fn each(&self, what: &str, size: impl Fn(&Cache, u64) -> Option<u64>) -> Vec<MachineLevel> {
        let level = |cache: &&Cache| {
            let (level, bytes) = (cache.level.known()?, *cache.size_bytes.known()?);
            Some(MachineLevel { name: format!("{what}L{level}"), size: size(cache, bytes)? })
        };
        self.caches.iter().filter_map(level).collect()
    }

    /// For bytes of one array.
    pub fn for_arrays(&self) -> Vec<MachineLevel> {
        self.each("", |_, bytes| Some(bytes))
    }

    /// For pages of which one line is touched.
    pub fn for_pages(&self) -> Vec<MachineLevel> {
        self.each("lines of ", |cache, bytes| bytes.checked_div(*cache.line_bytes.known()?))
    }

    /// For members that touch so many bytes each.
    pub(super) fn for_members(&self, touched: u64) -> Vec<MachineLevel> {
        let mut all = self.each("arrays in ", |_, bytes| bytes.checked_div(touched));
        let name = "address spaces in the TLB".to_string();
        all.extend(self.address_spaces.map(|size| MachineLevel { name, size }));
        all
    }

    /// What of the machine ends between the two sizes of a jump: the caches and the TLBs that the
    /// arrays of all members, or one alone, outgrow there, and what else Linux keeps only so many
    /// of.
    pub fn candidates(
        &self,
        jump: &CostJump,
        axis: &SizeAxis,
        members: u32,
        work: Option<Work>,
    ) -> Vec<JumpCandidate> {
        let by_members = *axis == SizeAxis::MEMBERS;
        // The work of a member at one size of the jump, and how many members have it.
        let at = |size: u64| {
            let of = work?;
            Some(match (by_members, of.walk) {
                (true, _) => (of, size),
                (false, Walk::Sparse) => {
                    let bytes = size.checked_mul(of.stride_bytes)?;
                    (Work { bytes, ..of }, members.into())
                }
                (false, _) => (Work { bytes: size, ..of }, members.into()),
            })
        };
        let sizes = (*axis != SizeAxis::STRIDE).then_some(());
        let ends = sizes.and_then(|()| at(jump.from).zip(at(jump.to)));
        // Whether all together outgrow what holds so much, before one alone has: of members none is
        // ever alone.
        let is_outgrown = |holds: u64, touched: fn(&Work) -> u64| {
            ends.is_some_and(|((before, many), (after, all))| {
                let before = touched(&before).saturating_mul(if by_members { many } else { 1 });
                touched(&after).saturating_mul(all) as f64 > OVERFLOWS.0 * holds as f64
                    && (before as f64) < OVERFLOWS.1 * holds as f64
            })
        };
        let caches = self.for_arrays().into_iter();
        let caches = caches.filter(|level| is_outgrown(level.size, Work::fetched_bytes));
        let caches = caches.map(|level| format!("{} {}", level.name, bytes(level.size)));
        let tlbs = self.tlbs.iter().filter(|tlb| {
            let is_used = work.is_some_and(|of| of.page_bytes() == tlb.page_bytes);
            is_used && is_outgrown(tlb.entries, Work::pages)
        });
        let tlbs = tlbs.map(|tlb| {
            format!("L{} TLB of {} pages of {}", tlb.level, tlb.entries, bytes(tlb.page_bytes))
        });
        let spaces = self.address_spaces.filter(|spaces| {
            by_members && jump.from <= *spaces && jump.to + TAKEN_BY_OTHERS > *spaces
        });
        let spaces = spaces.map(|spaces| {
            format!(
                "the {spaces} address spaces that Linux keeps in a CPU's TLB, shared with \
                 other tasks"
            )
        });
        let runnable =
            self.runnable.filter(|tasks| by_members && (jump.from..jump.to).contains(tasks));
        let runnable = runnable
            .map(|tasks| format!("the {tasks} tasks that CFS gives a turn within its latency"));
        caches
            .chain(tlbs)
            .chain(spaces)
            .chain(runnable)
            .map(|name| JumpCandidate { name })
            .collect()
    }
}

/// `6.1.0-18-amd64` is (6, 1).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(['.', '-']).map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}
