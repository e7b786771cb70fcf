"""Context of the entry being placed, for findings, and the limits on the size of a structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from symflops.build.scopes import Frame
from symflops.formula.expression import Expression, names
from symflops.formula.words import said
from symflops.ir.spec import Entry, Repeat, Spec
from symflops.read.definition_order import early_value
from symflops.support.findings import Diagnostic, Label, SpecError

MAX_CALLS = 4


class Ahead(NamedTuple):
    """The entries of a body (``region``) from ``position`` on."""

    region: Sequence[Entry]
    position: int


class Surroundings:
    """Calls and groups around the entry that is being added to the graph, outermost first, for findings.

    Attributes:
        calls: The block calls around the entry.
        unrolled: (repeat, number of iterations) of the unrolled repeats around the entry.
        ahead: The entries that follow it, and those that follow each entry around it in the same document or block.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.calls: list[Label] = []
        self.unrolled: list[tuple[Repeat, int]] = []
        self.ahead: list[Ahead] = []
        self._sizes = {key: size.name.text for size in spec.sizes for key in size.keys}

    def explained(self, found: Diagnostic, entry: Entry, frame: Frame) -> Diagnostic:
        """Extend a finding about ``entry``.

        The finding then tells the later entry that binds an unknown value, the size behind an unknown field of the config, and
        the block calls around ``entry``.
        """
        if found.code == "unknown-value":
            found = early_value(found, entry, frame.values, [region[position:] for region, position in self.ahead[::-1]])
        if found.code == "unknown-size" and found.span is not None and found.span.text in self._sizes:
            hint = f"the config's '{found.span.text}' is the size '{self._sizes[found.span.text]}' here"
            found = replace(found, hint=hint)
        return replace(found, also=(*found.also, *self.calls[:-MAX_CALLS:-1])) if self.calls else found

    def too_large(self, message: str) -> Diagnostic:
        """The finding about too many operators, located at the longest unrolled repeat or the outermost call."""
        if not self.unrolled:
            place = self.calls[0].span if self.calls else None
            hint = "a block is written out wherever it is called: one that calls another twice doubles it"
            return Diagnostic("structure-too-large", message, place, hint, also=tuple(self.calls[1:4]))
        repeat, count = max(self.unrolled, key=lambda item: item[1])
        place, fields = repeat.span, []
        if repeat.count is not None:
            place = repeat.count.span
            fields = [f"'{field}'" for field in dict.fromkeys(fields_behind(repeat.count, self.spec))]
        source = f"the config says how often with {' and '.join(fields)}; " if fields else ""
        hint = f"{source}no published structure has a quarter of that"
        message = f"{message}: this is written out, and repeats {said(count)} times"
        return Diagnostic("structure-too-large", message, place, hint)


def fields_behind(expression: Expression, spec: Spec) -> Iterator[str]:
    """Config fields that an expression depends on, directly or through derived sizes."""
    derived = {letter.text: formula for letter, formula in spec.derived}
    keys = {size.name.text: size.keys[0] for size in spec.sizes}
    for name, _ in names(expression):
        if name in keys:
            yield keys[name]
        elif name in derived:
            yield from fields_behind(derived.pop(name), spec)


MAX_UNROLLED = 512
MAX_OPERATORS = 6_000
"""Four times the largest published structure (checked by a test); a structure of this size is derived within seconds."""


class OperatorLimit:
    """Counts the operators of a graph; no entry is added to a graph with more than ``MAX_OPERATORS``."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.operators = 0
        self.exceeded: Diagnostic | None = None

    def grow(self, operators: int = 1) -> None:
        """Add ``operators`` to the count; call this before adding them to the graph.

        Raises:
            SpecError: the count exceeds ``MAX_OPERATORS``.
        """
        self.operators += operators
        if self.operators > MAX_OPERATORS:
            message = f"the structure has more than {MAX_OPERATORS:,} operators"
            self.exceeded = self.exceeded or self.surroundings.too_large(message)
            raise SpecError([self.exceeded])
