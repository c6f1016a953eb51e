//! Limits of the machine that a working set, or a number of members, may exceed.

use rundata::machine::{CpuCache, DataTlb, Machine};
use rundata::plan::Plan;
use rundata::ring::{MemberKind, Walk, Work};
use rundata::words::bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::jump::CostJump;
use crate::regions::{MachineLevel, SizeAxis};

/// Address spaces that Linux on x86 keeps apart in a CPU's TLB (TLB_NR_DYN_ASIDS,
/// arch/x86/include/asm/tlbflush.h).
const X86_ADDRESS_SPACES: u64 = 6;

/// Largest number of them that are not the ring's: the kernel's threads use the last one, a
/// competing task has its own.
const OTHER_ADDRESS_SPACES: u64 = 2;

/// Runnable tasks that CFS, the scheduler before Linux 6.6, gives a turn each within its latency
/// (sched_nr_latency, kernel/sched/fair.c): with more of them each turn is as short as allowed.
const CFS_TASKS: u64 = 8;
/// The first kernel with the scheduler EEVDF instead of CFS.
const EEVDF: (u32, u32) = (6, 6);

/// Parts of its size at which a cache begins to overflow, as pages fall into its sets by chance, and
/// at which it has overflowed.
const OVERFLOW_RANGE: (f64, f64) = (0.5, 1.3);

/// A limit of the machine at the place of a jump, which may be its cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Candidate")]
pub struct JumpCandidate {
    /// `L1 48 KiB`.
    pub name: String,
}

/// The data caches of the measured CPU, and its other limits.
pub struct MachineLevels<'a> {
    caches: Vec<&'a CpuCache>,
    tlbs: &'a [DataTlb],
    address_spaces: Option<u64>,
    runnable: Option<u64>,
}

impl<'a> MachineLevels<'a> {
    /// Returns the levels of the first measured CPU.
    pub fn from_machine(machine: &'a Machine, plan: &Plan) -> Self {
        let cpu = plan.cpus().first().copied().unwrap_or(0);
        let caches = machine.data_caches_of(cpu).unwrap_or_default();
        let tlbs = match machine.cpu.tlbs.known() {
            Some(tlbs) => tlbs.as_slice(),
            None => &[],
        };
        let (mut address_spaces, mut runnable) = (None, None);
        if let Some((_, ring)) = plan.rings().next() {
            let is_one_cpu = ring.placement.is_one_cpu();
            if is_one_cpu && ring.kind == MemberKind::Process && is_x86(machine) {
                address_spaces = Some(X86_ADDRESS_SPACES);
            }
            // With other links no more than two members are runnable at once.
            let all_run = ring.link == "yield" && !ring.policy.is_realtime();
            if is_one_cpu && all_run && has_cfs(machine) {
                runnable = Some(CFS_TASKS);
            }
        }
        Self { caches, tlbs, address_spaces, runnable }
    }

    /// Returns the caches as levels, with the sizes that `size` makes of a cache and its bytes.
    fn cache_levels(
        &self,
        what: &str,
        size: impl Fn(&CpuCache, u64) -> Option<u64>,
    ) -> Vec<MachineLevel> {
        let mut levels = Vec::new();
        for cache in &self.caches {
            let known = (cache.level.known(), cache.size_bytes.known());
            let (Some(level), Some(bytes)) = known else { continue };
            if let Some(size) = size(cache, *bytes) {
                levels.push(MachineLevel { name: format!("{what}L{level}"), size });
            }
        }
        levels
    }

    /// Returns the levels in bytes of one array.
    pub fn for_arrays(&self) -> Vec<MachineLevel> {
        self.cache_levels("", |_, bytes| Some(bytes))
    }

    /// Returns the levels in pages of which one line is touched.
    pub fn for_pages(&self) -> Vec<MachineLevel> {
        self.cache_levels("lines of ", |cache, bytes| bytes.checked_div(*cache.line_bytes.known()?))
    }

    /// Returns the levels in members that touch `touched` bytes each.
    pub(super) fn for_members(&self, touched: u64) -> Vec<MachineLevel> {
        let mut levels = self.cache_levels("arrays in ", |_, bytes| bytes.checked_div(touched));
        if let Some(size) = self.address_spaces {
            let name = "address spaces in the TLB".to_string();
            levels.push(MachineLevel { name, size });
        }
        levels
    }

    /// Returns the limits between the two sizes of a jump: caches and TLBs that the arrays of all
    /// members, or of one alone, exceed there, address spaces and runnable tasks.
    pub fn candidates(
        &self,
        jump: &CostJump,
        axis: &SizeAxis,
        members: u32,
        work: Option<Work>,
    ) -> Vec<JumpCandidate> {
        let mut names = Vec::new();
        if let Some(work) = work {
            names.extend(self.outgrown_memory(jump, axis, members, work));
        }
        if *axis == SizeAxis::MEMBERS {
            names.extend(self.exceeded_tasks(jump));
        }
        names.into_iter().map(|name| JumpCandidate { name }).collect()
    }

    /// Returns the names of the caches and TLBs that arrays exceed at a jump.
    fn outgrown_memory(
        &self,
        jump: &CostJump,
        axis: &SizeAxis,
        members: u32,
        work: Work,
    ) -> Vec<String> {
        let mut names = Vec::new();
        let Some(ends) = JumpWork::at_ends(jump, axis, members, work) else { return names };
        for level in self.for_arrays() {
            if ends.outgrow(level.size, Work::fetched_bytes) {
                names.push(format!("{} {}", level.name, bytes(level.size)));
            }
        }
        for tlb in self.tlbs {
            if work.page_bytes() == tlb.page_bytes && ends.outgrow(tlb.entries, Work::pages) {
                let page = bytes(tlb.page_bytes);
                names.push(format!("L{} TLB of {} pages of {page}", tlb.level, tlb.entries));
            }
        }
        names
    }

    /// Returns the names of the limits on tasks that the members exceed at a jump.
    fn exceeded_tasks(&self, jump: &CostJump) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(spaces) = self.address_spaces {
            if jump.from <= spaces && jump.to + OTHER_ADDRESS_SPACES > spaces {
                names.push(format!(
                    "the {spaces} address spaces that Linux keeps in a CPU's TLB, shared with \
                     other tasks"
                ));
            }
        }
        if let Some(tasks) = self.runnable {
            if (jump.from..jump.to).contains(&tasks) {
                names.push(format!("the {tasks} tasks that CFS gives a turn within its latency"));
            }
        }
        names
    }
}

fn is_x86(machine: &Machine) -> bool {
    let models = machine.cpu.models.known();
    match models.and_then(|models| models.first()?.vendor.known()) {
        Some(vendor) => vendor == "AuthenticAMD" || vendor == "GenuineIntel",
        None => false,
    }
}

/// Returns whether the kernel has CFS, or the scheduler before it.
fn has_cfs(machine: &Machine) -> bool {
    let Some(release) = machine.kernel.release.known() else { return false };
    version(release).is_some_and(|version| version < EEVDF)
}

/// The work of a member on both sides of a jump, and the number of members that have it.
struct JumpWork {
    before: Work,
    members_before: u64,
    after: Work,
    members_after: u64,
    by_members: bool,
}

impl JumpWork {
    /// Returns the work on both sides of a jump; absent along the stride, which changes no size.
    fn at_ends(jump: &CostJump, axis: &SizeAxis, members: u32, work: Work) -> Option<Self> {
        if *axis == SizeAxis::STRIDE {
            return None;
        }
        let by_members = *axis == SizeAxis::MEMBERS;
        if by_members {
            let (members_before, members_after) = (jump.from, jump.to);
            return Some(Self {
                before: work,
                members_before,
                after: work,
                members_after,
                by_members,
            });
        }
        let members = members.into();
        Some(Self {
            before: work_of_size(work, jump.from)?,
            members_before: members,
            after: work_of_size(work, jump.to)?,
            members_after: members,
            by_members,
        })
    }

    /// Returns whether all members together exceed a level after the jump, and one alone does not
    /// yet before it. Along the members one alone is never measured.
    fn outgrow(&self, level: u64, touched: fn(&Work) -> u64) -> bool {
        let members_before = if self.by_members { self.members_before } else { 1 };
        let before = touched(&self.before).saturating_mul(members_before);
        let after = touched(&self.after).saturating_mul(self.members_after);
        after as f64 > OVERFLOW_RANGE.0 * level as f64
            && (before as f64) < OVERFLOW_RANGE.1 * level as f64
    }
}

/// Returns the work with an array of this size, in pages for a sparse walk and in bytes for others.
fn work_of_size(work: Work, size: u64) -> Option<Work> {
    let bytes = match work.walk {
        Walk::Sparse => size.checked_mul(work.stride_bytes)?,
        Walk::Whole | Walk::Chase => size,
    };
    Some(Work { bytes, ..work })
}

/// Returns the version of a kernel release: (6, 1) of `6.1.0-18-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(['.', '-']).map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}
