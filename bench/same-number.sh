#!/usr/bin/env bash
# Repeatability of launches, and coverage of their intervals.
#
# ring REPEATS FILE [COMPETITOR]  alternates `ring --members 2` with a budget of 2 s and `perf bench sched pipe` of about
#                                 as long, both on the same CPU; COMPETITOR: cpu (a busy loop on the measured CPU) or
#                                 sibling (on the other hardware thread of its core, where that is visible)
# cost REPEATS FILE               `cost --walk chase --array 64K,256K,512K`, default budget shared among the three
# clock REPEATS FILE              rings of 2 and 64, a clock reading, getuid, `cost` at 32 and 256 KiB, in cycles: other load runs before
#                                 each launch (none, busy loops on all CPUs, perf's pipe benchmark, in turn), so that
#                                 the clock moves where it can; launches know each other's scatter from the sixth on
# sum FILE                        coefficients of variation, number of answers, number of intervals that contain the
#                                 pooled median; exit code 1 if one misses the goal in docs/validation.md
#
# Launches share nothing but the CPU's full speed (their own XDG_STATE_HOME, empty at first). SWITCHCOST is the program (default: built here).
set -euo pipefail
cd "$(dirname "$0")/.."
program=${SWITCHCOST:-target/release/switchcost}
what=${1:?ring, cost, clock or sum}
work=$(mktemp -d)
competitor_pid=
trap '[[ -z $competitor_pid ]] || kill "$competitor_pid" 2>/dev/null; rm -rf "$work"' EXIT
export XDG_STATE_HOME="$work/state"
[[ -n ${SWITCHCOST:-} || $what == sum ]] || cargo build --release --locked --quiet -p switchcost

launch() {
    XDG_DATA_HOME=$(mktemp -d -p "$work") "$program" "$@" --quiet --json "$work/found.json" || [[ $? == 1 ]]
}

# The CPU of a default ring.
measured_cpu() {
    launch ring --members 2 --rounds 1
    jq '[.header.plan.cases[0].placement | .. | numbers][0]' "$work/found.json"
}

compete() {
    local cpu=$1 kind=$2 on=$1
    if [[ $kind == sibling ]]; then
        on=$(tr ',-' '\n\n' <"/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" | grep -vx "$cpu" | head -1)
        [[ -n $on ]] || { echo "skipped: CPU $cpu has no visible sibling" >&2; exit 0; }
    fi
    taskset -c "$on" sh -c 'while :; do :; done' &
    competitor_pid=$!
}

case $what in
ring)
    cpu=$(measured_cpu)
    [[ -z ${4:-} ]] || compete "$cpu" "$4"
    for ((run = 1; run <= $2; run++)); do
        launch ring --members 2 --budget 2s+ --seed "$run"
        ours=$(jq -c '.cases[1] | .ns_per_switch_above_solo + {contended: .contended_ns_per_switch_above_solo.median, clean_share}' \
            "$work/found.json")
        spent=$(jq '.end.spent_ns' "$work/found.json")
        perf=$(taskset -c "$cpu" perf bench -f simple sched pipe -l 300000)
        echo "{\"kind\":\"ring${4:+-$4}\",\"ours\":$ours,\"spent_ns\":$spent,\"perf_s\":$perf}" | tee -a "$3"
    done
    ;;
cost)
    for ((run = 1; run <= $2; run++)); do
        launch cost --walk chase --array 64K,256K,512K --seed "$run" ${BUDGET:+--budget "$BUDGET"}
        jq -c '{kind: "cost", points: [.cost.curves[0].points[] | {array_bytes, total_ns}]}' "$work/found.json" | tee -a "$3"
    done
    ;;
clock)
    # A launch's figures, as rows of summary-csv.
    rows() {
        XDG_DATA_HOME="$work/data" "$program" "$@" --quiet || [[ $? == 1 ]]
        XDG_DATA_HOME="$work/data" "$program" runs export last --format summary-csv -o "$work/rows.csv"
        tail -n +2 "$work/rows.csv" >>"$work/all.csv"
    }
    for ((run = 1; run <= $2; run++)); do
        case $((run % 3)) in
        1) for cpu in $(seq 0 $(($(nproc) - 1))); do timeout 2 taskset -c "$cpu" sh -c 'while :; do :; done' & done; wait ;;
        2) perf bench -f simple sched pipe -l 300000 >/dev/null ;;
        esac
        : >"$work/all.csv"
        rows ring --members 2,64 --budget "${BUDGET:-5s}" --precision 0.3% --seed "$run"
        rows clock overhead --calls threadclock-now --budget "${BUDGET:-5s}" --precision 0.3% --seed "$run"
        rows response --only system-calls --budget "${BUDGET:-5s}" --precision 0.3% --seed "$run"
        rows cost --walk chase --array 32K,256K --budget "${BUDGET:-10s}" --precision 0.3% --seed "$run"
        head -1 "$work/rows.csv" | cat - "$work/all.csv" | python3 -c '
import csv, json, sys
rows = [{k: row[k] for k in ("experiment", "title", "policy", "quantity", "estimate", "low", "high", "cycles", "clock_ghz", "elasticity")}
        for row in csv.DictReader(sys.stdin)]
print(json.dumps({"kind": "clock", "rows": rows}))' | tee -a "$3" | cut -c1-120
    done
    ;;
sum)
    python3 - "$2" <<'PYTHON'
import collections, json, statistics, sys
by_kind = collections.defaultdict(list)
for line in open(sys.argv[1]):
    found = json.loads(line)
    by_kind[found["kind"]].append(found)
def variation(values):
    return 100 * statistics.stdev(values) / statistics.mean(values) if len(values) > 1 else float("nan")
def told(name, estimates, launches):
    full = [e for e in estimates if e and e["speed"] == "full"]
    values = [e["value"] for e in full]
    middle = statistics.median(values)
    covered = sum(e["low"] <= middle <= e["high"] for e in full)
    half = statistics.median((e["high"] - e["low"]) / 2 / e["value"] for e in full)
    print(f"{name}: answered {len(full)} of {launches}; median {middle:.0f} ns, coefficient of variation "
          f"{variation(values):.2f} %, range {min(values):.0f} to {max(values):.0f}; intervals (+-{100 * half:.1f} %) cover "
          f"the pooled median in {covered} of {len(full)}")
    return len(full), variation(values), covered
def by_clock(launches):
    """Of the launches from the sixth on: variation of nanoseconds and cycles, widths, coverage of the pooled median."""
    cases = collections.defaultdict(list)
    for launch in launches[5:]:
        for row in launch["rows"]:
            cases[row["experiment"], f"{row['title']}, {row['policy']}", row["quantity"]].append(row)
    print(f"{len(launches)} launches, of which the first 5 teach the scatter")
    missed = False
    for (experiment, title, quantity), rows in cases.items():
        told = [{k: float(row[k]) for k in ("estimate", "low", "high", "cycles", "clock_ghz")} for row in rows if row["cycles"]]
        if len(told) < 3:
            print(f"{experiment}, {title} ({quantity}): {len(told)} of {len(rows)} answered")
            missed = True
            continue
        cycles = [row["cycles"] for row in told]
        middle = statistics.median(cycles)
        # The clock is read to 0.1 % (docs/method.md).
        def holds(row):
            half = ((row["high"] - row["low"]) / 2 / row["estimate"]) ** 2 + 0.00196**2
            return abs(middle / row["cycles"] - 1) <= half**0.5
        covered = sum(map(holds, told))
        widths = [(row["high"] - row["low"]) / row["estimate"] for row in told]
        most = 0.6 if experiment == "cost" and "KiB" in title else 0.3
        clocks = [row["clock_ghz"] for row in told]
        powers = [float(row["elasticity"]) for row in rows if row["elasticity"]]
        power = f"; elasticity {statistics.median(powers):.2f} in {len(powers)}" if powers else ""
        print(f"{experiment}, {title} ({quantity}): {len(told)} of {len(rows)}, {middle:.1f} cycles at {min(clocks):.3f} to "
              f"{max(clocks):.3f} GHz; varies by {variation([row['estimate'] for row in told]):.2f} % in ns, "
              f"{variation(cycles):.2f} % in cycles (at most {most}); {covered} of {len(told)} intervals hold the median, "
              f"width {100 * statistics.median(widths):.2f} %, at most {100 * max(widths):.2f} %{power}")
        missed |= variation(cycles) > most or covered < 0.92 * len(told) or max(widths) > 0.01
    return missed
short = False
for kind, launches in by_kind.items():
    if kind == "clock":
        short |= by_clock(launches)
    elif kind.startswith("ring"):
        answered, ours, covered = told(kind, [l["ours"] for l in launches], len(launches))
        contended = variation([l["ours"]["contended"] for l in launches])
        perf = variation([l["perf_s"] for l in launches])
        share = statistics.median(l["ours"]["clean_share"] for l in launches)
        spent = statistics.median(l["spent_ns"] for l in launches) / 1e9
        print(f"    all slices {contended:.1f} %, perf between them {perf:.1f} %; clean share {100 * share:.0f} %, {spent:.1f} s a launch")
        most = 2.0 if kind == "ring" else 4.0
        short |= ours > most or answered < 0.92 * len(launches) or covered < 0.88 * answered
        short |= kind == "ring" and ours > perf / 3
    else:
        for index, most in enumerate([3.0, 5.0, 5.0]):
            size = launches[0]["points"][index]["array_bytes"] // 1024
            _, ours, _ = told(f"{kind} {size} KiB", [l["points"][index]["total_ns"] for l in launches], len(launches))
            short |= ours > most
sys.exit(1 if short else 0)
PYTHON
    ;;
*)
    echo "same-number.sh: $what: accepted: ring, cost, clock, sum" >&2
    exit 2
    ;;
esac
