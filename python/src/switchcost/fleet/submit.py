"""`fleet submit`: asks hosts to measure themselves; again, only those that have not answered."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from .._program import ProgramNotFoundError, find, printable
from .._program import run as run_program
from .engines import ENGINES
from .status import missing_states
from .submission import FleetError, Submission, checked_hosts, submissions

# Commands that store runs, and how long each measures where nothing is said.
BUDGETS_S = {"measure": 60.0, "ring": 20.0, "cost": 55.0, "response": 60.0, "clock": 20.0}
UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|min|h)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r}: a number with a unit: 500ms, 60s, 2m, 1h")
    return float(match[1]) * UNITS_S[match[2]]


def duration(text: str) -> str:
    seconds(text)
    return text


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 1")
    return int(text)


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "submit",
        help="ask hosts to measure themselves; again, only those that have not answered",
        epilog="After --: what each host runs, `measure` by default: -- ring --members 2,64",
    )
    option = parser.add_argument
    option("--engine", choices=ENGINES, required=True, help="what runs it")
    option("--dataset", metavar="DIR", type=Path, required=True, help="folder of the fleet's runs")
    option("--budget", metavar="TIME", type=duration, help="time of a measurement, such as 60s")
    option("--parallel", metavar="N", type=at_least_one, help="at most so many hosts at a time")
    said = "time from a start to the next"
    option("--staggered", metavar="TIME", dest="staggered_s", type=seconds, default=0.0, help=said)
    option("--program", metavar="PATH", help="switchcost on the hosts [the one here; in an image: its own]")
    option("--print", action="store_true", help="only print what it would do; nobody is asked")
    option("--again", action="store_true", help="ask all hosts anew, also where all have answered")
    for name, engine in ENGINES.items():
        engine.add(parser.add_argument_group("ssh, kubernetes" if name == "ssh" else name))


def run(arguments: argparse.Namespace) -> int:
    chosen = ENGINES[arguments.engine]
    command = list(arguments.command) or ["measure"]
    if arguments.budget:
        if "--budget" in command:
            raise FleetError("--budget is there twice: before and after --", 2)
        command += ["--budget", arguments.budget]
    check(command)
    arguments.budget_s = budget_s(command)
    selection = chosen.hosts(arguments)
    hosts = checked_hosts(selection.hosts)
    if not hosts:
        none = f"no host can be asked: {states_of(selection.left_out)}" if selection.left_out else "knows no host"
        raise FleetError(f"--engine {arguments.engine}: {none}", 1 if selection.left_out else 2)

    known = None if arguments.again else last_like(arguments.dataset, arguments.engine, command)
    submission, answered, waiting = known, set[str](), set[str]()
    if submission:
        chosen_hosts = {*hosts, *selection.left_out}
        waiting = {host for host, state in missing_states(submission).items() if state.waiting} & chosen_hosts
        answered = submission.answered() & chosen_hosts
        submission.program = arguments.program or submission.program
    else:
        submission = Submission.new(arguments.dataset.resolve(), arguments.engine, command, program(arguments))
    asked = [host for host in hosts if host not in answered | waiting]
    left_out = {host: state for host, state in selection.left_out.items() if host not in answered | waiting}
    count = len({*hosts, *answered, *waiting})
    if asked and arguments.print:
        sys.stdout.write(chosen.text(submission, asked, arguments))
    elif asked:
        ask(submission, asked, arguments, is_new=not known)
    if asked:
        minutes = len(asked) * arguments.budget_s / 60
        print(
            f"about {minutes:,.1f} node-minutes: {len(asked):,} hosts, {arguments.budget_s:g} s each", file=sys.stderr
        )
    counts = (
        (len(asked), f"{'would ask' if arguments.print else 'asked'} {len(asked)} of {count} hosts"),
        (len(answered), f"{len(answered)} of {count} have answered already"),
        (len(waiting), f"{len(waiting)} {'is' if len(waiting) == 1 else 'are'} still at it"),
        (len(left_out), f"{states_of(left_out)}, not asked"),
    )
    what = "nobody was asked" if arguments.print else f"submission {submission.id}"
    again = "; --again asks all anew" if len(answered) == count else ""
    print(f"{', '.join(said for n, said in counts if n)} ({what}){again}", file=sys.stderr)
    return 0


def ask(submission: Submission, hosts: list[str], arguments: argparse.Namespace, is_new: bool) -> None:
    """Has the engine ask the hosts, all or none; the submission is then on the disk."""
    if is_new:
        submission.make_folder()
    submission.hosts = checked_hosts([*submission.hosts, *hosts])
    try:
        submission.prepare()
        ENGINES[arguments.engine].submit(submission, hosts, arguments)
    except BaseException:
        if is_new:
            shutil.rmtree(submission.folder)
        raise
    submission.save()
    if arguments.parallel and arguments.engine == "ssh":
        how = f"at most {arguments.parallel} at a time: ... | xargs -d '\\n' -n 1 -P {arguments.parallel} sh -c"
        print(how, file=sys.stderr)
    if arguments.parallel and arguments.engine == "slurm":
        go_on = f"switchcost fleet status --dataset {shlex.quote(str(arguments.dataset))}"
        print(
            f"should a node be drained before the first job ends, `{go_on}` lets the jobs behind it start",
            file=sys.stderr,
        )


def states_of(left_out: dict[str, str]) -> str:
    """How many hosts are left out, by state, with the names of a few: `3 drained (n5, n8, ...)`."""
    by_state: dict[str, list[str]] = {}
    for host, state in left_out.items():
        by_state.setdefault(state, []).append(printable(host))
    return ", ".join(
        f"{len(names)} {state} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
        for state, names in sorted(by_state.items())
    )


def check(command: list[str]) -> None:
    """Raises FleetError where the program here does not take the command: no host needs to be asked for that."""
    if command[0] not in BUDGETS_S:
        known = ", ".join(BUDGETS_S)
        raise FleetError(f"-- {printable(shlex.join(command))}: a host measures with one of {known}", 2)
    try:
        done = run_program([*command, "--help"])
    except ProgramNotFoundError:
        print("warning: the command is not checked: switchcost is not on this host", file=sys.stderr)
        return
    if done.exit_code:
        raise FleetError(f"-- {printable(shlex.join(command))}: {done.error()}", 2)


def budget_s(command: list[str]) -> float:
    """How long a host measures: what the command says, else what the program takes for it."""
    for word, following in zip(command, [*command[1:], ""], strict=True):
        if word == "--budget" or word.startswith("--budget="):
            text = (following if word == "--budget" else word.partition("=")[2]).rstrip("+")
            return seconds(text if not text.replace(".", "").isdecimal() else f"{text}s")
    return BUDGETS_S[command[0]]


def last_like(dataset: Path, engine: str, command: list[str]) -> Submission | None:
    alike = [one for one in submissions(dataset.resolve()) if (one.engine, one.command) == (engine, command)]
    return alike[-1] if alike else None


def program(arguments: argparse.Namespace) -> str:
    if getattr(arguments, "program", None):
        return str(arguments.program)
    return os.path.abspath(find()) if arguments.engine == "slurm" else "switchcost"
