"""Tables in columns, for pandas, polars and Arrow. Without any of these they are dictionaries of lists."""

from __future__ import annotations

import csv
import datetime
import html
import importlib
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from switchcost._program import printable
from switchcost.declared import COLUMNS, FACTS

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


_KIND_OF = {column.name: column.kind for column in COLUMNS} | {fact.name: fact.kind for fact in FACTS}
_UNIT_OF = {column.name: column.unit for column in COLUMNS} | {fact.name: fact.unit for fact in FACTS}
#: Of what a newer program counts, by the end of the name.
_UNITS = {"ns": "ns", "us": "us", "bytes": "bytes", "ghz": "GHz", "share": "share", "hz": "Hz", "ticks": "ticks"}
#: A row of `_repr_html_` beyond this many is left out.
_MOST_ROWS = 20

# Types of the libraries by the program's kinds; those that have parameters are made where they are used.
_ARROW = {"integer": "int64", "float": "float64", "boolean": "bool_", "text": "string"}
_POLARS = {"integer": "Int64", "float": "Float64", "boolean": "Boolean", "text": "String"}
_PANDAS = {
    "integer": "Int64",
    "float": "float64",
    "boolean": "boolean",
    "text": "string",
    "time": "datetime64[ns, UTC]",
}


def needed(module: str, extra: str) -> Any:
    """A package of others. Raises ImportError that says how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(f"{error.name} is not installed: pip install 'switchcost[{extra}]'") from error


def kind(column: str) -> str:
    """Kind of a column's values: integer, float, boolean, text, integers (a list) or time (UTC)."""
    return _KIND_OF.get(column) or ("integer" if unit(column) in ("ns", "us", "bytes") else "text")


def is_known(column: str) -> bool:
    """Whether the kind of the column's values is said here, and not guessed by its name."""
    return column in _KIND_OF


def arrow_type(column: str) -> pyarrow.DataType:
    """Arrow's type of a column."""
    pa = needed("pyarrow", "arrow")
    of = kind(column)
    if of == "time":
        return pa.timestamp("us", tz="UTC")
    return pa.list_(pa.int64()) if of == "integers" else getattr(pa, _ARROW[of])()


def unit(column: str) -> str | None:
    """Unit of a column, as `ns` of `elapsed_ns`; none of counts and words."""
    return _UNIT_OF[column] or None if column in _UNIT_OF else _UNITS.get(column.rsplit("_", 1)[-1])


class Table:
    """Columns by name, all of one length. What could not be read is None, never 0.

    `to_pandas()`, `to_polars()`, `to_arrow()` need the package that they are named for. Whatever takes Arrow's
    stream takes the table as it is: `polars.DataFrame(table)`, `duckdb.sql("from table")`, `pyarrow.table(table)`.
    """

    def __init__(self, columns: Mapping[str, list[Any]]) -> None:
        self._columns = dict(columns)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns that have one."""
        return {name: of for name in self._columns if (of := unit(name))}

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def __getitem__(self, column: str) -> list[Any]:
        return self._columns[column]

    def rows(self) -> list[dict[str, Any]]:
        """The rows, each by column."""
        return [dict(zip(self._columns, row, strict=True)) for row in zip(*self._columns.values(), strict=True)]

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns; lists of the same length."""
        return dict(self._columns)

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table: int64, double, bool, string, list<int64>, timestamp[us, UTC]; units are in the metadata."""
        pa = needed("pyarrow", "arrow")
        units = {name: {"unit": of} for name, of in self.units.items()}
        fields = [pa.field(name, arrow_type(name), metadata=units.get(name)) for name in self._columns]
        return pa.table(self._columns, schema=pa.schema(fields))

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame: Int64, float64, boolean, string, datetime64[ns, UTC], so that what is missing stays missing.

        `attrs` has the columns' units and the names of the runs.
        """
        pd = needed("pandas", "pandas")
        types = {name: _PANDAS.get(kind(name), "object") for name in self._columns}
        columns = {name: pd.Series(of, dtype=types[name]) for name, of in self._columns.items()}
        frame: pandas.DataFrame = pd.DataFrame(columns)
        frame.attrs.update(units=self.units, runs=list(dict.fromkeys(self._columns.get("run", []))))
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A data frame: Int64, Float64, Boolean, String, List(Int64), Datetime(us, UTC)."""
        pl = needed("polars", "polars")
        types: dict[str, Any] = {of: getattr(pl, name) for of, name in _POLARS.items()}
        types |= {"integers": pl.List(pl.Int64), "time": pl.Datetime("us", "UTC")}
        frame: polars.DataFrame = pl.DataFrame(
            self._columns, schema={name: types[kind(name)] for name in self._columns}
        )
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<switchcost.Table: {len(self)} rows, {len(self._columns)} columns>"

    def _repr_html_(self) -> str:
        return to_html(self)


def of_csv(text: str, first: Mapping[str, Any] | None = None, text_columns: Collection[str] = ()) -> Table:
    """A table of the program's CSV; `first` are columns of one value before it. Empty fields are None.

    `text_columns` are taken as text, whatever their names say.

    Raises ValueError with the column where a field is not what its column holds.
    """
    # The slices of a sample are one field, which may be longer than the module's limit.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    columns: dict[str, list[Any]] = {name: [value] * len(body) for name, value in (first or {}).items()}
    for at, name in enumerate(header):
        is_text = name in text_columns
        columns[name] = [(row[at] or None) if is_text else _value(name, row[at]) for row in body]
    return Table(columns)


def joined(tables: Iterable[Table]) -> Table:
    """All rows below each other. A column that one of them lacks is None there."""
    parts = list(tables)
    columns: dict[str, list[Any]] = {name: [] for part in parts for name in part.columns}
    for part in parts:
        given = part.to_dict()
        for name, values in columns.items():
            values.extend(given.get(name) or [None] * len(part))
    return Table(columns)


def parse_time(text: object, years: range = range(1, 10_000)) -> datetime.datetime:
    """A point in time as the program writes it, such as 2026-11-24T03:36:56Z, in UTC; raises ValueError, also for one
    that is not in these years."""
    try:
        time = datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00")).astimezone(datetime.timezone.utc)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"no time: {printable(str(text), 40)!r}") from error
    if time.year not in years:
        raise ValueError(f"in the year {time.year}")
    return time


def _int64(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError("more than 64 bits")
    return number


#: What makes a value of text, by kind.
_READS: dict[str, Callable[[str], Any]] = {
    "integer": _int64,
    "float": float,
    "boolean": lambda text: text == "true",
    "integers": lambda text: [_int64(word) for word in text.split()],
}


def _value(column: str, text: str) -> Any:
    of = kind(column)
    try:
        return _READS.get(of, str)(text) if text else None
    except ValueError as error:
        raise ValueError(f"column {column}: {text[:40]!r} is no {of}") from error


def to_html(table: Table, only: Sequence[str] | None = None) -> str:
    """The table in HTML, with its first rows."""
    columns = [name for name in only or table.columns if name in table.columns]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    rows = zip(*(table[name][:_MOST_ROWS] for name in columns), strict=True)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_shown(v))}</td>" for v in row) + "</tr>" for row in rows)
    left_out = len(table) - _MOST_ROWS
    more = f"<p>{left_out} more rows</p>" if left_out > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    text = str(value)
    return text if len(text) <= 80 else text[:79] + "\N{HORIZONTAL ELLIPSIS}"
