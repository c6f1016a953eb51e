"""The columns of a dataset's tables: those that the program declares, less what a dataset does not keep."""

from __future__ import annotations

import json

import pyarrow as pa

from .. import declared
from ..tables import arrow_type, is_known, unit

_FACTS = {fact.name: fact.meaning for fact in declared.FACTS if "machines" in fact.tables}
# The columns of all tables, by which they are joined.
KEY = {name: _FACTS[name] for name in ("host", "run", "started")}
# A column of a run's cases that a dataset has in `machines`.
NAME = "name"


def _columns(table: str) -> dict[str, str]:
    """Names and meanings of the columns that the program declares for a table, less those of a run.

    What the program writes slice by slice, in lists, is most of a run, and not kept.
    """
    kept = [column for column in declared.COLUMNS if table in column.tables and column.kind != "integers"]
    return {column.name: column.meaning for column in kept if column.name not in (*KEY, NAME)}


COLUMNS = {
    "samples": {**KEY, **_columns("samples")},
    "cases": {**KEY, **_columns("cases")},
    "machines": {**KEY, **_FACTS},
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
