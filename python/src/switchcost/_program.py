"""Find the program and run it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

#: Seconds that a program has to end after SIGINT: it stores what it measured. If it had one by then, the shorter time.
MOMENT_S, PATIENCE_S = 0.25, 5.0
#: The last bytes of standard error are kept.
_ERRORS_BYTES = 64 * 1024


class ProgramError(Exception):
    """The program ended with an error.

    `exit_code` is as in the table of `docs/guide.md`: 1 for what could not be measured, read or written, 2 for wrong
    usage, 128 + n where signal n stopped it. `str()` is the program's own message, `runs` what it stored all the same.
    """

    runs: Sequence[object] = ()

    def __init__(self, message: str, exit_code: int, command: Sequence[str]) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.command = list(command)


class UsageError(ProgramError, ValueError):
    """The program does not accept what it was given (exit code 2)."""


class ProgramNotFoundError(FileNotFoundError):
    """There is no program `switchcost` to run."""


def find() -> str:
    """Path of the program: `$SWITCHCOST`, else the one of this package's wheel, else the first on PATH.

    Raises ProgramNotFoundError.
    """
    chosen = os.environ.get("SWITCHCOST")
    if chosen:
        if path := shutil.which(chosen):
            return path
        raise ProgramNotFoundError(f"SWITCHCOST={printable(chosen)}: no such program; unset it, or name one")
    for path in (*_of_wheel(), shutil.which("switchcost")):
        if path and os.access(path, os.X_OK):
            return path
    raise ProgramNotFoundError(
        "the program `switchcost` is not here: install the package from its wheel (pip install switchcost), "
        "put the program on PATH, or name it by the environment variable SWITCHCOST"
    )


def _of_wheel() -> list[str]:
    """Where the wheel has put the program: as its record says, or beside Python."""
    try:
        files = importlib.metadata.files("switchcost") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    recorded = [str(Path(str(file.locate())).resolve()) for file in files if file.parts[-2:] == ("bin", "switchcost")]
    return [*recorded, os.path.join(sysconfig.get_path("scripts"), "switchcost")] if recorded else []


class Done(NamedTuple):
    """A program that has ended."""

    command: list[str]
    process_id: int
    #: As a shell tells it: 128 + n where signal n ended it.
    exit_code: int
    output: bytes
    errors: str

    def error(self) -> ProgramError:
        """What stands behind `error:` on standard error, or else its last line."""
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        told = [line[len("error:") :].strip() for line in lines if line.startswith("error:")]
        said = "; ".join(told) or (lines[-1] if lines else "it printed no message")
        stopped = f" (stopped by signal {self.exit_code - 128})" if self.exit_code > 128 else ""
        kind = UsageError if self.exit_code == 2 else ProgramError
        return kind(printable(said) + stopped, self.exit_code, self.command)


def call(*arguments: str) -> str:
    """Runs the program to its end; gives what it printed on standard output.

    Raises ProgramError with its message. What interrupts the wait (Ctrl-C) ends the program, too.
    """
    done = run(arguments)
    if done.exit_code != 0:
        raise done.error()
    return done.output.decode(errors="replace")


def run(arguments: Sequence[str], shows_output: bool = False, most_bytes: int = -1, given: bytes | None = None) -> Done:
    """The same, however it ends; it is ended when it has printed `most_bytes`.

    With `shows_output` its standard output is Python's own. `given` is its standard input.
    """
    command = [find(), "--color=never", *arguments]
    output = None if shows_output else subprocess.PIPE
    # Messages are searched and shown by others: no line of them is broken.
    environment = os.environ if shows_output else {**os.environ, "COLUMNS": "100000"}
    with tempfile.TemporaryFile() as errors, _file_of(given) as source:
        with subprocess.Popen(command, stdin=source, stdout=output, stderr=errors, env=environment) as process:
            try:
                printed = process.stdout.read(most_bytes) if process.stdout else b""
                if len(printed) == most_bytes:
                    process.kill()
                process.wait()
            except BaseException:
                _end(process)
                raise
        size = errors.seek(0, os.SEEK_END)
        errors.seek(max(0, size - _ERRORS_BYTES))
        said = errors.read().decode(errors="replace")
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Done(command, process.pid, code, printed, said)


@contextlib.contextmanager
def _file_of(given: bytes | None) -> Iterator[int | IO[bytes]]:
    """What a program reads as its standard input: a file, so that it may end before it has read all."""
    if given is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks it to end as Ctrl-C does, so that it stores what it has; then makes it.

    In a terminal it has had the signal already, and is given a moment: a second one ends it at once.
    """
    for patience_s, then in ((MOMENT_S, signal.SIGINT), (PATIENCE_S, signal.SIGKILL)):
        try:
            process.wait(patience_s)
            return
        except subprocess.TimeoutExpired:
            process.send_signal(then)
    process.wait()


def printable(text: str, length: int = 1000) -> str:
    """`text` as one line of at most `length` characters, without what could steer a terminal."""
    line = text[: 4 * length]
    if not line.isprintable():
        line = "".join(c if c.isprintable() else " " for c in line)
    return " ".join(line.split())[:length]
