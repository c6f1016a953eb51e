#!/usr/bin/env bash
# hyperfine's own scripts on files of `switchcost run --export-json`: each has to end without an error.
# First, if HYPERFINE names hyperfine 1.20, the files of both in all formats: the same but for figures.
#
# The scripts are not ours, so they are not here. HYPERFINE_SCRIPTS names their folder: `scripts` of
# hyperfine's source, 1.20. They need Python with numpy, scipy and matplotlib; none opens a window.
#   HYPERFINE_SCRIPTS=DIR bench/hyperfine-scripts.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME="$work" MPLBACKEND=Agg

[[ -n ${PREBUILT:-} ]] || cargo build --release --quiet -p switchcost
ours=${PREBUILT:-target/release/switchcost}
failed=0 count=0
# The same files by both programs, without their figures.
if "${HYPERFINE:-hyperfine}" --version 2>/dev/null | grep -q ' 1\.20\.'; then
    typed=(-N -r 3 -L n 1,3 -p 'true {m}' --command-name 'x {n}' -u millisecond 'sleep 0.00{n}' 'sleep 0.02')
    for format in json csv markdown asciidoc orgmode; do
        "${HYPERFINE:-hyperfine}" --style none "${typed[@]}" --export-$format "$work/theirs" >/dev/null 2>&1
        "$ours" run --no-estimate -q "${typed[@]}" --export-$format "$work/ours"
        for file in theirs ours; do
            sed -E 's/[0-9]+\.[0-9]+(e-?[0-9]+)?/N/g; s/,0(,|$)/,N\1/g; s/,0(,|$)/,N\1/g; s/^( +)[0-9]{5,}(,?)$/\1M\2/' "$work/$file" >"$work/$file.text"
        done
        if diff "$work/theirs.text" "$work/ours.text"; then echo "same: $format"; else echo "DIFFERENT: $format"; failed=1; fi
    done
else
    echo "skipped: HYPERFINE does not name hyperfine 1.20"
fi

scripts=${HYPERFINE_SCRIPTS:-}
[[ -n $scripts ]] || { echo "skipped: HYPERFINE_SCRIPTS does not name the folder of hyperfine's scripts"; exit "$failed"; }
python=${PYTHON:-python3}
"$python" -c 'import matplotlib, numpy, scipy' 2>/dev/null ||
    { echo "skipped: $python lacks matplotlib, numpy or scipy"; exit "$failed"; }
"$ours" run --no-estimate -q -r 12 --export-json "$work/two.json" 'true' 'sleep 0.002'
"$ours" run --no-estimate -q -r 6 -P ms 1 3 --export-json "$work/scan.json" 'sleep 0.00{ms}'

# Runs script $1 on a file, with the other arguments; an image has to be there if one was asked for.
try() {
    local script=$1 image=
    shift
    [[ -f $scripts/$script ]] || { echo "absent: $script"; return; }
    [[ $* == *"$work/image.png"* ]] && image=$work/image.png
    rm -f "$work/image.png"
    count=$((count + 1))
    if "$python" "$scripts/$script" "$@" >"$work/out" 2>&1 && [[ -z $image || -s $image ]]; then
        echo "ok: $script"
    else
        echo "FAILED: $script"
        tail -n 5 "$work/out"
        failed=1
    fi
}
try advanced_statistics.py "$work/two.json"
try welch_ttest.py "$work/two.json"
try plot_whisker.py "$work/two.json" -o "$work/image.png"
try plot_histogram.py "$work/two.json" -o "$work/image.png"
try plot_progression.py "$work/two.json" -o "$work/image.png"
try plot_parametrized.py "$work/scan.json" -o "$work/image.png"
try plot_benchmark_comparison.py "$work/two.json" -o "$work/image.png"
echo "$count scripts"
exit "$failed"
