"""From verdicts to the scheduler's commands; labels, schedules and what is kept."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from datetime import date
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
from test_data_analyse import fill
from test_engines_parts import VERSIONS, Cluster, Output, fleet, script

from switchcost import _program
from switchcost.fleet.cli import main
from switchcost.fleet.dataset import Dataset


@pytest.fixture
def slow(dataset: Dataset) -> Path:
    return fill(dataset, 40, 6, lambda i, _: 0.3 * (i in (7, 8))).path


def commands(folder: Path, monkeypatch: pytest.MonkeyPatch, **answers: str) -> Path:
    """Programs of these names that answer so, and write down what they were called with."""
    (folder / "bin").mkdir()
    for name, answer in answers.items():
        lines = [f"printf '%s\\n' \"{name} $*\" >>{folder}/calls", f"printf '%s' {shlex.quote(answer)}"]
        script(folder / "bin" / name, *lines)
    monkeypatch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin")
    return folder / "calls"


def test_slow_hosts_are_drained_and_noted(
    slow: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = commands(tmp_path, monkeypatch, scontrol="", kubectl="", sinfo="switchcost: +35 %")
    code, lines, said = fleet(capsys, slow, "drain", "--engine", "slurm")
    assert (code, said) == (0, "printed, not run: --yes runs them\n") and not calls.exists()
    words = sorted(shlex.split(line) for line in lines.splitlines())
    assert [word[:4] for word in words] == [
        ["scontrol", "update", f"NodeName={n}", "State=DRAIN"] for n in ("n007", "n008")
    ]
    assert all(re.fullmatch(r"Reason=switchcost: \+3\d %", word[4]) for word in words)
    assert main(["acknowledge", "n008", "--reason", "fan", "--dataset", str(slow)]) == 0
    assert fleet(capsys, slow, "drain", "--engine", "slurm", "--yes")[0] == 0
    assert calls.read_text().startswith("scontrol update NodeName=n007 State=DRAIN Reason=switchcost: +3")
    assert "n008" not in calls.read_text()
    assert "Comment=switchcost" in fleet(capsys, slow, "annotate", "--engine", "slurm", "n007")[1]
    code, lines, _ = fleet(capsys, slow, "drain", "--engine", "kubernetes")
    assert lines.startswith(
        "kubectl cordon n007\nkubectl annotate --overwrite node n007 'switchcost/verdict=switchcost: +3"
    )
    for host, why in (
        ("n001", "n001 is not slow: as the others"),
        ("n008", "n008 is not slow: acknowledged since"),
        ("x9", "x9 is not in the dataset"),
    ):
        code, lines, said = fleet(capsys, slow, "drain", "--engine", "slurm", host)
        assert (code, lines) == (2, "") and why in said, said


def test_a_host_that_became_slower_is_drained_unless_its_cause_is_recorded(dataset: Dataset, capsys: Output) -> None:
    facts = {True: {"microcode": "0x2"}, False: {"microcode": "0x1"}}
    folder = fill(
        dataset,
        40,
        7,
        lambda i, day: 0.1 * (i in (7, 8) and day >= 3),
        lambda i, day: {**facts[i == 8 and day >= 3]},
    ).path
    lines = fleet(capsys, folder, "drain", "--engine", "slurm")[1].splitlines()
    assert len(lines) == 1 and "NodeName=n007" in lines[0]
    assert re.search(r"Reason=switchcost: 1\d % slower since 2026-11-04; nothing recorded changed", lines[0])
    named = fleet(capsys, folder, "drain", "--engine", "slurm", "n008")[1]
    assert "NodeName=n008" in named and "microcode 0x1 -> 0x2" in named


def test_a_node_that_others_have_drained_is_left_to_them(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands(tmp_path, monkeypatch, sinfo="switchcost: +35 %")
    assert main(["undrain", "--engine", "slurm", "n7"]) == 0
    assert capsys.readouterr().out == "scontrol update NodeName=n7 State=RESUME\n"
    script(tmp_path / "bin/sinfo", "echo broken fan")
    assert main(["undrain", "--engine", "slurm", "n7"]) == 1
    assert "n7 was drained by somebody else: broken fan" in capsys.readouterr().err
    assert main(["undrain", "--engine", "kubernetes", "n7"]) == 0
    assert capsys.readouterr().out == "kubectl uncordon n7\nkubectl annotate node n7 switchcost/verdict-\n"


def test_labels_are_what_the_scheduler_knows_and_make_groups(
    dataset: Dataset, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(dataset, 40, 3)
    nodes = (
        "".join(f"n{i:03}|all|{['a', 'b'][i % 2]},x|gpu:h100:{i % 2}\n" for i in range(40)) + "n000|fast|a,x|(null)\n"
    )
    commands(tmp_path, monkeypatch, sinfo=nodes)
    reservations = "ReservationName=none Nodes=(null) Users=root\nReservationName=check Nodes=n[000,007] Users=root\n"
    shown = f'case "$*" in *hostnames*) printf "n000\\nn007\\n" ;; *) printf %s {shlex.quote(reservations)} ;; esac'
    script(tmp_path / "bin/scontrol", shown)
    assert main(["labels", "--engine", "slurm"]) == 0
    text = capsys.readouterr().out
    assert text.startswith('host,partition,features,gpus,reservation\nn000,all+fast,"a,x",gpu:h100:0,check\n')
    assert [line.split(",")[0] for line in text.splitlines() if line.endswith(",check")] == ["n000", "n007"]
    (dataset.path / "hosts.csv").write_text(text)
    code, said, why = fleet(capsys, dataset.path, "analyse", "--group-by", "cpu_model,features")
    assert code == 0 and said.startswith("40 hosts in 2 groups") and "features a,x" in said, (said, why)
    code, _, said = fleet(capsys, dataset.path, "analyse", "--group-by", "shape")
    assert code == 2 and "--group-by shape: no such column of `machines` and no such label" in said


def test_schedules_are_what_cron_systemd_and_kubernetes_take(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHCOST", _program.find())
    code, text, said = fleet(capsys, tmp_path / "d d", "schedule", "--engine", "slurm", "--at", "03:05", "--", "ring")
    last = text.splitlines()[-1]
    assert code == 0 and last.startswith("5 3 * * * ") and last.endswith("--again -- ring --budget 60s"), said
    # The shell takes each command as it is.
    assert subprocess.run(["sh", "-n", "-c", last[len("5 3 * * * ") :]]).returncode == 0
    code, text, _ = fleet(capsys, tmp_path, "schedule", "--engine", "ssh", "--hosts-file", "hosts")
    assert code == 0 and "OnCalendar=*-*-* 03:00:00" in text and "| xargs -d '\\\\n' -n 1" in text, text
    assert fleet(capsys, tmp_path, "schedule", "--engine", "ssh", "--at", "25:00")[0] == 2
    assert "--hosts-file FILE is missing" in fleet(capsys, tmp_path, "schedule", "--engine", "ssh")[2]


def test_a_cron_job_is_valid(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    cluster = Cluster(tmp_path / "cluster", ["n1", "n2"])
    monkeypatch.setenv("PATH", f"{cluster.folder}/bin:/usr/bin:/bin")
    code, text, said = fleet(capsys, tmp_path, "schedule", "--engine", "kubernetes", "--image", "x")
    assert code == 0, said
    for version in VERSIONS:
        validate.validate(json.loads(text), version, strict=True)
    assert json.loads(text)["spec"]["schedule"] == "0 3 * * *"


def test_what_is_old_goes_when_it_is_said(dataset: Dataset, capsys: Output) -> None:
    fill(dataset, 10, 4)
    folder = dataset.path / "runs/n001"
    folder.mkdir(parents=True)
    old, new = (folder / f"ring0-{day}-1.jsonl" for day in (0, 3))
    old.write_text("{")
    new.write_text("{")

    def days() -> list[str]:
        return sorted(folder.name for folder in (dataset.parquet / "cases").iterdir())

    code, said, _ = fleet(capsys, dataset.path, "prune", "--older-than", "2026-11-03")
    assert code == 0 and re.fullmatch(r"\d files of runs before 2026-11-03, .* --yes removes them\n", said), said
    assert len(days()) == 4
    assert fleet(capsys, dataset.path, "prune", "--older-than", "2026-11-03", "--samples-only", "--yes")[0] == 0
    assert len(days()) == 4
    assert fleet(capsys, dataset.path, "prune", "--older-than", "2026-11-03", "--yes")[1].startswith("removed: ")
    assert days() == ["date=2026-11-03", "date=2026-11-04"]
    assert new.exists() and not old.exists()
    with dataset.connect() as connection:
        assert connection.execute("SELECT min(date) FROM machines").fetchall() == [(date(2026, 11, 3),)]
