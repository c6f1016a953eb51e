#!/bin/sh
# Writes what `probe::machine` reads of this machine to one text file, for the tests:
#
#     bench/capture-machine.sh crates/probe/tests/fixtures/machines/NAME.txt
#
# The file has a line `==> /path <==` for each file, then its content; tests unpack it. A path that
# ends in .gz has plain text here, one that ends in / is a folder. Left out or blanked: the boot id, the
# arguments of init on the kernel's command line (they may be secret), mounts other than cgroups. Check the
# names of cgroups and hosts before you commit the file. As root it also reads /sys/kernel/debug.
set -eu
[ $# -eq 1 ] || { echo "usage: $0 OUTFILE" >&2; exit 2; }
out=$1
cpus=/sys/devices/system/cpu
: >"$out"

# put PATH [COMMAND...]: one file, through a command if there is one; nothing if it cannot be read.
put() {
    path=$1
    shift
    [ -f "$path" ] && [ -r "$path" ] || return 0
    text=$( { if [ $# -gt 0 ]; then "$@"; else cat; fi; } <"$path" 2>/dev/null | tr -d '\000') || return 0
    printf '==> %s <==\n%s\n' "$path" "$text" >>"$out"
}

config() { grep -E '^(# )?CONFIG_(HZ|NO_HZ|PREEMPT)' || true; }
packed_config() { zcat | config; }

release=$(uname -r)
for path in version sys/kernel/osrelease sys/kernel/version sys/kernel/randomize_va_space \
    sys/kernel/pid_max sys/kernel/threads-max sys/kernel/perf_event_paranoid \
    sys/kernel/sched_rt_runtime_us sys/fs/pipe-user-pages-soft sys/fs/pipe-user-pages-hard \
    sys/fs/pipe-max-size sys/fs/file-max cpuinfo meminfo loadavg uptime; do
    put /proc/$path
done
put /proc/cmdline sed 's/ -- .*//'
put /proc/sys/kernel/random/boot_id sed 's/[0-9a-f]/0/g'
put /proc/config.gz packed_config
put "/boot/config-$release" config
put "/lib/modules/$release/config" config
put /sys/kernel/debug/sched/preempt
put /sys/kernel/realtime

for name in online present possible isolated nohz_full smt/control cpufreq/boost \
    intel_pstate/no_turbo cpuidle/current_driver cpuidle/current_governor \
    cpuidle/current_governor_ro; do
    put $cpus/$name
done
for path in $cpus/vulnerabilities/*; do
    put "$path"
done
for node in /sys/devices/system/node/node[0-9]*; do
    put "$node/cpulist"
    put "$node/meminfo" grep MemTotal
    put "$node/distance"
done
for cpu in $cpus/cpu[0-9]*; do
    put "$cpu/cpu_capacity"
    for name in core_cpus_list thread_siblings_list physical_package_id die_id core_id; do
        put "$cpu/topology/$name"
    done
    for index in "$cpu"/cache/index*; do
        for name in level type size shared_cpu_list coherency_line_size ways_of_associativity; do
            put "$index/$name"
        done
    done
    for name in scaling_driver scaling_governor scaling_min_freq scaling_max_freq; do
        put "$cpu/cpufreq/$name"
    done
done

put /sys/hypervisor/type
put /sys/class/dmi/id/sys_vendor
put /sys/class/dmi/id/product_name
put /proc/device-tree/model
put /proc/device-tree/hypervisor/compatible
clock=/sys/devices/system/clocksource/clocksource0
put $clock/current_clocksource
put $clock/available_clocksource
put /sys/kernel/mm/transparent_hugepage/enabled
put /sys/kernel/mm/transparent_hugepage/defrag
put /sys/kernel/mm/ksm/run

put /proc/self/status grep '^Cpus_allowed_list'
put /proc/self/limits
put /proc/self/cgroup
put /proc/self/mountinfo grep -E ' - cgroup2? '
# Of each hierarchy the folder of this process and those above it.
groups() {
    cut -d: -f3 /proc/self/cgroup | while read -r group; do
        while [ "${group:-/}" != / ]; do
            echo "$group"
            group=${group%/*}
        done
    done
    echo
}
groups | sort -u | while read -r group; do
    for mount in $(awk '/ - cgroup2? /{print $5}' /proc/self/mountinfo); do
        folder=$mount$group
        [ -d "$folder" ] || continue
        printf '==> %s/ <==\n' "$folder" >>"$out"
        for name in cpu.max cpu.cfs_quota_us cpu.cfs_period_us cpuset.cpus.effective \
            cpuset.effective_cpus cpuset.cpus pids.max pids.current memory.max memory.current \
            memory.limit_in_bytes memory.usage_in_bytes; do
            put "$folder/$name"
        done
    done
done
