"""The tables of an estimator in Python."""

from __future__ import annotations

from collections.abc import Sequence

from symflops.emit.code.language import Language
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.rendering import tuple_text
from symflops.model.program import Field

ABSENT = {"number": "{} or 0", "count": "{} or 0", "list": "_Null() if {0} is None else {0}"}


class Python(Language):
    """Statements and rows in Python."""

    def printer(self) -> PythonPrinter:
        return PythonPrinter()

    def assigned(self, name: str, text: str) -> str:
        return f"{name} = {text}"

    def remark(self, text: str) -> str:
        return f"# {text}"

    def size(self, field: Field) -> str:
        return (ABSENT.get(field.kind, "{}") if field.nullable else "{}").format(f"sizes.{field.attribute}")

    def given(self, field: Field) -> str:
        return f"sizes.{field.attribute} is not None"

    def vector(self, cells: Sequence[str]) -> str:
        return tuple_text(cells)

    def choice(self, useful: str, executed: str) -> str:
        return f'{useful} if pairs == "useful" else {executed}'

    def line(
        self, path: str, amount: str, counts: tuple[str, str], gradients: Sequence[str], again: str, what: str
    ) -> list[str]:
        return [
            f'("{path}",',
            f"{amount},",
            *(f"{count}," for count in counts),
            f"{tuple_text(gradients)},",
            f"{again}),",
            f"# {what}",
        ]

    def lines_at(self, path: str, block: str) -> str:
        return f'*_at("{path}", {block}),'

    def count(self, name: str, elements: str) -> list[str]:
        return [f'"{name}":', f"{elements},"]

    def counts_at(self, path: str, block: str) -> str:
        return f'**_inside("{path}", {block}),'
