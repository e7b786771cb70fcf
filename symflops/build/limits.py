"""How large a structure may be that is written out, and what is said of a larger one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symflops.diagnostics.findings import Diagnostic, Label
from symflops.model.spec import Repeat, Spec
from symflops.syntax.expression import Expression, names

MAX_UNROLLED = 512
MAX_OPERATORS = 8_000
"""Above four times as many as the largest published structure has (a test says so), below what takes seconds to derive."""


class Oversized(Exception):
    """A structure has too many operators to go on with. No entry is wrong by itself, so this passes them all."""

    def __init__(self, repeats: Sequence[tuple[Repeat, int]], calls: Sequence[Label]) -> None:
        super().__init__()
        self.repeats = tuple(repeats)
        self.calls = tuple(calls)

    def told(self, spec: Spec) -> Diagnostic:
        """The finding, at the longest repeat that was being written out, with the field that says how long it is."""
        message = f"the structure has more than {MAX_OPERATORS:,} operators"
        if not self.repeats:
            place = self.calls[0].span if self.calls else None
            hint = "a block is written out wherever it is called: one that calls another twice doubles it"
            return Diagnostic("structure-too-large", message, place, hint, also=self.calls[1:4])
        repeat, count = max(self.repeats, key=lambda item: item[1])
        place, fields = repeat.span, []
        if repeat.count is not None:
            place, fields = repeat.count.span, [f"'{field}'" for field in dict.fromkeys(fields_behind(repeat.count, spec))]
        said = f"the config says how often with {' and '.join(fields)}; " if fields else ""
        hint = f"{said}no published structure has a quarter of that"
        told = f"{message}: this is written out, and repeats {count} times"
        return Diagnostic("structure-too-large", told, place, hint)


def fields_behind(expression: Expression, spec: Spec) -> Iterator[str]:
    """The fields of a config that an expression rests on, those behind derived sizes included."""
    derived = {letter.text: formula for letter, formula in spec.derived}
    keys = {size.name.text: size.keys[0] for size in spec.sizes}
    for name, _ in names(expression):
        if name in keys:
            yield keys[name]
        elif name in derived:
            yield from fields_behind(derived.pop(name), spec)
