//! Two sockets, hardware threads, isolated CPUs, version 2 control groups.

use rundata::machine::{CgroupLayout, CgroupLimit, CpuQuota, Cpuset, PreemptionModel};
use rundata::reading::Reading;

use super::{cpus, each, known, read, sharing_cache};

const BUNDLE: &str = "xeon-two-sockets.txt";

#[test]
fn debugfs_tells_the_preemption_model_first() {
    let kernel = read(BUNDLE).kernel;
    assert_eq!(kernel.preemption.model, Reading::Known(PreemptionModel::Voluntary));
    assert_eq!(kernel.preemption.source, known("/sys/kernel/debug/sched/preempt"));
    assert_eq!(kernel.hz, Reading::Known(1000));
    assert_eq!(kernel.parameters("isolcpus").last(), Some("managed_irq,domain,3,7"));
}

#[test]
fn sockets_cores_and_threads_are_told_apart() {
    let machine = read(BUNDLE);
    let places = each(&machine.cpu.topology, |place| {
        (place.cpu, *place.package.known().unwrap(), *place.core.known().unwrap())
    });
    let expected =
        [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1), (4, 0, 0), (5, 1, 0), (6, 0, 1), (7, 1, 1)];
    assert_eq!(places, expected);
    assert_eq!(machine.smt_siblings_of(6), Ok(&cpus("2,6")));
    assert_eq!(machine.cpu.smt_control, known("on"));
    assert_eq!(machine.cpu.isolated, Reading::Known(cpus("3,7")));
    assert_eq!(machine.cpu.nohz_full, Reading::Known(cpus("3,7")));
    assert_eq!(machine.cpu.allowed, Reading::Known(cpus("0-2,4-6")));
    assert_eq!(each(&machine.cpu.models, |model| model.cpus.clone()), [cpus("0-7")]);
}

#[test]
fn a_shared_cache_is_listed_once() {
    let machine = read(BUNDLE);
    // Four cores with three of their own, two sockets with one.
    assert_eq!(machine.cpu.caches.known().unwrap().len(), 14);
    assert_eq!(sharing_cache(&machine, 7, 3), Reading::Known(cpus("1,3,5,7")));
    let private = machine.last_private_cache(5).map(|cache| cache.size_bytes.clone());
    assert_eq!(private, Ok(Reading::Known(1280 << 10)));
    let largest = machine.largest_cache().map(|cache| (cache.of_cpu, cache.ways.clone()));
    assert_eq!(largest, Ok((0, Reading::Known(12))));
}

#[test]
fn cpus_with_other_frequency_settings_stand_apart() {
    let frequency = read(BUNDLE).frequency;
    let policies =
        each(&frequency.policies, |policy| (policy.cpus.clone(), policy.governor.clone()));
    assert_eq!(policies, [(cpus("0-6"), known("performance")), (cpus("7"), known("powersave"))]);
    assert_eq!(each(&frequency.policies, |policy| policy.max_khz.clone())[0], known(3_200_000_u64));
    assert_eq!(frequency.boost, Reading::Known(false), "no_turbo is 1");
    assert_eq!(frequency.idle_driver, known("intel_idle"));
}

#[test]
fn nodes_vendor_and_mitigations_are_read() {
    let machine = read(BUNDLE);
    let nodes = each(&machine.numa.nodes, |node| (node.cpus.clone(), node.distances.clone()));
    let expected =
        [(known(cpus("0,2,4,6")), known([10, 20])), (known(cpus("1,3,5,7")), known([20, 10]))];
    assert_eq!(nodes, expected);
    let memory = each(&machine.numa.nodes, |node| node.memory_bytes.clone());
    assert_eq!(memory[1], known(66_055_780_u64 * 1024));
    assert_eq!(machine.virtualization.cpu_flag, Reading::Known(false));
    assert_eq!(machine.virtualization.dmi_product, known("PowerEdge R650"));
    let mitigations = machine.mitigations.known().unwrap();
    assert_eq!(mitigations.len(), 12);
    assert_eq!(mitigations["gather_data_sampling"], known("Mitigation: Microcode"));
    assert_eq!(machine.memory.swap_total_bytes, known(4_194_300_u64 * 1024));
}

#[test]
fn the_tightest_limit_up_the_hierarchy_is_found_with_its_place() {
    let cgroup = read(BUNDLE).cgroup;
    let slice = "/sys/fs/cgroup/system.slice".to_owned();
    let service = "/sys/fs/cgroup/system.slice/bench.service".to_owned();
    assert_eq!(cgroup.layout, Reading::Known(CgroupLayout::V2));
    assert_eq!(cgroup.cpu_levels, Reading::Known(2));
    // 3 CPUs of the service are less than 4 of the slice, though the quota is the larger number.
    let quota = CpuQuota { quota_us: 600_000, period_us: 200_000, path: service.clone() };
    assert_eq!(quota.cpus(), 3.0);
    assert_eq!(cgroup.cpu_quota, Reading::Known(Some(quota)));
    let cpuset = Cpuset { cpus: cpus("0-2,4-6"), path: slice.clone() };
    assert_eq!(cgroup.cpuset, Reading::Known(cpuset));
    let pids = CgroupLimit { max: 9000, current: Reading::Known(212), path: slice };
    assert_eq!(cgroup.pids_max, Reading::Known(Some(pids)));
    let memory = CgroupLimit { max: 8 << 30, current: Reading::Known(2 << 20), path: service };
    assert_eq!(cgroup.memory_max_bytes, Reading::Known(Some(memory)));
}
