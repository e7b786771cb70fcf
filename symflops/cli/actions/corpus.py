"""Scans a table of lengths with DuckDB, and writes the cost of each row. Constant memory: tables are streamed in batches."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from symflops.analysis.corpus import Priced, all_totals
from symflops.emit.sql.query import NUMBER, Writer
from symflops.emit.sql.sums import ENGINES, Engine, lengths_up_to
from symflops.support.errors import SymflopsError, did_you_mean

DUCKDB = ENGINES["duckdb"]
MEMORY = "400MB"  # larger groupings go to temporary files
READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".json": "read_json", ".jsonl": "read_json"}
ARROW = (".arrow", ".feather", ".ipc")
WHOLE = {f"{sign}{kind}" for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT") for sign in ("", "U")}


class Table:
    """A table of lengths on disk: Parquet, CSV, JSON or Arrow, one file, several, or a folder of Parquet.

    Raises:
        SymflopsError: DuckDB is not installed, or cannot read the table.
    """

    def __init__(self, path: str) -> None:
        try:
            import duckdb
        except ImportError:
            told = "pip install 'symflops[corpus]', or print the query for an engine of yours with --sql"
            raise SymflopsError(f"a table is read with DuckDB, which is not installed: {told}") from None
        self.duckdb, self.path = duckdb, path
        self.connection = duckdb.connect()
        self.connection.execute(f"SET memory_limit = '{MEMORY}'")
        self.connection.execute(f"SET temp_directory = {quoted(tempfile.gettempdir())}")
        self.name = self._source()
        with self.translated_errors():
            described = self.connection.execute(f"DESCRIBE SELECT * FROM {self.name}").fetchall()
        self.types: dict[str, str] = {row[0]: row[1] for row in described}

    def _source(self) -> str:
        path = f"{self.path}/**/*.parquet" if Path(self.path).is_dir() else self.path
        ending = Path(path).suffix.lower()
        if ending in ARROW:
            try:
                import pyarrow.dataset

                self.connection.register("arrow_table", pyarrow.dataset.dataset(path, format="ipc"))
            except ImportError:
                raise SymflopsError("Arrow files are read with pyarrow: pip install 'symflops[corpus]'") from None
            except (OSError, ValueError) as error:  # pyarrow's own errors are of these types
                raise SymflopsError(f"{path}: {str(error).splitlines()[0]}") from None
            return "arrow_table"
        if ending not in READERS:
            raise SymflopsError(
                f"{path}: a table is a file or pattern that ends in {', '.join((*READERS, *ARROW))}, or a folder"
            )
        return f"{READERS[ending]}({quoted(path)})"

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Context manager that converts errors of DuckDB inside the context to :class:`SymflopsError`.

        Raises:
            SymflopsError: has the first line of DuckDB's message.
        """
        try:
            yield
        except self.duckdb.Error as error:
            raise SymflopsError(f"{self.path}: {str(error).splitlines()[0]}") from None

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Run a query; return each row of the result as a dict from column name to value."""
        with self.translated_errors():
            found = self.connection.execute(query)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def check(self, columns: Sequence[str], by: Sequence[str]) -> None:
        """Check that all columns exist, and that columns of lengths hold whole numbers.

        Raises:
            SymflopsError: a column is missing, or has another type.
        """
        for name in (*columns, *by):
            if name not in self.types:
                hint = did_you_mean(name, self.types, f"it has {', '.join(list(self.types)[:12])}")
                raise SymflopsError(f"{self.path} has no column '{name}': {hint}")
            if name in columns and self.types[name] not in WHOLE:
                raise SymflopsError(f"{self.path}: column '{name}' is {self.types[name]:.60}, and lengths are whole numbers")


def quoted(text: str) -> str:
    """Quote ``text`` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


class Scan:
    """A scan of a table: one query computes all sums that ``models`` need.

    ``rows`` is the result of the query, with one row for each combination of values in the columns ``by``.
    """

    def __init__(self, table: Table, models: Sequence[Priced], by: Sequence[str] = ()) -> None:
        self.table, self.models = table, models
        totals = all_totals(models)
        table.check(list(dict.fromkeys(name for model in models for names in model.columns.values() for name in names)), by)
        self.longest = lengths_up_to(totals)
        self.writer = Writer(DUCKDB, table.name, self.longest, by, checked=True)
        self.rows = table.rows(self.writer.aggregate(totals))

    def first_unfit(self, model: Priced) -> str:
        """Describe the first row that a model cannot run, with the reason."""
        found = self.table.rows(self.writer.first_unfit(model.rows))
        if not found:
            return "no row"
        number = found[0].pop(NUMBER)
        return f"row {number}: {self._reason(model, found[0])}"

    def _reason(self, model: Priced, values: Mapping[str, Any]) -> str:
        for name, value in values.items():
            if value is not None and not 0 <= value <= self.longest[name]:
                return f"'{name}' is {value:,}, not between 0 and {self.longest[name]:,}"
        batch: dict[str, Any] = {}
        for items in model.model.sets:
            names = [name for name, _, _ in model.model.sets[items] if name in model.columns]
            if all(values[column] is None for name in names for column in model.columns[name]) and len(model.sets) > 1:
                batch |= {name: [] for name in names}
                continue
            for name in names:
                entry = [values[column] for column in model.columns[name]]
                if None in entry:
                    return f"'{model.columns[name][entry.index(None)]}' is null"
                batch[name] = [entry if len(entry) > 1 else entry[0]]
        try:
            model.model.moments(**batch)
        except SymflopsError as error:
            return str(error).removeprefix("item 0 of ")
        return "no column has a length"

    def costs(self, path: str, kept: Sequence[str]) -> dict[str, str]:
        """Write the cost of each row to the Parquet file ``path``; map each cost column to its SQL type.

        A cost covers both passes; it is null for rows that the model cannot run. A cost column has 64 bits if all costs
        fit, else 38 decimal digits. The columns ``kept`` of the table are copied to the file.
        """
        models = {name: (model.rows, model.terms()) for name, model in zip(cost_names(self.models), self.models, strict=True)}
        writer = Writer(DUCKDB, self.table.name, self._largest(), checked=True)
        wide = {name: model for name, model in models.items() if writer.is_wide(model[1])}
        kinds = dict.fromkeys(models, "BIGINT") | self._kinds(writer, wide)
        query = writer.costs(models, kinds, kept)
        target = Path(path)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        os.close(handle)
        try:
            with self.table.translated_errors():
                self.table.connection.execute(f"COPY ({query}) TO {quoted(temporary)} (FORMAT parquet)")
            Path(temporary).chmod(0o644)
            Path(temporary).replace(target)
        finally:
            Path(temporary).unlink(missing_ok=True)
        return kinds

    def _largest(self) -> dict[str, int]:
        """Map each column to its largest valid length; these lengths bound the cost of every row."""
        names = {name: DUCKDB.name(name) for name in self.longest}
        cells = [f"max({name}) FILTER ({name} BETWEEN 0 AND {self.longest[key]}) AS {name}" for key, name in names.items()]
        (found,) = self.table.rows(f"SELECT {', '.join(cells)} FROM {self.table.name}")
        return {name: int(value or 0) for name, value in found.items()}

    def _kinds(self, writer: Writer, models: Mapping[str, tuple[Any, Any]]) -> dict[str, str]:
        """Map each cost column in ``models`` to the SQL type that its largest cost needs."""
        if not models:
            return {}
        most = writer.costs(models, dict.fromkeys(models, "HUGEINT"), [])
        cells = ", ".join(f"max({DUCKDB.name(name)}) AS {DUCKDB.name(name)}" for name in models)
        (largest,) = self.table.rows(f"SELECT {cells} FROM ({most}) AS costs")
        return {name: "BIGINT" if (value or 0) < 2**63 else "DECIMAL(38, 0)" for name, value in largest.items()}


def cost_names(models: Sequence[Priced]) -> list[str]:
    """Return a cost column name per model: ``flops`` for a single one, else with regime and convention."""
    if len(models) == 1:
        return ["flops"]
    found: list[str] = []
    for priced in models:
        model = priced.model
        name = f"flops {model.name} {model.regime} {model.convention}"
        found.append(f"{name} {found.count(name) + 1}" if name in found else name)
    return found


def query_for(engine: str, table: str, models: Sequence[Priced], by: Sequence[str]) -> str:
    """Return the SQL query, for one engine, of all sums that ``models`` need, grouped by columns ``by``."""
    words: Engine = ENGINES[engine]
    totals = all_totals(models)
    return Writer(words, words.table(table), lengths_up_to(totals), by).aggregate(totals)
