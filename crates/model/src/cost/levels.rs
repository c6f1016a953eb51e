//! What of the machine a working set, or a number of members, may outgrow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{Kind, Walk, Work};
use crate::jump::Jump;
use crate::machine::{Cache, Machine};
use crate::plan::Plan;
use crate::regions::{Axis, Level};
use crate::words::bytes;

/// Address spaces that Linux on x86 keeps apart in a CPU's TLB (TLB_NR_DYN_ASIDS,
/// arch/x86/include/asm/tlbflush.h).
const X86_ADDRESS_SPACES: u64 = 6;

/// So many of them others may take: the kernel's threads run in the last one's, a task beside the ring in its own.
const TAKEN_BY_OTHERS: u64 = 2;

/// Where a cache of a size of 1 begins to overflow, as pages fall into its sets by chance, and where it has.
const OVERFLOWS: (f64, f64) = (0.5, 1.3);

/// Something of the machine that ends at the place of a jump: it may be its cause, and need not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// `L1 48 KiB`.
    pub name: String,
}

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
        let mut first = plan.rings().map(|(_, case)| case).take(1);
        let processes = first.any(|case| case.kind == Kind::Process && case.placement.is_one_cpu());
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
    pub(super) fn for_members(&self, touched: u64) -> Vec<Level> {
        let mut all = self.each("arrays in ", |_, bytes| bytes.checked_div(touched));
        let name = "address spaces in the TLB".to_string();
        all.extend(self.address_spaces.map(|size| Level { name, size }));
        all
    }

    /// What of the machine ends between the two sizes of a jump: the caches that the arrays of all members, or one
    /// alone, outgrow there, and what else Linux keeps only so many of.
    pub fn candidates(
        &self,
        jump: &Jump,
        axis: &Axis,
        members: u32,
        work: Option<Work>,
    ) -> Vec<Candidate> {
        let by_members = *axis == Axis::MEMBERS;
        // All arrays together before the jump and after it, and one alone.
        let touched = |size: u64| {
            let own = |bytes: u64, of: Work| Work { bytes, ..of }.fetched_bytes();
            Some(match (work?, by_members) {
                (of, true) => (size * of.fetched_bytes(), size * of.fetched_bytes()),
                (of, false) if of.walk == Walk::Sparse => {
                    let one = own(size.checked_mul(of.stride_bytes)?, of);
                    (one * u64::from(members), one)
                }
                (of, false) => (own(size, of) * u64::from(members), own(size, of)),
            })
        };
        let sizes = (*axis != Axis::STRIDE).then_some(());
        let both = sizes.and_then(|()| touched(jump.from).zip(touched(jump.to)));
        let is_outgrown = |cache: u64| {
            both.is_some_and(|((_, one_before), (all_after, _))| {
                all_after as f64 > OVERFLOWS.0 * cache as f64
                    && (one_before as f64) < OVERFLOWS.1 * cache as f64
            })
        };
        let caches = self.for_arrays().into_iter().filter(|level| is_outgrown(level.size));
        let caches = caches.map(|level| format!("{} {}", level.name, bytes(level.size)));
        let spaces = self.address_spaces.filter(|spaces| {
            by_members && jump.from <= *spaces && jump.to + TAKEN_BY_OTHERS > *spaces
        });
        let spaces = spaces.map(|spaces| {
            format!("the {spaces} address spaces that Linux keeps in a CPU's TLB, shared with other tasks")
        });
        caches.chain(spaces).map(|name| Candidate { name }).collect()
    }
}
