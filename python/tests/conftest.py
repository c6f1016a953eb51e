"""A store of its own for all tests, and one short run in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from skips import write_down

import switchcost

if TYPE_CHECKING:
    from switchcost.fleet.dataset import Dataset


pytest_runtest_logreport = write_down
pytest_collectreport = write_down


@pytest.fixture(scope="session", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that run files get into."""
    home = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(home))
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        yield home / "switchcost/runs"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    from switchcost.fleet.dataset import Dataset

    return Dataset(tmp_path / "fleet")


@pytest.fixture(scope="session")
def ring(store: Path) -> switchcost.Run:
    """Rings of 1, 2 and 4, five rounds: they have intervals."""
    runs = switchcost.ring([2, 4], rounds=5, budget=30, name="short")
    assert len(runs) == 1
    return runs[0]


@pytest.fixture(scope="session")
def file(ring: switchcost.Run, store: Path) -> Path:
    """The file of that run."""
    path = store / f"{ring.name}.jsonl"
    assert os.path.samefile(path, ring.source)
    return path
