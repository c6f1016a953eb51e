"""`fleet collect`: takes answers, and run files from anywhere, into the dataset."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import IO, Any

from .._program import printable
from .dataset import AT_ONCE, Dataset, IncomingFile, Kept, SetAside
from .engines import engine
from .submission import HOST, FleetError, Submission, Unreadable, opened, submissions

LONGEST_LINE = 64 << 20


@dataclass
class Answer:
    """A file of runs that is to be taken; `parts` are the runs, in files of their own."""

    path: Path
    parts: list[Path]
    host: str | None = None
    submission: Submission | None = None
    broken: str = ""

    def incoming(self) -> list[IncomingFile]:
        """The runs, named by the file that people know; of several with the number of each."""
        several = [f", run {number} of {len(self.parts)}" for number in range(1, len(self.parts) + 1)]
        ends = [""] if len(self.parts) == 1 else several
        return [IncomingFile(part, self.host, f"{self.path}{end}") for part, end in zip(self.parts, ends, strict=True)]


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "collect",
        help="take answers and run files into the dataset",
        epilog="Exit codes: 0 all files were taken, or there already; 1 one was set aside.",
    )
    parser.add_argument("--dataset", metavar="DIR", type=Path, required=True, help="folder of the fleet's runs")
    parser.add_argument("path", nargs="*", type=Path, help="files, and folders with *.jsonl, from anywhere")


def run(arguments: argparse.Namespace) -> int:
    asked = submissions(arguments.dataset.resolve())
    if not asked and not arguments.path:
        raise FleetError(f"{arguments.dataset} has no submission: name the files or folders to collect", 2)
    taken: list[Kept | str] = []
    troubles, dataset = [], Dataset(arguments.dataset)
    with tempfile.TemporaryDirectory() as work:
        for submission in asked:
            if submission.answered() != set(submission.hosts):
                try:
                    engine(submission.engine).fetch(submission)
                except FleetError as error:
                    # What is here can be taken all the same.
                    troubles.append(str(error))
            taken += take(dataset, answers_of(submission, Path(work)))
        for path in arguments.path:
            taken += take(dataset, in_files(path, {one.id: one for one in asked}, Path(work)))
    aside = [one for one in taken if isinstance(one, str)]
    new = [one for one in taken if isinstance(one, Kept) and one.is_new]
    runs = f"{counted(len(new), 'run')} of {counted(len({one.host for one in new}), 'host')} collected"
    print(f"{runs}, {len(taken) - len(aside) - len(new)} there already, {len(aside)} set aside")
    if asked and (missing := len(asked[-1].hosts) - len(asked[-1].answered())):
        of = counted(len(asked[-1].hosts), "host")
        print(f"{missing} of {of} {'has' if missing == 1 else 'have'} not answered: `switchcost fleet status` says why")
    for line in [*aside, *troubles]:
        print(line, file=sys.stderr)
    return 1 if aside or troubles else 0


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def take(dataset: Dataset, answers: Iterator[Answer]) -> Iterator[Kept | str]:
    """Takes answers, many at a time; gives each run, or why something was set aside.

    A host has answered if not all of what it sent was set aside.
    """
    while batch := list(islice(answers, AT_ONCE)):
        results = iter(dataset.add_all([file for answer in batch for file in answer.incoming()]))
        for answer in batch:
            of = list(islice(results, len(answer.parts)))
            kept = [one for one in of if isinstance(one, Kept)]
            aside = [f"{printable(str(answer.path))}: {answer.broken}"] if answer.broken else []
            aside += [f"{printable(one.source)}: {one.reason}" for one in of if isinstance(one, SetAside)]
            yield from kept
            yield from aside
            if answer.submission and answer.host in answer.submission.hosts:
                settle(answer.submission, answer.host, answer.path, bool(kept), aside)


def settle(submission: Submission, host: str, path: Path, has_answered: bool, aside: list[str]) -> None:
    """Notes that a host has answered. What it sent to the submission's folder goes, or else it is asked again."""
    if has_answered:
        (submission.folder / f"{host}.collected").touch()
    if path != submission.result(host):
        return
    try:
        if has_answered or not aside:
            # Missing: another collection runs, too.
            path.unlink(missing_ok=True)
        else:
            # The dataset keeps what it has set aside.
            path.replace(path.with_suffix(".bad"))
            submission.note(host, aside)
    except OSError as error:
        print(f"{path}: {error.strerror}: move it away", file=sys.stderr)


def answers_of(submission: Submission, work: Path) -> Iterator[Answer]:
    for host in submission.hosts:
        path = submission.result(host)
        if not path.exists():
            continue
        try:
            with opened(path) as file:
                parts, answer = split(file, work, host)
            if answer is None:
                raise Unreadable("it ends before its last line")
            yield Answer(path, parts, host, submission)
        except Unreadable as error:
            yield Answer(path, [], host, submission, f"{error}; the same `submit` asks {host} again")


def in_files(path: Path, asked: dict[str, Submission], work: Path) -> Iterator[Answer]:
    """A run file, an answer, or several answers one after the other, as the logs of pods are.

    Each file gives something: where no run is in it, the answer says so.
    """
    numbers = count()
    for file_path in run_files(path):
        if isinstance(file_path, Answer):
            yield file_path
            continue
        try:
            with opened(file_path) as file:
                answer: dict[str, str] | None = {}
                is_empty = True
                while answer is not None:
                    parts, answer = split(file, work, f"{next(numbers)}")
                    sender = answer or {}
                    is_empty = is_empty and not parts
                    yield Answer(file_path, parts, sender.get("host"), asked.get(sender.get("submission", "")))
                if is_empty:
                    what = "no line of it begins as a run's does" if os.fstat(file.fileno()).st_size else "it is empty"
                    yield Answer(file_path, [], broken=what)
        except Unreadable as error:
            yield Answer(file_path, [], broken=str(error))


def split(file: IO[bytes], work: Path, name: str) -> tuple[list[Path], dict[str, str] | None]:
    """Writes each run up to the end of the answer to a file of its own.

    Returns the files, and who answered; None where the file ends before somebody has. Lines that are no JSON object
    are left out: in the log of a pod they are what the program said.
    """
    parts: list[Path] = []
    out: IO[bytes] | None = None
    with ExitStack() as open_part:
        while line := file.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise Unreadable(f"a line of over {LONGEST_LINE} bytes")
            if line.startswith(b'{"answer":'):
                return parts, answer_of(line)
            if line.startswith(b'{"header":') or (out is None and line.startswith(b"{")):
                open_part.close()
                parts.append(work / f"{name}-{len(parts) + 1}.jsonl")
                out = open_part.enter_context(open(parts[-1], "wb"))
            if out and line.startswith(b"{"):
                out.write(line)
    return parts, None


def answer_of(line: bytes) -> dict[str, str]:
    try:
        answer = json.loads(line)["answer"]
        if HOST.fullmatch(answer["host"]) and isinstance(answer["submission"], str):
            return {"host": answer["host"], "submission": answer["submission"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise Unreadable("its last line is not an answer's")


def run_files(path: Path) -> Iterator[Path | Answer]:
    """The file itself, or all *.jsonl below a folder; links are not followed. A folder that cannot be read is told."""
    if not path.exists():
        raise FleetError(f"{path}: no such file or folder", 2)
    if not path.is_dir():
        yield path
        return
    unread: list[OSError] = []
    for folder, folders, files in os.walk(path, onerror=unread.append):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".jsonl"))
    yield from (Answer(Path(error.filename), [], broken=f"not opened: {error.strerror}") for error in unread)
