"""maturin, which packs programs only. Before it does, the library of switchcost.threadclock is put into the package."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import maturin
from maturin import *  # noqa: F403  (the other hooks)

LIBRARY = Path("src/switchcost/libthreadclock.so.0")


def _put_library() -> None:
    with tempfile.TemporaryDirectory() as target:
        # Its crate alone, so seconds. Release, whatever the program is: it is there to be fast.
        command = [
            "cargo",
            "build",
            "--release",
            "--locked",
            "--package",
            "threadclock",
            "--lib",
            "--target-dir",
            target,
        ]
        subprocess.run(command, check=True)
        shutil.copy(Path(target, "release/libthreadclock.so"), LIBRARY)


def build_wheel(directory: str, config: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    _put_library()
    try:
        return maturin.build_wheel(directory, config, metadata)
    finally:
        # A later `maturin build` would pack it, out of date.
        LIBRARY.unlink()


def build_editable(directory: str, config: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    _put_library()
    return maturin.build_editable(directory, config, metadata)
