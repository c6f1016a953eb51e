//! An Arm board with two kinds of core, a real-time kernel, and less to read.

use rundata::machine::{CgroupLayout, CgroupLimit, LimitValue, PreemptionModel, ResourceLimit};
use rundata::reading::Reading;

use super::{cpus, each, known, read, sharing_cache};

const BUNDLE: &str = "rockpi-rt.txt";

#[test]
fn a_real_time_kernel_is_known_without_its_configuration() {
    let kernel = read(BUNDLE).kernel;
    assert_eq!(kernel.preemption.realtime, Reading::Known(true));
    assert_eq!(kernel.preemption.model, Reading::Known(PreemptionModel::Full));
    assert_eq!(kernel.preemption.source, known("/proc/sys/kernel/version"));
    assert!(kernel.preemption.dynamic.why().is_some());
    assert_eq!(
        kernel.hz.why(),
        Some(
            "/proc/config.gz: No such file or directory (os error 2); \
             /boot/config-6.6.30-rt30: No such file or directory (os error 2); \
             /lib/modules/6.6.30-rt30/config: No such file or directory (os error 2)"
        )
    );
    assert_eq!(kernel.perf_event_paranoid, Reading::Known(-1));
    assert_eq!(kernel.sched_rt_runtime_us, Reading::Known(-1));
}

#[test]
fn both_kinds_of_core_are_named_from_their_part_numbers() {
    let machine = read(BUNDLE);
    let models = each(&machine.cpu.models, |model| {
        (model.cpus.clone(), model.name.clone(), model.stepping.clone())
    });
    let expected = [
        (cpus("0-3"), known("Cortex-A53"), known("r0p4")),
        (cpus("4"), known("Cortex-A72"), known("r0p2")),
    ];
    assert_eq!(models, expected);
    let model = &machine.cpu.models.known().unwrap()[0];
    assert_eq!(model.vendor, known("ARM"));
    assert_eq!(model.microcode.why(), Some("/proc/cpuinfo: has no 'microcode'"));
    let capacities = each(&machine.cpu.topology, |place| *place.capacity.known().unwrap());
    assert_eq!(capacities, [485, 485, 485, 485, 1024]);
}

#[test]
fn an_offline_cpu_is_present_and_has_no_place() {
    let machine = read(BUNDLE);
    assert_eq!(machine.cpu.present, Reading::Known(cpus("0-5")));
    assert_eq!(machine.smt_siblings_of(5).unwrap_err(), "CPU 5 is not online");
    assert_eq!(machine.smt_siblings_of(4), Ok(&cpus("4")));
}

#[test]
fn the_cluster_shares_its_level_2_cache() {
    let machine = read(BUNDLE);
    assert_eq!(sharing_cache(&machine, 2, 2), Reading::Known(cpus("0-3")));
    let level = |cpu| machine.last_private_cache(cpu).map(|cache| cache.level.clone());
    assert_eq!(level(2), Ok(Reading::Known(1)));
    let instruction = &machine.cpu.caches.known().unwrap()[1];
    let why = instruction.size_bytes.why().unwrap();
    assert!(why.starts_with("/sys/devices/system/cpu/cpu0/cache/index1/size: No such file"));
}

#[test]
fn what_the_board_lacks_says_why() {
    let machine = read(BUNDLE);
    assert_eq!(machine.virtualization.cpu_flag.why(), Some("/proc/cpuinfo: has no 'flags'"));
    assert_eq!(machine.virtualization.device_tree_model, known("Radxa ROCK Pi 4B"));
    assert!(machine.numa.nodes.why().unwrap().starts_with("/sys/devices/system/node: No such"));
    assert!(machine.memory.ksm_run.why().is_some());
    assert_eq!(machine.frequency.idle_governor, known("menu"));
    assert_eq!(
        each(&machine.frequency.policies, |policy| (policy.cpus.clone(), policy.max_khz.clone())),
        [(cpus("0-3"), known(1_416_000_u64)), (cpus("4"), known(1_800_000_u64))]
    );
}

#[test]
fn limits_at_the_root_of_a_cgroup_namespace_count() {
    let machine = read(BUNDLE);
    assert_eq!(machine.cgroup.layout, Reading::Known(CgroupLayout::V2));
    assert_eq!(machine.cgroup.cpu_quota, Reading::Known(None));
    let path = "/sys/fs/cgroup".to_owned();
    let pids = CgroupLimit { max: 4915, current: Reading::Known(1), path };
    assert_eq!(machine.cgroup.pids_max, Reading::Known(Some(pids)));
    let timeout = ResourceLimit { soft: LimitValue::At(200_000), hard: LimitValue::Unlimited };
    assert_eq!(machine.limits.realtime_timeout_us, Reading::Known(timeout));
    let priority = ResourceLimit { soft: LimitValue::At(99), hard: LimitValue::At(99) };
    assert_eq!(machine.limits.realtime_priority, Reading::Known(priority));
}
