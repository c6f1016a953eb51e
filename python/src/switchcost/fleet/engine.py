"""What an engine is: a module of `engines` that has hosts run a submission's script."""

from __future__ import annotations

import argparse
import subprocess
from dataclasses import dataclass, field
from typing import Protocol

from .._program import printable
from .submission import FleetError, Submission


@dataclass
class State:
    """Of a host that was asked and has not answered."""

    waiting: bool  # it may still answer
    why: str


@dataclass
class Selection:
    """The hosts that are to be measured, and those that cannot start anything now, with their state: `drained`."""

    hosts: list[str]
    left_out: dict[str, str] = field(default_factory=dict)


class Engine(Protocol):
    def add(self, group: argparse._ArgumentGroup) -> None:
        """The engine's own options of `submit`."""

    def hosts(self, arguments: argparse.Namespace) -> Selection:
        """All hosts to be measured."""

    def text(self, submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> str:
        """What `submit --print` prints: what `submit` would do."""

    def submit(self, submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> None:
        """Asks the hosts, all or none. Adds to `submission.jobs`."""

    def states(self, submission: Submission) -> dict[str, State]:
        """What the engine knows of hosts without an answer; those that it does not know are left out."""

    def fetch(self, submission: Submission) -> None:
        """Brings answers that are elsewhere to the submission's folder."""


def call(command: list[str], text: str = "") -> str:
    """Standard output of an engine's command, with `text` on its standard input. Its failure is a `FleetError`."""
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True)
    except FileNotFoundError:
        raise FleetError(f"{command[0]} is not on PATH: run this where the engine's commands are") from None
    if done.returncode != 0:
        said = printable(done.stderr.decode(errors="replace")) or "no message"
        raise FleetError(f"{' '.join(command[:4])}: exit code {done.returncode}: {said}")
    return done.stdout.decode(errors="replace")
