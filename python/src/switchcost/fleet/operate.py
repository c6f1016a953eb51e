"""`fleet drain`, `undrain` and `annotate`: what a verdict means to the scheduler, as its own commands.

They are printed; with --yes they are run.
"""

from __future__ import annotations

import argparse
import shlex
import sys

from .._program import printable
from .analyse import analysed, common
from .engine import call
from .findings import Host, Verdict
from .submission import FleetError, checked_hosts

# Notes of ours begin with this: `undrain` leaves nodes alone that somebody else has drained.
OURS = "switchcost: "
ENGINES = ("slurm", "kubernetes")


def add_all(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    said = {
        "drain": "print the commands that take slow hosts out of service, or run them",
        "annotate": "print the commands that note the verdicts on slow hosts, or run them",
    }
    for name, what in said.items():
        parser = common(subparsers.add_parser(name, help=what, description=f"{what.capitalize()}."))
        of_engine(parser)
        parser.add_argument("--probably", action="store_true", help="hosts that are probably slow, too")
        parser.add_argument("host", nargs="*", help="these of the slow hosts [all that are slow and not acknowledged]")
    what = "print the commands that put hosts back into service, or run them"
    parser = subparsers.add_parser("undrain", help=what, description=f"{what.capitalize()}.")
    of_engine(parser)
    parser.add_argument("host", nargs="+", help="hosts that `drain` has taken out")


def of_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=ENGINES, required=True, help="whose commands")
    parser.add_argument("--yes", action="store_true", help="run them")


def drain(arguments: argparse.Namespace) -> int:
    return done(
        [line for host in chosen(arguments) for line in drained(arguments.engine, host.name, note(host))], arguments
    )


def annotate(arguments: argparse.Namespace) -> int:
    return done(
        [line for host in chosen(arguments) for line in noted(arguments.engine, host.name, note(host))], arguments
    )


def undrain(arguments: argparse.Namespace) -> int:
    hosts = checked_hosts(arguments.host)
    if arguments.engine == "slurm":
        for host in hosts:
            said = call(["sinfo", "--noheader", "--nodes", host, "--format=%E"]).strip()
            if said and said != "none" and not said.startswith(OURS):
                raise FleetError(f"{host} was drained by somebody else: {printable(said, 200)}")
        return done([["scontrol", "update", f"NodeName={host}", "State=RESUME"] for host in hosts], arguments)
    lines = [
        [["kubectl", "uncordon", host], ["kubectl", "annotate", "node", host, "switchcost/verdict-"]] for host in hosts
    ]
    return done([line for of_host in lines for line in of_host], arguments)


def chosen(arguments: argparse.Namespace) -> list[Host]:
    found = analysed(arguments)
    # A step with a recorded cause is for who made the change, unless the host is named.
    named = set(arguments.host)
    stepped = [h for h in found.slower_since if h.name in named or (h.step and not h.step.changed)]
    slow = [*found.slow, *stepped, *(found.probably_slow if arguments.probably else [])]
    if wrong := set(checked_hosts(arguments.host)) - {host.name for host in slow}:
        name = min(wrong)
        known = {host.name: host for host in found.hosts}
        if name not in known:
            raise FleetError(f"{name} is not in the dataset", 2)
        verdict = known[name].verdict
        if verdict == Verdict.PROBABLY_SLOW and not known[name].acknowledged:
            raise FleetError(f"{name} is only probably slow; add --probably to {arguments.subcommand} it", 2)
        raise FleetError(f"{name} is not slow: {known[name].acknowledged or verdict}", 2)
    return [host for host in slow if not arguments.host or host.name in arguments.host]


def note(host: Host) -> str:
    verdict = f"{host.verdict}, " if host.verdict == Verdict.PROBABLY_SLOW else ""
    return OURS + verdict + printable(str(host).partition(": ")[2], 200)


def drained(engine: str, host: str, said: str) -> list[list[str]]:
    if engine == "slurm":
        return [["scontrol", "update", f"NodeName={host}", "State=DRAIN", f"Reason={said}"]]
    return [["kubectl", "cordon", host], *noted(engine, host, said)]


def noted(engine: str, host: str, said: str) -> list[list[str]]:
    if engine == "slurm":
        return [["scontrol", "update", f"NodeName={host}", f"Comment={said}"]]
    return [["kubectl", "annotate", "--overwrite", "node", host, f"switchcost/verdict={said}"]]


def done(lines: list[list[str]], arguments: argparse.Namespace) -> int:
    if not lines:
        print("no host is slow: nothing to do", file=sys.stderr)
    for line in lines:
        print(shlex.join(line))
        if arguments.yes:
            sys.stdout.flush()
            print(call(line), end="")
    if lines and not arguments.yes:
        print("printed, not run: --yes runs them", file=sys.stderr)
    return 0
