"""The closed forms of the parts of the work, and the regimes and conventions that share them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from symflops.emit.grouping import grouped
from symflops.emit.rendering import tuple_of
from symflops.evaluate.item_analysis import ORDER, part_of
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import ZERO, Bracket, Formula, symbols
from symflops.formula.sparse import Poly
from symflops.ir.program import Line, Program

Form = tuple[tuple[str, Formula], ...]
"""A closed form: (amount name, coefficient) pairs."""
Row = tuple[Form, Form, Form]
"""Closed forms of the forward, backward and recomputed work."""
Rows = dict[str, Row]
NOTHING: Row = ((), (), ())


class Forms:
    """Builder and cache of the closed forms of parts of the work."""

    def __init__(self, program: Program) -> None:
        lines = [line for regime in program.regimes for some in (regime.lines, *dict(regime.own).values()) for line in some]
        counts = dict.fromkeys(count for line in lines for count in (line.forward, *line.backward, line.recomputed))
        order = [name for formula in counts for name in symbols(formula)]
        order += [*(one.letter for one in program.definitions), *(one.letter for one in program.fields)]
        atoms = {atom for one in counts for monomial in expanded(one).terms for atom, _ in monomial}
        self.writer = Writer(order, frozenset(atom for atom in atoms if not isinstance(atom, Bracket)))
        self.known: dict[object, Form] = {}

    def rows(self, lines: Sequence[Line]) -> Rows:
        """Map each part of the work, such as attention, to its closed forms; parts without work are omitted."""
        parts = grouped((part_of(line), line) for line in lines)
        found = {part: self.row(parts[part]) for part in ORDER if part in parts}
        return {part: row for part, row in found.items() if row != NOTHING}

    def row(self, lines: Sequence[Line]) -> Row:
        """Return the closed forms (forward, backward, recomputed) of the contractions ``lines`` in total."""
        forward = self.form([(line.amount.name, line.unit, line.forward) for line in lines])
        backward = self.form([(line.amount.name, line.unit, count) for line in lines for count in line.backward])
        return forward, backward, self.form([(line.amount.name, line.unit, line.recomputed) for line in lines])

    def form(self, work: Sequence[tuple[str, Formula, Formula]]) -> Form:
        """Return the closed form of work, given per product as (amount, unit, number of executions)."""
        key = tuple(work)
        if key not in self.known:
            units = grouped(((amount, unit), count) for amount, unit, count in work if count != ZERO)
            sums = grouped(
                (amount, expanded(unit) * Poly.total(map(expanded, counts))) for (amount, unit), counts in units.items()
            )
            totals = ((amount, Poly.total(some)) for amount, some in sums.items())
            self.known[key] = tuple((amount, self.writer.shortest(total)) for amount, total in totals if total)
        return self.known[key]


@dataclass
class Block:
    """Closed forms by part of the work, which replace those of earlier blocks if a condition holds.

    The condition is Python code; that of the first block is empty and always holds.
    """

    condition: str
    rows: Rows = field(default_factory=dict)


def cases(program: Program) -> dict[tuple[str, str], Rows]:
    """Map (regime, convention) to the closed forms of each part of the work."""
    forms, unseen = Forms(program), dict(program.unseen)
    found = {}
    for regime in program.regimes:
        for name in program.conventions:
            lines = [line for line in regime.under(name) if line.seen or unseen[name]]
            found[regime.name, name] = forms.rows(lines)
    return found


def one_of(name: str, chosen: Sequence[str]) -> str:
    """Print the test that ``name`` is one of ``chosen``."""
    return f"{name} == {json.dumps(chosen[0])}" if len(chosen) == 1 else f"{name} in {tuple_of(chosen)}"


@dataclass
class Kinds:
    """Groups of regimes that have the same closed forms in all passes that both run.

    A group is called a kind; ``members`` are the kinds, each a list of regimes.
    """

    rows: Mapping[tuple[str, str], Rows]
    regimes: Sequence[str]
    conventions: Sequence[str]

    def __post_init__(self) -> None:
        self.members: list[list[str]] = []
        for regime in self.regimes:
            for kind in self.members:
                if all(self.joins(regime, kind, convention) for convention in self.conventions):
                    kind.append(regime)
                    break
            else:
                self.members.append([regime])

    def runs(self, regime: str, place: int) -> bool:
        """Whether a regime runs a pass under any convention.

        ``place`` is 0 for the forward pass, 1 for the backward pass, 2 for recomputation.
        """
        return any(row[place] for convention in self.conventions for row in self.rows[regime, convention].values())

    def joins(self, regime: str, kind: Sequence[str], convention: str) -> bool:
        """Whether the rows of a regime equal those of a kind in all passes that both run."""
        mine, theirs = self.rows[regime, convention], self.of(kind, convention)
        return mine.keys() == theirs.keys() and all(
            mine[part][0] == theirs[part][0] and all(self.alike(mine, theirs, part, place) for place in (1, 2)) for part in mine
        )

    @staticmethod
    def alike(mine: Rows, theirs: Rows, part: str, place: int) -> bool:
        """Whether ``mine`` and ``theirs`` have the same form for a part in a pass, or one lacks the pass.

        ``place`` is 1 for the backward pass, 2 for recomputation.
        """
        if not any(row[place] for row in mine.values()) or not any(row[place] for row in theirs.values()):
            return True
        return mine[part][place] == theirs[part][place]

    def of(self, kind: Sequence[str], convention: str) -> Rows:
        """Return the rows of a kind; backward and recomputed work are those of regimes that run these passes."""
        found: Rows = {}
        for regime in kind:
            for part, (forward, backward, again) in self.rows[regime, convention].items():
                _, known, before = found.get(part, NOTHING)
                found[part] = forward, known or backward, before or again
        return found

    def changed(self, kind: Sequence[str], before: Rows, after: Rows) -> Rows:
        """Return the rows of ``after`` that differ from those of ``before`` in a pass that the kind runs.

        For a part that ``after`` does not have, the row is empty.
        """
        passes = [0, *(place for place in (1, 2) if any(self.runs(regime, place) for regime in kind))]
        pairs = ((part, before.get(part, NOTHING), after.get(part, NOTHING)) for part in {**before, **after})
        return {part: new for part, old, new in pairs if any(old[place] != new[place] for place in passes)}

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of the first kind and convention, then those that differ in others, with a condition."""
        first, *others = self.conventions
        base = self.of(self.members[0], first)
        yield Block("", base)
        yield from (Block(one_of("regime", kind), self.changed(kind, base, self.of(kind, first))) for kind in self.members[1:])
        for convention in others:
            for kind in self.members:
                rows = self.changed(kind, self.of(kind, first), self.of(kind, convention))
                of = "" if len(self.members) == 1 else f" and {one_of('regime', kind)}"
                if rows:
                    yield Block(f"{one_of('convention', [convention])}{of}", rows)


def negated(name: str, chosen: Sequence[str]) -> str:
    """Print the test that ``name`` is none of ``chosen``."""
    return f"{name} != {json.dumps(chosen[0])}" if len(chosen) == 1 else f"{name} not in {tuple_of(chosen)}"
