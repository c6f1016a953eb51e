"""What a context switch costs: measure it, and read what was measured (docs/python.md).

runs = switchcost.ring([2, 4, 16], budget=3)
runs.cases.to_pandas()
switchcost.read("last").plot()
"""

import importlib.metadata

from switchcost._program import ProgramError, ProgramNotFoundError, UsageError
from switchcost.experiments import CommandUse, cost, measure, ring, run
from switchcost.runs import Run, Runs, read
from switchcost.tables import Table

__all__ = [
    "CommandUse",
    "ProgramError",
    "ProgramNotFoundError",
    "Run",
    "Runs",
    "Table",
    "UsageError",
    "__version__",
    "cost",
    "measure",
    "read",
    "ring",
    "run",
]

try:
    #: The package's; the program has its own (`machine`, column `build_version`).
    __version__ = importlib.metadata.version("switchcost")
except importlib.metadata.PackageNotFoundError:
    __version__ = "0+source"
