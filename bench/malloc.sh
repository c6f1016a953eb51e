#!/usr/bin/env bash
# What malloc and free cost real programs by allocator, with nothing else to run and beside busy loops (docs/validation.md has a
# part). Programs and allocators that are not here are passed over. Before: a tight loop, whose calls cost less
# than they take alone; what its bare 10^8 pairs take must lie between what is told at least and at most.
# usage: bench/malloc.sh [RUNS [BUSY LOOPS]]
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-10}
busy=${2:-4}
program=$(realpath "${PROGRAM:-${CARGO_TARGET_DIR:-target}/release/switchcost}")
work=$(mktemp -d)
loops=()
trap 'kill "${loops[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

cat >"$work/Words.java" <<'JAVA'
import java.util.*;
class Words {
    public static void main(String[] words) {
        Map<String, Integer> counts = new TreeMap<>();
        for (int i = 0; i < 300000; i++) counts.merge(Integer.toString(i % 5000), 1, Integer::sum);
        System.out.println(counts.size());
    }
}
JAVA
if command -v javac >/dev/null; then javac -d "$work" "$work/Words.java"; fi

of() {
    case $1 in
    python3) python3 -c 'import json; print(len(json.dumps(json.loads(json.dumps([{"a": str(i), "b": [i] * 5} for i in range(50000)])))))' ;;
    node) node -e 'const rows = []; for (let i = 0; i < 2e5; i++) rows.push({a: String(i), b: [i]}); console.log(JSON.stringify(JSON.parse(JSON.stringify(rows))).length)' ;;
    java) java -cp "$work" Words ;;
    sqlite3) sqlite3 :memory: 'create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000) insert into t select i, hex(i * i) from n; create index at on t(b); select count(*), max(b) from t where b like "3%";' ;;
    esac
}
export -f of
export work

allocators=()
for library in libjemalloc.so.2 libmimalloc.so.2; do
    if [ -z "$(LD_PRELOAD=$library env true 2>&1)" ]; then allocators+=(--allocator "$library"); else echo "passed over: $library"; fi
done

table() {
    for one in python3 node java sqlite3; do
        command -v "$one" >/dev/null || { echo "passed over: $one"; continue; }
        # bash starts it; its own allocations are the same few hundred each time.
        "$program" profile --malloc -n "$runs" "${allocators[@]}" --quiet --json "$work/$one.json" -- bash -c "of $one"
        python3 - "$one" "$work/$one.json" <<'PYTHON'
import json, sys

name, path = sys.argv[1:]
profile = json.load(open(path))
names = ["glibc", *(library.split(".")[0][3:] for library in profile["plan"]["allocators"])]
for function in ("malloc", "free"):
    for row in profile["rows"]:
        if row["function"] != function or row["bytes"]:
            continue
        own = lambda of: of["function"] == function and not of["bytes"] and of["allocator"] == row["allocator"]
        found = next((of for of in profile["ratios"] if own(of)), None)
        ratio = found and found["ratio"]
        # The upper end of the interval counts then.
        bound = lambda of: "<" if of["is_bound"] else ""
        cost, wall = row["ns_per_call"], row["wall_ns_per_call"]
        span = lambda of, form: f"({of['low']:{form}} to {of['high']:{form}})" if of["low"] is not None else "(not resolved)"
        print(
            f"{name:8} {function:6} {names[row['allocator']]:9} {row['calls']:>9,.0f} {bound(row):1}{cost['value']:6.1f} {span(cost, '.1f'):18}",
            f"{bound(found):1}{ratio['value']:4.2f} {span(ratio, '.2f'):15}" if ratio else " " * 21,
            f"{row['p50_ns']:5.0f} {row['p99_ns']:6.0f} {row['longest_ns'] / 1e3:9.0f} {row['longest_wall_ns'] / 1e3:9.0f}",
            f"{wall['value'] / cost['value']:6.2f}",
            f"{profile['launches'][0]['own_ns']:5.0f}",
        )
PYTHON
    done
}

if command -v cc >/dev/null; then
    cat >"$work/loop.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int count, char **words) {
    struct timespec begin, end;
    long pairs = atol(words[1]);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (long i = 0; i < pairs; i++) {
        void *block = malloc(64);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%.2f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / pairs);
    return count != 2;
}
C
    cc -O2 -fno-builtin -o "$work/loop" "$work/loop.c"
    echo 'a loop of malloc(64) and free: ns a pair, bare by CPU time with the loop, and told (malloc and free added)'
    for _ in 1 2 3 4 5; do
        bare=$("$work/loop" 100000000)
        "$program" profile --malloc --quiet --json "$work/loop.json" -- "$work/loop" 10000000 >/dev/null
        python3 - "$bare" "$work/loop.json" <<'PYTHON'
import json, sys

bare, profile = float(sys.argv[1]), json.load(open(sys.argv[2]))
rows = [row for row in profile["rows"] if row["function"] == "free" or row["bytes"] == [64, 127]]
value, least, most = (sum(of(row) for row in rows) for of in (lambda row: row["ns_per_call"]["value"], lambda row: row["least_ns"], lambda row: row["most_ns"]))
known = profile["known"]
print(
    f"bare {bare:5.2f}, told {value:5.2f}, {least:5.2f} to {most:5.2f}: {'inside' if least <= bare <= most else 'OUTSIDE'};",
    f"known call: told {known['told_ns']:.2f}, in a row {known['in_a_row_ns']:.2f}, chained {known['chained_ns']:.2f}",
)
PYTHON
    done
fi

columns='program  call   by            calls ns/call interval           ratio interval          p50    p99  longest   by wall  wall/  added
                                                                                               ns     ns       us        us    CPU     ns'
printf 'nothing else to run, %s runs each\n%s\n' "$runs" "$columns"
table
for _ in $(seq "$busy"); do
    sh -c 'while :; do :; done' &
    loops+=($!)
done
printf '\nbeside %s busy loops\n%s\n' "$busy" "$columns"
table
