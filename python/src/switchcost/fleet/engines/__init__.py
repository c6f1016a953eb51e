"""What starts the program on each host, by name."""

from __future__ import annotations

from ..._program import printable
from ..engine import Engine
from ..submission import FleetError
from . import kubernetes, slurm, ssh

ENGINES: dict[str, Engine] = {"slurm": slurm, "kubernetes": kubernetes, "ssh": ssh}


def engine(name: str) -> Engine:
    if name not in ENGINES:
        raise FleetError(f"engine {printable(name)}: there are {', '.join(ENGINES)}", 2)
    return ENGINES[name]
