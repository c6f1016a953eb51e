//! What was granted of a quiet setting, in words: which CPU, which policy, and why not another.

use model::case::Policy;
use model::machine::{CpuInterrupts, Machine};
use probe::policy;
use rustix::io::Errno;

/// Why this CPU.
pub(super) fn chosen_cpu(cpu: u32, machine: &Machine) -> String {
    if machine.cpu.isolated.known().is_some_and(|list| list.contains(cpu)) {
        return format!("setting: members on CPU {cpu}, which is isolated");
    }
    match machine.interrupts.known() {
        Some(all) => {
            let of = |of: &CpuInterrupts| format!("CPU {}: {}", of.cpu, of.devices);
            // Many CPUs: the busiest say enough.
            let mut busiest = all.clone();
            busiest.sort_by_key(|of| std::cmp::Reverse(of.devices));
            let rest = busiest.iter().filter(|of| of.cpu != cpu).take(3);
            let own = busiest.iter().filter(|of| of.cpu == cpu);
            let counts: Vec<String> = own.chain(rest).map(of).collect();
            format!(
                "setting: members on CPU {cpu}, by the interrupts of devices since the start of the machine ({})",
                counts.join(", ")
            )
        }
        None => format!(
            "setting: members on CPU {cpu}; which CPU serves most interrupts could not be read: {}",
            machine.interrupts.why().unwrap_or("unknown")
        ),
    }
}

/// A real-time policy that was had.
pub(super) fn granted(policy: Policy, priority: u32) -> String {
    format!("granted: policy {policy} at priority {priority}")
}

/// A real-time policy that was refused.
pub(super) fn not_granted(policy: Policy, errno: Errno) -> String {
    format!(
        "not granted: policy {policy} ({errno}; {}); the normal policy instead",
        policy::needs(policy)
    )
}
