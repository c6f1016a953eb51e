"""Formats for other programs, read by readers that are not ours."""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from skips import skip

from switchcost._program import call, find


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of two commands, six runs of each, with the intervals of a quiet machine."""
    path = tmp_path_factory.mktemp("commands") / "commands.json"
    call("run", "--no-estimate", "--quiet", "-n", "6", "--store-command", "--json", str(path), "true", "sleep 0.01")
    record = json.loads(path.read_text())
    for command in record["commands"]:
        for figure in command["figures"]:
            estimate = figure["estimate"]
            estimate["low"], estimate["high"] = 0.98 * estimate["value"], 1.02 * estimate["value"]
    path.write_text(json.dumps(record))
    return path


def gate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A gate that two commands go through, whatever it says."""
    run = [find(), "run", "--no-estimate", "--quiet", "-n", "6", "--fail-above", "50%", "--figures", "real,voluntary"]
    return subprocess.run([*run, *arguments], capture_output=True, text=True)


def test_junit_is_read_by_a_parser_of_junit(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    file = tmp_path / "gate.xml"
    names = ["--command-name", "base", "--command-name", '<new> & "#2"']
    done = gate("--junit", str(file), *names, "true", "sleep 0.05")
    assert done.returncode == 1, done.stderr
    (suite,) = junitparser.JUnitXml.fromfile(str(file))
    cases = list(suite)
    assert [case.name for case in cases] == ['<new> & "#2": real time', '<new> & "#2": voluntary switches']
    assert (suite.name, suite.tests, suite.errors) == ("switchcost run", 2, 0)
    failures = [case for case in cases if any(isinstance(r, junitparser.Failure) for r in case.result)]
    skipped = [case for case in cases if any(isinstance(r, junitparser.Skipped) for r in case.result)]
    assert (suite.failures, suite.skipped) == (len(failures), len(skipped))
    assert cases[0] in failures
    assert cases[0].result[0].message.startswith("more than 50 % above the base: real time by ")
    lost = gate("--junit", str(file), "true", "false")
    assert lost.returncode == 2, lost.stderr
    (suite,) = junitparser.JUnitXml.fromfile(str(file))
    assert (suite.tests, suite.errors) == (2, 2)


def test_openmetrics_are_read_by_the_parser_of_prometheus(commands: Path, file: Path) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    for source in (commands, file):
        text = call("runs", "export", str(source), "--format", "openmetrics")
        families = {family.name: family for family in parser.text_string_to_metric_families(text)}
        assert {family.type for family in families.values()} == {"gauge"}
    text = call("runs", "export", str(commands), "--format", "openmetrics")
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    real = {sample.labels["command"]: sample.value for sample in families["switchcost_run_real_seconds"].samples}
    assert set(real) == {"true", "sleep 0.01"}
    assert real["sleep 0.01"] >= 0.01
    assert families["switchcost_run_max_resident_bytes"].unit == "bytes"


def read_as_gitlab(text: str) -> dict[str, float]:
    """Its parser ends each line at a `#`, splits it as a shell does, and takes the second word for the value."""
    metrics = {}
    for line in text.splitlines():
        words = shlex.split(line.split("#")[0])
        if words:
            metrics[words[0]] = float(words[1])
    return metrics


def test_metrics_are_read_as_gitlab_reads_them(commands: Path, tmp_path: Path) -> None:
    metrics = read_as_gitlab(call("runs", "export", str(commands), "--format", "openmetrics"))
    file = tmp_path / "metrics.txt"
    run = ["run", "--no-estimate", "--quiet", "-n", "5", "--openmetrics", str(file)]
    # A name without a # is what helps (docs/ci.md): GitLab cuts the line within the quotes.
    call(*run, "echo '#1'")
    with pytest.raises(ValueError, match="No closing quotation"):
        read_as_gitlab(file.read_text())
    call(*run, "--command-name", "new 1", "echo '#1'")
    named = read_as_gitlab(file.read_text())
    assert named["switchcost_run_voluntary{experiment=run,command=new 1}"] >= 0
    assert metrics["switchcost_run_real_seconds{experiment=run,command=sleep 0.01}"] >= 0.01


def series(commands: Path, folder: Path) -> list[str]:
    """Twelve records, one a day until yesterday; from the seventh on all times are three times as long."""
    files = []
    for day in range(12):
        record = json.loads(commands.read_text())
        started = datetime.now(timezone.utc) - timedelta(days=12 - day)
        record["started"] = started.strftime("%Y-%m-%dT%H:%M:%SZ")
        for command in record["commands"]:
            for figure in command["figures"]:
                for name in ("value", "low", "high", "standard_error"):
                    if day >= 6:
                        figure["estimate"][name] *= 3
        files.append(str(folder / f"day-{day}.json"))
        Path(files[-1]).write_text(json.dumps(record))
    return files


def test_otava_finds_a_change_in_its_csv(commands: Path, tmp_path: Path) -> None:
    otava = shutil.which("otava")
    if not otava:
        skip("program:otava", "Otava does not read a series: pip install apache-otava")
    file = tmp_path / "series.csv"
    # In the order of time, in whichever they are named.
    file.write_text(call("runs", "export", *reversed(series(commands, tmp_path)), "--format", "otava"))
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [Path(row["run"]).stem for row in rows] == [f"day-{day}" for day in range(12)]
    column = next(name for name in rows[0] if name.endswith("command=sleep 0.01: real_ns"))
    test = {
        "type": "csv",
        "file": str(file),
        "time_column": "time",
        "attributes": ["run", "kernel_release"],
        "metrics": {"real": {"column": column, "direction": -1}},
    }
    config = tmp_path / "otava.yaml"
    # JSON is YAML.
    config.write_text(json.dumps({"tests": {"commands": test}}))
    environment = {**os.environ, "OTAVA_CONFIG": str(config)}
    done = subprocess.run([otava, "analyze", "commands"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "+200.0%" in done.stdout, done.stdout
    before, change, _ = done.stdout.partition("+200.0%")
    assert "day-5" in before and "day-6" not in before and change
