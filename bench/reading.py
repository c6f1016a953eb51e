#!/usr/bin/env python3
"""How long two builds take to read what is stored: seconds and peak memory, medians (and least to greatest), alternating.

    bench/reading.py BEFORE AFTER RINGS GAPS [REPEATS [WORD]]     two programs; a run file of `ring` and one of `response --only interrupts`; only
                                                                  the lines of the table that have the word

Makes run files of 1, 5, 20 and 200 MB and one of 54 MB of gaps by repeating the samples of these, each time as further rounds, and a folder of
10,000 runs. Prints a table in Markdown. The outputs of both builds must be the same.
"""

import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

MB = 1_000_000


def repeated(run, size, path):
    """A run file of about that size: the samples of `run` again and again, with rounds of their own."""
    with open(run) as file:
        lines = file.read().splitlines()
    samples = [json.loads(line)["sample"] for line in lines if line.startswith('{"sample"')]
    others = [line for line in lines[1:] if not line.startswith('{"sample"')]
    bare = [next(iter(one.values())) if list(one) in (["ring"], ["trial"]) else one for one in samples]
    rounds = 1 + max(one["round"] for one in bare)
    with open(path, "w") as file:
        file.write(lines[0] + "\n")
        while file.tell() < size:
            for whole, one in zip(samples, bare):
                file.write(json.dumps({"sample": whole}, separators=(",", ":")) + "\n")
                one["round"] += rounds
        file.write("".join(line + "\n" for line in others))


def ten_thousand(run, folder):
    """10,000 runs of a few samples."""
    with open(run) as file:
        lines = file.read().splitlines()
    lines = lines[:20] + [line for line in lines[20:] if not line.startswith('{"sample"')]
    header = json.loads(lines[0])
    os.makedirs(folder)
    for number in range(10_000):
        name = f"202601{1 + number // 1000:02}T{number % 1000 // 60:02}{number % 60:02}00000Z-ring-{number}"
        header["header"]["run"] = name
        with open(f"{folder}/{name}.jsonl", "w") as file:
            file.write("\n".join([json.dumps(header), *lines[1:]]) + "\n")


def once(program, words):
    """Seconds, peak memory in MB, bytes and digest of what it prints."""
    with tempfile.NamedTemporaryFile() as printed, tempfile.NamedTemporaryFile("r") as told:
        # A process that Python starts would begin with Python's peak memory.
        timed = ["/usr/bin/time", "-f", "%e %M", "-o", told.name, program, *words]
        subprocess.run(timed, stdout=printed, check=True)
        seconds, peak_kib = map(float, told.read().split())
        with open(printed.name, "rb") as file:
            digest = hashlib.file_digest(file, "md5").hexdigest()
        return seconds, peak_kib * 1024 / MB, os.path.getsize(printed.name), digest


def main():
    before, after, rings, gaps = sys.argv[1:5]
    repeats = int(sys.argv[5]) if len(sys.argv) > 5 else 5
    with tempfile.TemporaryDirectory() as work:
        os.environ |= {"XDG_DATA_HOME": f"{work}/data", "XDG_STATE_HOME": f"{work}/state"}
        files = {size: f"{work}/{size}.jsonl" for size in [1, 5, 20, 200, 54]}
        tasks = [(f"`show`, {size} MB", size, ["runs", "show", files[size]]) for size in [1, 5, 20, 200]]
        tasks.append(("`show`, 54 MB of gaps", 54, ["runs", "show", files[54]]))
        tasks.append(("CSV of 200 MB", 200, ["runs", "export", "--format", "csv", files[200]]))
        tasks.append(("`runs list`, 10,000 runs", None, ["runs", "list"]))
        tasks = [task for task in tasks if len(sys.argv) < 7 or sys.argv[6] in task[0]]
        for size in {size for _, size, _ in tasks if size}:
            repeated(gaps if size == 54 else rings, size * MB, files[size])
        ten_thousand(rings, f"{work}/data/switchcost/runs")
        print("| | s, before | s, after | MB/s read, after | MB/s printed, after | memory, before | memory, after |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        for name, size, words in tasks:
            found = {before: [], after: []}
            for _ in range(repeats):
                for program in found:
                    found[program].append(once(program, words))
            assert len({digest for runs in found.values() for *_, digest in runs}) == 1 or size is None, f"{name}: the outputs differ"
            times = {program: [run[0] for run in runs] for program, runs in found.items()}
            middle = statistics.median(times[after])
            spread = [f"{statistics.median(all):.2f} ({min(all):.2f} to {max(all):.2f})" for all in times.values()]
            rates = [f"{amount / middle:.0f}" if amount else "-" for amount in (size, found[after][0][2] / MB)]
            peaks = [f"{max(run[1] for run in runs):.0f} MB" for runs in found.values()]
            print("|", " | ".join([name, *spread, *rates, *peaks]), "|", flush=True)


main()
