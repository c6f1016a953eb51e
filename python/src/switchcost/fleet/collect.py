"""`fleet collect`: takes answers, and run files from anywhere, into the dataset."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .engine import engine
from .submission import HOST, FleetError, Incomplete, Submission, opened, printable, submissions

if TYPE_CHECKING:
    from .dataset import Dataset

LONGEST_LINE = 64 << 20


@dataclass
class Taken:
    added: int = 0
    already: int = 0
    hosts: set[str] = field(default_factory=set)
    aside: list[str] = field(default_factory=list)  # what was set aside, and why


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "collect",
        help="take answers and run files into the dataset",
        epilog="Exit codes: 0 all files were taken, or there already; 1 one was set aside.",
    )
    parser.add_argument("--dataset", metavar="DIR", type=Path, required=True, help="folder of the fleet's runs")
    parser.add_argument("path", nargs="*", type=Path, help="files, and folders with *.jsonl, from anywhere")


def run(arguments: argparse.Namespace) -> int:
    try:
        from .dataset import Dataset, DatasetError
    except ModuleNotFoundError as error:
        raise FleetError(f"{error.name} is missing: pip install 'switchcost[fleet]'") from None
    asked = submissions(arguments.dataset.resolve())
    if not asked and not arguments.path:
        raise FleetError(f"{arguments.dataset} has no submission: name the files or folders to collect", 2)
    taken, troubles = Taken(), []
    try:
        dataset = Dataset(arguments.dataset)
        for submission in asked:
            if submission.answered() != set(submission.hosts):
                try:
                    engine(submission.engine).fetch(submission)
                except FleetError as error:
                    # What is here can be taken all the same.
                    troubles.append(str(error))
            take_answers(dataset, submission, taken)
        for path in arguments.path:
            for file in run_files(path):
                take_file(dataset, file, {one.id: one for one in asked}, taken)
    except DatasetError as error:
        raise FleetError(str(error)) from None
    runs = f"{counted(taken.added, 'run')} of {counted(len(taken.hosts), 'host')} collected"
    print(f"{runs}, {taken.already} there already, {len(taken.aside)} set aside")
    if asked and (missing := len(asked[-1].hosts) - len(asked[-1].answered())):
        of = counted(len(asked[-1].hosts), "host")
        print(f"{missing} of {of} not yet: `switchcost fleet status` says which and why")
    for line in [*taken.aside, *troubles]:
        print(line, file=sys.stderr)
    return 1 if taken.aside or troubles else 0


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def take_answers(dataset: Dataset, submission: Submission, taken: Taken) -> None:
    for host in submission.hosts:
        path = submission.result(host)
        if not path.exists():
            continue
        before = len(taken.aside)
        with tempfile.TemporaryDirectory() as work:
            try:
                with opened(path) as file:
                    parts, answer = split(file, Path(work), host)
                if answer is None:
                    raise Incomplete("it ends before its last line")
                results = [take(dataset, part, host, str(path), taken) for part in parts]
                good = any(results)
            except Incomplete as error:
                taken.aside.append(f"{path}: {error}; the same `submit` asks {host} again")
                good = False
        if good:
            (submission.folder / f"{host}.collected").touch()
            # Missing: another collection runs, too.
            path.unlink(missing_ok=True)
        else:
            # Not answered: so it is asked again. The dataset keeps what it has set aside.
            try:
                path.replace(path.with_suffix(".bad"))
                submission.note(host, taken.aside[before:])
            except OSError as error:
                print(f"{path}: {error.strerror}: move it away", file=sys.stderr)


def take_file(dataset: Dataset, path: Path, asked: dict[str, Submission], taken: Taken) -> None:
    """A run file, an answer, or several answers one after the other, as the logs of pods are."""
    with tempfile.TemporaryDirectory() as work:
        try:
            with opened(path) as file:
                while True:
                    parts, answer = split(file, Path(work), "run")
                    host = answer["host"] if answer else None
                    good = [take(dataset, part, host, str(path), taken) for part in parts]
                    for part in parts:
                        part.unlink()
                    submission = asked.get(answer["submission"]) if answer else None
                    if submission and host in submission.hosts and any(good):
                        (submission.folder / f"{host}.collected").touch()
                    if answer is None:
                        break
        except Incomplete as error:
            taken.aside.append(f"{printable(str(path))}: {error}")


def take(dataset: Dataset, part: Path, host: str | None, name: str, taken: Taken) -> bool:
    """Whether the run is in the dataset now."""
    from .dataset import Added, Already

    result = dataset.add(part, host)
    if isinstance(result, Added):
        taken.added += 1
        taken.hosts.add(result.host)
    elif isinstance(result, Already):
        taken.already += 1
    else:
        taken.aside.append(f"{printable(name)}: {printable(result.reason)}")
    return isinstance(result, (Added, Already))


def split(file: IO[bytes], work: Path, name: str) -> tuple[list[Path], dict[str, str] | None]:
    """Writes each run up to the end of the answer to a file of its own.

    Returns the files, and who answered; None where the file ends before somebody has. Lines that are no JSON object
    are left out: in the log of a pod they are what the program said.
    """
    parts: list[Path] = []
    out: IO[bytes] | None = None
    try:
        while line := file.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise Incomplete(f"a line of over {LONGEST_LINE} bytes")
            if line.startswith(b'{"answer":'):
                return parts, answer_of(line)
            if line.startswith(b'{"header":') or (out is None and line.startswith(b"{")):
                if out:
                    out.close()
                parts.append(work / f"{name}-{len(parts) + 1}.jsonl")
                out = open(parts[-1], "wb")  # noqa: SIM115
            if out and line.startswith(b"{"):
                out.write(line)
        return parts, None
    finally:
        if out:
            out.close()


def answer_of(line: bytes) -> dict[str, str]:
    try:
        answer = json.loads(line)["answer"]
        if HOST.fullmatch(answer["host"]) and isinstance(answer["submission"], str):
            return {"host": answer["host"], "submission": answer["submission"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise Incomplete("its last line is not an answer's")


def run_files(path: Path) -> Iterator[Path]:
    """The file itself, or all *.jsonl below a folder; links are not followed."""
    if not path.is_dir():
        if not path.exists():
            raise FleetError(f"{path}: no such file or folder", 2)
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (Path(folder) / name for name in sorted(names) if name.endswith(".jsonl"))
