"""ssh, and any scheduler that takes a command line: `submit` prints the commands, a person or a program runs them."""

from __future__ import annotations

import argparse
import shlex
import sys

from ..engine import Selection, State
from ..submission import FleetError, Submission


def add(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--hosts", metavar="HOST,...", help="the hosts")
    group.add_argument("--hosts-file", metavar="FILE", help="a file with a host a line")


def hosts(arguments: argparse.Namespace) -> Selection:
    if arguments.hosts_file:
        try:
            file = open(arguments.hosts_file)  # noqa: SIM115
        except OSError as error:
            raise FleetError(f"--hosts-file {arguments.hosts_file}: {error.strerror}", 2) from None
        with file:
            lines = [line.partition("#")[0].strip() for line in file]
        return Selection([line for line in lines if line])
    if not arguments.hosts:
        raise FleetError("no hosts: --hosts a,b,c or --hosts-file FILE names them", 2)
    return Selection(str(arguments.hosts).split(","))


def text(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> str:
    lines = []
    for number, host in enumerate(hosts):
        wait = f"sleep {number * arguments.staggered_s:g}; " if arguments.staggered_s else ""
        job, result = shlex.quote(str(submission.job)), shlex.quote(str(submission.result(host)))
        part, log = (shlex.quote(f"{submission.folder / host}.{end}") for end in ("jsonl.part", "log"))
        # xargs ends at a command that ends with 255, as ssh does where it does not reach the host: 1 lets it go on.
        failed = f"{{ echo ssh ended with $? >>{log}; exit 1; }}"
        ssh = f"{wait}ssh -o BatchMode=yes {host} sh -s {host} <{job} >{part} 2>>{log}"
        lines.append(f"{ssh} && mv {part} {result} || {failed}\n")
    return "".join(lines)


def submit(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> None:
    sys.stdout.write(text(submission, hosts, arguments))


def states(submission: Submission) -> dict[str, State]:
    return {}


def fetch(submission: Submission) -> None:
    pass
