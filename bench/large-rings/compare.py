#!/usr/bin/env python3
"""Large rings of switchcost against a bare ring in C (ring.c), alternating.

Prints a table in Markdown: set-up, one lap, the whole run (of ours with the ring of one, all control laps and two readings of all members'
counts a sample), CPU time of all processes, and the anonymous pages of a member. Medians, the lowest and highest in parentheses.
    bench/large-rings/compare.py [--members 2000,20000] [--launches 5] [PROGRAM ...]      PROGRAM: target/release/switchcost
"""

import argparse
import csv
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
CPU = max(os.sched_getaffinity(0))
COLUMNS = ["set-up, s", "lap, s", "whole, s", "CPU time, s"]


def run(command):
    """Output, wall time and CPU time of a command and all that it waited for."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    whole, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, whole, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def ours(program, members, laps="1"):
    return [program, "ring", "--members", str(members), "--laps", laps, "--rounds", "1", "--quiet", "--anonymous"]


def launch(program, bare, members, folder):
    if program == bare:
        out, whole, cpu = run([bare, str(members), "1", str(CPU)])
        setup, lap, *_ = (int(ns) / 1e9 for ns in out.split())
        return setup, lap, whole, cpu
    table = f"{folder}/samples.csv"
    _, whole, cpu = run(ours(program, members) + ["--csv", table])
    with open(table, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["members"] == str(members)]
    laps = [int(row["elapsed_ns"]) / 1e9 for row in rows]
    return int(rows[0]["setup_ns"]) / 1e9, statistics.median(laps), whole, cpu


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kibibytes(pid, item):
    lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(item))


def member_kib(program, bare):
    """Anonymous KiB of a member of a ring of 50 that goes round, and the part that nobody shares."""
    command = [bare, "50", "100000000", str(CPU)] if program == bare else ours(program, 50, "100000") + ["--budget", "30s"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as root:
        time.sleep(1.5)
        leader = root.pid if program == bare else children(root.pid)[-1]
        member = children(leader)[25]
        found = kibibytes(member, "Anonymous:"), kibibytes(member, "Private_Dirty:")
        root.kill()
    return found


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--members", default="2000,20000")
    words.add_argument("--launches", type=int, default=5)
    words.add_argument("program", nargs="*", default=["target/release/switchcost"])
    asked = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(XDG_DATA_HOME=folder, XDG_STATE_HOME=folder)
        bare = f"{folder}/ring"
        subprocess.run(["gcc", "-O2", "-o", bare, HERE / "ring.c"], check=True)
        programs = asked.program + [bare]
        for members in map(int, asked.members.split(",")):
            found = {program: [] for program in programs}
            for number in range(asked.launches):
                # The order turns, so that drift favours nobody.
                for program in programs[:: 1 if number % 2 else -1]:
                    found[program].append(launch(program, bare, members, folder))
                    print(program, members, *(f"{value:.2f}" for value in found[program][-1]), file=sys.stderr)
            print(f"| {members} members | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
            for program, rows in found.items():
                print(f"| {'bare' if program == bare else program} | {' | '.join(map(spread, zip(*rows)))} |")
                if program == bare:
                    continue
                ratios = [f"{statistics.median(of / base for of, base in zip(a, b)):.2f}" for a, b in zip(zip(*rows), zip(*found[bare]))]
                print(f"| its ratio to bare, median of pairs | {' | '.join(ratios)} |")
        for program in programs:
            anonymous, own = member_kib(program, bare)
            print(f"{'bare' if program == bare else program}: {anonymous} KiB of anonymous pages a member, {own} of them shared with nobody")


if __name__ == "__main__":
    main()
