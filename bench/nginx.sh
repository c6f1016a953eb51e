#!/bin/bash
# The switches of nginx, all its processes together, while ab loads it: as `switchcost trace --pid MASTER` counts
# them, perf stat of each process, and /proc. All three count the same requests.
#
#     bench/nginx.sh [REQUESTS] [CLIENTS] [TRIES]      needs root, nginx, ab (apache2-utils), perf, python3

set -euo pipefail
requests=${1:-20000} clients=${2:-8} tries=${3:-3}
program=${SWITCHCOST:-$(dirname "$0")/../target/release/switchcost}
work=$(mktemp -d)
mkdir "$work/html"
echo hello > "$work/html/index.html"
cat > "$work/nginx.conf" <<END
worker_processes 2;
pid $work/pid;
error_log $work/error.log;
events { worker_connections 1024; }
http { access_log off; server { listen 127.0.0.1:18080; location / { root $work/html; } } }
END
chmod -R a+rX "$work"
nginx -c "$work/nginx.conf"
master=$(cat "$work/pid")
trap 'kill "$master"; rm -r "$work"' EXIT
sleep 0.5
pids=$(echo "$master" $(pgrep -P "$master") | tr ' ' ,)

counts_of_proc() {
    for pid in ${pids//,/ }; do cat /proc/"$pid"/task/*/status; done | awk '/ctxt/ { sum += $2 } END { print sum }'
}

# A shell starts what runs beside it deaf to SIGINT, by which perf ends with its figures.
interruptible='import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])'

for _ in $(seq "$tries"); do
    "$program" trace --pid "$master" --budget 600s --json "$work/trace.json" > "$work/trace.txt" 2>&1 &
    tracer=$!
    python3 -c "$interruptible" perf stat -x, -o "$work/perf.csv" -e context-switches -p "$pids" &
    perf=$!
    sleep 3
    before=$(counts_of_proc)
    ab -q -n "$requests" -c "$clients" http://127.0.0.1:18080/ > "$work/ab.txt" 2>&1
    sleep 0.5
    after=$(counts_of_proc)
    kill -TERM "$tracer" && wait "$tracer" || true
    kill -INT "$perf" && wait "$perf" || true
    python3 - "$work" $((after - before)) <<'END'
import json, sys
trace = json.load(open(sys.argv[1] + "/trace.json"))
rates = [trace["total"][name] for name in ("voluntary_per_s", "preempted_per_s", "yielded_per_s")]
traced = round(sum(rates) * trace["seconds"])
line = next(line for line in open(sys.argv[1] + "/perf.csv") if "context-switches" in line)
perf = int(line.split(",")[0])
print(f"trace {traced}, perf {perf} ({100 * (traced / perf - 1):+.3f} %), /proc {sys.argv[2]}")
print("   ", trace["in_words"])
END
done
