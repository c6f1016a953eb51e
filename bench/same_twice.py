#!/usr/bin/env python3
"""The same command twice in fresh launches, pair after pair: how often does `compare` call it changed?

    bench/same_twice.py [--pairs 50] [--compare 'OPTIONS'] [--label NAME=VALUE] [--switchcost PROGRAM] -- COMMAND [ARGS...]

COMMAND is one of ours that stores a run: `ring --rings 1,2 --budget 4s`, `trace --budget 3s -- CMD`. A pair is one false alarm if any of
its figures changed; --label counts only those of such cases. Exits with 1 if more than 6 % of the pairs changed (3 of 50). Run files go
to a folder that is removed.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--compare", default="", help="further options of compare")
    parser.add_argument("--label", help="count only figures of cases with this label, NAME=VALUE")
    parser.add_argument("--switchcost", default="target/release/switchcost")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    name, _, value = (args.label or "").partition("=")
    alarms = undecided = 0
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_DATA_HOME": folder, "XDG_STATE_HOME": folder}
        for pair in range(args.pairs):
            for side in ("base", "new"):
                first, *rest = args.command
                command = [args.switchcost, first, "--quiet", "--name", f"{side}-{pair}", *rest]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                if done.returncode not in (0, 1):
                    sys.exit(f"{shlex.join(command)}: exit code {done.returncode}: {done.stderr}")
            command = [args.switchcost, "compare", f"base-{pair}", f"new-{pair}", *shlex.split(args.compare), "--json", "-"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode not in (0, 1, 3):
                sys.exit(f"{shlex.join(command)}: exit code {done.returncode}: {done.stderr}")
            changes = [one for one in json.loads(done.stdout)["changes"] if not args.label or str(one["labels"].get(name)) == value]
            changed = [one for one in changes if one["answer"] == "changed"]
            alarms += bool(changed)
            undecided += any(one["answer"] not in ("changed", "not_changed") for one in changes)
            words = "; ".join(f"{one['labels']} {one.get('measure', '')} {one['ratio']}" for one in changed)
            print(f"{pair}: {len(changes)} figures, {len(changed)} changed {words}", flush=True)
    print(f"{shlex.join(args.command)}: changed in {alarms} of {args.pairs} pairs, undecided figures in {undecided}")
    return 0 if alarms <= 0.06 * args.pairs else 1


if __name__ == "__main__":
    sys.exit(main())
