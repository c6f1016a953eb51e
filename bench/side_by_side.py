"""Programs measured in turn with `switchcost ring`: what against_pipes.py and against_tools.py share.

A round runs every program once, in random order. A ratio is taken within the round, so that drift of the machine
cancels, and of all rounds the median is printed, with the interval that their ranks give (95 %, no assumption about the
distribution). Times of programs that ran minutes apart are never compared.
"""

import csv
import io
import math
import os
import random
import subprocess
import sys
import tempfile

# A slice is clean if all loops around it are within this share of what an idle core shows.
TOLERANCE = 0.02
# Fewer clean slices of a round are no figure.
LEAST_CLEAN = 20
# A program that takes longer is ended.
DEADLINE = ["timeout", "--kill-after=1", "60"]


def counted_run(command, environment=None):
    """Runs a command; returns what it printed, its counted switches and its CPU seconds, with those of all children."""
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen([*DEADLINE, *command], stdout=printed, stderr=subprocess.STDOUT, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}: {text.strip()[-400:]}")
    return text, usage.ru_nvcsw + usage.ru_nivcsw, usage.ru_utime + usage.ru_stime


def add_arguments(parser, rounds):
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--laps", type=int, default=40_000, help="of a ring in a round")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="on which all run")
    parser.add_argument("--policy", choices=["other", "fifo"], default="other", help="fifo: other tasks wait")
    parser.add_argument("--switchcost", default="target/release/switchcost")


def under_policy(args, command):
    return ["chrt", "--fifo", "1", *command] if args.policy == "fifo" else command


def pinned(args, command):
    """Returns the command, on the CPU and under the policy of all."""
    return ["taskset", "--cpu-list", str(args.cpu), *under_policy(args, command)]


def our_rings(args, options):
    """Runs `switchcost ring` once; returns a Ring by link and number of members."""
    command = [
        args.switchcost,
        "ring",
        "--placement",
        str(args.cpu),
        "--policy",
        args.policy,
        "--rounds",
        "1",
        *options,
    ]
    command += ["--quiet", "--csv", "-"]
    with tempfile.TemporaryDirectory() as store:
        environment = {**os.environ, "XDG_DATA_HOME": store, "XDG_STATE_HOME": store, "SWITCHCOST_IGNORE_BUSY": "1"}
        text, _, _ = counted_run(command, environment)
    rings = {}
    for row in csv.DictReader(io.StringIO(text)):
        # A sample that waited for an unshared core is left out: the other programs do not wait.
        if not row["waited_ns"]:
            rings.setdefault((row["link"], int(row["members"])), Ring()).add_sample(row)
    return rings


class Ring:
    """Hops, time and slices of one ring in a round."""

    def __init__(self):
        self.hops = self.elapsed_ns = self.switches = 0
        # Nanoseconds a hop of each slice, with the times of the loops around it.
        self.slices = []

    def add_sample(self, row):
        self.hops += int(row["hops"])
        self.elapsed_ns += int(row["elapsed_ns"])
        self.switches += int(row["voluntary"]) + int(row["involuntary"])
        slices = [int(time) for time in row["slices_ns"].split()]
        if slices:
            # All but the last slice have the same number of laps.
            hops = math.ceil(int(row["hops"]) / int(row["members"]) / len(slices)) * int(row["members"])
            quanta = [[int(time) for time in row[name].split()] for name in QUANTA]
            self.add_slices([time / hops for time in slices[:-1]], *quanta)

    def add_slices(self, hops_ns, latency_ns, throughput_ns):
        """Adds slices that follow each other; slice i has the loops i to i + 3 around it."""
        quanta = list(zip(latency_ns, throughput_ns))
        for place, hop_ns in enumerate(hops_ns):
            self.slices.append((hop_ns, quanta[place : place + 4]))

    @property
    def hop_ns(self):
        return self.elapsed_ns / self.hops

    @property
    def difference_ns(self):
        """A hop of the even slices less one of the odd slices that follow them, where two programs take turns."""
        hops_ns = [hop_ns for hop_ns, _ in self.slices]
        return median([even - odd for even, odd in zip(hops_ns[0::2], hops_ns[1::2])])

    @property
    def switches_per_hop(self):
        return self.switches / self.hops

    def clean_hop_ns(self, idle_ratio):
        """Returns the median hop of the clean slices; None if they are few."""
        clean = sorted(hop_ns for hop_ns, quanta in self.slices if is_clean(quanta, idle_ratio))
        return median(clean) if len(clean) >= LEAST_CLEAN else None


QUANTA = ["latency_quanta_ns", "throughput_quanta_ns"]


def is_clean(quanta, idle_ratio):
    """Returns whether all loops around a slice ran at one clock on an unshared core."""
    latencies = [latency for latency, _ in quanta]
    if not latencies or max(latencies) > (1 + TOLERANCE) * min(latencies):
        return False
    return all(throughput <= (1 + TOLERANCE) * idle_ratio * latency for latency, throughput in quanta)


def idle_ratio(rings):
    """Returns throughput-bound over latency-bound loop on an idle core: nearly the lowest that any ring saw."""
    quanta = [quantum for ring in rings for _, quanta in ring.slices for quantum in quanta]
    ratios = sorted(throughput / latency for latency, throughput in quanta if latency)
    return ratios[len(ratios) // 20] if ratios else 0.0


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def interval(values):
    """Returns median, lower and upper end; the ends are None under six values."""
    values = sorted(values)
    count = len(values)
    # Largest rank below which the median lies with a chance of at most 2.5 %.
    rank, chance = 0, 0.5**count
    while chance <= 0.025:
        rank += 1
        chance += math.comb(count, rank) * 0.5**count
    if rank == 0:
        return median(values), None, None
    return median(values), values[rank - 1], values[count - rank]


def show_interval(values, digits=3):
    if not values:
        return "no value"
    value, low, high = interval(values)
    ends = f" ({low:.{digits}f} to {high:.{digits}f})" if low is not None else f" ({len(values)} rounds)"
    return f"{value:.{digits}f}{ends}"


def run_rounds(programs, rounds):
    """Calls each of these functions once a round, in random order; returns a list of results by name a round."""
    results = []
    for number in range(rounds):
        order = list(programs)
        random.shuffle(order)
        measured = {name: programs[name]() for name in order}
        results.append({name: measured[name] for name in programs})
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return results


def print_table(head, rows):
    print("|", " | ".join(head), "|")
    print("|" + "---|" * len(head))
    for row in rows:
        print("|", " | ".join(row), "|")
