"""Slurm: an array with an exclusive element for each node, requeued when its node is lost.

Slurm has no way to give each element a node of its own when it is submitted. So the array is submitted held, each
element is given its node, and then it is released. A submission's folder must be the same on all nodes.
"""

from __future__ import annotations

import argparse
import math
import re
import shlex
import subprocess

from ..._program import printable
from ..engine import State, call
from ..submission import FleetError, Submission

# Job states after which nothing more will come; of any other state it may.
OVER = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}

# Of an array without a limit.
ELEMENTS = 200


def add(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--partition", metavar="NAME", help="the partition; its nodes, unless --nodelist names some")
    group.add_argument("--nodelist", metavar="NODES", help="nodes, such as node[001-128,200]")
    group.add_argument("--constraint", metavar="FEATURES", help="nodes with these features, as sbatch takes them")
    group.add_argument("--reservation", metavar="NAME", help="nodes of this reservation, and within it")
    group.add_argument("--time", metavar="MINUTES", type=int, help="time limit of a job [10 + 4 x budget]")


def hosts(arguments: argparse.Namespace) -> list[str]:
    nodes = [line.split("|") for line in call(["sinfo", "--noheader", "--Node", "--format=%N|%R|%f"]).splitlines()]
    known = {name for name, *_ in nodes}
    partitions = {partition for _, partition, _ in nodes}
    chosen = [name for name, partition, _ in nodes if arguments.partition in (None, partition)]
    if arguments.partition and not chosen:
        raise FleetError(f"--partition {arguments.partition}: there are {', '.join(sorted(partitions))}", 2)
    if arguments.nodelist:
        chosen = call(["scontrol", "show", "hostnames", arguments.nodelist]).split()
        if unknown := [name for name in chosen if name not in known]:
            raise FleetError(f"--nodelist {arguments.nodelist}: Slurm has no node {printable(unknown[0])}", 2)
    if arguments.reservation:
        chosen = [name for name in chosen if name in reserved(arguments.reservation)]
        if not chosen:
            raise FleetError(
                f"--reservation {arguments.reservation}: none of its nodes is among those that are named", 2
            )
    if arguments.constraint:
        wanted = set(re.split(r"[&,]", arguments.constraint))
        features = {name: set(of.split(",")) for name, _, of in nodes}
        if chosen and not (chosen := [name for name in chosen if wanted <= features[name]]):
            there = sorted({feature for of in features.values() for feature in of} - {"(null)"})
            said = f"there are {', '.join(there)}" if there else "no node has a feature"
            raise FleetError(f"--constraint {arguments.constraint}: no node has all of these; {said}", 2)
    return chosen


def reserved(name: str) -> set[str]:
    try:
        shown = call(["scontrol", "show", "reservation", name, "--oneliner"])
    except FleetError as error:
        raise FleetError(f"--reservation {name}: {error}", 2) from None
    found = re.search(r"\bNodes=(\S+)", shown)
    return set(call(["scontrol", "show", "hostnames", found[1]]).split()) if found else set()


def text(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> str:
    lines = [f"# {submission.job}, on each node:", *submission.job_text().splitlines()[1:], ""]
    lines += ["# an element of an array for each node, submitted held; then its node and its start, then the release:"]
    lines += [shlex.join(sbatch(submission, len(hosts), arguments.limit, arguments)), *updates("JOB", hosts, arguments)]
    return "\n".join(lines) + "\n"


def sbatch(submission: Submission, count: int, limit: int | None, arguments: argparse.Namespace) -> list[str]:
    minutes = arguments.time or 10 + math.ceil(4 * arguments.budget_s / 60)
    folder = shlex.quote(str(submission.folder))
    command = ["sbatch", "--parsable", "--hold", f"--array=0-{count - 1}" + (f"%{limit}" if limit else "")]
    command += ["--job-name=switchcost", "--nodes=1", "--ntasks=1", "--exclusive", "--requeue", f"--time={minutes}"]
    command += ["--chdir=/", f"--output={str(submission.folder).replace('%', '%%')}/%N.log", "--open-mode=append"]
    for option in ("partition", "reservation"):
        command += [f"--{option}", chosen] if (chosen := getattr(arguments, option)) else []
    node = '"$SLURMD_NODENAME"'
    return [*command, "--wrap", f"exec sh {folder}/job.sh {node} {folder}/{node}.jsonl"]


def updates(job: str, hosts: list[str], arguments: argparse.Namespace, first: int = 0) -> list[str]:
    """Lines for scontrol; `first` is how many hosts start before these."""
    lines = []
    for number, host in enumerate(hosts):
        start = f" StartTime=now+{round((first + number) * arguments.staggered_s)}" if arguments.staggered_s else ""
        lines.append(f"update JobId={job}_{number} ReqNodeList={host}{start}")
    return [*lines, f"release {job}"]


def submit(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> None:
    largest = re.search(r"MaxArraySize\s*=\s*(\d+)", call(["scontrol", "show", "config"]))
    size = max(1, int(largest[1])) if largest else 1000
    # To give an element its node takes Slurm the longer the more elements its array has. A limit holds in an array.
    size = size if arguments.limit else min(size, ELEMENTS)
    arrays = [hosts[first : first + size] for first in range(0, len(hosts), size)]
    if arguments.limit and arguments.limit < len(arrays):
        least = f"Slurm's arrays have {size} elements here: at least {len(arrays)}"
        raise FleetError(f"--limit {arguments.limit}: {least}", 2)
    limit = arguments.limit // len(arrays) if arguments.limit else None
    done: list[str] = []
    try:
        for number, part in enumerate(arrays):
            done.append(call(sbatch(submission, len(part), limit, arguments)).strip().split(";")[0])
            lines = "".join(f"{line}\n" for line in updates(done[-1], part, arguments, number * size))
            call(["scontrol"], lines)
    except BaseException:
        # An element without a node of its own would run anywhere.
        if done:
            subprocess.run(["scancel", *done])
        raise
    submission.jobs += done


def states(submission: Submission) -> dict[str, State]:
    found = {}
    for job in submission.jobs:
        try:
            shown = call(["scontrol", "show", "job", "--oneliner", job])
        except FleetError as error:
            # What ended some minutes ago (MinJobAge) is forgotten. Other failures are no answer.
            if "Invalid job id" in str(error):
                continue
            raise
        for line in shown.splitlines():
            element = {key: value for key, value in re.findall(r"\b(\w+)=(\S*)", line.partition(" Command=")[0])}
            found[element.get("ReqNodeList", "")] = state(element, submission)
    return found


def state(element: dict[str, str], submission: Submission) -> State:
    job = f"job {element.get('ArrayJobId', '')}_{element.get('ArrayTaskId', '')}"
    what = element.get("JobState", "UNKNOWN")
    if element.get("Restarts", "0") != "0":
        job += " requeued,"
    shared = f"is {submission.folder} the same folder on the nodes?"
    if what == "COMPLETED":
        return State(False, f"{job} completed, but its answer is not there: {shared}")
    if what in OVER:
        host = element.get("ReqNodeList", "")
        said = submission.last_words(host) if (submission.folder / f"{host}.log").exists() else f"no log: {shared}"
        code, _, signal = element.get("ExitCode", "?").partition(":")
        ended = f"exit code {code}" if signal == "0" else f"signal {signal}"
        return State(False, f"{job} {what.lower()}, {ended}" + (f": {said}" if said else ""))
    return State(True, f"{job} {what.lower()}" + (f": {element['Reason']}" if what == "PENDING" else ""))


def fetch(submission: Submission) -> None:
    pass
