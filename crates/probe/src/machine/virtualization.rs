//! Vulnerabilities, and what runs below the kernel.

use model::machine::{Mitigations, Virtualization};

use super::cpu::CPUS;
use super::cpuinfo;
use super::tree::{Result, Tree, reading};

const DEVICE_TREE: &str = "/proc/device-tree";

pub(super) fn read(tree: &Tree) -> Virtualization {
    let device_tree = |name: &str| reading(tree.word(&format!("{DEVICE_TREE}/{name}")));
    Virtualization {
        cpu_flag: reading(cpuinfo::hypervisor_flag(tree)),
        hypervisor_type: reading(tree.word("/sys/hypervisor/type")),
        dmi_vendor: reading(tree.word("/sys/class/dmi/id/sys_vendor")),
        dmi_product: reading(tree.word("/sys/class/dmi/id/product_name")),
        device_tree_model: device_tree("model"),
        // A list of names with NULs between them, the most exact first.
        device_tree_hypervisor: device_tree("hypervisor/compatible")
            .map(|names| names.split('\0').next().unwrap_or_default().to_owned()),
    }
}

pub(super) fn mitigations(tree: &Tree) -> Result<Mitigations> {
    let folder = format!("{CPUS}/vulnerabilities");
    let names = tree.folder(&folder)?.into_iter();
    let state = |name: String| {
        let state = reading(tree.word(&format!("{folder}/{name}")));
        (name, state)
    };
    // A lone file of this name would make the map look like an unknown reading.
    Ok(names.filter(|name| name != "unknown").map(state).collect())
}
