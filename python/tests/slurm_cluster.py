"""A private Slurm cluster on one machine, for tests and for trying the guide: `slurm_cluster.py DIR [NODES]`.

Needs root and Debian's slurmctld, slurmd, slurm-client and munge. All files are in DIR. Each node is a PID and UTS
namespace with a slurmd in it, so that `kill` is what a power cut is: nothing of the node survives.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo", "unshare")

CONFIGURATION = """
ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A job that is requeued waits for as long as its credential lasts, by default two minutes.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/spool/%n/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=2
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=5
MessageTimeout=5
KillWait=2
SlurmdParameters=config_overrides
PartitionName=all Nodes=n[1-{count}] Default=YES OverSubscribe=EXCLUSIVE
"""


def missing() -> tuple[str, str] | None:
    """What is needed for a cluster and why there is none; None where one can be had."""
    if os.geteuid() != 0:
        return "root", "a cluster's daemons are root's"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"program:{absent[0]}", f"no {', '.join(absent)}: apt-get install slurmctld slurmd slurm-client munge"
    return None


def free_ports(count: int) -> int:
    """The first of `count` TCP ports in a row that nobody listens on now."""
    for first in range(20000 + os.getpid() % 5000, 60000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RuntimeError(f"no {count} free TCP ports in a row")


def until(true: Callable[[], bool], what: str, seconds: float = 600) -> None:
    """Waits for what has to come: only what hangs takes so long, on the slowest machine too."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class Cluster:
    """`count` nodes, n1 and on; `environment` makes Slurm's commands talk to it."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.nodes = [f"n{number + 1}" for number in range(count)]
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("munge", "state", "log", *(f"spool/{node}" for node in self.nodes)):
            (folder / name).mkdir(parents=True, exist_ok=True)
        port, host = free_ports(count + 1), socket.gethostname()
        lines = [CONFIGURATION.format(host=host, port=port, folder=folder, count=count)]
        lines += [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + 1 + number} RealMemory=100"
            f" Feature={('odd', 'even')[number % 2]}"
            for number, node in enumerate(self.nodes)
        ]
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        key = folder / "munge" / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))

    def start(self) -> None:
        munge = self.folder / "munge"
        paths = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        # --force: a folder below /tmp is writable by others further up, which munged refuses.
        options = [f"--{option}={munge / name}" for option, name in paths.items()]
        self.spawn("munge", ["munged", "--foreground", "--force", *options])
        until((munge / "socket").exists, "munged")
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        self.wait_idle(len(self.nodes))

    def start_controller(self) -> None:
        self.spawn("slurmctld", ["slurmctld", "-D"])

    def start_node(self, node: str, behind: Sequence[str] = ()) -> None:
        """`behind`: a command that is put before slurmd, and so before all that runs on the node."""
        namespaces = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "slave"]
        self.spawn(node, [*namespaces, "sh", "-c", 'hostname "$0"; "$@" slurmd -D -N "$0"; exit', node, *behind])

    def spawn(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with open(self.folder / "log" / name, "ab") as log:
            self.daemons[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment, start_new_session=True
            )
        return self.daemons[name]

    def kill(self, name: str) -> None:
        """Ends a daemon at once; with a node's, all that runs on it."""
        daemon = self.daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def stop_controller(self) -> None:
        """As an upgrade does. (Killed, Slurm forgets what it did last, and drains the nodes that know better.)"""
        controller = self.daemons.pop("slurmctld")
        controller.terminate()
        controller.wait()

    def call(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    def wait_idle(self, count: int) -> None:
        def idle() -> bool:
            answer = subprocess.run(
                ["sinfo", "-h", "-t", "idle", "-o", "%D"],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            return answer.stdout.strip() == str(count).encode()

        until(idle, f"{count} idle nodes")

    def stop(self) -> None:
        for name in list(self.daemons):
            self.kill(name)


if __name__ == "__main__":
    if missing():
        sys.exit(f"error: {missing()}")
    cluster = Cluster(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 8)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        cluster.start()
        print(f"export SLURM_CONF={cluster.folder}/slurm.conf    # until this program is stopped (Ctrl-C)", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        cluster.stop()
