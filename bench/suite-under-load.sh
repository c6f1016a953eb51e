#!/usr/bin/env bash
# Whether the tests of the program depend on being quick: the suite, several times beside stress-ng, or once at nice 19 beside
# 16 busy processes of the same niceness. Prints seconds and skips of each run; fails if one is red.
#   bench/suite-under-load.sh [TIMES] [FILTER...]     (default: 10)
#   bench/suite-under-load.sh nice [FILTER...]
set -euo pipefail
cd "$(dirname "$0")/.."
times=${1:-10}
shift || true
cargo test --quiet --locked -p switchcost --test suite --no-run
work=$(mktemp -d)
loads=()
finish() {
    for load in "${loads[@]}"; do kill -- "-$load" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT

set -m
before=()
if [ "$times" = nice ]; then
    times=1 before=(nice -n 19)
    nice -n 19 sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do while :; do :; done & done; wait' &
    loads+=($!)
else
    command -v stress-ng >/dev/null ||
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends stress-ng >/dev/null; }
    stress-ng --quiet --cpu 8 --vm 2 --vm-bytes 512M &
    loads+=($!)
fi
set +m

for ((run = 1; run <= times; run++)); do
    start=$SECONDS code=0
    : >"$work/skips"
    SWITCHCOST_SKIPS=$work/skips "${before[@]}" cargo test --quiet --locked -p switchcost --test suite -- "$@" >"$work/said" 2>&1 || code=$?
    [ "$code" = 0 ] || { cat "$work/said"; exit 1; }
    echo "run $run: $(grep '^test result' "$work/said"), $((SECONDS - start)) s"
    [ -z "${SWITCHCOST_SKIPS:-}" ] || cat "$work/skips" >>"$SWITCHCOST_SKIPS"
    cut -f 1 "$work/skips" | sort | uniq -c | sed 's/^ */    skipped: /'
done
