"""`switchcost fleet`, which is `switchcost-fleet`."""

from __future__ import annotations

import argparse
import importlib
import sys
from types import ModuleType

from .submission import FleetError

SUBCOMMANDS = ("submit", "status", "collect", "analyse", "report", "metrics")


def main(words: list[str] | None = None) -> int:
    """Runs a command line; returns the exit code."""
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(
        prog="switchcost fleet", description="Measure many hosts with an engine that exists, and find the odd one."
    )
    subparsers = parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    modules = {name: load(name, subparsers) for name in SUBCOMMANDS}
    # argparse drops a `--` by rules that differ between versions of Python.
    end = words.index("--") if words[:1] == ["submit"] and "--" in words else len(words)
    arguments = parser.parse_args(words[:end])
    arguments.command = words[end + 1 :]
    try:
        return int(modules[arguments.subcommand].run(arguments))
    except FleetError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.code
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def load(name: str, subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> ModuleType:
    try:
        module = importlib.import_module(f".{name}", __package__)
    except ModuleNotFoundError as error:
        missing = error.name
        module = ModuleType(name)

        def run(arguments: argparse.Namespace) -> int:
            raise FleetError(f"{missing} is missing: pip install 'switchcost[fleet]'")

        subparsers.add_parser(name, help=f"needs {missing}")
        module.__dict__["run"] = run
        return module
    module.add(subparsers)
    return module


if __name__ == "__main__":
    sys.exit(main())
