"""The program: found, started, its errors told, ended with Python."""

from __future__ import annotations

import inspect
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import switchcost
from switchcost import _program


def script(folder: Path, text: str) -> Path:
    """A program that a test puts in place of the real one."""
    path = folder / "switchcost"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_core_needs_no_other_package() -> None:
    others = {"pandas", "polars", "pyarrow", "matplotlib", "numpy", "duckdb"}
    code = f"import sys, switchcost; print(*{others} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_chosen_program_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = script(tmp_path, "echo chosen")
    monkeypatch.setenv("SWITCHCOST", str(chosen))
    assert _program.find() == str(chosen)
    assert _program.call("x") == "chosen\n"
    monkeypatch.setenv("SWITCHCOST", str(tmp_path / "none\x1b[2J"))
    with pytest.raises(switchcost.ProgramNotFoundError, match=r"none \[2J: no such program"):
        _program.find()


def test_what_is_given_to_a_program_is_its_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHCOST", str(script(tmp_path, "head -c 3")))
    assert _program.run([], given=b"figure" * 100_000).output == b"fig"
    assert _program.run([]).output == b""


def test_without_a_program_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWITCHCOST", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(_program, "_of_wheel", list)
    with pytest.raises(switchcost.ProgramNotFoundError, match="pip install switchcost"):
        switchcost.read("last")


def test_an_error_has_the_programs_message_and_exit_code() -> None:
    with pytest.raises(switchcost.ProgramError, match="a ring has 1 to 4194304 members") as raised:
        switchcost.ring(0)
    assert raised.value.exit_code == 2
    assert raised.value.command[2:] == ["ring", "--members=0", "--quiet"]
    with pytest.raises(ValueError, match="a ring has 1 to 4194304 members"):
        switchcost.ring(0)
    with pytest.raises(FileNotFoundError, match="no stored run is called 'nosuch'"):
        switchcost.read("nosuch")


@pytest.mark.parametrize(
    ("name", "given", "kind", "said"),
    [
        ("ring", {"members": 2.5}, ValueError, "members=2.5: a whole number"),
        ("ring", {"members": [2, 2.5]}, ValueError, "members=2.5: a whole number"),
        ("ring", {"work": 1.5}, ValueError, "work=1.5: a whole number, or text such as '1.5M'"),
        ("ring", {"members": True}, TypeError, "members=True: accepted are numbers and text"),
        ("ring", {"budget": 0}, ValueError, "budget=0: seconds above zero"),
        ("ring", {"lunches": 2}, TypeError, r"ring\(\) has no argument 'lunches'; meant launches\?"),
        ("cost", {"huge_pages": "off"}, TypeError, r"extra=\['--huge-pages=...'\] gives it to the program"),
        ("run", {"command": []}, ValueError, "a command with its arguments as a list"),
        ("run", {"command": "-v"}, ValueError, "a command with its arguments as a list"),
        ("run", {"command": ["sleep", 1]}, TypeError, "1 is no text; write '1'"),
        ("ring", {"policy": "none"}, ValueError, "none"),
    ],
)
def test_wrong_use_is_told_as_python_tells_it(
    name: str, given: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        getattr(switchcost, name)(**given)


def test_whole_numbers_of_any_kind_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHCOST", str(script(tmp_path, 'echo "error: $*" >&2; exit 1')))
    with pytest.raises(switchcost.ProgramError, match="--members=2,4 --work=4096 --quiet"):
        switchcost.ring([2.0, 4], work=4096.0)  # type: ignore[list-item,arg-type]


def test_a_line_is_run_by_the_shell(capfd: pytest.CaptureFixture[str]) -> None:
    used = switchcost.run("echo one | tr a-z A-Z", runs=2, estimate=False, extra=["--show-output"])
    assert capfd.readouterr().out == 2 * "ONE\n" and used.exit_code == 0
    assert set(used.cases["quotable"]) == {True}


def test_it_knows_its_version() -> None:
    assert switchcost.__version__.split(".")[0].split("+")[0].isdecimal()


@pytest.mark.parametrize(
    ("does", "message", "code"),
    [
        ("exit 3", "it printed no message", 3),
        ("echo some words >&2; exit 1", "some words", 1),
        ("printf 'error: \\033[31mred\\n' >&2; exit 1", "[31mred", 1),
        ("kill -TERM $$", "it printed no message (stopped by signal 15)", 143),
        ("yes | head -c 1000000 >&2; echo 'error: the last' >&2; exit 1", "the last", 1),
    ],
)
def test_however_it_fails(does: str, message: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHCOST", str(script(tmp_path, does)))
    with pytest.raises(switchcost.ProgramError) as raised:
        _program.call()
    assert (str(raised.value), raised.value.exit_code) == (message, code)


def test_options_that_were_given_reach_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHCOST", str(script(tmp_path, 'printf "%s\\n" "error: $*" >&2; exit 1')))
    calls: list[tuple[Callable[[], object], str]] = [
        (
            lambda: switchcost.ring("2..64:x2", seed=0, anonymous=True, extra=["--laps=9"]),
            "ring --members=2..64:x2 --seed=0 --anonymous --laps=9 --quiet",
        ),
        (
            lambda: switchcost.ring(launches=2, link=["pipe", "futex"], placement=[0, 2], precision=0.01),
            "ring --link=pipe,futex --launches=2 --placement=0,2 --precision=1% --quiet",
        ),
        (
            lambda: switchcost.cost(["4K", 8192], walk="chase", budget="2m"),
            "cost --array=4K,8192 --walk=chase --budget=2m --quiet",
        ),
        (
            lambda: switchcost.cost(walk="both"),
            "cost --walk=whole,chase --quiet",
        ),
        (lambda: switchcost.measure(budget=1.5, name="-x"), "measure --budget=1500ms --name=-x --quiet"),
    ]
    for does, expected in calls:
        with pytest.raises(switchcost.ProgramError) as raised:
            does()
        assert str(raised.value) == f"--color=never {expected}"


def test_options_are_known_by_name_also_to_notebooks() -> None:
    for function, own in ((switchcost.measure, "seed"), (switchcost.ring, "launches"), (switchcost.cost, "walk")):
        parameters = inspect.signature(function).parameters
        assert {own, "budget", "name", "extra"} <= set(parameters) and "options" not in parameters
        assert ("rounds" in parameters) == (function is not switchcost.measure)


def test_help_says_what_each_part_of_a_run_is() -> None:
    for kind in (switchcost.Run, switchcost.Runs, switchcost.CommandUse):
        for name in ("samples", "cases", "machine", "answer"):
            attribute = inspect.getattr_static(kind, name)
            assert attribute.__doc__, f"{kind.__name__}.{name}"


def test_only_runs_of_this_process_are_given_also_by_an_error(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others measure at the same time, and stored runs are there already."""
    folder = tmp_path / "data/switchcost/runs"
    folder.mkdir(parents=True)
    shutil.copy(file, folder / "before.jsonl")
    copies = "; ".join(f"cp {file} {folder}/20261124T000000000Z-ring-{process}.jsonl" for process in ("$$", "1"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("SWITCHCOST", str(script(tmp_path, f"{copies}; exit 1")))
    with pytest.raises(switchcost.ProgramError) as raised:
        switchcost.ring()
    (run,) = raised.value.runs
    assert isinstance(run, switchcost.Run) and not run.source.endswith("-1.jsonl")
    script(tmp_path, "exit 0")
    with pytest.raises(ValueError, match="stored no run"):
        switchcost.ring()


def test_an_interrupt_ends_the_program_too_and_keeps_what_was_measured(store: Path) -> None:
    """Only Python gets the signal, as in a notebook."""
    before = set(store.glob("*.jsonl"))
    # Who starts the tests in the background of a script has the signal ignored.
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeds}; import switchcost; switchcost.ring([2], budget=300, precision=0.000001, rounds=1000000)"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)

    def new() -> list[Path]:
        return sorted(set(store.glob("*.jsonl")) - before) if store.exists() else []

    give_up = time.monotonic() + 600
    while not any('{"sample":' in path.read_text() for path in new()):
        assert time.monotonic() < give_up and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert "KeyboardInterrupt" in errors
    (file,) = new()
    writer = int(file.stem.rsplit("-", 1)[-1])
    assert not os.path.exists(f"/proc/{writer}")
    assert switchcost.read(file)[0].record["end"]["reason"] == "interrupted"


def test_run_measures_a_command(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["sh", "-c", "echo seen; echo told >&2; exit 3 # <b>"]
    used = switchcost.run(words, runs=3, estimate=False, extra=["--show-output"])
    said = capfd.readouterr()
    assert (said.out, said.err) == (3 * "seen\n", 3 * "told\n")
    assert used.exit_code == 3
    assert used.samples["exit_code"] == [3, 3, 3]
    real = next(row for row in used.cases.rows() if row["quantity"] == "real_ns")
    assert real["unit"] == "ns" and real["estimate"] == used.record["commands"][0]["figures"][0]["estimate"]["value"]
    assert used.machine["kernel_release"] == [os.uname().release]
    assert "echo seen" in used._repr_html_() and "<b>" not in used._repr_html_()


def test_run_of_several_commands() -> None:
    used = switchcost.run(["sh", "-c", "exit {n}"], parameters={"n": [0, 4]}, runs=2, estimate=False)
    assert sorted(zip(used.samples["command"], used.samples["exit_code"], strict=True)) == [
        (0, 0),
        (0, 0),
        (1, 4),
        (1, 4),
    ]


def test_a_command_that_is_not_there_is_an_error() -> None:
    with pytest.raises(switchcost.ProgramError, match="nosuch") as raised:
        switchcost.run(["/nosuch"], estimate=False)
    assert raised.value.exit_code == 127
