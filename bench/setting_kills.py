#!/usr/bin/env python3
"""Kills sessions of `compare --ab-setting` at random moments and checks the setting afterwards.

    bench/setting_kills.py PROGRAM [COUNT]

Needs root. The setting is how many messages the kernel prints in a burst, on which nothing depends.
Each session is killed (SIGKILL) after 0.05 to 2.5 s: the program, its guard, a worker, or the program
and its guard together. The setting must be the old one within 2 s; where both were killed, after the
next start of the program, which says so.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

FILE = pathlib.Path("/proc/sys/kernel/printk_ratelimit_burst")
TARGETS = ["program", "guard", "worker", "both"]


def value():
    return FILE.read_text().strip()


def children(pid):
    """Returns the names of a process's children by their ids."""
    try:
        ids = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return {int(child): pathlib.Path(f"/proc/{child}/comm").read_text().strip() for child in ids}
    except (FileNotFoundError, ProcessLookupError):
        return {}


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_target(session, target):
    """Kills what is meant, as far as it is there yet."""
    named = children(session.pid)
    guards = [pid for pid, name in named.items() if name == "switchcost-set"]
    workers = [pid for pid, name in named.items() if name in ("switchcost-work", "switchcost-ring")]
    if target == "worker":
        for pid in workers:
            kill(pid)
        time.sleep(random.uniform(0, 0.3))
        session.terminate()
    elif target == "guard":
        for pid in guards:
            kill(pid)
    elif target == "both":
        # Stopped, the program does not see that its guard is gone.
        session.send_signal(signal.SIGSTOP)
        for pid in guards:
            kill(pid)
        session.kill()
    if target == "program" or not (guards or workers):
        session.kill()


def note_files(home):
    return list(pathlib.Path(home).glob("switchcost/settings/*.json"))


def is_old_within(old, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if value() == old:
            return True
        time.sleep(0.01)
    return value() == old


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    old = value()
    values = [str(int(old) + 1), str(int(old) + 2)]
    failed, restored_at_start, changed_when_killed = [], 0, 0
    for number in range(count):
        target = TARGETS[number % len(TARGETS)]
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "HOME": home, "XDG_STATE_HOME": home, "XDG_DATA_HOME": home}
            command = [program, "compare", "--ab-setting", str(FILE), *values]
            command += ["--members", "2", "--budget", "60s", "--precision", "0.01%"]
            session = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(random.uniform(0.05, 2.5))
            changed_when_killed += value() != old
            kill_target(session, target)
            session.wait(timeout=20)
            is_old = is_old_within(old, 2.0)
            if not is_old and target == "both":
                start = subprocess.run(
                    [program, "runs", "list"], env=environment, capture_output=True, text=True
                )
                is_old = value() == old and "again" in start.stderr
                restored_at_start += is_old
            # The note goes after the value has come back.
            until = time.monotonic() + 2.0
            while (notes := note_files(home)) and time.monotonic() < until:
                time.sleep(0.01)
            if not is_old or (notes and target != "both"):
                failed.append((number, target, value(), [str(note) for note in notes]))
                FILE.write_text(old + "\n")
    print(
        f"{count - len(failed)} of {count}: the setting is the old one; it was changed when "
        f"{changed_when_killed} were killed; {restored_at_start} put back by the next start"
    )
    for failure in failed:
        print("failed:", *failure)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
