//! A real capture: a small guest with version 1 control groups.

use rundata::machine::{
    CacheKind, CgroupLayout, Cpuset, LimitValue, PreemptionModel, ResourceLimit,
};
use rundata::reading::Reading;

use super::{cpus, each, known, read, sharing_cache};

const BUNDLE: &str = "firecracker-epyc.txt";

#[test]
fn the_kernel_is_read_without_debugfs() {
    let kernel = read(BUNDLE).kernel;
    assert_eq!(kernel.release, known("6.18.44-fc-v445"));
    assert_eq!(kernel.version, known("#1 SMP PREEMPT_DYNAMIC @0"));
    assert_eq!(kernel.parameters("mitigations").last(), Some("auto,no_guest_host,no_guest_guest"));
    assert_eq!(kernel.hz, Reading::Known(250));
    // PREEMPT_DYNAMIC in the version does not mean that the kernel is preempted.
    assert_eq!(kernel.preemption.model, Reading::Known(PreemptionModel::None));
    assert_eq!(kernel.preemption.source, known("/proc/config.gz (CONFIG_PREEMPT_NONE)"));
    assert_eq!(kernel.preemption.dynamic, Reading::Known(true));
    assert_eq!(kernel.preemption.realtime, Reading::Known(false));
    assert_eq!(kernel.clock_source.current, known("tsc"));
    let available = ["tsc", "kvm-clock"].map(str::to_owned).to_vec();
    assert_eq!(kernel.clock_source.available, Reading::Known(available));
    assert_eq!(kernel.randomize_va_space, Reading::Known(2));
    assert_eq!(kernel.perf_event_paranoid, Reading::Known(2));
    assert_eq!(kernel.sched_rt_runtime_us, Reading::Known(950_000));
}

#[test]
fn the_cpus_and_their_caches_are_read() {
    let machine = read(BUNDLE);
    let [epyc] = &machine.cpu.models.known().unwrap()[..] else { panic!("one kind of CPU") };
    assert_eq!(epyc.cpus, cpus("0-1"));
    assert_eq!(epyc.name, known("AMD EPYC"));
    assert_eq!(
        (&epyc.family, &epyc.model, &epyc.stepping),
        (&known("25"), &known("1"), &known("1"))
    );
    assert_eq!(epyc.microcode, known("0x1000065"));
    assert_eq!(machine.cpu.isolated, Reading::Known(cpus("")));
    assert_eq!(
        machine.cpu.nohz_full.why(),
        Some("/sys/devices/system/cpu/nohz_full: No such file or directory (os error 2)")
    );
    assert_eq!(machine.smt_siblings_of(1), Ok(&cpus("1")));

    let caches = each(&machine.cpu.caches, |cache| {
        let size = *cache.size_bytes.known().unwrap() >> 10;
        (cache.of_cpu, *cache.level.known().unwrap(), *cache.kind.known().unwrap(), size)
    });
    use CacheKind::{Data, Instruction, Unified};
    let expected = [
        (0, 1, Data, 32),
        (0, 1, Instruction, 32),
        (0, 2, Unified, 512),
        (0, 3, Unified, 32768),
        (1, 1, Data, 32),
        (1, 1, Instruction, 32),
        (1, 2, Unified, 512),
    ];
    assert_eq!(caches, expected);
    let private = machine.last_private_cache(1).map(|cache| cache.size_bytes.clone());
    assert_eq!(private, Ok(Reading::Known(512 << 10)));
    assert_eq!(sharing_cache(&machine, 1, 3), Reading::Known(cpus("0-1")));
}

#[test]
fn a_guest_without_frequency_control_says_so() {
    let machine = read(BUNDLE);
    assert_eq!(machine.virtualization.cpu_flag, Reading::Known(true));
    assert!(machine.virtualization.dmi_vendor.why().unwrap().starts_with("/sys/class/dmi/id/"));
    assert_eq!(
        machine.frequency.policies.why(),
        Some("/sys/devices/system/cpu/cpu0/cpufreq: No such file or directory (os error 2)")
    );
    let boost = machine.frequency.boost.why().unwrap();
    assert!(boost.contains("intel_pstate/no_turbo") && boost.contains("cpufreq/boost"), "{boost}");
    assert_eq!(machine.frequency.idle_governor, known("haltpoll"));
    let mitigations = machine.mitigations.known().unwrap();
    assert_eq!(mitigations.len(), 19);
    assert_eq!(mitigations["spec_rstack_overflow"], known("Vulnerable: Safe RET, no microcode"));
}

#[test]
fn version_1_control_groups_are_followed_each_to_its_own_place() {
    let cgroup = read(BUNDLE).cgroup;
    assert_eq!(cgroup.layout, Reading::Known(CgroupLayout::Hybrid));
    assert_eq!(cgroup.cpu_levels, Reading::Known(0));
    assert_eq!(cgroup.cpu_quota, Reading::Known(None));
    let path = "/sys/fs/cgroup/cpuset".to_owned();
    assert_eq!(cgroup.cpuset, Reading::Known(Cpuset { cpus: cpus("0-1"), path }));
    assert_eq!(cgroup.pids_max, Reading::Known(None));
    assert_eq!(cgroup.memory_max_bytes, Reading::Known(None));
}

#[test]
fn limits_memory_and_load_are_read() {
    let machine = read(BUNDLE);
    let both = |bound| Reading::Known(ResourceLimit { soft: bound, hard: bound });
    assert_eq!(machine.limits.processes, both(LimitValue::At(96_343)));
    assert_eq!(machine.limits.open_files, both(LimitValue::At(20_000)));
    assert_eq!(machine.limits.realtime_priority, both(LimitValue::At(0)));
    assert_eq!(machine.limits.realtime_timeout_us, both(LimitValue::Unlimited));
    assert_eq!(machine.limits.pipe_user_pages_hard, Reading::Known(0));
    assert_eq!(machine.limits.pid_max, Reading::Known(32_768));
    assert_eq!(machine.memory.total_bytes, Reading::Known(24_682_416 * 1024));
    assert_eq!(machine.memory.swap_total_bytes, Reading::Known(0));
    assert_eq!(machine.memory.thp_enabled, known("madvise"));
    assert_eq!(machine.memory.ksm_run, Reading::Known(0));
    // The node has less than the machine here: the guest's memory is started lazily.
    assert_eq!(each(&machine.numa.nodes, |node| node.distances.clone()), [known([10])]);
    assert!(machine.load.uptime_s.known().is_some_and(|uptime_s| *uptime_s > 0.0));
}
