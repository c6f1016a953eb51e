#!/usr/bin/env bash
# `switchcost run` against /usr/bin/time -v and `hyperfine -N`, alternating on the same commands:
#   1. user + system time, ours / theirs, of at least 20 pairs: the same within the noise. Only the CPU
#      time before the exec (at_exec_cpu_ns of the record) is ours
#   2. maxrss of a 4 MiB command after a 64 MiB one
#   3. time per launch of a command that does nothing, ours / hyperfine's: no larger; and the real time
#      that both report
#
# Prints ratios, medians with their range: times of a shared machine are not comparable.
#   bench/against-time.sh [REPEATS]         (default 10)
set -euo pipefail
cd "$(dirname "$0")/.."
repeats=${1:-10}
launches=300
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME="$work"

[[ -n ${PREBUILT:-} ]] || cargo build --release --quiet -p switchcost
ours=${PREBUILT:-target/release/switchcost}
have() { command -v "$1" >/dev/null || { echo "skipped: $2"; return 1; }; }

# Figures on standard input; prints median, lowest, highest.
spread() {
    sort -n | awk '{ v[NR] = $1 } END {
        m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
        printf "median %.3f, range %.3f to %.3f, of %d\n", m, v[1], v[NR], NR }'
}

# Column $2 of the CSV file $1.
column() {
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at[name] }' "$1"
}

busy=(sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done')

ours_cpu_s() {
    "$ours" run --no-estimate --quiet --csv "$work/ours.csv" -- "${busy[@]}"
    column "$work/ours.csv" cpu_ns | awk '{ print $1 / 1e9 }'
}
time_cpu_s() {
    /usr/bin/time -o "$work/time" -f '%U %S' "${busy[@]}"
    awk '{ print $1 + $2 }' "$work/time"
}
hyperfine_cpu_s() {
    hyperfine -N --runs 1 --style none --export-csv "$work/hyperfine.csv" "sh -c '${busy[2]}'" >/dev/null 2>&1
    # hyperfine gives no mean, median or deviation of one run; user and system are those of the run.
    column "$work/hyperfine.csv" user >"$work/user"
    column "$work/hyperfine.csv" system | paste "$work/user" - | awk '{ print $1 + $2 }'
}

compare_cpu() {
    local pairs=$((repeats > 20 ? repeats : 20))
    for i in $(seq "$pairs"); do
        if ((i % 2)); then a=$(ours_cpu_s) b=$("$1"); else b=$("$1") a=$(ours_cpu_s); fi
        awk -v a="$a" -v b="$b" 'BEGIN { printf "%.4f\n", a / b }'
    done | spread
}

if have /usr/bin/time "/usr/bin/time is missing (Debian: time)"; then
    echo "user + system, ours / time -v (it prints hundredths of a second):"
    compare_cpu time_cpu_s
fi
if have hyperfine "hyperfine is missing (Debian: hyperfine)"; then
    echo "user + system, ours / hyperfine -N:"
    compare_cpu hyperfine_cpu_s
fi

echo "maxrss in MiB of dd with a buffer of 4 MiB, after one of 64 MiB:"
large='dd if=/dev/zero of=/dev/null bs=64M count=1' small='dd if=/dev/zero of=/dev/null bs=4M count=1'
"$ours" run --no-estimate --quiet -n 5 --csv "$work/ours.csv" --vs "$small" -- $large 2>/dev/null
for which in 0 1; do
    awk -F, -v which="$which" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["command"] == which { printf "%.2f\n", $at["max_resident_bytes"] / 1048576 }' "$work/ours.csv" |
        { printf '  ours, %s: ' "$([[ $which == 0 ]] && echo 64M || echo 4M)"; spread; }
done
if have hyperfine "hyperfine is missing"; then
    hyperfine -N --runs 5 --style none --export-json "$work/h.json" "$large" "$small" >/dev/null 2>&1
    python3 - "$work/h.json" <<'PYTHON'
import json, sys
for result in json.load(open(sys.argv[1]))["results"]:
    size = result["command"].split("bs=")[1].split()[0]
    memory = result.get("memory_usage_byte")
    words = "not told by this version" if memory is None else f"{[round(m / 2**20, 2) for m in memory]}"
    print(f"  hyperfine, {size}: {words}")
PYTHON
fi
if have /usr/bin/time "/usr/bin/time is missing"; then
    for command in "$large" "$small" true; do
        /usr/bin/time -o "$work/time" -f '%M' $command 2>/dev/null
        echo "  time, ${command##*null }: $(awk '{ printf "%.2f", $1 / 1024 }' "$work/time")"
    done
    "$ours" run --no-estimate --quiet --csv "$work/ours.csv" -- true
    echo "  ours, true: $(column "$work/ours.csv" max_resident_bytes | awk '{ printf "%.2f", $1 / 1048576 }')"
fi

# Nanoseconds a launch: the time of a series of 120 less that of one of 20, which cancels start and end of the
# tool; and the whole series of 120. In shuffled order, as the machine's speed drifts within seconds.
per_launch() {
    python3 - "$ours" "$1" <<'PYTHON'
import random, statistics, subprocess, sys, time
ours, repeats, few, many = sys.argv[1], int(sys.argv[2]), 20, 120
commands = [[ours, "run", "--no-estimate", "--quiet", "-n", str(n), "--", "true"] for n in (few, many)]
commands += [["hyperfine", "-N", "--style", "none", "--runs", str(n), "true"] for n in (few, many)]
order, taken = random.Random(1), []
for _ in range(repeats):
    seconds = [0.0] * 4
    for which in order.sample(range(4), 4):
        before = time.perf_counter()
        subprocess.run(commands[which], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        seconds[which] = time.perf_counter() - before
    taken.append(seconds)
def launch(some):
    a, b = (statistics.median((s[i + 1] - s[i]) / (many - few) for s in some) for i in (0, 2))
    return a / b
def whole(some):
    return statistics.median(s[1] / s[3] for s in some)
for name, of in ("a launch", launch), (f"a whole series of {many}", whole):
    again = sorted(of(order.choices(taken, k=repeats)) for _ in range(2000))
    print(f"  {name}: {of(taken):.3f}, 95 % of resampled {again[50]:.3f} to {again[-51]:.3f}, {repeats} repeats")
PYTHON
}
if have hyperfine "hyperfine is missing"; then
    echo "time per launch of 'true', ours / hyperfine -N:"
    per_launch $((repeats * 12))
    echo "real time of 'true' as the tools report it (medians over $launches runs), ours / hyperfine -N:"
    for i in $(seq "$repeats"); do
        "$ours" run --no-estimate --quiet -n "$launches" --csv "$work/ours.csv" -- true
        hyperfine -N --style none --runs "$launches" --export-csv "$work/h.csv" true >/dev/null 2>&1
        a=$(column "$work/ours.csv" real_ns | sort -n | sed -n "$((launches / 2))p")
        b=$(column "$work/h.csv" median)
        awk -v a="$a" -v b="$b" 'BEGIN { printf "%.4f\n", a / 1e9 / b }'
    done | spread
fi
