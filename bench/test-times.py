#!/usr/bin/env python3
"""Seconds of each test binary of the workspace, and its slowest tests: bench/test-times.py [NUMBER] (default: 20)

Runs what `cargo test` runs, one binary after the other, with libtest's --report-time (which needs RUSTC_BOOTSTRAP=1).
Tests that have a main of their own are given as a whole.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

LINE = re.compile(r"^test (\S+).* \.\.\. (?:ok|FAILED).*<([\d.]+)s>", re.M)


def binaries():
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json"]
    built = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    for message in map(json.loads, built.splitlines()):
        if message.get("executable") and message["profile"]["test"]:
            yield message["executable"], pathlib.Path(message["manifest_path"]).parent, message["target"]["name"]


def main():
    shown = int(sys.argv[1]) if sys.argv[1:] else 20
    tests, red = [], 0
    for program, folder, name in list(binaries()):
        environment = {**os.environ, "RUSTC_BOOTSTRAP": "1", "CARGO_MANIFEST_DIR": str(folder)}
        has_main_of_its_own = not re.search(": test$", subprocess.run([program, "--list"], capture_output=True, text=True).stdout, re.M)
        words = [] if has_main_of_its_own else ["-Zunstable-options", "--report-time"]
        start = time.monotonic()
        done = subprocess.run([program, *words], cwd=folder, env=environment, capture_output=True, text=True)
        took = time.monotonic() - start
        found = [(float(seconds), f"{folder.name}/{name}", test) for test, seconds in LINE.findall(done.stdout)]
        tests += found
        red += done.returncode != 0
        print(f"{took:7.1f}  {len(found):4} tests  {folder.name}/{name}{'  RED' if done.returncode else ''}", flush=True)
    print()
    for seconds, binary, test in sorted(tests, reverse=True)[:shown]:
        print(f"{seconds:7.2f}  {binary}  {test}")
    sys.exit(red != 0)


main()
