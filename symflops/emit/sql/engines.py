"""What SQL engines have of their own: one table of words each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WIDE_BITS = 126
"""The bits of a whole number with 38 digits, which the wide type of each engine holds."""
ROW_BITS = 32
"""The bits of the number of rows that a sum is exact for."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The words of one engine.

    Attributes:
        quote: The mark around identifiers.
        wide: The type of whole numbers beyond 64 bits.
        quotient: The quotient of whole numbers of 64 bits, which divide.
        wide_quotient: The same for the wide type.
        halves: The upper and the lower 32 bits of a whole number of 64 bits, if a sum of such numbers wraps.
        file: A Parquet file as a table, with the mark that a path cannot hold; "" if the engine reads none.
    """

    quote: str
    wide: str
    quotient: str
    wide_quotient: str
    halves: tuple[str, str] | None
    file: str

    def name(self, text: str) -> str:
        """An identifier."""
        return f"{self.quote}{text.replace(self.quote, 2 * self.quote)}{self.quote}"

    def table(self, text: str) -> str:
        """A Parquet file, or a table: ``schema.table``."""
        if text.endswith((".parquet", "/*")) and self.file:
            mark = "'" if "'" in self.file else "`"
            return self.file.format(text.replace(mark, 2 * mark))
        return ".".join(map(self.name, text.split(".")))


ENGINES: Mapping[str, Engine] = {
    "duckdb": Engine('"', "HUGEINT", "({0} // {1})", "({0} // {1})", None, "read_parquet('{0}')"),
    "spark": Engine(
        "`", "DECIMAL(38, 0)", "({0} DIV {1})", "CAST({0} / {1} AS DECIMAL(38, 0))",
        ("shiftright({0}, 32)", "({0}) & 4294967295"), "parquet.`{0}`",
    ),
    "postgres": Engine('"', "NUMERIC", "({0} / {1})", "div({0}, {1})", None, ""),
}  # fmt: skip
