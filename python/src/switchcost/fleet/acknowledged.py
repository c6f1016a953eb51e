"""Hosts that are known to be slow: DATASET/acknowledged.csv has them, with a reason and the last day that it holds."""

from __future__ import annotations

import argparse
import csv
import io
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path

from .._program import printable
from .submission import FleetError, checked_hosts, written

FILE = "acknowledged.csv"
COLUMNS = ("host", "since", "until", "reason")


@dataclass(frozen=True)
class Acknowledged:
    since: date
    until: date
    reason: str

    def in_words(self) -> str:
        return f"acknowledged {common_span([self])}: {self.reason}"


def common_span(acknowledgements: list[Acknowledged]) -> str:
    """Returns how long they hold: until a day, or of those without one since when."""
    first, last = (choose(one.until for one in acknowledgements) for choose in (min, max))
    if last < date.max:
        return f"until {first}" if first == last else f"until {first} to {last}"
    if first < date.max:
        return f"until {first} or later"
    return f"since {min(one.since for one in acknowledgements)}"


def today() -> date:
    return datetime.now(timezone.utc).date()


def read(dataset: Path) -> dict[str, Acknowledged]:
    """All that the file has, whether they still hold or not. Raises FleetError where it is not as it should be."""
    path = dataset / FILE
    if not path.exists():
        return {}
    found = {}
    try:
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                until = date.fromisoformat(row["until"]) if row["until"] else date.max
                found[row["host"]] = Acknowledged(
                    date.fromisoformat(row["since"]), until, printable(row["reason"], 200)
                )
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError) as error:
        said = f"a first line {','.join(COLUMNS)} and then a host a line"
        raise FleetError(f"{path} cannot be read: {printable(str(error))}; it has {said}") from error
    return found


def holding(dataset: Path) -> dict[str, Acknowledged]:
    """Those that hold today."""
    return {host: one for host, one in read(dataset).items() if one.until >= today()}


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    said = "note that hosts are known to be slow, with a reason and until when"
    parser = subparsers.add_parser(
        "acknowledge", help=said, description=f"N{said[1:]}: they raise no alert until then."
    )
    parser.add_argument("host", nargs="+", help="hosts, or all that are to be forgotten with --forget")
    parser.add_argument("--dataset", metavar="DIR", type=Path, required=True, help="folder of the fleet's runs")
    parser.add_argument("--reason", metavar="TEXT", help="why, such as 'waits for a fan, ticket 812'")
    parser.add_argument("--until", metavar="DATE", help="the last day on which it holds [for ever]")
    parser.add_argument("--forget", action="store_true", help="they are no longer known to be slow")


def run(arguments: argparse.Namespace) -> int:
    from .days import day_of

    hosts = checked_hosts(arguments.host)
    if not arguments.dataset.is_dir():
        raise FleetError(f"--dataset {arguments.dataset}: no such folder", 2)
    if arguments.forget == bool(arguments.reason):
        raise FleetError("--reason says why they are slow, or --forget that they no longer are", 2)
    known = read(arguments.dataset)
    until = day_of("--until", arguments.until) if arguments.until else date.max
    for host in hosts:
        if arguments.forget:
            known.pop(host, None)
        else:
            known[host] = Acknowledged(today(), until, printable(arguments.reason, 200))
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    for host, one in sorted(known.items()):
        lines.writerow([host, one.since, one.until if one.until < date.max else "", one.reason])
    written(arguments.dataset / FILE, out.getvalue())
    print(f"{len(hosts)} forgotten" if arguments.forget else f"{', '.join(hosts)}: {known[hosts[0]].in_words()}")
    return 0
