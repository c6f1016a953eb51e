"""What was skipped, for .ci/skips."""

from __future__ import annotations

import os
import re
from typing import NoReturn

import pytest


def skip(need: str, why: str, whole_module: bool = False) -> NoReturn:
    """Leaves out a test, or all of its file. `need` is a word of crates/testing/src/skips.rs."""
    pytest.skip(f"skipped: {why} [{need}]", allow_module_level=whole_module)


def write_down(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Adds a line to the file that SWITCHCOST_SKIPS names, if the report is of a skip."""
    file = os.environ.get("SWITCHCOST_SKIPS")
    if not (file and report.skipped and isinstance(report.longrepr, tuple)):
        return
    why = report.longrepr[2].splitlines()[0].removeprefix("Skipped: ").removeprefix("skipped: ")
    absent = re.search(r"could not import '([^'.]+)", why)
    named = re.search(r" \[(\S+)\]$", why)
    need = named[1] if named else f"module:{absent[1]}" if absent else "not said"
    with open(file, "a") as lines:
        lines.write(f"{need}\t{report.nodeid}\t{why}\n")
