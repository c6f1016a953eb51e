#!/usr/bin/env bash
# Time of a clean release build and of a clean `cargo test`, of two commits, alternating.
#
# Each build starts from an empty target folder, with the packages already downloaded. Prints seconds, the
# ratios (B / A) and the size of the stripped program. Needs a quiet machine and 20 minutes a repeat.
#   bench/build-times.sh COMMIT_A [COMMIT_B] [REPEATS]     (default: HEAD, 1)
set -euo pipefail
cd "$(dirname "$0")/.."
a=$1 b=${2:-HEAD} repeats=${3:-1}
work=$(mktemp -d)
cleanup() {
    git worktree remove --force "$work/a"
    git worktree remove --force "$work/b"
    rm -rf "$work"
}
trap cleanup EXIT
git worktree add --quiet --detach "$work/a" "$a"
git worktree add --quiet --detach "$work/b" "$b"
for side in a b; do (cd "$work/$side" && cargo fetch --locked --quiet); done

# Seconds of a command in the worktree of $1, from an empty target folder.
clean() {
    local side=$1 start
    shift
    rm -rf "$work/$side/target"
    start=$(date +%s.%N)
    (cd "$work/$side" && CARGO_TARGET_DIR="$work/$side/target" "$@" >"$work/log" 2>&1) ||
        { tail -n 20 "$work/log" >&2; exit 1; }
    echo "$start $(date +%s.%N)" | awk '{ printf "%.0f\n", $2 - $1 }'
}

for i in $(seq "$repeats"); do
    for what in "build --release --locked -p switchcost" "test --locked"; do
        # The order alternates, so that drift favours neither.
        if ((i % 2)); then order="a b"; else order="b a"; fi
        declare -A seconds=()
        for side in $order; do
            # shellcheck disable=SC2086
            seconds[$side]=$(clean "$side" cargo $what)
            program="$work/$side/target/release/switchcost"
            if [ -e "$program" ]; then
                strip -o "$work/stripped" "$program"
                echo "$side: stripped program of $(stat -c %s "$work/stripped") bytes"
            fi
        done
        echo "cargo $what: A ${seconds[a]} s, B ${seconds[b]} s, B / A $(echo "${seconds[a]} ${seconds[b]}" | awk '{ printf "%.2f", $2 / $1 }')"
    done
done
