"""The columns of a dataset's tables, each declared once: name and meaning. Type and unit follow from the name."""

from __future__ import annotations

import json

import pyarrow as pa

from ..machine import FACTS
from ..tables import arrow_type, is_known, unit

KEY = {
    "host": "name of the host",
    "run": "id of the run, unique on a host",
    "started": "when the run started, UTC",
}
# What tells cases apart, in both tables of cases.
SETTINGS = {
    "experiment": "experiment that the case belongs to",
    "case": "number of the case in its run",
    "members": "ring: its size; 1 is a solo ring",
    "kind": "ring: process or thread",
    "link": "ring: what carries the token",
    "work_bytes": "ring: memory that each member touches per hop",
    "stride_bytes": "ring: distance between two touches",
    "op": "ring: read, write or rmw",
    "walk": "ring: order of the touches: whole, chase or sparse",
    "huge_pages": "ring: whether huge pages were asked for",
    "placement": "ring: CPUs of the members, or their relation",
    "policy": "scheduling policy",
    "priority": "real-time priority",
    "state": "ring: registers that each member writes per hop",
    "burden": "ring: what was put on its switches on purpose",
    "call": "trial: what was called",
    "primes": "trial: how many primes were computed",
    "bytes": "trial: size of a block or working set",
    "preload": "trial: library that provides malloc",
    "phase": "trial: when the sleeper sleeps",
    "setting": "trial: what was set",
    "environment": "trial: alone or disturbed",
    "noise": "trial: what disturbed it on purpose",
    "load": "trial: idle or busy CPU",
    "timer_slack_ns": "trial: timer slack of the sleeper",
    "cpu_latency_us": "trial: exit latency of idle states that was asked for",
}
COLUMNS = {
    "samples": {
        **KEY,
        **SETTINGS,
        "round": "number of the round",
        "sample": "ring: number of the sample in its round",
        "hops": "hops of all members",
        "elapsed_ns": "time of the timed laps",
        "user_ns": "CPU time in user mode, all members",
        "system_ns": "CPU time in the kernel, all members",
        "voluntary": "voluntary switches, all members",
        "involuntary": "involuntary switches, all members",
        "migrations": "migrations to another CPU, all members",
        "minor_faults": "page faults without input, all members",
        "major_faults": "page faults with input, all members",
        "steal_ns": "time that the hypervisor took",
        "laps": "timed laps",
        "cpu_ns": "CPU time, all members",
        "setup_ns": "time to set the ring up",
        "waited_ns": "time waited for a clean core",
        "disturbed": "what disturbed the sample",
        "cpu": "trial: its CPU",
        "cpus": "ring: its CPUs",
        "huge_page_bytes": "memory that was on huge pages",
        "slice_laps": "ring: laps of a slice",
        "cycles": "ring: cycles, if events were counted",
        "instructions": "ring: instructions",
        "L1-dcache-load-misses": "ring: loads that missed the first level's cache",
        "LLC-load-misses": "ring: loads that missed the last level's cache",
        "dTLB-load-misses": "ring: loads that missed the TLB of data",
        "iTLB-load-misses": "ring: fetches that missed the TLB of instructions",
        "context-switches": "ring: switches, as the event counts them",
        "page-faults": "ring: page faults, as the event counts them",
        "cpu-migrations": "ring: migrations, as the event counts them",
        "quantity": "trial: what was counted; its unit is the end of the name",
        "values": "trial: how many values there are",
        "total": "trial: their sum, or the count",
        "mean": "trial: their mean",
        "sd": "trial: their standard deviation",
        "min": "trial: the smallest",
        "p50": "trial: their median",
        "p99": "trial: their 99th percentile",
        "max": "trial: the largest",
    },
    "cases": {
        **KEY,
        **SETTINGS,
        "key": "experiment and settings in one text: unique in a run, the same on all hosts",
        "title": "the case in words, by what differs within its run",
        "quantity": "switch, hop, trial or part",
        "unit": "unit of estimate, low, high and value",
        "speed": "full, few_rounds, contended, not_alone, cpu_time or not_judged",
        "quotable": "whether the estimate may be quoted",
        "estimate": "the cost; null if it may not be quoted",
        "low": "lower end of its 95 % interval",
        "high": "upper end of its 95 % interval",
        "value": "what was found, whether it may be quoted or not",
        "not_quotable": "why it may not be quoted",
        "cycles": "the estimate in cycles of the core's clock",
        "clock_ghz": "clock of the core",
        "elasticity": "power of the clock's period that the cost follows: 1 core, 0 memory",
        "elasticity_error": "standard error of the elasticity",
        "rounds": "rounds that count",
    },
    "machines": {
        **KEY,
        **{fact.name: fact.meaning for fact in FACTS},
        "recorded_host": "name of the host by its own account",
        "file_bytes": "size of the run file",
        "sha256": "SHA-256 of the run file",
    },
}
SCHEMAS = {table: pa.schema([(name, arrow_type(name)) for name in names]) for table, names in COLUMNS.items()}

# Speeds of figures that are not the machine's own: another task, or another guest, was on the core.
BELOW_FULL_SPEED = "('contended', 'not_alone', 'cpu_time')"
QUOTABLE_CASES = f"""CREATE VIEW quotable_cases AS
    SELECT * FROM cases WHERE quotable AND coalesce(speed, '') NOT IN {BELOW_FULL_SPEED};"""


def with_others(table: str, names: list[str]) -> pa.Schema:
    """The schema of a table that also has these columns: those that nobody knows here are text, so that they fit."""
    schema = SCHEMAS[table]
    others = [name for name in names if name not in schema.names]
    return pa.schema([*schema, *((name, arrow_type(name) if is_known(name) else pa.string()) for name in others)])


def described() -> str:
    """The columns in JSON, for people and programs that have the files alone."""
    tables = {
        table: {
            name: {"type": str(SCHEMAS[table].field(name).type), "unit": unit(name), "meaning": meaning}
            for name, meaning in columns.items()
        }
        for table, columns in COLUMNS.items()
    }
    for name in ("estimate", "low", "high", "value"):
        tables["cases"][name]["unit"] = "as the column unit says"
    return json.dumps({"tables": tables}, indent=1) + "\n"
