"""`fleet prune`: removes what is older than is kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from .dataset import Dataset
from .days import day_for
from .submission import FleetError


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    said = "remove runs before a day, from the run files and from Parquet"
    parser = subparsers.add_parser("prune", help=said, description=f"R{said[1:]}. Without --yes it says what would go.")
    parser.add_argument("--dataset", metavar="DIR", type=Path, required=True, help="folder of the fleet's runs")
    what = "the day from which runs stay: 180d (days ago) or 2026-06-01"
    parser.add_argument("--older-than", metavar="DAY", type=day_for("--older-than"), required=True, help=what)
    parser.add_argument("--samples-only", action="store_true", help="the table `samples` alone; run files stay")
    parser.add_argument("--yes", action="store_true", help="remove them")


def run(arguments: argparse.Namespace) -> int:
    if not arguments.dataset.is_dir():
        raise FleetError(f"--dataset {arguments.dataset}: no such folder", 2)
    dataset, before = Dataset(arguments.dataset), arguments.older_than
    dataset.compact()
    files = dataset.before(before, arguments.samples_only)
    size = sum(file.stat().st_size for file in files)
    what = "samples" if arguments.samples_only else "runs"
    said = f"{len(files):,} files of {what} before {before}, {size / 1e6:,.1f} MB"
    if arguments.yes:
        dataset.remove(files)
    print(f"removed: {said}" if arguments.yes else f"{said}: --yes removes them")
    return 0
