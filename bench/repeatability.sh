#!/usr/bin/env bash
# Does `switchcost cost` say the same twice? The published pair of programs (Li, Ding and Shen 2007)
# runs its halves apart and gives negative costs now and then.
#
# Repeats 256 KiB at stride 128 and prints of c2 and of the indirect cost: each value with its interval,
# how many are below zero with an interval that excludes zero (sign flips that their interval does not
# cover: the exit code is 1 if there is any), and the coefficient of variation from run to run.
#   bench/repeatability.sh [REPEATS [ROUNDS]]         (default 20 and 15)
set -euo pipefail
cd "$(dirname "$0")/.."
repeats=${1:-20}
rounds=${2:-15}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME="$work"

cargo build --release --quiet -p switchcost
for ((run = 1; run <= repeats; run++)); do
    target/release/switchcost cost --walk whole --array 256K --stride 128 --op rmw --rounds "$rounds" \
        --budget 10m --precision 0.01% --seed "$run" --quiet --json "$work/$run.json"
done
python3 - "$work" "$repeats" <<'PYTHON'
import json, statistics, sys
folder, repeats = sys.argv[1], int(sys.argv[2])
def point(run):
    record = json.load(open(f"{folder}/{run}.json"))
    [curve] = [c for c in record["cost"]["curves"] if c["work"]["walk"] == "whole"]
    return curve["points"][0]
uncovered = 0
points = [point(run) for run in range(1, repeats + 1)]
for name, key in [("c2", "total_ns"), ("indirect", "indirect_ns")]:
    estimates = [p[key] for p in points if p[key]]
    for run, e in enumerate(estimates, 1):
        ends = [f"{e[end]:.0f}" if e[end] is not None else "-" for end in ("low", "high")]
        print(f"{name} {run:3}: {e['value']:8.0f} ns ({ends[0]} to {ends[1]})")
    values = [e["value"] for e in estimates]
    negative = sum(v < 0 for v in values)
    flips = sum(e["value"] < 0 and e["resolved"] for e in estimates)
    uncovered += flips
    mean = statistics.mean(values)
    scatter = statistics.stdev(values) if len(values) > 1 else 0.0
    variation = f"{100 * scatter / abs(mean):.1f} %" if mean else "no mean"
    print(f"{name}: {len(values)} runs, {negative} below zero, {flips} sign flips not covered; "
          f"mean {mean:.0f} ns, coefficient of variation {variation}")
sys.exit(1 if uncovered else 0)
PYTHON
