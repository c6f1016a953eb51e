"""What a context switch costs: measure it, and read what was measured (docs/python.md).

runs = switchcost.ring([2, 4, 16], budget=3)
runs.cases.to_pandas()
switchcost.read("last").plot()
"""

from switchcost._program import ProgramError, ProgramNotFoundError
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
    "cost",
    "measure",
    "read",
    "ring",
    "run",
]
