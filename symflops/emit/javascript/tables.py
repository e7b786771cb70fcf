"""The tables of an estimator in JavaScript."""

from __future__ import annotations

import json
from collections.abc import Sequence

from symflops.emit.code.language import Language
from symflops.emit.code.whole_numbers import DENOMINATOR
from symflops.emit.javascript.printer import JavaScriptPrinter
from symflops.model.program import Field

READ = {"flag": "$flag({})", "rational": "{}[0]", DENOMINATOR: "{}[1]"}
ABSENT = {"number": "{} ?? 0n", "count": "{} ?? 0n", "list": "{} ?? $nothing"}


class JavaScript(Language):
    """Statements and rows in JavaScript."""

    def printer(self) -> JavaScriptPrinter:
        return JavaScriptPrinter()

    def assigned(self, name: str, text: str) -> str:
        return f"const {name} = {text};"

    def remark(self, text: str) -> str:
        return f"// {text}"

    def size(self, field: Field) -> str:
        kinds = {**READ, **ABSENT} if field.nullable else READ
        return kinds.get(field.kind, "{}").format(f"sizes.{field.attribute}")

    def given(self, field: Field) -> str:
        return f"$given(sizes.{field.attribute})"

    def vector(self, cells: Sequence[str]) -> str:
        return f"[{', '.join(cells)}]"

    def choice(self, useful: str, executed: str) -> str:
        return f'pairs === "useful" ? {useful} : {executed}'

    def line(
        self, path: str, amount: str, counts: tuple[str, str], gradients: Sequence[str], again: str, what: str
    ) -> list[str]:
        return [
            f"[{json.dumps(path)},",
            f"{amount},",
            *(f"{count}," for count in counts),
            f"{self.vector(gradients)},",
            f"{again}],",
        ]

    def lines_at(self, path: str, block: str) -> str:
        return f"...$at({json.dumps(path)}, {block}),"

    def count(self, name: str, elements: str) -> list[str]:
        return [f"[{json.dumps(name)},", f"{elements}],"]

    def counts_at(self, path: str, block: str) -> str:
        return f"...$at({json.dumps(path)}, {block}),"
