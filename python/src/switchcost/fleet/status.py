"""`fleet status`: how many hosts have answered, and which have not, and why."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .engine import State
from .engines import engine
from .submission import FleetError, Submission, submissions

NAMED = 10
LINES = 10


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "status",
        help="say which hosts have answered, and of the others why not",
        epilog="Exit codes: 0 all have answered; 1 some never will; 3 some may still.",
    )
    parser.add_argument("--dataset", metavar="DIR", type=Path, required=True, help="folder of the fleet's runs")
    parser.add_argument("--submission", metavar="ID", help="this one instead of the last one")
    parser.add_argument("--verbose", action="store_true", help="name all hosts, with the end of their logs")


def missing_states(submission: Submission) -> dict[str, State]:
    """Of each host that has not answered, what is known; its answer may be brought by that."""
    engine(submission.engine).fetch(submission)
    answered = submission.answered()
    missing = [host for host in submission.hosts if host not in answered]
    known = engine(submission.engine).states(submission) if missing and submission.jobs else {}
    printed = "its command was printed; no answer has come back"
    forgotten = f"its job is over, and {submission.engine} has forgotten it"
    nothing = State(False, forgotten if submission.jobs else printed)
    found = {host: known.get(host, nothing) for host in missing}
    # An answer may have come, and its job ended, between the two looks.
    answered = submission.answered()
    return {host: state for host, state in found.items() if host not in answered}


def answer(submission: Submission, states: dict[str, State], most: int) -> str:
    """What is known of a submission's hosts; of those without an answer at most so many are named."""
    hosts = len(submission.hosts)
    parts = [f"{hosts - len(states)} of {hosts} hosts have answered (submission {submission.id})"]
    for waiting, words in ((False, "did not answer"), (True, "may still answer")):
        names = sorted(host for host, state in states.items() if state.waiting == waiting)
        named = [f"{host} ({words_of(submission, host, states[host])})" for host in names[:most]]
        if named:
            rest = f" and {len(names) - most} more" if len(names) > most else ""
            parts.append(f"{', '.join(named)}{rest} {words}")
    missing = sum(not state.waiting for state in states.values())
    these = "this one" if missing == 1 else f"these {missing}"
    return "; ".join(parts) + (f". Run the same `submit` again to ask {these}" if missing else "")


def words_of(submission: Submission, host: str, state: State) -> str:
    said = submission.last_words(host)
    return f"{state.why}: {said}" if said and not state.waiting and said not in state.why else state.why


def run(arguments: argparse.Namespace) -> int:
    found = submissions(arguments.dataset.resolve())
    if arguments.submission:
        found = [one for one in found if one.id == arguments.submission]
    if not found:
        named = f"--submission {arguments.submission}: no such submission" if arguments.submission else "no submission"
        raise FleetError(f"{named} in {arguments.dataset}: `switchcost fleet submit` makes one", 2)
    submission = found[-1]
    try:
        states = missing_states(submission)
    except FleetError as error:
        count = f"{len(submission.answered())} of {len(submission.hosts)} hosts have answered"
        raise FleetError(f"{count} (submission {submission.id}); nothing is known of the others: {error}") from None
    print(answer(submission, states, len(states) if arguments.verbose else NAMED))
    if arguments.verbose:
        for host in sorted(states):
            for line in submission.last_lines(host, LINES):
                print(f"  {host}: {line}")
    return 3 if any(state.waiting for state in states.values()) else 1 if states else 0
