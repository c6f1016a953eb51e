#!/usr/bin/env bash
# What tracing every switch costs, what reading another thread costs, as differences and ratios of one run, and
# whether all switches are counted:
#   1. ring of two on one CPU: untraced, an empty probe, times only, with activity, recording, alternating in
#      slices of some 10 ms
#   2. reading a thread that runs on another CPU: the table, clock_gettime of its clock id, /proc/PID/schedstat
#   3. pairs that yield on all CPUs for SECONDS: events lost when aggregated and when recorded
#   4. a ring of 64, a web server, its clients and make for twice SECONDS: counts against the kernel's, thread by thread
# Needs root, BTF and, but for the last two, a quiet machine. Other tracers: bench/tracers.py.
#   bench/switchtrace.sh [ROUNDS] [SECONDS]         (default 101 and 30)
set -euo pipefail
cd "$(dirname "$0")/.."
run() { cargo bench --quiet -p switchtrace --bench cost -- "$@"; }
run ring "${1:-101}"
run reader "${1:-101}"
run flood "${2:-30}"
SWITCHTRACE_TEST_SECONDS=$((2 * ${2:-30})) cargo test --quiet -p switchtrace --test kernel -- --nocapture mixed_load
