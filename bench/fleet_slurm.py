"""The guide's commands (docs/fleet.md) from an empty machine, on a Slurm cluster of eight nodes on this one.

    python3 bench/fleet_slurm.py WHEEL [BUDGET]

Prints what is typed and what is answered. Fails where the answers are not those that the guide promises: a node that
loses its power while it measures is named, and asked again when it is back; the others complete; what is collected
twice changes nothing. Needs root, Debian's slurmctld, slurmd, slurm-client and munge, and PyPI.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python/tests"))
from slurm_cluster import Cluster, missing, until

LOST = "n3"


def files(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def main(wheel: str, budget: str) -> None:
    with tempfile.TemporaryDirectory(prefix="switchcost-fleet-") as name:
        home = Path(name)
        venv.create(home / "venv", with_pip=True)
        cluster = Cluster(home / "slurm", 8)
        environment = {
            **cluster.environment,
            "HOME": name,
            "PATH": f"{home}/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        }
        environment.pop("SWITCHCOST", None)

        def typed(command: str, shown: bool = True, code: int | None = 0) -> str:
            done = subprocess.run(
                command,
                shell=True,
                cwd=home,
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            if shown:
                print(
                    f"$ {command}\n{done.stdout}",
                    end="" if done.returncode == 0 else f"(exit code {done.returncode})\n",
                )
            if code is not None and done.returncode != code:
                sys.exit(f"{command}: exit code {done.returncode}, not {code}\n{done.stdout}")
            return done.stdout

        def status(beginning: str) -> bool:
            return typed("switchcost fleet status --dataset ~/fleet", shown=False, code=None).startswith(beginning)

        def running() -> bool:
            nodes = typed("squeue --noheader --states running --format %N", shown=False)
            return set(nodes.split()) == set(cluster.nodes)

        try:
            cluster.start()
            typed(
                f"pip install --quiet --disable-pip-version-check 'switchcost[fleet] @ file://{Path(wheel).resolve()}'"
            )
            typed(f"switchcost fleet submit --engine slurm --dataset ~/fleet --budget {budget}")
            until(running, "eight nodes at work")
            typed("switchcost fleet status --dataset ~/fleet", code=3)
            print(f"# {LOST} loses its power")
            cluster.kill(LOST)
            until(lambda: status("7 of 8"), "the others' answers", 600)
            said = typed("switchcost fleet status --dataset ~/fleet", code=3)
            assert f"; {LOST} (job " in said and "requeued" in said, said
            typed("switchcost fleet collect --dataset ~/fleet")
            print(f"# {LOST} is back")
            cluster.start_node(LOST)
            until(lambda: status("8 of 8"), f"the answer of {LOST}", 600)
            typed("switchcost fleet status --dataset ~/fleet")
            typed("switchcost fleet collect --dataset ~/fleet")
            before = files(home / "fleet")
            said = typed("switchcost fleet collect --dataset ~/fleet")
            assert said.startswith("0 runs of 0 hosts collected") and files(home / "fleet") == before, said
            typed("switchcost fleet collect --dataset ~/fleet ~/fleet/runs")
            assert files(home / "fleet") == before
            assert typed("switchcost fleet analyse --dataset ~/fleet").startswith("8 hosts in 1 group")
            typed("switchcost fleet report --dataset ~/fleet -o fleet.html")
            typed("switchcost fleet metrics --dataset ~/fleet -o switchcost.prom")
            typed("ls -s fleet.html switchcost.prom")
        finally:
            cluster.stop()


if __name__ == "__main__":
    if len(sys.argv) < 2 or missing():
        sys.exit(f"error: {missing() or 'name the wheel'}")
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60s")
