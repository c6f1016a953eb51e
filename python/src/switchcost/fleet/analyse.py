"""`switchcost fleet analyse`: which hosts are slow, and what goes with it (docs/fleet.md, "Analyse and report")."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from datetime import date
from pathlib import Path

from .._program import printable
from . import acknowledged, rollout
from .dataset import Dataset
from .days import day_for
from .findings import Analysis
from .judge import analyse
from .measured import GROUP
from .submission import FleetError, written


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "analyse",
        help="name the hosts that are slow, noisy or did not answer, and what goes with it",
        description="Name the hosts that are slow, noisy or did not answer, and what goes with it. With --before and "
        "--after: has a rollout made hosts slower? Exit codes: 0; with --fail-above 1 if it has, 3 if that is not "
        "decided; 2 if there is nothing to analyse.",
    )
    option = common(parser).add_argument
    option("--json", metavar="FILE", help="write all that was found as JSON to a file, or - for standard output")
    option("--before", metavar="WHAT", help="runs before a rollout: DATE..DATE, or COLUMN=VALUE of `machines`")
    option("--after", metavar="WHAT", help="runs after it, named in the same way")
    option("--fail-above", type=share, metavar="SHARE", help="exit with 1 if it is slower by more than this")
    option("--allow-undecided", action="store_true", help="exit with 0 where nothing was decided, in place of 3")


def common(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The same with the options that analyse, report and metrics have in common."""
    option, group = parser.add_argument, ",".join(GROUP)
    option("--dataset", type=Path, required=True, metavar="DIR", help="folder of the dataset")
    said = "labels of hosts as CSV: host,rack,... [default: DATASET/hosts.csv]"
    option("--labels", type=Path, metavar="FILE", help=said)
    option("--group-by", metavar="COLUMNS", help=f"columns of `machines` that make a group [default: {group}]")
    said = "no runs before this day (UTC), such as 2026-11-01, yesterday or 14d"
    option("--since", type=day_for("--since"), default=date.min, metavar="DATE", help=said)
    option("--until", type=day_for("--until"), default=date.max, metavar="DATE", help="no runs after this day")
    said = "below this nothing is called slow [default: 3%%]"
    option("--limit", type=share, default=0.03, metavar="SHARE", help=said)
    said = "share of sound fleets where a host is called slow [default: 5%%]"
    option("--false-alarms", type=share, default=0.05, metavar="SHARE", help=said)
    said = "share of sound hosts among those that are called probably slow [default: 5%%]"
    option("--fdr", type=share, default=0.05, metavar="SHARE", help=said)
    return parser


def share(text: str) -> float:
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text}: a share between 0 and 1, such as 0.03 or 3%%")
    return value


def opened(arguments: argparse.Namespace) -> Dataset:
    """The dataset, with all runs in Parquet; says on standard error which were set aside."""
    if not arguments.dataset.is_dir():
        said = "no such folder; `switchcost fleet collect` makes a dataset"
        raise FleetError(f"--dataset {arguments.dataset}: {said}", 2)
    dataset = Dataset(arguments.dataset)
    _, set_aside = dataset.compact()
    for aside in set_aside:
        print(f"warning: {aside.name} is set aside: {aside.reason}", file=sys.stderr)
    return dataset


def analysed(arguments: argparse.Namespace) -> Analysis:
    dataset = opened(arguments)
    path = arguments.labels or dataset.path / "hosts.csv"
    return analyse(
        dataset,
        labels=read_labels(path) if arguments.labels or path.exists() else None,
        group_by=arguments.group_by.split(",") if arguments.group_by else None,
        since=arguments.since,
        until=arguments.until,
        limit=arguments.limit,
        false_alarms=arguments.false_alarms,
        fdr=arguments.fdr,
        acknowledged=acknowledged.holding(dataset.path),
    )


def read_labels(path: Path) -> dict[str, dict[str, str]]:
    """Labels of hosts: CSV with a column `host`; each further column is a label, such as rack."""
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FleetError(f"{path} cannot be read as labels of hosts: {error}", 2) from error
    if rows and "host" not in rows[0]:
        raise FleetError(f"{path}: a column `host` is missing; the first line names the columns, as in host,rack", 2)
    of_host = ((row.pop("host"), row) for row in rows)
    return {h: {printable(k, 40): printable(v, 60) for k, v in row.items() if k and v} for h, row in of_host if h}


def write(path: str, text: str) -> None:
    """To a file, which is there whole or not at all, or to standard output (-). Raises FleetError."""
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        written(Path(path), text)
    except OSError as error:
        raise FleetError(f"{path} cannot be written: {error}") from error


def run(arguments: argparse.Namespace) -> int:
    if bool(arguments.before) != bool(arguments.after):
        raise FleetError("--before and --after go together", 2)
    if arguments.fail_above and not arguments.before:
        raise FleetError("--fail-above is of a rollout: name --before and --after", 2)
    if arguments.before:
        return rollout.run(opened(arguments), arguments)
    analysis = analysed(arguments)
    if arguments.json:
        write(arguments.json, json.dumps(analysis.value(), indent=1) + "\n")
    if arguments.json != "-":
        print(analysis.text(), end="")
    return 0
