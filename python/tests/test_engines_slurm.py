"""`switchcost fleet` on a Slurm cluster of eight nodes on this machine."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from skips import skip
from slurm_cluster import Cluster, missing, until
from test_data_analyse import fill

from switchcost import _program
from switchcost.fleet.cli import main
from switchcost.fleet.dataset import Dataset
from switchcost.fleet.engines import slurm
from switchcost.fleet.labels import of_slurm

pytest.importorskip("duckdb")

QUICK = ["--", "ring", "--members", "2", "--rounds", "2", "--budget", "1s"]
LONGER = ["--", "ring", "--members", "2", "--precision", "0.01%", "--budget", "3s"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    why = missing()
    if why:
        skip(*why)
    folder = tmp_path_factory.mktemp("slurm")
    # Mounted before the nodes start: they see it, too.
    small = folder / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "small", str(small)]).returncode == 0
    cluster = Cluster(folder, 8)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        if mounted:
            subprocess.run(["umount", str(small)], check=True)


@pytest.fixture
def fleet(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Fleet:
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    monkeypatch.setenv("SWITCHCOST", _program.find())
    return Fleet(cluster, tmp_path / "dataset", capfd)


class Fleet:
    def __init__(self, cluster: Cluster, dataset: Path, output: pytest.CaptureFixture[str]) -> None:
        self.cluster, self.dataset, self.output = cluster, dataset, output

    def __call__(self, subcommand: str, *words: str, dataset: bool = True) -> tuple[int, str]:
        """The exit code and all that was printed."""
        self.output.readouterr()
        code = main([subcommand, *(["--dataset", str(self.dataset)] if dataset else []), *words])
        printed = self.output.readouterr()
        return code, printed.out + printed.err

    def until_all(self) -> None:
        until(lambda: self("status")[0] == 0, "an answer of each node")

    def files(self) -> dict[str, str]:
        """All of the dataset, by path."""
        paths = (path for path in self.dataset.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}

    def hosts(self) -> dict[str, int]:
        """How many runs the dataset has, by host."""
        return {folder.name: len(list(folder.glob("*.jsonl"))) for folder in (self.dataset / "runs").iterdir()}


def test_all_nodes_answer_and_a_second_collection_changes_nothing(fleet: Fleet, tmp_path: Path) -> None:
    code, said = fleet("submit", "--engine", "slurm", "--parallel", "3", *QUICK)
    assert code == 0 and f"`switchcost fleet status --dataset {fleet.dataset}` lets the jobs behind it start" in said
    jobs = fleet.cluster.call("scontrol", "show", "job", "--oneliner").splitlines()
    assert len(jobs) == 8 and len({job.split()[1] for job in jobs}) == 3
    most = 0

    def all_have_answered() -> bool:
        nonlocal most
        most = max(most, len(fleet.cluster.call("squeue", "-h", "-t", "running").splitlines()))
        return fleet("status")[0] == 0

    until(all_have_answered, "an answer of each node")
    assert most <= 3
    assert fleet("status")[1].startswith("8 of 8 hosts have answered")

    code, said = fleet("collect")
    assert (code, said) == (0, "8 runs of 8 hosts collected, 0 there already, 0 set aside\n")
    assert fleet.hosts() == dict.fromkeys(fleet.cluster.nodes, 1)
    before = fleet.files()
    assert fleet("collect") == (0, "0 runs of 0 hosts collected, 0 there already, 0 set aside\n")
    shutil.copytree(fleet.dataset / "runs", tmp_path / "elsewhere")
    assert fleet("collect", str(tmp_path / "elsewhere"))[1].startswith("0 runs of 0 hosts collected, 8 there already")
    assert fleet.files() == before

    code, said = fleet("submit", "--engine", "slurm", *QUICK)
    assert code == 0 and said.startswith("8 of 8 have answered already"), said
    assert fleet("status")[0] == 0


def test_a_node_lost_while_it_measures_is_named_and_asked_again(fleet: Fleet) -> None:
    assert fleet("submit", "--engine", "slurm", *LONGER)[0] == 0
    until(lambda: "n3" in fleet.cluster.call("squeue", "-h", "-t", "running", "-o", "%N").split(), "n3 at work")
    fleet.cluster.kill("n3")
    until(lambda: "requeued" in fleet("status")[1], "n3 requeued")
    until(lambda: fleet("status")[1].startswith("7 of 8"), "the others' answers")
    code, said = fleet("status")
    assert (
        code == 3
        and "; n3 (the node is down; job " in said
        and "(requeued) waits for it" in said
        and "may still answer" in said
    ), said
    assert fleet("collect")[1].startswith("7 runs of 7 hosts collected")
    assert "1 is still at it" in fleet("submit", "--engine", "slurm", *LONGER)[1]

    fleet.cluster.start_node("n3")
    fleet.until_all()
    assert fleet("collect")[1].startswith("1 run of 1 host collected")
    assert fleet.hosts() == dict.fromkeys(fleet.cluster.nodes, 1)


def test_a_job_waits_for_a_busy_node_whatever_slurm_last_wrote_of_it() -> None:
    stale = "ReqNodeNotAvail,_UnavailableNodes:n2"
    assert (
        slurm.waits_for(stale, "allocated*") == slurm.waits_for("Resources", "allocated") == "waits: its node is busy"
    )
    assert slurm.waits_for(stale, "idle") == f"waits: Slurm says {stale}"
    assert slurm.waits_for("None", "idle") == "waits"


def test_nodes_that_cannot_start_anything_are_left_out_and_a_busy_one_stops_no_other(fleet: Fleet) -> None:
    call = fleet.cluster.call
    call("scontrol", "update", "NodeName=n5", "State=DRAIN", "Reason=a fan")
    fleet.cluster.kill("n6")
    until(lambda: call("sinfo", "-h", "-n", "n6", "-o", "%T").startswith("down"), "n6 down")
    job = call(
        "sbatch", "--parsable", "--nodelist=n2", "--exclusive", "--chdir=/", "--output=/dev/null", "--wrap=sleep 600"
    )
    until(lambda: "n2" in call("squeue", "-h", "-t", "running", "-o", "%N").split(), "n2 busy")
    try:
        for options in ([], ["--parallel", "4"]):
            start = time.monotonic()
            code, said = fleet("submit", "--engine", "slurm", "--again", *options, *QUICK)
            assert code == 0 and "asked 6 of 6 hosts, 1 down (n6), 1 drained (n5), not asked" in said, said
            until(lambda: fleet("status")[1].startswith("5 of 6 hosts"), "an answer of each free node", 60)
            print(f"{options}: {time.monotonic() - start:.1f} s")
            code, said = fleet("status")
            assert code == 3 and re.search(
                r"; n2 \(job \d+ waits: its node is busy\) may still answer$", said.strip()
            ), said
            # One that is drained while its job waits.
            call("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=another fan")
            assert "n2 (the node is drained; job" in fleet("status")[1]
            call("scontrol", "update", "NodeName=n2", "State=RESUME")
            waiting = call("squeue", "-h", "-t", "pending", "-o", "%i").split()
            subprocess.run(["scancel", *waiting], check=True, env=fleet.cluster.environment)
        call("scontrol", "update", "NodeName=n5", "State=RESUME")
        fleet.cluster.start_node("n6")
        fleet.cluster.wait_idle(7)
        code, said = fleet("submit", "--engine", "slurm", *QUICK)
        assert code == 0 and "asked 3 of 8 hosts, 5 of 8 have answered already" in said, said
    finally:
        subprocess.run(["scancel", job.strip()], check=True, env=fleet.cluster.environment)
        if "n6" not in fleet.cluster.daemons:
            fleet.cluster.start_node("n6")
        for node in ("n2", "n5"):
            update = ["scontrol", "update", f"NodeName={node}", "State=RESUME"]
            subprocess.run(update, env=fleet.cluster.environment, stderr=subprocess.DEVNULL)
    fleet.until_all()
    fleet.cluster.wait_idle(8)


def test_a_node_that_is_drained_after_submit_holds_up_no_other_in_its_turn(fleet: Fleet) -> None:
    """Eight jobs, one at a time: the nodes of two in a row are drained while the first measures."""
    call = fleet.cluster.call
    assert fleet("submit", "--engine", "slurm", "--parallel", "1", *LONGER)[0] == 0
    try:
        until(lambda: bool(call("squeue", "-h", "-t", "running")), "a node at work")
        call("scontrol", "update", "NodeName=n4,n5", "State=DRAIN", "Reason=a fan")
        # `status` would take them out of their turn, too.
        until(lambda: len([*fleet.dataset.glob("submissions/*/*.jsonl")]) == 6, "the answers of the other six")
        code, said = fleet("status")
        assert code == 3 and said.count("(the node is drained; job") == 2, said
    finally:
        call("scontrol", "update", "NodeName=n4,n5", "State=RESUME")
    fleet.until_all()
    fleet.cluster.wait_idle(8)


def test_status_lets_nobody_wait_behind_a_drained_node(fleet: Fleet) -> None:
    """The first of two is drained before any job of the submission has run."""
    call = fleet.cluster.call
    options = ["--parsable", "--exclusive", "--chdir=/", "--output=/dev/null", "--wrap=sleep 600"]
    others = [call("sbatch", f"--nodelist={node}", *options).strip() for node in ("n2", "n3")]
    until(lambda: len(call("squeue", "-h", "-t", "running").splitlines()) == 2, "n2 and n3 busy")
    try:
        assert fleet("submit", "--engine", "slurm", "--parallel", "1", "--nodelist", "n2,n3", *QUICK)[0] == 0
        call("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=a fan")
        call("scancel", *others)
        until(lambda: call("sinfo", "-h", "-n", "n2", "-o", "%T").strip() == "drained", "n2 drained")
        until(lambda: fleet("status")[1].startswith("1 of 2 hosts"), "the answer of n3")
    finally:
        subprocess.run(["scancel", *others], env=fleet.cluster.environment)
        call("scontrol", "update", "NodeName=n2", "State=RESUME")
    fleet.until_all()
    fleet.cluster.wait_idle(8)


def test_a_controller_that_is_restarted_loses_nothing(fleet: Fleet) -> None:
    assert fleet("submit", "--engine", "slurm", "--staggered", "1s", *QUICK)[0] == 0
    until(lambda: "RUNNING" in fleet.cluster.call("squeue", "-h", "-o", "%T"), "a node at work")
    fleet.cluster.stop_controller()
    code, said = fleet("status")
    assert code == 1 and "of 8 hosts have answered" in said and "Unable to contact slurm controller" in said, said
    fleet.cluster.start_controller()
    fleet.until_all()


def test_a_full_disk_leaves_no_half_answers_and_the_rest_is_asked_again(fleet: Fleet) -> None:
    fleet.dataset = fleet.cluster.folder / "small"
    if not fleet.dataset.is_mount():
        skip("mounts", "tmpfs could not be mounted")
    assert fleet("submit", "--engine", "slurm", *QUICK)[0] == 0
    until(lambda: not fleet.cluster.call("squeue", "-h", "-t", "running,pending,completing"), "the end of all jobs")
    code, said = fleet("status")
    assert code == 1 and "failed, exit code 1" in said and "did not answer" in said, said
    answered = int(said.split()[0])
    assert 0 < answered < 8
    names = {path.name for path in fleet.dataset.glob("submissions/*/*")}
    assert all(name.endswith((".jsonl", ".log")) or name == "job.sh" for name in names), names

    subprocess.run(["mount", "-o", "remount,size=50m", str(fleet.dataset)], check=True)
    said = fleet("submit", "--engine", "slurm", *QUICK)[1]
    assert f"asked {8 - answered} of 8 hosts, {answered} of 8 have answered" in said, said
    fleet.until_all()
    assert fleet("collect")[1].startswith("8 runs of 8 hosts collected")


def test_nodes_that_slurm_does_not_know_are_refused(fleet: Fleet) -> None:
    for words, why in (
        (["--nodelist", "n[1-2],n99"], "--nodelist n[1-2],n99: Slurm has no node n99"),
        (["--partition", "nope"], "--partition nope: there are all"),
        (["--constraint", "gpu"], "--constraint gpu: no node has all of these; there are even, odd"),
        (["--reservation", "none"], "--reservation none: "),
    ):
        code, said = fleet("submit", "--engine", "slurm", *words, *QUICK)
        assert code == 2 and why in said, said
    assert not list(fleet.dataset.glob("submissions/*"))
    assert not fleet.cluster.call("squeue", "--noheader")


def test_features_and_reservations_choose_the_nodes(fleet: Fleet) -> None:
    call = fleet.cluster.call
    code, said = fleet("submit", "--engine", "slurm", "--print", "--constraint", "odd", *QUICK)
    assert code == 0 and {*re.findall(r"--nodelist=(\w+)", said)} == {"n1", "n3", "n5", "n7"}, said
    assert not fleet.dataset.exists()
    reservation = ["ReservationName=check", "StartTime=now", "Duration=10", "Users=root", "Nodes=n2,n3"]
    call("scontrol", "create", "reservation", *reservation)
    try:
        assert [host for host, row in sorted(of_slurm()[1].items()) if row["reservation"] == "check"] == ["n2", "n3"]
        assert fleet("submit", "--engine", "slurm", "--reservation", "check", *QUICK)[0] == 0
        fleet.until_all()
        assert fleet("collect")[1].startswith("2 runs of 2 hosts collected")
        assert sorted(fleet.hosts()) == ["n2", "n3"]
    finally:
        call("scontrol", "delete", "ReservationName=check")


def test_a_slow_node_is_drained_by_the_printed_command_and_comes_back(fleet: Fleet) -> None:
    """Figures are simulated; the cluster is not."""
    fill(Dataset(fleet.dataset), 8, 6, lambda i, _: 0.08 * (i == 4), scatter=0.002, spread=0.001, names="n{}", first=1)
    code, said = fleet("drain", "--engine", "slurm", "--limit", "3%")
    (line,) = [line for line in said.splitlines() if line.startswith("scontrol")]
    assert code == 0 and line.startswith("scontrol update NodeName=n5 State=DRAIN 'Reason=switchcost: +8"), said
    subprocess.run(["sh", "-c", line], check=True, env=fleet.cluster.environment)
    state = ["sinfo", "--noheader", "--nodes", "n5", "--format=%T %E"]
    assert fleet.cluster.call(*state).startswith("drained switchcost: +8")
    assert fleet("undrain", "--engine", "slurm", "--yes", "n5", dataset=False)[0] == 0
    until(lambda: fleet.cluster.call(*state).startswith("idle"), "n5 idle")
