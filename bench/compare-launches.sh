#!/usr/bin/env bash
# False alarms and power of `switchcost compare` with separate launches.
#
# A pair is `ring --members 2 --launches 3` twice, one after the other, each launch with a budget of BUDGET (default 2s+), and the
# answer of compare for the hop of the ring of two within GATE (default 3%): of three launches a side, and of the first alone.
# A launch goes on for its budget unless it knows its figures to 0.3 %.
# WORK gives the members a working set, so that a filter is worth a smaller share of a hop. LAUNCHES a side: default 3.
#   alike PAIRS FILE                   the same twice: changed in at most 3 of 50, not changed in 40
#   slower PAIRS FILE [INSTRUCTIONS]   the second with a filter before each system call (seccomp(2),
#                                      bench/slower-calls.c; default 1 instruction): found in 45 of 50
#   worth PAIRS FILE [INSTRUCTIONS]    the filter's own cost, without switchcost (see bench/compare-power.sh)
#   perf PAIRS FILE [INSTRUCTIONS]     perf's pipe benchmark in the place of a launch: its ratio alone, as it has no interval
#   sum FILE                           the results; exit code 1 if one misses its goal
# Each command appends to FILE, so pairs can be measured in parts. The hop is compared because a solo ring pays for
# the filter too. SWITCHCOST is the program (default: built here).
set -euo pipefail
cd "$(dirname "$0")/.."
program=${SWITCHCOST:-target/release/switchcost}
what=${1:?alike, slower, perf, worth or sum}
gate=${GATE:-3%} many=${LAUNCHES:-3} budget=${BUDGET:-2s+}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME="$work/state"

if [[ $what != sum ]]; then
    [[ -n ${SWITCHCOST:-} ]] || cargo build --release --locked --quiet -p switchcost
    ${CC:-cc} -O2 -o "$work/slower-calls" bench/slower-calls.c
fi

# SIDE PREFIX...: three launches behind a prefix; their files into the array `runs`. Each side has a folder of its own,
# which all pairs share: from five stored launches on their scatter is known.
launches() {
    local side=$1
    shift
    XDG_DATA_HOME="$work/$side" "$@" "$program" ring --members 2 ${WORK:+--work "$WORK"} --budget "$budget" --precision 0.3% --launches "$many" \
        --seed $RANDOM --quiet >/dev/null || [[ $? == 1 ]]
    runs=("$work/$side"/switchcost/runs/*.jsonl)
    runs=("${runs[@]: -$many}")
}

# BASE NEW: the answer for the ring of two.
said() {
    "$program" compare "$1" "$2" --cost hop --fail-above "$gate" --quiet --json "$work/found.json" >/dev/null || [[ $? != 2 ]]
    jq -c '[.changes[] | select(.labels.members == "2")][0] | {answer, worse, ratio}' "$work/found.json"
}

pairs() {
    local kind=$1 count=$2 file=$3 base new all one
    shift 3
    for ((pair = 1; pair <= count; pair++)); do
        launches base && base=("${runs[@]}")
        launches new "$@" && new=("${runs[@]}")
        all=$(said "$(IFS=,; echo "${base[*]}")" "$(IFS=,; echo "${new[*]}")")
        one=$(said "${base[0]}" "${new[0]}")
        echo "{\"kind\":\"$kind${WORK:+ with $WORK}, gate $gate\",\"three\":$all,\"one\":$one}" | tee -a "$file"
    done
}

case $what in
alike) pairs alike "$2" "$3" ;;
slower) pairs slower "$2" "$3" "$work/slower-calls" "${4:-1}" ;;
perf)
    time_of() { "$@" taskset -c "$(($(nproc) - 1))" perf bench -f simple sched pipe -l 300000; }
    for ((pair = 1; pair <= $2; pair++)); do
        base=$(time_of) new=$(time_of ${4:+"$work/slower-calls" "$4"})
        echo "{\"kind\":\"perf\",\"instructions\":${4:-0},\"gate\":\"$gate\",\"s\":[$base,$new]}" | tee -a "$3"
    done
    ;;
worth)
    for ((pair = 1; pair <= $2; pair++)); do
        for instructions in 0 "${4:-1}"; do
            echo "{\"kind\":\"worth\",\"instructions\":$instructions,\"ns\":$("$work/slower-calls" --worth "$instructions")}" >>"$3"
        done
    done
    ;;
sum)
    python3 - "$2" <<'PYTHON'
import collections, json, statistics, sys
found = collections.defaultdict(list)
for line in map(json.loads, open(sys.argv[1])):
    found[line["kind"]].append(line)
short = False
worth = found.pop("worth", [])
for instructions in sorted({line["instructions"] for line in worth}):
    ratios = [line["ns"][1] / line["ns"][0] for line in worth if line["instructions"] == instructions]
    low, middle, high = (100 * (ratio - 1) for ratio in statistics.quantiles(ratios, n=4))
    print(f"{instructions} instructions: a hop {middle:+.1f} % (middle half of {len(ratios)}: {low:+.1f} to {high:+.1f} %)")
for line in (perf := found.pop("perf", [])):
    line["ratio"] = line["s"][1] / line["s"][0]
for instructions, gate in sorted({(line["instructions"], line["gate"]) for line in perf}):
    ratios = [line["ratio"] for line in perf if (line["instructions"], line["gate"]) == (instructions, gate)]
    beyond = sum(ratio > 1 + float(gate.rstrip("%")) / 100 for ratio in ratios)
    below = sum(ratio < 1 / (1 + float(gate.rstrip("%")) / 100) for ratio in ratios)
    print(f"perf, {instructions} instructions: {beyond} of {len(ratios)} slower by more than {gate}, {below} faster; ratios "
          f"{min(ratios):.3f} to {max(ratios):.3f}, median {statistics.median(ratios):.3f}")
for kind, lines in found.items():
    for launches in ("three", "one"):
        said = [line[launches] for line in lines]
        answers = collections.Counter(one["answer"] for one in said)
        slower = sum(one["answer"] == "changed" and one["worse"] for one in said)
        ratios = [one["ratio"] for one in said if one["ratio"]]
        half = [(r["high"] - r["low"]) / 2 for r in ratios if r["low"] is not None]
        print(f"{kind}, {launches} a side: {dict(answers)} of {len(said)} (slower in {slower}); median ratio "
              f"{statistics.median(r['value'] for r in ratios):.3f}, half-width {100 * statistics.median(half):.1f} %")
        if kind.startswith("alike"):
            short |= answers["changed"] > 0.06 * len(said)
            short |= answers["not_changed"] < 0.8 * len(said)
        elif launches == "three":
            short |= slower < 0.9 * len(said)
sys.exit(1 if short else 0)
PYTHON
    ;;
*)
    echo "compare-launches.sh: $what: accepted: alike, slower, perf, worth, sum" >&2
    exit 2
    ;;
esac
