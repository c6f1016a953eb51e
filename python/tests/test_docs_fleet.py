"""Each line of docs/fleet.md that can be typed is typed here, in a shell, from top to bottom.

Programs of others are scripts here; Slurm, ReFrame and Kubernetes' objects are tried in test_engines_*.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
from skips import skip
from test_data_analyse import fill
from test_docs_run import blocks
from test_engines_parts import script

from switchcost import _program
from switchcost.fleet.dataset import Dataset

RING = Path(__file__).parents[2] / "crates/rundata/tests/fixtures/run-v1.jsonl"
if not RING.exists():
    skip("hardware:docs", "the repository is not beside the tests", whole_module=True)

# Lines that are no command of a shell: a file, an answer, and other languages (test_docs_run.py).
NOT_TYPED = ("resources:", "images:", "4,096 hosts", "pl.scan_parquet", "spark.read", "pip install")
NODES = range(1, 41)


def run_of(host: str, run: str) -> str:
    """A run file of this host."""
    first, rest = RING.read_text().split("\n", 1)
    value = json.loads(first)
    value["header"].update(host=host, run=run)
    return json.dumps(value) + "\n" + rest


def programs(folder: Path) -> None:
    """What the lines call, beside this package."""
    real = _program.find()
    measures = f'*" measure "*) exec {real} ring --members 2 --rounds 1 --quiet ;;'
    passes = f'*" --help "*) exec {real} "$@" ;;'
    fleet = f'if [ "$1" = fleet ]; then shift; exec {sys.executable} -m switchcost.fleet.cli "$@"; fi'
    script(folder / "switchcost", fleet, f'case " $* " in {passes} {measures} *) exec {real} "$@" ;; esac')
    code = "import duckdb, sys; c = duckdb.connect(); w = sys.argv[1:]; "
    code += "'-init' in w and c.execute(open(w[w.index('-init') + 1]).read()); print(c.execute(w[-1]).fetchall())"
    script(folder / "duckdb", f'exec {sys.executable} -c "{code}" "$@"')
    labels = "\\n".join(f"n{number}|all|x|gpu:h100:{number % 2}" for number in NODES)
    states = "n1|all|x|idle\\nn2|all|x|idle\\nn3|all|x|drained"
    answers = [f'*%G*) printf "{labels}\\n" ;;', f'*"%f|%T"*) printf "{states}\\n" ;;']
    answers.append('*%E*) echo "switchcost: +35 %" ;;')
    script(folder / "sinfo", 'case "$*" in', *answers, "esac")
    script(folder / "scontrol", 'case "$1" in show|update) ;; *) cat >/dev/null ;; esac')
    job = "for word; do case $word in --nodelist=*) SLURMD_NODENAME=${word#*=} ;; esac; done"
    script(folder / "sbatch", job, "export SLURMD_NODENAME", 'sh -c "$word" >&2', "echo $$")
    script(folder / "ssh", "shift 2", 'shift; exec "$@"')
    nodes = json.dumps({"items": [{"metadata": {"name": "n1"}}]})
    lines = [
        "create) cat >/dev/null ;;",
        f"get) case $2 in nodes) echo '{nodes}' ;; *) echo '{{\"items\": []}}' ;; esac ;;",
    ]
    lines.append("logs) cat pod.log ;;")
    script(folder / "kubectl", 'case "$1" in', *lines, "esac")
    script(folder / "docker")
    script(folder / "reframe", "mkdir -p output && cp n7.jsonl output/")


def test_each_line_of_the_guide_can_be_typed(tmp_path: Path) -> None:
    for name in ("bin", "packaging", "results", "metrics"):
        (tmp_path / name).mkdir()
    programs(tmp_path / "bin")
    script(tmp_path / "packaging/container")
    (tmp_path / "hosts").write_text("n1\n")
    (tmp_path / "n7.jsonl").write_text(run_of("n7", "a"))
    (tmp_path / "results/n8.jsonl").write_text(run_of("n8", "b"))
    (tmp_path / "pod.log").write_text(run_of("n9", "c") + '{"answer":{"submission":"","host":"n9"}}\n')
    fill(
        Dataset(tmp_path / "fleet"),
        40,
        16,
        lambda host, _: 0.3 * (host == 4),
        lambda _, day: {"kernel_release": "6.1.0-28" if day < 8 else "6.6.60"},
        names="n{}",
        first=1,
        figure={"quotable": True, "key": "ring members=2"},
    )
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "SWITCHCOST": f"{tmp_path}/bin/switchcost",
    }
    said = ""
    for line in (line for block in blocks("fleet.md") for line in block):
        if line.startswith(NOT_TYPED):
            continue
        typed = line.replace("/var/lib/node_exporter", f"{tmp_path}/metrics")
        done = subprocess.run(["bash", "-c", typed], cwd=tmp_path, env=environment, capture_output=True, text=True)
        # Nobody answers for the pods of kubectl here, and a comparison may be undecided.
        accepted = {0, 3} if "--fail-above" in line else {0}
        assert done.returncode in accepted, f"{line}\n{done.stdout}{done.stderr}"
        said += f"$ {line}\n{done.stdout}{done.stderr}"
    for words in (
        "asked 2 of 2 hosts, 1 drained (n3), not asked",
        "2 of 2 hosts have answered",
        "asked 1 of 1 hosts",
        "asked 3 of 3 hosts",
        "2 runs of 2 hosts collected",
        "scontrol update NodeName=n5 State=DRAIN",
        "acknowledged until 2027-01-31: waits for a fan",
    ):
        assert words in said, said


def test_no_sentence_of_the_guide_has_more_than_25_words() -> None:
    text = re.sub(r"(?m)^(    .*|\|.*)$", "", (Path(__file__).parents[2] / "docs/fleet.md").read_text())
    sentences = [sentence for line in text.splitlines() for sentence in re.split(r"(?<=[.!?])\s+", line)]
    assert len(sentences) > 100
    assert [one for one in sentences if len(re.findall(r"\S*\w\S*", one)) > 25] == []
