#!/usr/bin/env python3
"""Kills sessions of `compare --ab-setting` at random moments and checks the setting afterwards.

    bench/setting_kills.py PROGRAM [COUNT]
    bench/setting_kills.py PROGRAM [COUNT] --commands    sessions of `compare --ab-commands`

Sessions of commands need no root. Both commands go on, and have children in sessions of their own.
Each is killed after 0.05 to 8 s: the program, the guard, its keeper, a worker, or the program and one
of both. Nothing of the commands may be left within 2 s of the end of the program.

Sessions of settings need root. The setting is how many messages the kernel prints in a burst, on which nothing depends.
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
COMMAND_TARGETS = ["program", "guard", "keeper", "worker", "program and guard", "program and keeper"]
COMMAND_NAMES = {"guard": "switchcost-cmds", "keeper": "switchcost-keep"}

# It goes on, and has children in sessions of their own.
GOING_ON = "setsid sleep 1000 & setsid sh -c 'sleep 1000 & wait' & while :; do sleep 0.02; done"


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


def descendants(pid):
    """Returns the names of all that descends from a process by their ids."""
    found = {}
    for child, name in children(pid).items():
        found[child] = name
        found.update(descendants(child))
    return found


def marked(mark):
    """Returns the processes whose environment has a variable."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark in (folder / "environ").read_bytes():
                found.append(folder.name)
        except OSError:
            pass
    return found


def kill_commands_target(session, target):
    """Kills what is meant, as far as it is there yet."""
    below = descendants(session.pid)
    roles = target.split(" and ")
    if "program" in roles:
        # Stopped, the program does not see that another is gone.
        session.send_signal(signal.SIGSTOP)
    for role in roles:
        for pid, name in below.items():
            is_worker = role == "worker" and name in ("switchcost-work", "switchcost-ring")
            if is_worker or name == COMMAND_NAMES.get(role):
                kill(pid)
    if "program" in roles:
        session.kill()
    elif target == "worker":
        time.sleep(random.uniform(0, 0.3))
        session.terminate()
    elif not set(below.values()) & set(COMMAND_NAMES.values()):
        session.terminate()


def main_of_commands(program, count):
    failed = []
    running_when_killed = 0
    for number in range(count):
        target = COMMAND_TARGETS[number % len(COMMAND_TARGETS)]
        mark = f"SETTING_KILLS={os.getpid()}-{number}"
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "HOME": home, "XDG_STATE_HOME": home, "XDG_DATA_HOME": home}
            name, value = mark.split("=")
            environment[name] = value
            command = [program, "compare", "--ab-commands", GOING_ON, GOING_ON.replace("02", "03")]
            command += ["--members", "2", "--budget", "60s", "--precision", "0.01%"]
            session = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(random.uniform(0.05, 8.0))
            running_when_killed += "sleep" in descendants(session.pid).values()
            kill_commands_target(session, target)
            session.wait(timeout=30)
            until = time.monotonic() + 2.0
            while (left := marked(mark.encode())) and time.monotonic() < until:
                time.sleep(0.01)
            if left:
                failed.append((number, target, left))
                for pid in left:
                    kill(int(pid))
    print(
        f"{count - len(failed)} of {count}: nothing of the commands is left; they ran when "
        f"{running_when_killed} were killed"
    )
    for failure in failed:
        print("failed:", *failure)
    sys.exit(bool(failed))


def main():
    words = [word for word in sys.argv[1:] if word != "--commands"]
    program, count = words[0], int(words[1]) if len(words) > 1 else 200
    if "--commands" in sys.argv:
        main_of_commands(program, count)
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
