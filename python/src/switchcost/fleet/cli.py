"""`switchcost fleet`, which is `switchcost-fleet`."""

from __future__ import annotations

import argparse
import importlib
import sys
from types import ModuleType

from .._program import ProgramError
from .submission import FleetError

_MEASURE, _READ = ("submit", "status", "collect", "schedule", "labels"), ("analyse", "report", "metrics")
SUBCOMMANDS = (*_MEASURE, *_READ, "drain", "undrain", "annotate", "acknowledge", "prune")
# Of those whose file has another name.
MODULES = {"acknowledge": "acknowledged", "drain": "operate", "undrain": "operate", "annotate": "operate"}


def main(words: list[str] | None = None) -> int:
    """Runs a command line; returns the exit code."""
    words = sys.argv[1:] if words is None else words
    said = "Measure many hosts with an engine that exists, and find the odd one."
    parser = argparse.ArgumentParser(prog="switchcost fleet", description=said)
    subparsers = parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    modules: dict[str, ModuleType] = {}
    for name in SUBCOMMANDS:
        try:
            modules[name] = importlib.import_module(f".{MODULES.get(name, name)}", __package__)
            if MODULES.get(name) != "operate":
                modules[name].add(subparsers)
            elif name == "drain":
                modules[name].add_all(subparsers)
        except ModuleNotFoundError as error:
            if words[:1] == [name]:
                return failed(f"{error.name} is missing: pip install 'switchcost[fleet]'", 1)
            subparsers.add_parser(name, help=f"needs {error.name}: pip install 'switchcost[fleet]'")
    # argparse drops a `--` by rules that differ between versions of Python.
    end = words.index("--") if words[:1] in (["submit"], ["schedule"]) and "--" in words else len(words)
    arguments = parser.parse_args(words[:end])
    arguments.command = words[end + 1 :]
    try:
        module = modules[arguments.subcommand]
        return int(
            getattr(module, arguments.subcommand if MODULES.get(arguments.subcommand) == "operate" else "run")(
                arguments
            )
        )
    except (FleetError, ProgramError, OSError) as error:
        return failed(str(error), getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        return 130


def failed(message: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
