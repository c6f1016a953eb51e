#!/usr/bin/env bash
# What tracing every switch costs, and what reading another thread costs, as differences and ratios of one run:
#   1. ring of two on one CPU: untraced, an empty probe, times only, with activity, recording, alternating in
#      slices of some 10 ms
#   2. reading a thread that runs on another CPU: the table, clock_gettime of its clock id, /proc/PID/schedstat
#   3. rings on all CPUs for SECONDS: events lost when aggregated and when recorded
# Needs root, BTF and a quiet machine.
#   bench/switchtrace.sh [ROUNDS] [SECONDS]         (default 101 and 30)
set -euo pipefail
cd "$(dirname "$0")/.."
run() { cargo bench --quiet -p switchtrace --bench cost -- "$@"; }
run ring "${1:-101}"
run reader "${1:-101}"
run flood "${2:-30}"
