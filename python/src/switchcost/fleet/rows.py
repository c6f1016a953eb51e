"""A run file as rows of the tables `samples`, `cases` and `machines` (docs/fleet.md, "Columns").

Estimates are the program's; nothing is computed here. A file may say anything: what cannot be a row is `Unreadable`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from .._program import find, printable
from .submission import HOST, moment

# A header is one line: the machine of a host with thousands of CPUs has below 4 MB.
MAX_HEADER_BYTES = 16 << 20
RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}", re.ASCII)

_Column = tuple[str, pa.DataType]
_KEY: list[_Column] = [("host", pa.string()), ("run", pa.string()), ("started", pa.timestamp("us", "UTC"))]
_CASE: list[_Column] = [
    ("experiment", pa.string()),
    ("case", pa.int64()),
    ("members", pa.int64()),
    ("kind", pa.string()),
    ("link", pa.string()),
    ("work_bytes", pa.int64()),
    ("stride_bytes", pa.int64()),
    ("op", pa.string()),
    ("placement", pa.string()),
    ("policy", pa.string()),
    ("state", pa.string()),
]


def _columns(kind: pa.DataType, names: str) -> list[_Column]:
    return [(name, kind) for name in names.split()]


SCHEMAS: dict[str, pa.Schema] = {
    "samples": pa.schema(
        _KEY
        + _CASE
        + _columns(pa.int64(), "round sample hops elapsed_ns user_ns system_ns voluntary involuntary migrations")
        + _columns(pa.int64(), "minor_faults major_faults steal_ns laps cpu_ns setup_ns waited_ns")
        + _columns(pa.string(), "disturbed call quantity")
        + _columns(pa.int64(), "values")
        + _columns(pa.float64(), "total mean sd min p50 p99 max")
    ),
    "cases": pa.schema(
        _KEY
        + _CASE
        + _columns(pa.string(), "title quantity unit speed")
        + _columns(pa.float64(), "estimate low high cycles clock_ghz elasticity elasticity_error")
        + _columns(pa.int64(), "rounds")
    ),
    "machines": pa.schema(
        _KEY
        + _columns(pa.string(), "recorded_host name experiment program ended noise noise_reasons")
        + _columns(pa.float64(), "clean_share")
        + _columns(pa.int64(), "file_bytes cpus numa_nodes memory_bytes")
        + _columns(pa.string(), "sha256 cpu_vendor cpu_model cpu_stepping microcode smt hypervisor")
        + _columns(pa.string(), "kernel kernel_version command_line preemption clock_source frequency_driver governor")
        + _columns(pa.string(), "boost idle_driver idle_governor transparent_huge_pages mitigations")
    ),
}


class Unreadable(Exception):
    """Why a file cannot be a run of the dataset."""


@dataclass(frozen=True)
class Rows:
    """A run's rows by table; `day` is that of its start, in UTC."""

    day: str
    tables: dict[str, pa.Table]


def rows_of(host: str, run: str, path: Path, max_bytes: int) -> Rows:
    """Raises Unreadable, with the program's message where it cannot read the file or has more than 4 `max_bytes`."""
    header = header_of(path)
    try:
        started = moment(header.get("started"))
    except ValueError as error:
        raise Unreadable(f"its start is {error}") from error
    record, summary, samples = _exports(path, max_bytes)
    key = {"host": host, "run": run, "started": started}
    machine = {**key, **machine_row(header, record), "file_bytes": path.stat().st_size}
    machine["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    tables = {
        "samples": _samples(samples, key),
        "cases": _rows("cases", [{**key, **row} for row in _cases(summary, record)]),
        "machines": _rows("machines", [machine]),
    }
    return Rows(started.date().isoformat(), tables)


def _exports(path: Path, max_bytes: int) -> tuple[dict[str, Any], list[dict[str, str]], bytes]:
    """What the program says of a run file: the record, the rows of its summary, and its samples as CSV."""
    record, summary, samples = (_export(path, form, max_bytes) for form in ("json", "summary-csv", "csv"))
    return json.loads(record), list(csv.DictReader(io.StringIO(summary.decode()))), samples


def _export(path: Path, form: str, max_bytes: int) -> bytes:
    with tempfile.TemporaryFile() as errors:
        command = [find(), "runs", "export", "--format", form, str(path.absolute())]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
            assert process.stdout
            output = process.stdout.read(4 * max_bytes)
            if process.stdout.read(1):
                process.kill()
                raise Unreadable(f"more than {4 * max_bytes} bytes when exported")
        if process.returncode:
            errors.seek(0)
            said = errors.read(4096).decode(errors="replace").replace(str(path), "the file")
            raise Unreadable(printable(said) or f"switchcost ended with {process.returncode}")
    return output


def first_line(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.readline(MAX_HEADER_BYTES)


def header_of(path: Path) -> dict[str, Any]:
    try:
        header = json.loads(first_line(path))["header"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable("its first line is no header of a run file") from error
    if not isinstance(header, dict):
        raise Unreadable("its first line is no header of a run file")
    return header


def run_of(header: dict[str, Any]) -> str:
    run = header.get("run")
    if not isinstance(run, str) or not RUN.fullmatch(run):
        raise Unreadable(f"not a run id: {printable(str(run), 60)!r}")
    return run


def host_of(host: str | None, header: dict[str, Any]) -> str:
    host = header.get("host") if host is None else host
    if host is None:
        raise Unreadable("it does not say of which host it is (--anonymous); name the host when it is collected")
    if not isinstance(host, str) or not HOST.fullmatch(host):
        raise Unreadable(f"not a host name: {printable(str(host), 60)!r}")
    return host


def _samples(text: bytes, key: dict[str, Any]) -> pa.Table:
    schema = SCHEMAS["samples"]
    names = [name for name in schema.names if name not in key]
    options = pa.csv.ConvertOptions(
        include_columns=names,
        include_missing_columns=True,
        column_types={name: schema.field(name).type for name in names},
        strings_can_be_null=True,
    )
    try:
        read = pa.csv.read_csv(
            io.BytesIO(text),
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=max(1 << 20, min(len(text), 1 << 30))),
            convert_options=options,
        )
    except pa.ArrowInvalid as error:
        raise Unreadable(f"its samples cannot be a table: {error}") from error
    for i, name in enumerate(key):
        read = read.add_column(
            i, schema.field(name), pa.repeat(pa.scalar(key[name], schema.field(name).type), len(read))
        )
    return read.select(schema.names).cast(schema)


def _rows(table: str, rows: list[dict[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema=SCHEMAS[table])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise Unreadable(f"its {table} cannot be a table: {error}") from error


_ESTIMATES = {"switch": "ns_per_switch_above_solo", "hop": "ns_per_hop"}


def _cases(summary: list[dict[str, str]], record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of `cases` without their key: the program's summary, and of rings at which speed the figure is."""
    kinds: dict[str, Callable[[str], Any]] = {"int64": int, "double": float, "string": printable}
    for row in summary:
        typed: dict[str, Any] = {}
        for field in SCHEMAS["cases"]:
            text = row.get(field.name)
            typed[field.name] = kinds[str(field.type)](text) if text and str(field.type) in kinds else None
        case = _at(record, "cases", typed["case"]) or {}
        case = case.get("ring") or case.get("trial") or case
        estimate = case.get(_ESTIMATES.get(row["quantity"], "")) or {}
        typed["speed"], typed["rounds"] = estimate.get("speed"), estimate.get("rounds") or case.get("rounds")
        for name in ("low", "high"):
            if typed["estimate"] is None:
                typed[name] = None
        yield {name: value for name, value in typed.items() if name not in ("host", "run", "started")}


def _at(value: Any, *keys: Any) -> Any:
    """What lies at these keys; None where it is absent or {"unknown": why}."""
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return None if isinstance(value, dict) and "unknown" in value else value


def machine_row(header: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """What `machines` has of a header and its record, without key, size and checksum."""
    machine = header.get("machine")

    def text(*keys: Any) -> str | None:
        value = _at(machine, *keys)
        return None if value is None else printable(str(value).lower() if isinstance(value, bool) else str(value), 1000)

    def each(items: Any, key: str) -> str | None:
        """The different values among CPUs, of which a machine may have several kinds."""
        found = {str(_at(item, key)) for item in items or [] if _at(item, key) is not None}
        return printable(", ".join(sorted(found)), 300) or None

    models, policies = _at(machine, "cpu", "models"), _at(machine, "frequency", "policies")
    nodes, mitigations = _at(machine, "numa", "nodes"), _at(machine, "mitigations")
    stepping = [f"{_at(m, 'family')}-{_at(m, 'model')}-{_at(m, 'stepping')}" for m in models or []]
    virtual = _at(machine, "virtualization", "cpu_flag")
    product = [
        text("virtualization", k) for k in ("hypervisor_type", "dmi_vendor", "dmi_product", "device_tree_hypervisor")
    ]
    named = " ".join(word for word in product if word)
    build = header.get("build")
    return {
        "recorded_host": printable(str(_at(header, "host") or "")) or None,
        "name": printable(str(_at(header, "name") or "")) or None,
        "experiment": printable(str(_at(header, "plan", "experiment") or "")) or None,
        "program": printable(f"{_at(build, 'version')} {_at(build, 'commit')} {_at(build, 'target')}"),
        "ended": printable(str(_at(record, "end", "reason") or "killed")),
        "noise": _at(record, "noise", "level"),
        "noise_reasons": printable("; ".join(map(str, _at(record, "noise", "reasons") or [])), 1000) or None,
        "clean_share": _at(record, "noise", "clean_share"),
        "cpu_vendor": each(models, "vendor"),
        "cpu_model": each(models, "name"),
        "cpu_stepping": printable(", ".join(sorted(set(stepping)))) or None,
        "microcode": each(models, "microcode"),
        "smt": text("cpu", "smt_control"),
        "hypervisor": None if virtual is None and not named else (named or "yes") if virtual is not False else "none",
        "cpus": len(_at(machine, "cpu", "topology") or []) or None,
        "numa_nodes": len(nodes) if isinstance(nodes, list) else None,
        "memory_bytes": _at(machine, "memory", "total_bytes"),
        "kernel": text("kernel", "release"),
        "kernel_version": text("kernel", "version"),
        "command_line": text("kernel", "command_line"),
        "preemption": text("kernel", "preemption", "model"),
        "clock_source": text("kernel", "clock_source", "current"),
        "frequency_driver": each(policies, "driver"),
        "governor": each(policies, "governor"),
        "boost": text("frequency", "boost"),
        "idle_driver": text("frequency", "idle_driver"),
        "idle_governor": text("frequency", "idle_governor"),
        "transparent_huge_pages": text("memory", "thp_enabled"),
        "mitigations": printable("; ".join(f"{k}: {v}" for k, v in sorted(mitigations.items())), 4000)
        if isinstance(mitigations, dict)
        else None,
    }
