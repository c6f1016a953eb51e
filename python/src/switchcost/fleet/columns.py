"""The columns of a dataset's tables: those that the program declares, and facts of machines."""

from __future__ import annotations

import json

import pyarrow as pa

from ..machine import FACTS
from ..tables import DECLARED, arrow_type, is_known, unit

KEY = {
    "host": "name of the host",
    "run": "id of the run, unique on a host",
    "started": "when the run started, UTC",
}
# Columns of a run's tables that a dataset has in `machines`.
_OF_MACHINES = ("name",)
# What the program writes slice by slice is most of a run, and not kept.
_NOT_KEPT = ("slices_ns", "latency_quanta_ns", "throughput_quanta_ns")


def _declared(table: str) -> dict[str, str]:
    """Names and meanings of the columns that the program declares for a table."""
    left_out = (*KEY, *_OF_MACHINES, *_NOT_KEPT)
    return {of.name: of.meaning for of in DECLARED if table in of.tables and of.name not in left_out}


COLUMNS = {
    "samples": {**KEY, **_declared("samples")},
    "cases": {**KEY, **_declared("cases")},
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
