"""Slurm: an exclusive job for each node, requeued when its node is lost.

Not an array: while one element waits for its node (busy, drained since), Slurm starts no other of its array. All jobs
are submitted held, and released when Slurm has taken them all. A submission's folder must be the same on all nodes.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from ..._program import printable
from ..engine import Selection, State, call
from ..submission import FleetError, Submission, written

# Job states after which nothing more will come; of any other state it may.
OVER = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
    *("REVOKED", "TIMEOUT"),
}

# States of a node that starts no job before somebody or something mends it, and what a person calls them.
UNAVAILABLE = {
    "drained": "drained",
    "draining": "drained",
    "down": "down",
    "error": "down",
    "fail": "failing",
    "failing": "failing",
    "inval": "invalid",
    "unknown": "unknown to Slurm",
    "future": "not there yet",
    "maint": "under maintenance",
}
BUSY = {"allocated", "completing", "mixed", "planned", "reserved"}
# Of states in sinfo: does not respond, saves power, will reboot, ...
SUFFIXES = "*~#!%$@^-+"
TURNS_FILE = "turns.sh"
# Run by each job of a submission with --parallel when it has measured, and by `status` and `submit`. Slurm evaluates
# --dependency=singleton anew when a job is renamed. A node under maintenance starts the jobs of its reservation.
TURNS = """\
#!/bin/sh
# Lets no job wait behind one whose node cannot start anything: that one leaves its turn and waits alone.
states=$(sinfo --noheader --Node --format='%N %T')
nodes=$(printf '%s\\n' "$states" | while read -r node state; do
    case $state in {states}) printf ' %s ' "$node" ;; esac
done)
maintained=$(printf '%s\\n' "$states" | while read -r node state; do
    case $state in maint*) printf ' %s ' "$node" ;; esac
done)
squeue --me --noheader --states=PENDING --format='%i %j %n %v' | while read -r job name node reservation; do
    case $name in {name}-[0-9]*) ;; *) continue ;; esac
    case $reservation in "" | "(null)" | N/A) away=$nodes$maintained ;; *) away=$nodes ;; esac
    case $away in *" $node "*) scontrol update "JobId=$job" "JobName={name}-aside-$job" ;; esac
done
"""
# Calls of sbatch at a time: most of its time it waits for slurmctld.
SUBMITTERS = 8


def add(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--partition", metavar="NAME", help="the partition; its nodes, unless --nodelist names some")
    group.add_argument("--nodelist", metavar="NODES", help="nodes, such as node[001-128,200]")
    group.add_argument("--constraint", metavar="FEATURES", help="nodes with these features, as sbatch takes them")
    group.add_argument("--reservation", metavar="NAME", help="nodes of this reservation, and within it")
    group.add_argument("--time", metavar="MINUTES", type=int, help="time limit of a job [10 + 4 x budget]")


def hosts(arguments: argparse.Namespace) -> Selection:
    nodes = [line.split("|") for line in call(["sinfo", "--noheader", "--Node", "--format=%N|%R|%f|%T"]).splitlines()]
    known = {name for name, *_ in nodes}
    partitions = {partition for _, partition, *_ in nodes}
    chosen = [name for name, partition, *_ in nodes if arguments.partition in (None, partition)]
    if arguments.partition and not chosen:
        raise FleetError(f"--partition {arguments.partition}: there are {', '.join(sorted(partitions))}", 2)
    if arguments.nodelist:
        chosen = call(["scontrol", "show", "hostnames", arguments.nodelist]).split()
        if unknown := [name for name in chosen if name not in known]:
            raise FleetError(f"--nodelist {arguments.nodelist}: Slurm has no node {printable(unknown[0])}", 2)
    if arguments.reservation:
        in_reservation = reserved(arguments.reservation)
        chosen = [name for name in chosen if name in in_reservation]
        if not chosen:
            raise FleetError(
                f"--reservation {arguments.reservation}: none of its nodes is among those that are named", 2
            )
    if arguments.constraint:
        wanted = set(re.split(r"[&,]", arguments.constraint))
        features = {name: set(listed.split(",")) for name, _, listed, _ in nodes}
        if chosen and not (chosen := [name for name in chosen if wanted <= features[name]]):
            there = sorted({feature for listed in features.values() for feature in listed} - {"(null)"})
            said = f"there are {', '.join(there)}" if there else "no node has a feature"
            raise FleetError(f"--constraint {arguments.constraint}: no node has all of these; {said}", 2)
    states = {name: state for name, _, _, state in nodes}
    reasons = {name: unavailable(states[name], bool(arguments.reservation)) for name in chosen}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    # Nodes that others use last: with --parallel nobody then waits behind them.
    free_first = sorted(chosen, key=lambda name: states[name].rstrip(SUFFIXES) in BUSY)
    return Selection([name for name in free_first if name not in left_out], left_out)


def unavailable(state: str, is_reserved: bool) -> str | None:
    """Why a node in this state of sinfo's would start no job; None if it will.

    One that did not respond for a moment (`idle*`) is asked: its job waits, and Slurm says soon whether it is down.
    """
    name = state.rstrip(SUFFIXES)
    return None if name == "maint" and is_reserved else UNAVAILABLE.get(name)


def reserved(name: str) -> set[str]:
    try:
        shown = call(["scontrol", "show", "reservation", name, "--oneliner"])
    except FleetError as error:
        raise FleetError(f"--reservation {name}: {error}", 2) from None
    found = re.search(r"\bNodes=(\S+)", shown)
    return set(call(["scontrol", "show", "hostnames", found[1]]).split()) if found else set()


def text(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> str:
    lines = [f"# {submission.job}, on each node:", *submission.job_text().splitlines()[1:], ""]
    if arguments.parallel:
        lines += [f"# {submission.folder / TURNS_FILE}, on a node that has measured:"]
        lines += [*turns_text(submission).splitlines()[1:], ""]
    lines += ["# a job for each node, submitted held, and the release of all:"]
    lines += [shlex.join(command) for command in commands(submission, hosts, arguments)]
    return "\n".join([*lines, "scontrol release JOB,..."]) + "\n"


def commands(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> Iterator[list[str]]:
    """sbatch's command line for each host.

    With `--parallel N` there are N job names, of each of which Slurm runs one job at a time. There a job whose node is
    lost ends, and is not requeued: those behind it would wait for that node. One whose node is drained leaves its
    turn (`TURNS`).
    """
    minutes = arguments.time or 10 + math.ceil(4 * arguments.budget_s / 60)
    folder, node = shlex.quote(str(submission.folder)), '"$SLURMD_NODENAME"'
    same = [
        "sbatch",
        "--parsable",
        "--hold",
        "--nodes=1",
        "--ntasks=1",
        "--exclusive",
        f"--time={minutes}",
        "--chdir=/",
    ]
    same += [f"--output={str(submission.folder).replace('%', '%%')}/%N.log", "--open-mode=append"]
    for option in ("partition", "reservation"):
        same += [f"--{option}", chosen] if (chosen := getattr(arguments, option)) else []
    measure = f"sh {folder}/job.sh {node} {folder}/{node}.jsonl"
    if arguments.parallel:
        # A shell that ends by a signal would leave job.sh without the time to clean up.
        same += [
            "--wrap",
            f"trap : TERM HUP INT; {measure}; code=$?; sh {folder}/{TURNS_FILE} >/dev/null 2>&1; exit $code",
        ]
    else:
        same += ["--wrap", f"exec {measure}"]
    for number, host in enumerate(hosts):
        if arguments.parallel:
            turn = f"{job_name(submission)}-{number % arguments.parallel + 1}"
            own = [f"--job-name={turn}", "--dependency=singleton", "--no-requeue"]
        else:
            own = ["--job-name=switchcost", "--requeue"]
        if arguments.staggered_s:
            own.append(f"--begin=now+{round(number * arguments.staggered_s)}")
        yield [*same[:2], f"--nodelist={host}", *own, *same[2:]]


def job_name(submission: Submission) -> str:
    """Returns what the job names of a submission with `--parallel` begin with."""
    return f"switchcost-{submission.id}"


def turns_text(submission: Submission) -> str:
    states = "|".join(f"{state}*" for state in UNAVAILABLE if state != "maint")
    return TURNS.format(states=states, name=job_name(submission))


def submit(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> None:
    done: list[str] = []
    if arguments.parallel:
        written(submission.folder / TURNS_FILE, turns_text(submission))

    def submit_one(command: list[str]) -> None:
        done.append(call(command, "").strip().split(";")[0])

    try:
        # Of jobs with one name the first that was submitted is the first to run.
        with ThreadPoolExecutor(1 if arguments.parallel else SUBMITTERS) as pool:
            submitted = [pool.submit(submit_one, command) for command in commands(submission, hosts, arguments)]
            try:
                for job in submitted:
                    job.result()
            except BaseException:
                # Those that have not begun; the others end before the pool does, and are in `done` then.
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        call(["scontrol"], f"release {','.join(done)}\n")
    except BaseException:
        if done:
            subprocess.run(["scancel", *done])
        raise
    submission.jobs += done


def take_turns(submission: Submission) -> None:
    """Lets no job wait behind one whose node starts nothing. What Slurm refuses is tried again by the next call."""
    quiet = subprocess.DEVNULL
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(["sh", "-c", turns_text(submission)], stdin=quiet, stdout=quiet, stderr=quiet, timeout=60)


def states(submission: Submission) -> dict[str, State]:
    found = {}
    jobs = set(submission.jobs)
    # The file says that there are turns. It is not run here: nodes may write to its folder.
    if (submission.folder / TURNS_FILE).is_file():
        take_turns(submission)
    nodes = call(["sinfo", "--noheader", "--Node", "--format=%N|%T"]).splitlines()
    node_states = {name: state for name, _, state in (line.partition("|") for line in nodes)}
    # One call for all: what ended some minutes ago (MinJobAge) is forgotten.
    for line in call(["scontrol", "show", "job", "--oneliner"]).splitlines():
        job = {key: value for key, value in re.findall(r"\b(\w+)=(\S*)", line.partition(" Command=")[0])}
        # The jobs of older versions are arrays.
        if {job.get("JobId"), job.get("ArrayJobId")} & jobs:
            host = job.get("ReqNodeList", "")
            found[host] = state(job, submission, node_states.get(host, ""))
    return found


def state(job: dict[str, str], submission: Submission, node_state: str) -> State:
    name = f"job {job.get('JobId', '')}"
    what = job.get("JobState", "UNKNOWN")
    if job.get("Restarts", "0") != "0":
        name += " (requeued)"
    shared = f"is {submission.folder} the same folder on the nodes?"
    if what == "COMPLETED":
        return State(False, f"{name} completed, but its answer is not there: {shared}")
    if what in OVER:
        host = job.get("ReqNodeList", "")
        said = submission.last_words(host) if (submission.folder / f"{host}.log").exists() else f"no log: {shared}"
        code, _, signal = job.get("ExitCode", "?").partition(":")
        ended = f"exit code {code}" if signal == "0" else f"signal {signal}"
        ended = "its node was lost" if what == "NODE_FAIL" else f"{what.lower()}, {ended}"
        return State(False, f"{name} {ended}" + (f": {said}" if said else ""))
    if what != "PENDING":
        return State(True, f"{name} {what.lower()}")
    if fault := unavailable(node_state, False):
        return State(True, f"the node is {fault}; {name} waits for it")
    return State(True, f"{name} {waits_for(job.get('Reason', ''), node_state)}")


def waits_for(reason: str, node_state: str) -> str:
    """Why a job waits, by its Reason of scontrol; of other reasons Slurm's own word.

    Slurm also says ReqNodeNotAvail of a node at work, and for a while of one that was drained: its state is newer.
    """
    if reason.startswith("ReqNodeNotAvail") and node_state.rstrip(SUFFIXES) in BUSY:
        return "waits: its node is busy"
    known = {"Resources": "its node is busy", "Priority": "its node is busy", "Dependency": "others are measured first"}
    known |= {"BeginTime": "its time has not come", "JobHeldUser": "it is held", "JobHeldAdmin": "it is held"}
    said = known.get(reason) or (f"Slurm says {reason}" if reason not in ("", "None") else "")
    return "waits" + (f": {said}" if said else "")


def fetch(submission: Submission) -> None:
    pass
