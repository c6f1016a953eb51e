#!/usr/bin/env python3
"""`switchcost sensitivity` against what is known otherwise. Prints tables in Markdown.

widths    six programs, a run each: what a preemption costs by each neighbour, and how wide the interval is.
chase     a random chase through 64 KiB to 1 MiB: lines that a preemption takes from its cache (counted by chase.c, hop by hop) x what a
          line costs from the next level above what it costs from its own, and what a chase of 4 KiB loses, as the switch itself has
          lines, too; against what was measured. By neighbours of 1 and 2 MiB.
never     a neighbour that sleeps for the whole run: what is measured must hold zero.
pairs     two of the programs on one CPU, their preemptions counted: the loss that was measured against count x cost by a neighbour
          that stays as long as a slice (--stay) and uses as much cache as the other does. How much that is tells a chase of
          512 KiB beside the other, by its own curve (the reporter of Bubble-Up, Mars et al. 2011).

    bench/sensitivity/compare.py PROGRAM [widths|chase|never|pairs ...] [--budget 120s] [--cpu 1] [--stay 4ms] [--repeats 30]
"""

import argparse
import itertools
import json
import math
import os
import random
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

SQL = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000) select count(distinct i * 7919 % 30011), sum(i % 97) from n;"
PYTHON = "d = {str(i): i for i in range(30000)}\nprint(sum(d[str(i * 7 % 30000)] for i in range(150000)))"
NODE = "let m = new Map(); for (let i = 0; i < 60000; i++) m.set('k' + i, i); let s = 0; for (let i = 0; i < 600000; i++) s += m.get('k' + (i * 7919) % 60000); console.log(s)"
JAVA = """public class Job { public static void main(String[] a) { var m = new java.util.HashMap<Integer, Integer>();
for (int i = 0; i < 200000; i++) m.put(i, i); long s = 0; for (int i = 0; i < 3000000; i++) s += m.get((int) (i * 7919L % 200000)); System.out.println(s); } }"""


def programs(folder):
    """By name, the words of each; files are made in the folder."""
    text = f"{folder}/text"
    source = random.Random(1)
    words = [f"{source.randrange(1 << 30):x}" for _ in range(3000)]
    with open(text, "w") as file:
        file.write(" ".join(source.choice(words) for _ in range(300_000)))
    subprocess.run(["gcc", "-O2", "-o", f"{folder}/chase", f"{HERE}/chase.c"], check=True)
    all = {
        # Its dictionaries have another order in every run otherwise.
        "python": ["env", "PYTHONHASHSEED=0", "python3", "-c", PYTHON],
        "sqlite3": ["sqlite3", ":memory:", SQL],
        "gzip": ["gzip", "-kc", text],
        "chase": [f"{folder}/chase", str(512 << 10), "20000000"],
        "node": ["node", "-e", NODE],
    }
    with open(f"{folder}/Job.java", "w") as file:
        file.write(JAVA)
    if subprocess.run(["javac", "-d", folder, f"{folder}/Job.java"], check=False).returncode == 0:
        all["java"] = ["java", "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", folder, "Job"]
    return all


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.found = options, folder, {}

    def sensitivity(self, words, *more):
        record = f"{self.folder}/record.json"
        own = [self.options.program, "sensitivity", "--cpus", str(self.options.cpu), "--quiet", "--json", record]
        subprocess.run([*own, "--budget", self.options.budget, *more, "--", *words], check=True, stdin=subprocess.DEVNULL)
        with open(record) as file:
            return json.load(file)["findings"]["sensitivity"]

    def of(self, name, words, *more):
        if (name, more) not in self.found:
            self.found[name, more] = self.sensitivity(words, *more)
        return self.found[name, more]

    def curve(self, name, words):
        """What a preemption costs by neighbours that stay as long as another program's slice."""
        stay = ["--stay", self.options.stay, "--neighbour", "0,256K,1M,8M"]
        found = self.of(name, words, *stay)
        return [point for point in found["points"] if point["stays_ns"]]


def told(estimate):
    if estimate is None or estimate["low"] is None:
        return "-"
    low, value, high = (estimate[key] / 1000 for key in ("low", "value", "high"))
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def widths(bench, all):
    print("| program | neighbour KiB | us a preemption | width % | a CPU second | highest above lowest rate, us |\n|---|---|---|---|---|---|")
    for name, words in all.items():
        for point in bench.of(name, words)["points"]:
            cost = point["ns_per_preemption"]
            width = "-"
            if cost and cost["low"] is not None and cost["value"] > 0:
                width = f"{100 * (cost['high'] - cost['low']) / cost['value']:.0f}"
            rate = point["rates"][-1]["preemptions_per_cpu_second"] or 0
            print(f"| {name} | {point['bytes'] >> 10} | {told(cost)} | {width} | {rate:.0f} | {told(point['highest_above_lowest_ns'])} |", flush=True)


def hop_ns(bench, bytes, hops=20_000_000):
    words = ["taskset", "-c", str(bench.options.cpu), f"{bench.folder}/chase", str(bytes), str(hops)]
    runs = [float(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[0]) for _ in range(9)]
    return statistics.median(runs)


def lost(bench, bytes, neighbour):
    words = [f"{bench.folder}/chase", str(bytes), "3000000", str(bench.options.cpu), "250", str(neighbour)]
    return statistics.median(float(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[0]) for _ in range(9))


def chase(bench, all):
    del all
    print("| chase KiB | neighbour MiB | lines lost | ns a line | by lines, us | measured less that of no memory, us | ratio |\n|---|---|---|---|---|---|---|")
    # A line from the next level of cache above one from its own.
    line = hop_ns(bench, 4 << 20) - hop_ns(bench, 256 << 10)

    def costs(size):
        found = bench.sensitivity([f"{bench.folder}/chase", str(size), "20000000"], "--neighbour", "0,1M,2M")
        return [point["ns_per_preemption"] for point in found["points"]]

    of_the_switch = costs(4096)
    for size in [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20]:
        found = costs(size)
        for of in (1, 2):
            lines = lost(bench, size, of << 20)
            theory = (lines * line + of_the_switch[of]["value"] - of_the_switch[0]["value"]) / 1000
            above = (found[of]["value"] - found[0]["value"]) / 1000
            print(f"| {size >> 10} | {of} | {lines:.0f} | {line:.2f} | {theory:.1f} | {above:.1f}, {told(found[of])} | {above / theory:.2f} |", flush=True)


def never(bench, all):
    print("| program | rate | preemptions a run | more CPU time % |\n|---|---|---|---|")
    for name, words in list(all.items())[:4]:
        found = bench.sensitivity(words, "--neighbour", "0", "--rate", "2")
        for rate in found["points"][0]["rates"]:
            more = rate["more_cpu_share"]
            print(f"| {name} | {rate['rate_hz']} | - | {100 * more['value']:.2f} ({100 * more['low']:.2f} to {100 * more['high']:.2f}) |", flush=True)


def used(bench, words, other_words, beside):
    """CPU seconds and involuntary switches of a run, beside another that goes on, or that has just ended: a CPU that was idle is slower."""
    pin = ["taskset", "-c", str(bench.options.cpu)]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    other = subprocess.Popen([*pin, "sh", "-c", 'while :; do "$@"; done', "sh", *other_words], start_new_session=True, **quiet)

    def end():
        os.killpg(other.pid, 9)
        other.wait()

    time.sleep(0.05)
    if not beside:
        end()
    child = subprocess.Popen([*pin, *words], **quiet)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if beside:
        end()
    assert status == 0, words
    return usage.ru_utime + usage.ru_stime, usage.ru_nivcsw


def loss(bench, words, beside):
    """Median and error of the loss, preemptions of a run, and its CPU seconds alone."""
    losses, counts = [], []
    for _ in range(bench.options.repeats):
        (alone, own), (with_other, switches) = (used(bench, words, beside, is_there) for is_there in (False, True))
        losses.append(with_other / alone - 1)
        counts.append((switches - own, alone))
    quartiles = statistics.quantiles(losses, n=4)
    count, alone = (statistics.median(values) for values in zip(*counts))
    return quartiles[1], 1.25 * (quartiles[2] - quartiles[0]) / 1.35 * 1.96 / len(losses) ** 0.5, count, alone


def place(of):
    return math.log2(max(of, 1024))


def at(points, where, key):
    """A curve's value, or an end of its interval, at log2 of bytes."""
    known = [(place(p["bytes"]), p["ns_per_preemption"][key]) for p in points if p["ns_per_preemption"] and p["ns_per_preemption"]["low"] is not None]
    where = min(max(where, known[0][0]), known[-1][0])
    for (left, low), (right, high) in itertools.pairwise(known):
        if where <= right:
            return low + (high - low) * (where - left) / (right - left)
    return known[-1][1]


def footprint(points, low_ns, high_ns):
    """Where the curve may be between these two."""
    steps = [place(1024) + step / 16 for step in range(16 * 13 + 1)]
    may = [of for of in steps if at(points, of, "high") >= low_ns and at(points, of, "low") <= high_ns]
    return (may[0], may[-1]) if may else (steps[-1], steps[-1])


def pairs(bench, all):
    # Slices end at the scheduler's tick, which interrupts a program alone, too: no timer's interrupt is added.
    reporter = bench.curve("chase", all["chase"])
    uses = {}
    for name, words in all.items():
        share, error, count, alone = loss(bench, all["chase"], words)
        each = [1e9 * (share + by) * alone / max(count, 1) for by in (-error, error)]
        uses[name] = footprint(reporter, *each)
        print(f"{name} takes {each[0] / 1000:.0f} to {each[1] / 1000:.0f} us from the chase: uses {2 ** uses[name][0] / 1024:.0f} to {2 ** uses[name][1] / 1024:.0f} KiB\n", flush=True)
    print("| program | beside | preemptions a run | measured loss % | predicted % | inside | width |\n|---|---|---|---|---|---|---|")
    inside, ratios = 0, []
    chosen = list(itertools.permutations(all, 2))
    random.Random(3).shuffle(chosen)
    for name, other in chosen[:10]:
        points = bench.curve(name, all[name])
        share, error, count, alone = loss(bench, all[name], all[other])
        ends = [(end, at(points, where, end)) for where in uses[other] for end in ("low", "high")]
        low, high = (max(pick(value for _, value in ends), 0) * count / alone / 1e9 for pick in (min, max))
        holds = low - error <= share <= high + error
        inside += holds
        ratios.append(high / low if low > 0 else float("inf"))
        print(f"| {name} | {other} | {count:.0f} | {100 * share:.2f} +- {100 * error:.2f} | {100 * low:.2f} to {100 * high:.2f} | {'yes' if holds else 'no'} | {ratios[-1]:.1f} |", flush=True)
    print(f"\n{inside} of {len(chosen[:10])} inside, median width {statistics.median(ratios):.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("what", nargs="*", default=["widths", "chase", "never", "pairs"])
    parser.add_argument("--budget", default="120s")
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--stay", default="4ms")
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench, all = Bench(options, folder), programs(folder)
        for what in options.what:
            print(f"\n## {what}\n", flush=True)
            {"widths": widths, "chase": chase, "never": never, "pairs": pairs}[what](bench, all)


if __name__ == "__main__":
    main()
