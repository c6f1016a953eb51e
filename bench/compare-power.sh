#!/usr/bin/env bash
# False alarms and power of `switchcost compare --ab`.
#
# Alike: the same setting on both sides; at most 5 % of the repeats may be called changed.
# Slower: every system call of side B goes through a filter of INSTRUCTIONS instructions (seccomp(2),
# bench/slower-calls.c); a hop has two. 45 of 50 must be called slower. The filter's own cost is
# measured without switchcost (worth): two processes pass a byte by pipes, first without the
# filter, then with it, alternating with pairs that never have one.
#
# The hop of a ring of two is compared: its solo ring has the filter too, so the cost of a switch does not show it.
# Repeats are lines of a file, so they can be measured in parts. All rounds are kept, so that sum
# can also compute how many rounds a session needs.
#   bench/compare-power.sh                            all: 50 alike, 50 slower, 60 pairs
#   bench/compare-power.sh alike REPEATS FILE
#   bench/compare-power.sh slower REPEATS FILE [INSTRUCTIONS]
#   bench/compare-power.sh worth PAIRS FILE [INSTRUCTIONS]
#   bench/compare-power.sh sum FILE                   the results; exit code 1 if one misses its goal
# BUDGET (default 20s+) is the budget of a repeat; SWITCHCOST the program (default: built here).
set -euo pipefail
cd "$(dirname "$0")/.."
budget=${BUDGET:-20s+}
default_instructions=1
what=${1:-all}
program=${SWITCHCOST:-target/release/switchcost}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME="$work"

prepare() {
    [[ -n ${SWITCHCOST:-} ]] || cargo build --release --locked --quiet -p switchcost
    ${CC:-cc} -O2 -o "$work/slower-calls" bench/slower-calls.c
}

# Both runs of a session: the hop of the ring of two in every round, [[base, new], ...].
rounds() {
    python3 - "$work"/switchcost/runs/*-a.* "$work"/switchcost/runs/*-b.* <<'PYTHON'
import collections, json, statistics, sys
def by_round(path):
    lines = [json.loads(line) for line in open(path)]
    [ring] = [n for n, c in enumerate(lines[0]["header"]["plan"]["cases"]) if c["members"] == 2]
    found = collections.defaultdict(list)
    for sample in (line["sample"] for line in lines if "sample" in line):
        if sample["case"] == ring:
            found[sample["round"]].append(sample["elapsed_ns"] / sample["hops"])
    return {number: round(statistics.median(all_ns), 1) for number, all_ns in found.items()}
base, new = map(by_round, sys.argv[1:])
print(json.dumps([[base[n], new[n]] for n in sorted(base) if n in new], separators=(",", ":")))
PYTHON
}

# KIND REPEATS FILE INSTRUCTIONS: a line a repeat, `KIND BUDGET INSTRUCTIONS EXIT` and the result.
compare() {
    local done code
    done=$(grep -c "^$1 $budget " "$3" 2>/dev/null || true)
    for ((repeat = 1; repeat <= $2; repeat++)); do
        code=0
        "$program" compare --ab "$work/slower-calls 0" "$work/slower-calls $4" --members 2 --cost hop \
            --budget "$budget" --seed $((done + repeat)) --fail-above 3% --quiet \
            --json "$work/found.json" || code=$?
        # 2: there was no comparison.
        [[ $code -le 1 ]] || exit "$code"
        echo "$1 $budget $4 $code $(jq -c --argjson rounds "$(rounds)" '{changes, $rounds}' \
            "$work/found.json")" >>"$3"
        rm -rf "$work/switchcost"
    done
}

# PAIRS FILE INSTRUCTIONS: pairs of nanoseconds a hop, alternating with pairs without any filter.
worth() {
    for ((pair = 1; pair <= $1; pair++)); do
        echo "worth - 0 0 $("$work/slower-calls" --worth 0)" >>"$2"
        echo "worth - $3 0 $("$work/slower-calls" --worth "$3")" >>"$2"
    done
}

sum() {
    python3 - "$1" <<'PYTHON'
import collections, json, random, statistics, sys
pairs, repeats = collections.defaultdict(list), collections.defaultdict(list)
for line in open(sys.argv[1]):
    kind, budget, instructions, code, found = line.split(" ", 4)
    if kind == "worth":
        pairs[instructions].append(json.loads(found))
    else:
        repeats[kind, budget, instructions].append((int(code), json.loads(found)))
def power(all_repeats, count, tries=400):
    """Share of sessions of `count` rounds, drawn from all of these, whose interval excludes 1.

    The middle half's mean with Yuen's standard error and his degrees of freedom (Student's quantile by
    Hill's expansion), two cases sharing 5 %."""
    def relative(base, new):
        return 2 * (new - base) / (new + base)
    known = [relative(*pair) for _, found in all_repeats for pair in found["rounds"]]
    draw, cut = random.Random(1), count // 4
    freedom = count - 2 * cut - 1
    z = statistics.NormalDist().inv_cdf(1 - 0.05 / 2 / 2)
    t = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    def excludes():
        drawn = sorted(draw.choices(known, k=count))
        kept = drawn[cut:count - cut]
        winsorized = [kept[0]] * cut + kept + [kept[-1]] * cut
        error = statistics.stdev(winsorized) / (len(kept) / count) / count**0.5
        return abs(statistics.mean(kept)) > t * error
    return sum(excludes() for _ in range(tries)) / tries
short = False
for instructions, all_pairs in pairs.items():
    ratios = [dear / plain for plain, dear in all_pairs]
    low, middle, high = statistics.quantiles(ratios, n=4)
    plain = statistics.median(plain for plain, _ in all_pairs)
    # Of a median: 1.25 standard deviations / sqrt(n), these from the median absolute deviation.
    error = 1.2533 * 1.4826 * statistics.median(abs(r - middle) for r in ratios) / len(ratios) ** 0.5
    print(f"{instructions} instructions are worth {100 * (middle - 1):.1f} % of a hop of {plain:.0f} ns (standard "
          f"error {100 * error:.1f}; middle half of {len(ratios)} pairs {100 * (low - 1):.1f} to {100 * (high - 1):.1f} %)")
for (kind, budget, instructions), all_repeats in repeats.items():
    ring = [next(c for c in changes if c["labels"]["members"] == "2") for _, found in all_repeats for changes in [found["changes"]]]
    count = len(all_repeats)
    changed = sum(c["answer"] == "changed" for c in ring)
    slower = sum(c["answer"] == "changed" and c["worse"] for c in ring)
    anything = sum(any(c["answer"] == "changed" for c in found["changes"]) for _, found in all_repeats)
    gate = sum(code == 1 for code, _ in all_repeats)
    told = collections.Counter(c["answer"] for c in ring)
    half = [(c["ratio"]["high"] - c["ratio"]["low"]) / 2 for c in ring if c["ratio"]["low"] is not None]
    rounds = [c["base_rounds"] for c in ring]
    print(f"{kind}, {budget} each, {count} repeats: ring of 2 changed in {changed} (slower in {slower}), any case in {anything}, "
          f"exit 1 in {gate}; {dict(told)}; median ratio {statistics.median(c['ratio']['value'] for c in ring):.3f}, "
          f"half-width {100 * statistics.median(half):.1f} %, {statistics.median(rounds):.0f} rounds")
    if kind == "slower":
        found = [f"{n}: {100 * power(all_repeats, n):.0f} %" for n in (25, 50, 100, 200, 400, 800)]
        print(f"    called changed, by number of rounds, if drawn from all that were measured: {', '.join(found)}")
    short |= anything > 0.05 * count if kind == "alike" else slower < 0.9 * count
sys.exit(1 if short else 0)
PYTHON
}

case $what in
all)
    prepare
    compare alike 50 "$work/all" 0
    compare slower 50 "$work/all" $default_instructions
    worth 60 "$work/all" $default_instructions
    sum "$work/all"
    ;;
alike) prepare && compare alike "$2" "$3" 0 ;;
slower) prepare && compare slower "$2" "$3" "${4:-$default_instructions}" ;;
worth) prepare && worth "$2" "$3" "${4:-$default_instructions}" ;;
sum) sum "$2" ;;
*)
    echo "compare-power.sh: $what: accepted: alike, slower, worth, sum, or nothing" >&2
    exit 2
    ;;
esac
