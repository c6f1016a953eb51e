"""`switchcost fleet submit`, `status` and `collect` without a cluster: ssh, Kubernetes and ReFrame."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from skips import skip

from switchcost import _program
from switchcost._program import printable
from switchcost.fleet import collect, status
from switchcost.fleet.cli import main
from switchcost.fleet.engine import State
from switchcost.fleet.engines import slurm
from switchcost.fleet.submission import FleetError, Submission, load

duckdb = pytest.importorskip("duckdb")

DEPLOY = Path(__file__).parents[2] / "deploy"
HOSTS = [f"n{number}" for number in range(40)]
VERSIONS = ("1.29", "1.31", "1.33", "1.35")
QUICK = ["ring", "--members", "2", "--rounds", "1"]
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="session")
def answer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the script of a submission prints on host `n1`."""
    submission = Submission.new(tmp_path_factory.mktemp("dataset"), "ssh", QUICK, _program.find())
    submission.make_folder()
    submission.prepare()
    return subprocess.run(["sh", submission.job, "n1"], stdout=subprocess.PIPE, text=True, check=True).stdout


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def asked(dataset: Path, *hosts: str, program: str = "switchcost") -> Submission:
    submission = Submission.new(dataset, "ssh", QUICK, program)
    submission.make_folder()
    submission.hosts = list(hosts)
    submission.prepare()
    submission.save()
    return submission


def fleet(output: Output, dataset: Path, subcommand: str, *words: str) -> tuple[int, str, str]:
    output.readouterr()
    code = main([subcommand, "--dataset", str(dataset), *words])
    printed = output.readouterr()
    assert all(letter == "\n" or letter.isprintable() for letter in printed.err), printed.err
    return code, printed.out, printed.err


# The script that a host runs.


def test_an_answer_is_measured_once(tmp_path: Path, answer: str) -> None:
    count = tmp_path / "count"
    folder = tmp_path / "with a blank"
    program = script(
        tmp_path / "measure it",
        f'echo >>"{count}"',
        'mkdir -p "$XDG_DATA_HOME/switchcost/runs"',
        'echo "{}" >"$XDG_DATA_HOME/switchcost/runs/a.jsonl"',
    )
    submission = asked(folder, "n1", program=str(program))
    for _ in range(2):
        subprocess.run(["sh", submission.job, "n1", submission.result("n1")], check=True)
    assert count.read_text() == "\n"
    assert (
        submission.result("n1")
        .read_text()
        .endswith(answer.splitlines()[-1].replace(answer_id(answer), submission.id) + "\n")
    )
    submission.result("n1").rename(submission.folder / "n1.collected")
    subprocess.run(["sh", submission.job, "n1", submission.result("n1")], check=True)
    assert count.read_text() == "\n"


def answer_id(answer: str) -> str:
    return str(json.loads(answer.splitlines()[-1])["answer"]["submission"])


def test_a_failed_or_ended_measurement_leaves_nothing(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    submission = asked(tmp_path / "a", "n1", program=str(script(tmp_path / "fails", "echo partial; exit 4")))
    job = ["sh", str(submission.job), "n1", str(submission.result("n1"))]
    assert subprocess.run(job, env=environment).returncode == 4
    assert not submission.answered() and not list(scratch.iterdir())

    submission = asked(
        tmp_path / "b", "n1", program=str(script(tmp_path / "hangs", f"touch {tmp_path}/begun; sleep 60"))
    )
    job = ["sh", str(submission.job), "n1", str(submission.result("n1"))]
    with subprocess.Popen(job, env=environment, start_new_session=True) as process:
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGTERM)
    assert process.returncode != 0
    assert sorted(path.name for path in submission.folder.iterdir()) == ["job.sh"] and not list(scratch.iterdir())


# ssh and any scheduler.


def test_the_printed_commands_bring_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin/ssh", "shift 2", 'case "$1" in gone) exit 255 ;; esac', 'shift; exec "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    dataset = tmp_path / "data set"
    words = ["--engine", "ssh", "--hosts", "a,b.example,a", "--program", _program.find()]
    code, lines, said = fleet(capsys, dataset, "submit", *words, "--staggered", "500ms", "--", *QUICK)
    assert code == 0 and "asked 2 of 2 hosts" in said, said
    assert "about 0.7 node-minutes: 2 hosts, 20 s each" in said
    first, second = lines.splitlines()
    assert first.startswith("sleep 0; ssh -o BatchMode=yes a ") and second.startswith(
        "sleep 0.5; ssh -o BatchMode=yes b.example "
    )

    subprocess.run(first, shell=True, check=True)
    code, said, _ = fleet(capsys, dataset, "status")
    assert code == 1 and "1 of 2 hosts have answered" in said and "b.example (its command was printed" in said
    code, line, said = fleet(capsys, dataset, "submit", *words, "--parallel", "2", "--", *QUICK)
    assert line.startswith("ssh -o BatchMode=yes b.example ") and "| xargs -d '\\n' -n 1 -P 2 sh -c" in said, said
    subprocess.run(["xargs", "-d", "\n", "-n", "1", "-P", "2", "sh", "-c"], input=line, text=True, check=True)
    assert fleet(capsys, dataset, "status")[0] == 0
    assert fleet(capsys, dataset, "collect")[1].startswith("2 runs of 2 hosts collected")
    assert sorted(path.name for path in (dataset / "runs").iterdir()) == ["a", "b.example"]


def test_hosts_that_cannot_be_reached_stop_no_others_and_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    (tmp_path / "bin").mkdir()
    script(
        tmp_path / "bin/ssh", "shift 2", 'case "$1" in gone) echo no route >&2; exit 255 ;; esac', 'shift; exec "$@"'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    dataset = tmp_path / "d"
    words = ["--engine", "ssh", "--hosts", "gone,a", "--program", _program.find(), "--", *QUICK]
    lines = fleet(capsys, dataset, "submit", *words)[1]
    done = subprocess.run(["xargs", "-d", "\n", "-n", "1", "sh", "-c"], input=lines, text=True, capture_output=True)
    assert done.returncode == 123
    code, said, _ = fleet(capsys, dataset, "status", "--verbose")
    assert code == 1 and said.startswith("1 of 2 hosts have answered"), said
    assert "  gone: no route\n  gone: ssh ended with 255\n" in said, said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "rng"], "-- rng: a host measures with one of measure, ring, cost"),
        (["--", "ring", "--lunches", "2"], "unexpected argument '--lunches' found"),
        (["--", "ring", "--members", "x"], "'x': not a whole number"),
        (["--", "top"], "-- top: a host measures with one of"),
    ],
)
def test_a_command_that_no_host_would_take_is_not_sent(
    tmp_path: Path, capsys: Output, words: list[str], said: str
) -> None:
    given = ["--engine", "ssh", "--hosts", "a"]
    code, lines, why = fleet(capsys, tmp_path / "d", "submit", *given, *words)
    assert (code, lines) == (2, "") and said in why and not (tmp_path / "d").exists(), why


def test_errors_name_what_was_wrong(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "d").mkdir()
    given = ["submit", "--engine", "ssh", "--hosts-file", str(tmp_path / "none")]
    assert fleet(capsys, tmp_path / "d", *given)[::2] == (
        2,
        f"error: {given[-2]} {given[-1]}: No such file or directory\n",
    )
    assert "--submission x: no such submission" in fleet(capsys, tmp_path / "d", "status", "--submission", "x")[2]
    with pytest.raises(SystemExit, match="2"):
        fleet(capsys, tmp_path / "d", "analyse", "--since", "then")
    assert "argument --since: then: a day is 2026-11-01, today, yesterday or 14d" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        fleet(capsys, tmp_path / "d", "analyse", "--limit", "high")
    assert "--limit: high: a share between 0 and 1" in capsys.readouterr().err


def test_answers_from_elsewhere_count_as_answers(tmp_path: Path, capsys: Output, answer: str) -> None:
    dataset = tmp_path / "dataset"
    submission = asked(dataset, "n1", "n2")
    theirs = answer.replace(answer_id(answer), submission.id)
    (tmp_path / "log").write_text("a line of progress\n" + theirs + theirs.replace('"host":"n1"}}', '"host":"n2"}}'))
    code, said, _ = fleet(capsys, dataset, "collect", str(tmp_path / "log"))
    assert (code, said) == (0, "2 runs of 2 hosts collected, 0 there already, 0 set aside\n")
    assert fleet(capsys, dataset, "status")[0] == 0


@pytest.mark.parametrize("hosts", ["a,../../x", "a,-oProxyCommand=x", "a,\x1b[2Jb", "a b", "", "a,;reboot"])
def test_hosts_that_are_no_names_are_refused(tmp_path: Path, capsys: Output, hosts: str) -> None:
    code, lines, said = fleet(capsys, tmp_path / "d", "submit", "--engine", "ssh", "--hosts", hosts)
    assert (code, lines) == (2, "") and said.startswith("error: "), said
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--budget", "60"],
        ["--parallel", "0"],
        ["--limit", "2"],
        ["--staggered", "soon"],
        ["--engine", "at"],
        ["--budget", "-1s"],
    ],
)
def test_wrong_usage_is_refused(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["submit", "--dataset", str(tmp_path), "--engine", "ssh", "--hosts", "a", *words])


@pytest.mark.parametrize("engine", [["ssh", "--hosts", "a,b"], ["kubernetes", "--image", "x"]])
def test_what_is_only_printed_asks_nobody(tmp_path: Path, cluster: Cluster, capsys: Output, engine: list[str]) -> None:
    code, text, said = fleet(capsys, tmp_path / "d", "submit", "--engine", *engine, "--print", "--", *QUICK)
    assert code == 0 and text and re.search(r"would ask \d of \d hosts \(nobody was asked\)", said), said
    assert not (tmp_path / "d").exists() and not (cluster.folder / "created.json").exists()


# What a host may send.


def test_hostile_answers_are_set_aside_and_the_rest_is_taken(
    tmp_path: Path, capsys: Output, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "LONGEST_LINE", 1 << 20)
    dataset = tmp_path / "dataset"
    submission = asked(dataset, *(f"n{number}" for number in range(1, 11)))
    whole = answer.replace(answer_id(answer), submission.id)
    run, last = whole.rsplit("\n", 2)[0] + "\n", whole.splitlines()[-1] + "\n"
    sent = {
        "n1": whole,
        "n2": whole[: len(whole) // 2],
        "n3": run,
        "n4": run + '{"answer":{"host":"../../x","submission":7}}\n',
        "n5": run.replace('"run":"', '"run":"../../../x\x1b]0;', 1) + last,
        "n6": '{"header":' + "x" * (2 << 20) + "\n" + last,
        "n7": "[" * 100000 + "\n" + '{"answer":' + "[" * 100000 + "\n",
    }
    for host, text in sent.items():
        submission.result(host).write_text(text)
    os.mkfifo(submission.result("n8"))
    submission.result("n9").symlink_to("/etc/passwd")
    submission.result("n10").mkdir()
    os.mkfifo(submission.folder / "n5.log")
    code, said, why = fleet(capsys, dataset, "collect")
    assert code == 1 and said.startswith("1 run of 1 host collected, 0 there already, 9 set aside"), said + why
    assert len(why.splitlines()) == 10 and "n6.jsonl: a line of over" in why, why
    assert submission.answered() == {"n1"}
    outside = {path.name for path in tmp_path.iterdir()} | {path.name for path in dataset.iterdir()}
    assert outside <= {"dataset", "runs", "set-aside", "submissions", "parquet", ".lock"}, outside

    code, said, _ = fleet(capsys, dataset, "status")
    assert code == 1 and "n2 (" in said and "it ends before its last line" in said, said
    assert fleet(capsys, dataset, "collect")[0] == 0


def test_links_and_devices_among_files_from_elsewhere_are_left(tmp_path: Path, capsys: Output, answer: str) -> None:
    folder = tmp_path / "from elsewhere"
    folder.mkdir()
    (folder / "good.jsonl").write_text(answer)
    (folder / "link.jsonl").symlink_to(folder / "good.jsonl")
    os.mkfifo(folder / "fifo.jsonl")
    with open(folder / "endless.jsonl", "wb") as file:
        file.truncate(10 << 40)
    (folder / "\x1b[31mred.jsonl").write_text("no JSON\n{}\n")
    code, said, why = fleet(capsys, tmp_path / "dataset", "collect", str(folder), "/dev/zero")
    assert code == 1 and said.startswith("1 run of 1 host collected, 0 there already, 5 set aside"), said + why
    assert "endless.jsonl: 10995116277760 bytes, at most" in why and "zero: not a regular file" in why, why


def test_each_file_of_a_folder_is_accounted_for_by_its_own_name(tmp_path: Path, capsys: Output, answer: str) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    run, last = answer.rsplit("\n", 2)[0] + "\n", answer.splitlines()[-1] + "\n"
    header, rest = run.split("\n", 1)

    def changed(**fields: object) -> str:
        first = json.loads(header)
        first["header"].update(fields)
        return json.dumps(first) + "\n" + rest

    (folder / "good.jsonl").write_text(run)
    (folder / "again.jsonl").write_text(run)
    dirt = {
        "empty.jsonl": ("", "it is empty"),
        "random.jsonl": ("\x7fELF\x02\n\x00" * 100, "no line of it begins as a run's does"),
        "cut.jsonl": (header[: len(header) // 2], "its first line is no header of a run file"),
        "foreign.jsonl": ('{"level": "info", "message": "started"}\n', "its first line is no header of a run file"),
        "schema.jsonl": (changed(run="s", schema=99), "schema"),
        "future.jsonl": (changed(run="f", started="2099-01-01T00:00:00Z"), "its start is 2099-01-01, more than a day"),
        "sub/host.jsonl": (changed(run="h", host=None), "it does not say of which host it is"),
        "two.log.jsonl": (changed(run="t") + changed(run="../x") + last, "run 2 of 2: not a run id"),
    }
    for name, (text, _) in dirt.items():
        (folder / name).write_text(text)
    code, said, why = fleet(capsys, tmp_path / "d", "collect", str(folder))
    assert code == 1 and said.startswith("2 runs of 2 hosts collected, 1 there already, 8 set aside"), said + why
    lines = why.splitlines()
    for name, (_, reason) in dirt.items():
        (line,) = [line for line in lines if line.startswith(f"{folder}/{name}")]
        assert reason in line, line
    for noted in (tmp_path / "d/set-aside").glob("*.reason"):
        assert noted.read_text().startswith(f"{folder}/") and "/tmp/tmp" not in noted.read_text()
        assert noted.name.removesuffix(".reason").endswith(".jsonl") or "run_2_of_2" in noted.name, noted.name


def test_what_cannot_be_opened_is_told(capsys: Output, answer: str) -> None:
    """Root can open every file: it looks with the eyes of another user."""
    other = 65534 if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        (closed := Path(folder, "closed")).mkdir()
        (secret := Path(folder, "secret.jsonl")).write_text(answer)
        for path in (closed, secret):
            path.chmod(0)
        for path in (Path(folder), closed, secret):
            os.chown(path, other, -1)
        was = os.geteuid()
        os.seteuid(other)
        try:
            code, _, why = fleet(capsys, Path(folder, "d"), "collect", folder)
        finally:
            os.seteuid(was)
            closed.chmod(0o700)
    assert code == 1 and f"{secret}: not opened: Permission denied\n" in why, why
    assert f"{closed}: not opened: Permission denied\n" in why, why


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../../x"},
        {"hosts": ["../../x"]},
        {"hosts": "n1"},
        {"command": [1]},
        {"other": 1},
        {"time": None},
        {"jobs": ["--help"]},
        {"jobs": ["a b"]},
    ],
)
def test_a_question_that_names_paths_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    submission = asked(tmp_path, "n1")
    path = tmp_path / "submissions" / f"{submission.id}.json"
    assert load(path) == submission
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(FleetError, match="no submission"):
        load(path)


def test_a_question_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "submissions" / f"{asked(tmp_path, 'n1').id}.json"
    path.write_text("[" * 100_000)
    with pytest.raises(FleetError, match="no submission"):
        load(path)


def test_what_is_printed_has_no_control_characters() -> None:
    assert printable("a\x1b[2J\nb\u202ec\x07 d") == "a [2J b c d"
    assert printable("x" * 10000) == "x" * 1000


# The answer of `status`.


def test_status_names_who_never_answered(tmp_path: Path) -> None:
    submission = asked(tmp_path, *(f"n{number:02}" for number in range(20)))
    states = {"n03": State(False, "job 13 failed, exit code 1"), "n07": State(True, "job 17 running")}
    assert status.answer(submission, states, 10) == (
        f"18 of 20 hosts have answered (submission {submission.id}); n03 (job 13 failed, exit code 1) did not answer; "
        "n07 (job 17 running) may still answer. Run the same `submit` again to ask this one"
    )
    (submission.folder / "n03.log").write_text("first\n\x1b[31mno space\n\n")
    os.mkfifo(submission.folder / "n07.log")
    assert "n03 (job 13 failed, exit code 1: [31mno space) did not answer" in status.answer(submission, states, 10)
    waiting = {host: State(True, "pending") for host in submission.hosts}
    assert status.answer(submission, waiting, 2).endswith("n00 (pending), n01 (pending) and 18 more may still answer")


# Kubernetes. There is no cluster here: kubectl is a script that hands out files and keeps what it is given.


class Cluster:
    def __init__(self, folder: Path, nodes: list[str]) -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        self.show("nodes", [{"metadata": {"name": node}} for node in nodes])
        self.show("pods", [])
        lines = [f"cd {shlex.quote(str(folder))}", 'echo "$*" >>calls', 'case "$1" in']
        lines += ["get) cat $2.json ;;", "create) cat >created.json ;;", "logs) cat $2.log ;;", "esac"]
        script(folder / "bin/kubectl", *lines)

    def show(self, kind: str, items: list[dict[str, Any]]) -> None:
        (self.folder / f"{kind}.json").write_text(json.dumps({"items": items}))

    def created(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "created.json").read_text()))


def pod(name: str, node: str | None, phase: str, message: str = "") -> dict[str, Any]:
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase, "message": message}}


def pod_of(workload: dict[str, Any]) -> dict[str, Any]:
    return dict(workload["spec"]["template"]["spec"])


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster(tmp_path / "cluster", ["n1", "n2", "n3"])
    monkeypatch.setenv("PATH", f"{cluster.folder}/bin:{os.environ['PATH']}")
    return cluster


def nodes_of(job: dict[str, Any]) -> list[str]:
    affinity = pod_of(job)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [term["matchFields"][0]["values"][0] for term in affinity["nodeSelectorTerms"]]


def test_pods_are_asked_and_their_logs_collected(tmp_path: Path, cluster: Cluster, capsys: Output, answer: str) -> None:
    dataset = tmp_path / "dataset"
    words = ["--engine", "kubernetes", "--image", "example/switchcost:1", "--", *QUICK]
    assert fleet(capsys, dataset, "submit", *words)[0] == 0
    job = cluster.created()
    assert (nodes_of(job), job["spec"]["completions"], job["spec"]["parallelism"]) == (["n1", "n2", "n3"], 3, 3)

    id = job["metadata"]["labels"]["switchcost/submission"]
    text = "some progress\n" + answer.replace(answer_id(answer), id)
    (cluster.folder / "p1.log").write_text(text)
    cluster.show(
        "pods", [pod("p1", "n1", "Succeeded"), pod("p2", "n2", "Failed", "evicted"), pod("p3", None, "Pending")]
    )
    code, said, _ = fleet(capsys, dataset, "status")
    assert code == 3 and said.startswith("1 of 3 hosts have answered"), said
    assert "n2 (pod p2 failed: evicted) did not answer; n3 (pod p3 pending) may still answer" in said
    assert fleet(capsys, dataset, "collect")[1].startswith("1 run of 1 host collected")

    assert fleet(capsys, dataset, "submit", *words)[0] == 0
    assert nodes_of(cluster.created()) == ["n2"]

    cluster.show("pods", [pod("p4", "n2", "Succeeded")])
    assert "n2 (pod p4 succeeded: kubectl logs: cat: p4.log: No such file" in fleet(capsys, dataset, "status")[1]
    assert "--selector=switchcost/submission=" + id in (cluster.folder / "calls").read_text()


def test_a_node_that_is_not_ready_is_left_out_and_told(tmp_path: Path, cluster: Cluster, capsys: Output) -> None:
    def node(name: str, ready: str, **spec: bool) -> dict[str, Any]:
        conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]
        return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}

    cordoned = node("n4", "True", unschedulable=True)
    cluster.show("nodes", [node("n1", "True"), node("n2", "False"), node("n3", "Unknown"), cordoned])
    words = ["--engine", "kubernetes", "--image", "x", "--", *QUICK]
    code, _, said = fleet(capsys, tmp_path / "d", "submit", *words)
    assert code == 0 and "asked 2 of 2 hosts, 2 not ready (n2, n3), not asked (submission" in said, said
    assert nodes_of(cluster.created()) == ["n1", "n4"]
    cluster.show("nodes", [node("n2", "False")])
    code, _, said = fleet(capsys, tmp_path / "other", "submit", *words)
    assert (code, said) == (1, "error: --engine kubernetes: no host can be asked: 1 not ready (n2)\n")


def test_the_jobs_of_submit_are_valid(tmp_path: Path, cluster: Cluster, capsys: Output) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    for options in ([], ["--unprivileged"], ["--parallel", "2", "--staggered", "500ms"]):
        words = ["--engine", "kubernetes", "--image", "x", "--print", *options]
        code, text, said = fleet(capsys, tmp_path / "_".join(["d", *options]), "submit", *words)
        assert code == 0, said
        job = json.loads(text)
        for version in VERSIONS:
            validate.validate(job, version, strict=True)
        # Kubernetes takes "$(" and "$$" for its own: each "$" of the shell is there twice.
        runs = re.findall(r"\$+", pod_of(job)["containers"][0]["command"][2])
        assert runs and all(len(run) % 2 == 0 for run in runs)
    assert "JOB_COMPLETION_INDEX * 45000 / 1000" in text
    assert not (cluster.folder / "created.json").exists()


def rendered(kind: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        skip("program:kubectl", "the objects are not held against its own checks")
    made = subprocess.run([kubectl, "kustomize", DEPLOY / "kubernetes" / kind], stdout=subprocess.PIPE, check=True)
    return dict(yaml.safe_load(made.stdout))


@pytest.mark.parametrize("kind", ["job", "daemonset", "job-unprivileged", "daemonset-unprivileged"])
def test_the_manifests_are_valid(kind: str) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    workload = rendered(kind)
    for version in VERSIONS:
        validate.validate(workload, version, strict=True)
    assert workload["spec"]["template"]["metadata"]["labels"] == {"app.kubernetes.io/name": "switchcost"}


@pytest.mark.parametrize(("kind", "options"), [("job", []), ("job-unprivileged", ["--unprivileged"])])
def test_submit_and_the_manifests_ask_for_the_same_privileges(
    tmp_path: Path, capsys: Output, kind: str, options: list[str]
) -> None:
    words = ["--engine", "kubernetes", "--image", "x", "--print", "--hosts", "n1", *options]
    made = json.loads(fleet(capsys, tmp_path, "submit", *words)[1])
    kept = rendered(kind)
    for job in (made, kept):
        job["metadata"] = job["spec"]["completions"] = job["spec"]["parallelism"] = None
        job["spec"]["template"]["metadata"] = None
        pod_of(job)["affinity"].pop("nodeAffinity", None)
        (container,) = pod_of(job)["containers"]
        container["image"] = container["command"] = None
        container["env"] = [one for one in container["env"] if one["name"] == "NODE"]
        for key in ("add", "drop"):
            container["securityContext"]["capabilities"].setdefault(key, [])
    assert made == kept


def test_the_log_of_a_deployed_pod_is_an_answer(tmp_path: Path, capsys: Output) -> None:
    text = pod_of(rendered("job"))["containers"][0]["command"][2].replace("/tmp", str(tmp_path))
    text = text.replace("switchcost measure", f"{shlex.quote(_program.find())} {shlex.join(QUICK)}")
    environment = {**os.environ, "NODE": "n1", "BUDGET": "1s", "JOB_COMPLETION_INDEX": "0"}
    with open(tmp_path / "log", "wb") as log:
        subprocess.run(["sh", "-euc", text], env=environment, stdout=log, stderr=log, check=True)
    assert fleet(capsys, tmp_path / "dataset", "collect", str(tmp_path / "log"))[0] == 0
    assert [path.name for path in (tmp_path / "dataset" / "runs").iterdir()] == ["n1"]


# ReFrame, with its local scheduler.


@pytest.mark.parametrize(("reference", "code"), [('(0, None, None, "ns")', 0), ('(1, -0.1, 0.1, "ns")', 1)])
def test_reframe_measures_and_asserts(tmp_path: Path, capsys: Output, reference: str, code: int) -> None:
    reframe = shutil.which("reframe") or shutil.which("reframe", path=os.path.dirname(sys.executable))
    if reframe is None:
        skip("module:reframe", "pip install reframe-hpc")
    check = tmp_path / "check.py"
    check.write_text((DEPLOY / "reframe/switchcost_check.py").read_text().replace('(0, None, None, "ns")', reference))
    words = [reframe, "--checkpath", str(check), "--run", "--prefix", str(tmp_path / "made")]
    words += ["-S", f"SwitchCost.program={_program.find()}", "-S", "SwitchCost.budget=3s"]
    done = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    if "no cost that may be quoted" in done.stdout:
        skip("quiet", "this machine was too busy for a cost that may be quoted")
    assert done.returncode == code, done.stdout
    assert ("failed to meet reference" in done.stdout) == (code == 1)
    if code == 0:
        assert fleet(capsys, tmp_path / "dataset", "collect", str(tmp_path / "made/output"))[1].startswith(
            "1 run of 1 host"
        )


@pytest.mark.parametrize("parallel", [None, 4])
def test_jobs_that_were_taken_are_cancelled_where_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallel: int | None
) -> None:
    taken, cancelled = [], []

    def call(command: list[str], _: str) -> str:
        host = next(word for word in command if word.startswith("--nodelist=")).partition("=")[2]
        if host == HOSTS[3]:
            raise FleetError("sbatch: refused")
        taken.append(host)
        return f"{host}\n"

    monkeypatch.setattr(slurm, "call", call)
    monkeypatch.setattr("switchcost.fleet.engines.slurm.subprocess.run", lambda command: cancelled.extend(command[1:]))
    submission = Submission.new(tmp_path, "slurm", QUICK, "switchcost")
    submission.make_folder()
    chosen = argparse.Namespace(
        time=1, budget_s=1.0, partition=None, reservation=None, parallel=parallel, staggered_s=0.0
    )
    with pytest.raises(FleetError, match="refused"):
        slurm.submit(submission, HOSTS, chosen)
    assert taken and sorted(cancelled) == sorted(taken) and not submission.jobs
