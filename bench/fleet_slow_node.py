#!/usr/bin/env python3
"""A node that is slow is named, drained by the printed command, and back: on a Slurm cluster of eight nodes on this one.

    bench/fleet_slow_node.py [ROUNDS] [INSTRUCTIONS | groups:LEVELS]

One node, n5, is behind a seccomp filter of so many instructions a system call, as an agent of security is, or so many
control groups deep, as a container within others is: each switch of a pipe's ring costs it some per cent more. (A CPU
quota and a busy neighbour do not make a node slow here: the program sees that its CPU was not its own, and gives no
figure.) Nodes take turns, as they share two CPUs, and rings behind a filter run under SCHED_FIFO, for which groups do not
count. Needs root and Debian's slurmctld, slurmd, slurm-client and munge; the program is the one of $SWITCHCOST.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python/tests"))
from slurm_cluster import Cluster, missing, until  # noqa: E402

SLOW = "n5"
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, SECCOMP_RET_ALLOW = 22, 2, 0x7FFF0000
BPF_LD_W_ABS, BPF_ADD_K, BPF_RET_K = 0x20, 0x04, 0x06


def behind_a_filter(instructions: int, command: list[str]) -> None:
    """Runs the command. The filter looks at an argument: else the kernel keeps its answer (seccomp(2), Linux 5.11)."""
    third_argument = 16 + 8 * 2  # of struct seccomp_data
    code = [struct.pack("HBBI", BPF_LD_W_ABS, 0, 0, third_argument)]
    code += [struct.pack("HBBI", BPF_ADD_K, 0, 0, 1)] * instructions
    code.append(struct.pack("HBBI", BPF_RET_K, 0, 0, SECCOMP_RET_ALLOW))
    text = ctypes.create_string_buffer(b"".join(code))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    program = Program(len(code), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    os.execvp(command[0], command)


def groups_with_cpu(levels: int, made: list[Path]) -> None:
    """So many control groups, one in the other, are added: in version 2 below the nearest that hands the CPU on."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    (first, own), *_ = [(v, path) for _, v, path in lines if "cpu" in v.split(",")] or [("", lines[-1][2])]
    root = Path("/sys/fs/cgroup") / first
    folder = root / own.strip("/")
    while not first and folder != root and "cpu" not in (folder / "cgroup.subtree_control").read_text().split():
        folder = folder.parent
    for level in range(levels):
        if not first and (level or folder == root):
            (folder / "cgroup.subtree_control").write_text("+cpu")
        folder /= f"slow-{os.getpid()}" if level == 0 else "deeper"
        folder.mkdir()
        made.append(folder)


def inside(group: str, command: list[str]) -> None:
    (Path(group) / "cgroup.procs").write_text(str(os.getpid()))
    os.execvp(command[0], command)


def main(rounds: int, how: str) -> None:
    levels = int(how.removeprefix("groups:")) if how.startswith("groups:") else None
    if levels is not None and levels < 1:
        sys.exit(f"{how}: at least one group")
    groups: list[Path] = []
    try:
        if levels:
            groups_with_cpu(levels, groups)
            find_slow(rounds, ["inside", str(groups[-1])], f"{levels} control groups deep", "")
        else:
            find_slow(rounds, ["behind", how], f"behind a filter of {how} instructions a system call", "--policy fifo ")
    finally:
        for group in reversed(groups):
            until(lambda: not (group / "cgroup.procs").read_text(), "its processes are gone")  # noqa: B023
            group.rmdir()


def find_slow(rounds: int, how: list[str], said_how: str, policy: str) -> None:
    with tempfile.TemporaryDirectory(prefix="switchcost-slow-") as name:
        home = Path(name)
        cluster = Cluster(home / "slurm", 8)
        cluster.nodes.remove(SLOW)
        (home / "bin").mkdir()
        shim = home / "bin/switchcost"
        program = os.environ["SWITCHCOST"]
        package = f"PYTHONPATH={HERE.parent}/python/src {sys.executable} -m switchcost.fleet.cli"
        shim.write_text(f'#!/bin/sh\n[ "$1" = fleet ] || exec {program} "$@"\nshift\nexport {package.split()[0]}\nexec {" ".join(package.split()[1:])} "$@"\n')
        shim.chmod(0o755)
        environment = {**cluster.environment, "HOME": name, "PATH": f"{home}/bin:{os.environ['PATH']}"}

        def typed(command: str, shown: bool = True) -> str:
            done = subprocess.run(["sh", "-c", command], cwd=home, env=environment, text=True, capture_output=True)
            if shown:
                print(f"$ {command}\n{done.stdout}{done.stderr}", end="", flush=True)
            return done.stdout

        try:
            cluster.start()
            cluster.start_node(SLOW, [sys.executable, str(Path(__file__).resolve()), *how])
            cluster.wait_idle(8)
            print(f"# {SLOW} is {said_how}")
            for number in range(rounds):
                ring = f"ring --members 2 {policy}--budget 2s"
                typed(f"switchcost fleet submit --engine slurm --dataset ~/fleet --parallel 1 --again -- {ring}", not number)
                until(lambda: typed("switchcost fleet status --dataset ~/fleet", False).startswith("8 of 8"), "all answers")
                typed("switchcost fleet collect --dataset ~/fleet", number in (0, rounds - 1))
            typed("switchcost fleet analyse --dataset ~/fleet")
            said = typed("switchcost fleet drain --engine slurm --dataset ~/fleet")
            lines = [line for line in said.splitlines() if line.startswith("scontrol")]
            assert len(lines) == 1 and f"NodeName={SLOW} State=DRAIN" in lines[0], said
            typed(lines[0])
            until(lambda: "drained" in typed(f"sinfo --noheader --nodes {SLOW} --format='%T %E'", False), "it is drained")
            typed(f"sinfo --noheader --nodes {SLOW} --format='%T %E'")
            print(f"# {SLOW} is as the others again")
            cluster.kill(SLOW)
            cluster.start_node(SLOW)
            typed(f"switchcost fleet undrain --engine slurm {SLOW} --yes")
            until(lambda: typed(f"sinfo --noheader --nodes {SLOW} --format=%T", False).strip() == "idle", "it is back")
            typed(f"sinfo --noheader --nodes {SLOW} --format=%T")
            assert typed(f"srun --nodelist {SLOW} hostname") == f"{SLOW}\n"
        finally:
            cluster.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["behind"]:
        behind_a_filter(int(sys.argv[2]), sys.argv[3:])
    if sys.argv[1:2] == ["inside"]:
        inside(sys.argv[2], sys.argv[3:])
    if missing() or "SWITCHCOST" not in os.environ:
        sys.exit(f"error: {missing() or 'SWITCHCOST names no program'}")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4, sys.argv[2] if len(sys.argv) > 2 else "2000")
