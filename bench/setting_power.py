#!/usr/bin/env python3
"""Power and false alarms of `switchcost compare --ab-setting`.

Sessions of two kinds, alternating:

    changed   autogroup on against off, a ring of 16: a level of groups costs each switch some percent
    alike     autogroup on against on

In 45 of 50 the change must be found, in at most 3 of 50 alike ones may there be one.

    bench/setting_power.py measure SESSIONS FILE     a line a session is added to FILE, run files stay beside it
    bench/setting_power.py read FILE                 the run files are compared again: after a change of the program
    bench/setting_power.py sum FILE                  the result; exit code 1 if a goal is missed

SWITCHCOST is the program (default target/release/switchcost), BUDGET the time of a session (20s).
"""
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

SETTING = "/proc/sys/kernel/sched_autogroup_enabled"
VALUES = {"changed": ("1", "0"), "alike": ("1", "1")}
PROGRAM = os.environ.get("SWITCHCOST", "target/release/switchcost")
BUDGET = os.environ.get("BUDGET", "20s")
MEMBERS = 16


def run_program(arguments, data):
    """Runs the program with its run files below `data`; returns the comparison and the exit code."""
    environment = {**os.environ, "XDG_DATA_HOME": str(data), "SWITCHCOST_IGNORE_BUSY": "1"}
    report = data / "comparison.json"
    report.unlink(missing_ok=True)
    done = subprocess.run(
        [PROGRAM, "compare", *arguments, "--cost", "hop", "--quiet", "--json", str(report)],
        env=environment, capture_output=True, text=True, check=False)
    if not report.exists():
        sys.exit(f"no comparison: {done.stderr}")
    return json.loads(report.read_text()), done.returncode


def line_of(comparison, kind, session):
    """Returns what is kept of a session's comparison."""
    [ring] = [change for change in comparison["changes"] if change["labels"]["members"] == str(MEMBERS)]
    ratio = ring["ratio"]
    return {"kind": kind, "session": session, "answer": ring["answer"], "reason": ring.get("reason"),
            "ratio": ratio.get("value"), "low": ratio.get("low"), "high": ratio.get("high"),
            "base_ns": ring["base_ns"], "rounds": ring["base_rounds"]}


def append(path, line):
    """Adds a line to the file of results."""
    with open(path, "a", encoding="utf-8") as results:
        results.write(json.dumps(line) + "\n")


def measure(sessions, path):
    """Runs so many sessions of each kind in turn."""
    for session in range(sessions):
        for kind, (base, new) in VALUES.items():
            data = pathlib.Path(f"{path}.runs/{kind}-{session}").absolute()
            data.mkdir(parents=True)
            comparison, _ = run_program(
                ["--ab-setting", SETTING, base, new, "--members", str(MEMBERS), "--budget", BUDGET,
                 "--seed", str(session + 1)], data)
            append(path, line_of(comparison, kind, session))


def read_again(path):
    """Compares the stored halves of all sessions again and rewrites the file of results."""
    lines = []
    for data in sorted(pathlib.Path(f"{path}.runs").iterdir()):
        kind, session = data.name.split("-")
        halves = [next((data / "switchcost" / "runs").glob(f"*-{half}.*")) for half in "ab"]
        comparison, _ = run_program(map(str, halves), data)
        lines.append(line_of(comparison, kind, int(session)))
    pathlib.Path(path).unlink()
    for line in lines:
        append(path, line)


def summarize(path):
    """Prints how many sessions of each kind found a change, and how wide their intervals were."""
    lines = [json.loads(line) for line in open(path, encoding="utf-8")]
    has_missed = False
    for kind in VALUES:
        of_kind = [line for line in lines if line["kind"] == kind]
        found = sum(line["answer"] == "changed" for line in of_kind)
        widths = [math.sqrt(line["high"] / line["low"]) - 1 for line in of_kind if line["low"] and line["high"]]
        ratios = [line["ratio"] for line in of_kind if line["ratio"]]
        print(f"{kind}: {found} of {len(of_kind)} changed; ratio {statistics.median(ratios):.4f}"
              f" ({min(ratios):.4f} to {max(ratios):.4f});"
              f" half-width {statistics.median(widths):.1%}" if widths else f"{kind}: {found} of {len(of_kind)}, no interval")
        for answer in sorted({(line["answer"], line["reason"] or "") for line in of_kind}):
            print("   ", *answer, sum((line["answer"], line["reason"] or "") == answer for line in of_kind))
        share = found / max(len(of_kind), 1)
        has_missed |= share < 0.9 if kind == "changed" else share > 0.06
    return int(has_missed)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", sessions, path]:
            measure(int(sessions), path)
        case ["read", path]:
            read_again(path)
        case ["sum", path]:
            sys.exit(summarize(path))
        case _:
            sys.exit(__doc__)
