#!/usr/bin/env bash
# Cost of our loop against perf's: a ring of two alternates with `perf bench sched pipe`, both on one CPU (taskset)
# under the same policy. Prints the ratio of ns per switch that the kernel counted.
#
# Prints ratios only, medians with their range: times of a shared machine are not comparable.
#   bench/against-perf.sh [REPEATS]         (default 10)
set -euo pipefail
cd "$(dirname "$0")/.."
repeats=${1:-10}
laps=100000
cpu=$(($(nproc) - 1))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME="$work"

cargo build --release --quiet -p switchcost
ours=target/release/switchcost

# Figures on standard input; prints median, lowest, highest.
spread() {
    sort -n | awk '{ v[NR] = $1 } END {
        m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
        printf "median %.3f, range %.3f to %.3f, of %d\n", m, v[1], v[NR], NR }'
}

# Column $2 of the rows with $3 members in the CSV file $1, of samples that did not wait for an unshared core:
# perf does not wait either.
column() {
    awk -F, -v name="$2" -v members="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["members"] == members && $at["waited_ns"] == "" { print $at[name] }' "$1"
}

ours_ns_per_switch() {
    taskset -c "$cpu" "$ours" ring --members 2 --laps "$laps" --rounds 1 --quiet --csv "$work/ours.csv"
    paste <(column "$work/ours.csv" elapsed_ns 2) <(column "$work/ours.csv" voluntary 2) \
        <(column "$work/ours.csv" involuntary 2) |
        awk '{ ns += $1; switches += $2 + $3 } END { printf "%.3f\n", ns / switches }'
}

# perf prints seconds for the loop alone; the kernel's count is that of perf and its child, as
# getrusage(2) gives it to the shell's parent (a few dozen for starting up, of 200,000).
perf_ns_per_switch() {
    python3 - "$cpu" "$laps" <<'PYTHON'
import resource, subprocess, sys
cpu, laps = sys.argv[1], sys.argv[2]
before = resource.getrusage(resource.RUSAGE_CHILDREN)
out = subprocess.run(
    ["taskset", "-c", cpu, "perf", "bench", "-f", "simple", "sched", "pipe", "-l", laps],
    check=True, capture_output=True, text=True).stdout
after = resource.getrusage(resource.RUSAGE_CHILDREN)
switches = after.ru_nvcsw - before.ru_nvcsw + after.ru_nivcsw - before.ru_nivcsw
print(f"{float(out.split()[-1]) * 1e9 / switches:.3f}")
PYTHON
}

echo "ns per counted switch, ours / perf bench sched pipe, ring of two on CPU $cpu:"
if perf bench -f simple sched pipe -l 100 >/dev/null 2>&1; then
    for i in $(seq "$repeats"); do
        # The order alternates, so that drift favours neither.
        if ((i % 2)); then a=$(ours_ns_per_switch) b=$(perf_ns_per_switch)
        else b=$(perf_ns_per_switch) a=$(ours_ns_per_switch); fi
        echo "  $a $b" >&2
        awk -v a="$a" -v b="$b" 'BEGIN { printf "%.4f\n", a / b }'
    done | spread
else
    echo "skipped: perf (Debian: linux-perf) is missing or cannot run its benchmark"
fi
