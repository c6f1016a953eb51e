//! What of the machine a working set may outgrow, on each axis. Only set beside what was found.

use crate::machine::Machine;
use crate::plan::Plan;
use crate::regions::Level;
use crate::ring::Kind;

/// Address spaces that Linux on x86 keeps apart in a CPU's TLB (TLB_NR_DYN_ASIDS,
/// arch/x86/include/asm/tlbflush.h).
const X86_ADDRESS_SPACES: u64 = 6;

/// The data caches of the CPU that was measured on, and what else limits it.
pub struct Levels {
    caches: Vec<Cache>,
    address_spaces: Option<u64>,
}

struct Cache {
    name: String,
    bytes: u64,
    lines: Option<u64>,
}

/// The levels that one CPU of those measured on reaches.
pub fn of(machine: &Machine, plan: &Plan) -> Levels {
    let cpu = plan.cpus().first().copied().unwrap_or(0);
    let all = machine.cpu.caches.known().map(Vec::as_slice).unwrap_or_default();
    let serving = all.iter().filter(|cache| cache.holds_data() && cache.serves(cpu));
    let known = serving.filter_map(|cache| {
        let (level, bytes) = (cache.level.known()?, *cache.size_bytes.known()?);
        let line = cache.line_bytes.known().filter(|line| **line > 0);
        Some(Cache { name: format!("L{level}"), bytes, lines: line.map(|line| bytes / line) })
    });
    let vendor = machine.cpu.models.known().and_then(|models| models.first()?.vendor.known());
    let is_x86 = vendor.is_some_and(|vendor| ["AuthenticAMD", "GenuineIntel"].contains(&&**vendor));
    let processes = plan.rings().next().is_some_and(|(_, case)| case.kind == Kind::Process);
    Levels {
        caches: known.collect(),
        address_spaces: (is_x86 && processes).then_some(X86_ADDRESS_SPACES),
    }
}

impl Levels {
    /// For bytes of one array.
    pub fn for_arrays(&self) -> Vec<Level> {
        self.caches.iter().map(|c| Level { name: c.name.clone(), size: c.bytes }).collect()
    }

    /// For pages of which one line is touched.
    pub fn for_pages(&self) -> Vec<Level> {
        let lines = |cache: &Cache| {
            Some(Level { name: format!("lines of {}", cache.name), size: cache.lines? })
        };
        self.caches.iter().filter_map(lines).collect()
    }

    /// For members that touch so many bytes each.
    pub(super) fn for_members(&self, bytes: u64) -> Vec<Level> {
        let held = |cache: &Cache| {
            Some(Level {
                name: format!("arrays in {}", cache.name),
                size: cache.bytes.checked_div(bytes)?,
            })
        };
        let mut all: Vec<Level> = self.caches.iter().filter_map(held).collect();
        let name = "address spaces in the TLB".to_string();
        all.extend(self.address_spaces.map(|size| Level { name, size }));
        all
    }
}
