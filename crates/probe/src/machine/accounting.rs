//! How the kernel tells user from system time.

use model::machine::CpuAccounting;
use model::reading::Reading;

use super::config::Config;
use super::tree::{Tree, reading};

/// From the kernel's configuration; kernel/sched/cputime.c says what each option does. GEN alone does
/// nothing: CPUs account so only while they run without a tick (nohz_full).
pub(super) fn read(tree: &Tree, config: &Config) -> Reading<CpuAccounting> {
    // Tells why where there is no configuration at all; every kernel has this option.
    reading(config.value("CONFIG_HZ").map(|_| ())).map(|()| {
        let tickless = tree.cpu_list("/sys/devices/system/cpu/nohz_full");
        if config.has("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE") {
            CpuAccounting::Precise
        } else if config.has("CONFIG_VIRT_CPU_ACCOUNTING_GEN")
            && tickless.is_ok_and(|cpus| !cpus.is_empty())
        {
            CpuAccounting::Mixed
        } else {
            CpuAccounting::Tick
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_kernels_do_by_their_options() {
        for (options, tickless, expected) in [
            ("CONFIG_HZ=250\nCONFIG_TICK_CPU_ACCOUNTING=y\n", "", CpuAccounting::Tick),
            ("CONFIG_HZ=250\nCONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n", "(null)", CpuAccounting::Tick),
            ("CONFIG_HZ=250\nCONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n", "2-3", CpuAccounting::Mixed),
            ("CONFIG_HZ=100\nCONFIG_VIRT_CPU_ACCOUNTING_NATIVE=y\n", "", CpuAccounting::Precise),
        ] {
            let root = tempfile::tempdir().unwrap();
            for folder in ["proc/sys/kernel", "boot", "sys/devices/system/cpu"] {
                fs::create_dir_all(root.path().join(folder)).unwrap();
            }
            fs::write(root.path().join("proc/sys/kernel/osrelease"), "9\n").unwrap();
            fs::write(root.path().join("boot/config-9"), options).unwrap();
            fs::write(root.path().join("sys/devices/system/cpu/nohz_full"), tickless).unwrap();
            let tree = &Tree::new(root.path());
            assert_eq!(read(tree, &Config::of(tree)), Reading::Known(expected), "{options}");
            fs::remove_file(root.path().join("boot/config-9")).unwrap();
            assert!(read(tree, &Config::of(tree)).why().is_some());
        }
    }
}
