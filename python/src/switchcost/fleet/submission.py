"""Who was asked to measure what, and who has answered.

`DATASET/submissions/ID.json` has the question. `DATASET/submissions/ID/` has a file a host:

- `HOST.jsonl`: its answer, there whole or not at all: its run files one after the other, then a line
  `{"answer": {"submission": ID, "host": HOST}}`, without which an answer is not complete;
- `HOST.collected`, empty: the answer is in the dataset;
- `HOST.log`: what the job said.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from .._program import printable
from ..tables import parse_time

JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)  # an argument of the engine's commands
ID = re.compile(r"[0-9]{8}-[0-9]{6}(-[0-9]{1,3})?")
YEARS = range(2000, 2100)  # of submissions and runs: a host whose clock says another has none
HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", re.ASCII)
LARGEST_ANSWER = 1 << 30

# Measured in a folder of the host's own: a shared one would be written to, over the network, while it measures.
JOB = """\
#!/bin/sh
# Measures this host. job.sh HOST prints the answer, job.sh HOST FILE writes it there unless it is there already.
set -eu
host=$1 result=${{2:-}}
if [ -n "$result" ] && {{ [ -e "$result" ] || [ -e "${{result%.jsonl}}.collected" ]; }}; then exit 0; fi
folder=$(mktemp -d "${{TMPDIR:-/tmp}}/switchcost.XXXXXX") part=
trap 'rm -rf "$folder" ${{part:+"$part"}}' EXIT
trap 'exit 143' HUP INT TERM
XDG_DATA_HOME=$folder XDG_STATE_HOME=$folder {command} </dev/null >&2
answer() {{
    cat "$folder"/switchcost/runs/*.jsonl
    printf '{{"answer":{{"submission":"%s","host":"%s"}}}}\\n' {id} "$host"
}}
if [ -z "$result" ]; then answer; exit; fi
part=$(mktemp "$result.XXXXXX")
answer >"$part"
sync "$part"
mv "$part" "$result"
"""


class FleetError(Exception):
    """What a person can act on; `exit_code` is the program's."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Unreadable(Exception):
    """Why a file is no answer, or cannot be a run of the dataset."""


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A regular file of a size that can be meant: a FIFO would wait for ever, a link could name any file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        raise Unreadable("a link" if error.errno == errno.ELOOP else f"not opened: {error.strerror}") from None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_ANSWER:
        os.close(handle)
        regular = f"{found.st_size} bytes, at most {LARGEST_ANSWER} are taken"
        raise Unreadable(regular if stat.S_ISREG(found.st_mode) else "not a regular file")
    with open(handle, "rb") as file:
        yield file


def checked_hosts(hosts: list[str]) -> list[str]:
    """The hosts, each once, in their order. A name that cannot be a file's is a `FleetError`."""
    for host in hosts:
        if not HOST.fullmatch(host):
            raise FleetError(f"host {printable(repr(host))}: accepted are letters, digits, '.', '-' and '_'", 2)
    return list(dict.fromkeys(hosts))


@dataclass
class Submission:
    dataset: Path
    id: str
    time: str  # RFC 3339, UTC
    engine: str
    hosts: list[str]
    command: list[str]  # the program's arguments
    program: str
    jobs: list[str] = field(default_factory=list)  # by the engine's own names, oldest first

    @classmethod
    def new(cls, dataset: Path, engine: str, command: list[str], program: str) -> Submission:
        """One of no hosts yet, of which nothing is on the disk."""
        now = datetime.now(timezone.utc)
        return cls(dataset, f"{now:%Y%m%d-%H%M%S}", f"{now:%Y-%m-%dT%H:%M:%SZ}", engine, [], command, program)

    def make_folder(self) -> None:
        """Makes a folder of its own; its id is another one if there is one of this second."""
        second = self.id
        for number in range(2, 1000):
            try:
                self.folder.mkdir(parents=True)
                return
            except FileExistsError:
                self.id = f"{second}-{number}"
        raise FleetError(f"{self.dataset / 'submissions'}: 999 submissions in one second")

    @property
    def folder(self) -> Path:
        return self.dataset / "submissions" / self.id

    @property
    def job(self) -> Path:
        """The script that a host runs, see `JOB`."""
        return self.folder / "job.sh"

    def job_text(self) -> str:
        return JOB.format(command=shlex.join([self.program, *self.command, "--quiet"]), id=self.id)

    def result(self, host: str) -> Path:
        return self.folder / f"{host}.jsonl"

    def prepare(self) -> None:
        """Writes the script, for hosts that are asked next."""
        written(self.job, self.job_text())

    def save(self) -> None:
        fields = {key: value for key, value in asdict(self).items() if key != "dataset"}
        written(self.folder.with_name(f"{self.id}.json"), json.dumps(fields, indent=1) + "\n")

    def answered(self) -> set[str]:
        """The hosts whose answer is in the folder or in the dataset."""
        names = (Path(entry.name) for entry in os.scandir(self.folder))
        return {name.stem for name in names if name.suffix in (".jsonl", ".collected")} & set(self.hosts)

    def note(self, host: str, lines: list[str]) -> None:
        """Adds to the host's log, which may be anything by now: a FIFO would wait for a reader."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW
        handle = os.open(self.folder / f"{host}.log", flags, 0o666)
        with open(handle, "w") as log:
            log.write("".join(f"{line}\n" for line in lines))

    def last_words(self, host: str) -> str:
        """The last line of what the host's job said; empty if it said nothing."""
        return "".join(self.last_lines(host, 1))

    def last_lines(self, host: str, most: int) -> list[str]:
        try:
            with opened(self.folder / f"{host}.log") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - 4096))
                lines = log.read(4096).decode(errors="replace").split("\n")
        except Unreadable:
            return []
        return [said for line in lines if (said := printable(line, 200))][-most:]


def written(path: Path, text: str) -> None:
    """Writes a file that is there whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def load(path: Path) -> Submission:
    """Reads `ID.json`. What is no submission is a `FleetError`: names from it become paths and arguments."""
    try:
        fields: dict[str, Any] = json.loads(path.read_text())
        one = Submission(dataset=path.parent.parent, **fields)
        lists = [one.hosts, one.command, one.jobs]
        words = [one.id, one.time, one.engine, one.program, *(word for words in lists for word in words)]
        whole = all(isinstance(words, list) for words in lists) and all(isinstance(word, str) for word in words)
        if not whole or not ID.fullmatch(one.id) or one.id != path.stem or not all(map(JOB_NAME.fullmatch, one.jobs)):
            raise ValueError("not as `submit` writes it")
        parse_time(one.time, YEARS)
        checked_hosts(one.hosts)
    except (ValueError, TypeError, RecursionError, FleetError) as error:
        raise FleetError(f"{path}: no submission ({printable(str(error))}); move it away") from None
    one.folder.mkdir(exist_ok=True)
    return one


def submissions(dataset: Path) -> list[Submission]:
    """All of a dataset, oldest first."""
    found = [load(path) for path in (dataset / "submissions").glob("*.json")]
    return sorted(found, key=lambda one: (one.time, one.id))
