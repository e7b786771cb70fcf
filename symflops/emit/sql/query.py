"""SQL queries over a table of lengths: sums for every model, convention and regime, and cost per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symflops.emit.code.infix import UNARY
from symflops.emit.sql.sums import ROW_BITS, Engine, Items, Rows, SqlPrinter, Total, bounds, sql_line
from symflops.formula.formula import Apply, Bracket, Num, walk

NUMBER = "symflops_row"
NARROW_BITS = 61  # of intermediate values: a quotient adds its divisor once more


class Writer:
    """Writer of queries for one engine over one table.

    Args:
        engine: The SQL dialect.
        table: The table, as it is written after FROM.
        longest: The largest valid length of each column.
        by: The columns by which sums are grouped.
        checked: Whether the columns are known to contain only integers; if not, the query skips rows with other numbers.
    """

    def __init__(self, engine: Engine, table: str, longest: Mapping[str, int], by: Sequence[str] = (), checked: bool = False):
        self.engine, self.table, self.longest, self.by, self.checked = engine, table, longest, by, checked

    def aggregate(self, totals: Sequence[Total]) -> str:
        """Return the query of the sums ``totals``; its result has one row per group of rows of the table."""
        groups = list(dict.fromkeys(total.rows for total in totals))
        pairs = [(rows, name) for rows in groups for name in rows.columns]
        names = {pair: f"c{place}" for place, pair in enumerate(pairs)}
        alone = len(groups) == 1
        inner = [f"{self.engine.name(name)} AS g{place}" for place, name in enumerate(self.by)]
        outer = [f"g{place} AS {self.engine.name(name)}" for place, name in enumerate(self.by)]
        outer.append(f"(SELECT count(*) FROM {self.table}) AS n_rows")
        for place, rows in enumerate(groups):
            whens = [
                self.integer(name) if alone else f"CASE WHEN symflops_{place} THEN {self.integer(name)} END"
                for name in rows.columns
            ]
            inner += [f"{value} AS {names[rows, name]}" for value, name in zip(whens, rows.columns, strict=True)]
            inner += [] if alone else [f"symflops_{place}"]
            outer.append(f"{'count(*)' if alone else f'count(CASE WHEN symflops_{place} THEN 1 END)'} AS {rows.count}")
            if len(rows.sets) > 1:
                outer += [f"count({names[rows, items.columns[0]]}) AS {rows.counts(items)}" for items in rows.sets]
        for total in dict.fromkeys(totals):
            if not isinstance(total.formula, Num):
                columns = {name: names[total.rows, name] for name in total.items.columns}
                outer += self.summed(
                    total, columns, "" if alone and len(total.rows.sets) == 1 else columns[total.items.columns[0]]
                )
        return "\n".join(["SELECT", *commas(outer), *self.source(groups, inner), *self.grouped()])

    def source(self, groups: Sequence[Rows], cells: Sequence[str]) -> list[str]:
        """Return the FROM clause: ``cells`` of those rows of the table that models can run.

        ``groups`` has one entry per set of rows. With several, all rows are kept, and cells of rows that cannot run are NULL.
        """
        lines = ["FROM (", "  SELECT", *(f"  {line}" for line in commas(cells))]
        if len(groups) == 1:
            return [*lines, f"  FROM {self.table}", f"  WHERE {self.runs(groups[0])}", ") AS lengths"]
        kept = dict.fromkeys([*self.by, *(name for rows in groups for name in rows.columns)])
        flags = commas(
            [*map(self.engine.name, kept), *(f"{self.runs(rows)} AS symflops_{place}" for place, rows in enumerate(groups))]
        )
        return [
            *lines,
            "  FROM (",
            "    SELECT",
            *(f"    {line}" for line in flags),
            f"    FROM {self.table}",
            "  ) AS flagged",
            ") AS lengths",
        ]

    def grouped(self) -> list[str]:
        """Return the GROUP BY and ORDER BY clauses; [] without columns to group by."""
        places = ", ".join(f"g{place}" for place in range(len(self.by)))
        return [f"GROUP BY {places}", f"ORDER BY {places}"] if places else []

    def summed(self, total: Total, names: Mapping[str, str], guard: str) -> list[str]:
        """Print a sum with its formula as a comment, as two sums of 32-bit halves if 64 bits could overflow.

        ``names`` maps columns to names in the query. Rows in which the column ``guard`` is NULL are skipped.
        """
        bound = bounds(total.formula, self.longest)
        wide = bound.most >= 2**NARROW_BITS
        text = SqlPrinter(self.engine, names, wide).text(total.formula)
        if guard and any(isinstance(part, (Apply, Bracket)) for part in walk(total.formula)):
            text = f"CASE WHEN {guard} IS NOT NULL THEN {text} END"  # LEAST and GREATEST ignore NULL
        remark = f"  -- {sql_line(total.formula)}"
        if wide or self.engine.halves is None or bound.value < 2 ** (63 - ROW_BITS):
            return [f"sum({text}) AS {total.name}{remark}"]
        upper, lower = (half.format(text) for half in self.engine.halves)
        return [f"sum({upper}) AS {total.name}_hi{remark}, upper bits", f"sum({lower}) AS {total.name}_lo"]

    def integer(self, name: str) -> str:
        """Cast a column to a 64-bit integer."""
        return f"CAST({self.engine.name(name)} AS BIGINT)"

    def runs(self, rows: Rows) -> str:
        """Print the condition that a model can run a row."""
        if len(rows.sets) == 1:
            return self.fits(rows.sets[0])
        some = " OR ".join(f"{self.engine.name(name)} IS NOT NULL" for name in rows.columns)
        each = " AND ".join([*(f"({self.fits(items)} OR {self.absent(items)})" for items in rows.sets), f"({some})"])
        if not rows.conditions:
            return each
        held = f"({self.held(rows.conditions, rows.columns)})"
        return f"CASE WHEN {each} THEN {' OR '.join([*map(self.absent, rows.sets), held])} ELSE FALSE END"

    def absent(self, items: Items) -> str:
        """Print the condition that a row has no length in any column of an index set."""
        return f"({' AND '.join(f'{self.engine.name(name)} IS NULL' for name in items.columns)})"

    def fits(self, items: Items) -> str:
        """Print the condition that a model can run an item: valid lengths that meet all conditions."""
        names = [self.engine.name(name) for name in items.columns]
        ranges = [f"{name} BETWEEN 0 AND {self.longest[column]}" for name, column in zip(names, items.columns, strict=True)]
        if not self.checked:
            ranges += [f"floor({name}) = {name}" for name in names]
        if not items.conditions:
            return " AND ".join(ranges)
        return f"CASE WHEN {' AND '.join(ranges)} THEN {self.held(items.conditions, items.columns)} ELSE FALSE END"

    def held(self, conditions: Sequence[Bracket], names: Sequence[str]) -> str:
        """Print conditions on columns, joined by AND."""
        columns = {name: self.integer(name) for name in names}
        held = []
        for one in conditions:
            wide = any(bounds(part, self.longest).most >= 2**NARROW_BITS for part in one.arguments)
            held.append(SqlPrinter(self.engine, columns, wide).holds(one))
        return " AND ".join(held)

    def costs(
        self, models: Mapping[str, tuple[Rows, Sequence[tuple[Total, int]]]], kinds: Mapping[str, str], kept: Sequence[str]
    ) -> str:
        """Return the query of the cost of each row; it is NULL for rows that cannot run.

        Args:
            models: By cost column, the rows that the model can run, and (sum, cost of one unit) pairs.
            kinds: The SQL type of each cost column.
            kept: Columns of the table to copy.
        """
        cells = [self.engine.name(name) for name in dict.fromkeys(kept)]
        for name, (rows, terms) in models.items():
            parts = [self.cost(items, [one for one in terms if one[0].items == items]) for items in rows.sets]
            if len(parts) > 1:
                pairs = zip(rows.sets, parts, strict=True)
                parts = [f"CASE WHEN {self.absent(items)} THEN 0 ELSE {part} END" for items, part in pairs]
            cost = f"CASE WHEN {self.runs(rows)} THEN {' + '.join(parts)} END"
            cells.append(f"CAST({cost} AS {kinds[name]}) AS {self.engine.name(name)}")
        return "\n".join(["SELECT", *commas(cells), f"FROM {self.table}"])

    def is_wide(self, terms: Sequence[tuple[Total, int]]) -> bool:
        """Whether the cost of ``terms``, or an intermediate value of it, could overflow 64 bits."""
        most = sum(abs(cost) * bounds(total.formula, self.longest).most for total, cost in terms)
        return bool(most >= 2**NARROW_BITS)

    def cost(self, items: Items, terms: Sequence[tuple[Total, int]]) -> str:
        """Print the expression of the cost of an item; ``terms`` are (sum, cost of one unit of it)."""
        columns = {name: self.integer(name) for name in items.columns}
        printer = SqlPrinter(self.engine, columns, self.is_wide(terms))
        texts = []
        for total, cost in terms:
            if isinstance(total.formula, Num):
                texts.append(str(cost * total.formula.value))
            else:
                texts.append(f"{cost} * {printer.inside(total.formula, UNARY)}")
        return " + ".join(texts) or "0"

    def first_unfit(self, rows: Rows) -> str:
        """Return the query of the first row that a model cannot run: its number, and its columns of lengths."""
        cells = ", ".join(map(self.engine.name, rows.columns))
        numbered = f"SELECT row_number() OVER () - 1 AS {NUMBER}, {cells} FROM {self.table}"
        return f"SELECT {NUMBER}, {cells} FROM ({numbered}) AS numbered WHERE ({self.runs(rows)}) IS NOT TRUE LIMIT 1"


def commas(cells: Sequence[str]) -> list[str]:
    """Print cells as lines; commas go before trailing comments."""
    lines = []
    for place, cell in enumerate(cells):
        text, mark, remark = cell.partition("  -- ")
        lines.append(f"  {text}{',' if place + 1 < len(cells) else ''}{mark}{remark}")
    return lines
