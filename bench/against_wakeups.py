#!/usr/bin/env python3
"""Wake-ups under load beside other tools, in turn: schbench, cyclictest, perf bench.

    bench/against_wakeups.py [--pairs 20] [--seconds 10] [--switchcost target/release/switchcost]

Each pair runs `switchcost response --only load` and then the other tool with as like a load as it can
be given. Printed are both tools' p50 and p99 of the wake-up, and in how many pairs the other's lie
within the intervals of ours; then the ratio of both tools over all pairs. A tool that is not installed
is skipped with the reason. A quiet machine is needed: the two tools of a pair do not run at the same
time, but beside whatever else runs. Under 8 s a sleeper's p50 has no interval of its own.

- schbench: one messenger, one worker, sleeping requests at a rate; its wakeup latencies.
- cyclictest: one thread under SCHED_FIFO that sleeps until a moment each 500 us; ours is
  `response --only wakeup` under that policy, with a slack of 1 ns, which is compared instead.
- perf bench sched messaging has no percentiles: its time is printed alone, without a verdict.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys

from side_by_side import show_interval


def run(command):
    """Returns what a command printed on both streams; None if it failed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        print(f"  {' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-200:]}")
        return None
    return done.stdout + done.stderr


def ours(args, options, seconds):
    """Returns the record of one run of `switchcost response`."""
    command = [args.switchcost, "response", *options, "--budget", f"{seconds}s", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def loads(args, seconds):
    """Returns p50 and p99 of the wake-ups at the rate of schbench, in microseconds with intervals."""
    options = ["--only", "load", "--rate", str(args.rate), "--think", args.think, "--waker", "free"]
    options += ["--workers", "1"]
    wake = ours(args, options, seconds)["loads"][1]["wake"]
    return {name: tail(wake[f"{name}_ns"]) for name in ("p50", "p99")}


def sleeper(args, seconds):
    """Returns p50 and p99 of a sleeper under SCHED_FIFO on an idle CPU."""
    record = ours(args, ["--only", "wakeup", "--cpu", str(args.cpu)], seconds)
    trials = [case.get("trial", {}).get("case", {}) for case in record["cases"]]
    for wakeup in record["wakeups"]:
        trial = trials[wakeup["case"]]
        if wakeup["load"] == "idle" and trial["policy"] == "fifo" and trial["trial"]["timer_slack_ns"] == 1:
            median = wakeup["median_ns"]
            low, high = median["low"] or median["value"], median["high"] or median["value"]
            return {"p50": [low / 1e3, median["value"] / 1e3, high / 1e3], "p99": tail(wakeup["p99_ns"])}
    sys.exit("no wake-ups under SCHED_FIFO on an idle CPU: root, or a limit of real-time priority?")


def tail(quantile):
    if quantile is None:
        sys.exit("too few wake-ups for an interval: more --seconds")
    return [quantile[end] / 1e3 for end in ("low_ns", "value_ns", "high_ns")]


def schbench(args, seconds):
    """Returns p50 and p99 in microseconds by schbench."""
    command = ["schbench", "-m", "1", "-t", "1", "-r", str(seconds), "-R", str(args.rate)]
    text = run(command)
    if text is None:
        return None
    # The last table of wakeup latencies: `  50.0th: 7   (123 samples)`, `* 99.0th: 12`.
    wakeups = text[text.rfind("Wakeup Latencies") :]
    found = {}
    for name, percent in (("p50", "50.0th"), ("p99", "99.0th")):
        match = re.search(rf"{percent}:\s*(\d+)", wakeups)
        if not match:
            print("  schbench printed no percentiles")
            return None
        found[name] = float(match.group(1))
    return found


def cyclictest(args, seconds):
    """Returns p50 and p99 in microseconds by cyclictest's histogram."""
    command = ["cyclictest", "-t", "1", "-a", str(args.cpu), "-p", "1", "-i", "500", "-h", "10000", "-q"]
    text = run(command + ["--default-system", "-D", f"{seconds}s"])
    if text is None:
        return None
    counts = []
    for line in text.splitlines():
        match = re.match(r"^(\d{6}) (\d{6,})", line)
        if match:
            counts.append((int(match.group(1)), int(match.group(2))))
    total = sum(count for _, count in counts)
    if total == 0:
        print("  cyclictest printed no histogram")
        return None
    return {name: rank(counts, share * total) for name, share in (("p50", 0.5), ("p99", 0.99))}


def rank(counts, wanted):
    seen = 0
    for value, count in counts:
        seen += count
        if seen >= wanted:
            return float(value)
    return float("nan")


def pairs_with(args, name, tool, measure):
    """Runs both in turn and prints in how many pairs the other's figures lie within ours."""
    if not shutil.which(name):
        print(f"{name}: skipped: it is not installed")
        return
    print(f"{name}, {args.pairs} pairs of {args.seconds} s")
    within = {"p50": 0, "p99": 0}
    ratios = {"p50": [], "p99": []}
    pairs = 0
    for _ in range(args.pairs):
        figures = measure(args, args.seconds)
        theirs = tool(args, args.seconds)
        if theirs is None:
            return
        pairs += 1
        words = []
        for quantile, (low, value, high) in figures.items():
            # They print whole microseconds.
            is_within = low - 1 <= theirs[quantile] <= high + 1
            within[quantile] += is_within
            ratios[quantile].append(theirs[quantile] / value)
            words.append(f"{quantile} {value:.1f} ({low:.1f} to {high:.1f}) us, {theirs[quantile]:.0f}")
        print("  " + "; ".join(words), flush=True)
    print(f"{name}: within ours at p50 in {within['p50']}, at p99 in {within['p99']} of {pairs} pairs")
    for quantile, values in ratios.items():
        print(f"{name}: {quantile}, theirs over ours: {show_interval(values)}")


def perf_bench(args):
    if not shutil.which("perf"):
        print("perf bench: skipped: perf is not installed")
        return
    text = run(["perf", "bench", "sched", "messaging", "-t", "-g", "1", "-l", "10000"])
    if text:
        print("perf bench sched messaging (no percentiles):", " ".join(text.split()[-6:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=1000, help="requests a second")
    parser.add_argument("--think", default="20us")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="of the sleeper")
    parser.add_argument("--switchcost", default="target/release/switchcost")
    args = parser.parse_args()
    pairs_with(args, "schbench", schbench, loads)
    pairs_with(args, "cyclictest", cyclictest, sleeper)
    perf_bench(args)


if __name__ == "__main__":
    main()
