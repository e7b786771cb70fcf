"""Work table of a generated module: closed forms by part of the model, summed into both passes.

Regimes and conventions with equal closed forms share them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from symflops.emit.code.infix import PRODUCT
from symflops.emit.code.sharing import Scope, named_parts
from symflops.emit.grouping import grouped
from symflops.emit.python.printer import PYTHON, WIDTH, filled, joined, statement
from symflops.emit.rendering import tuple_of
from symflops.evaluate.item_analysis import ORDER, part_of
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import ONE, ZERO, Bracket, Formula, symbols
from symflops.formula.sparse import Poly
from symflops.ir.program import Amount, Line, Program

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


class Work:
    """Printer of the function of a generated module that returns the work by part of the model."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.kinds = Kinds(cases(program), [one.name for one in program.regimes], program.conventions)
        self.blocks = list(self.kinds.blocks())
        forms = [form for block in self.blocks for row in block.rows.values() for form in row]
        used = {name for form in forms for name, _ in form}
        lines = [line for regime in program.regimes for some in (regime.lines, *dict(regime.own).values()) for line in some]
        self.amounts = {one.name: one for line in lines for one in [line.amount] if one.name in used}
        vectors = [formula for one in self.amounts.values() for _, formula in (*one.useful, *one.executed)]
        formulas = [formula for form in forms for _, formula in form]
        self.scope = Scope(program, PYTHON, [*vectors, *formulas])
        self.names: dict[str, str] = {}
        self.forms: dict[Form, str] = {}
        printed = [formula for block in self.blocks for row in block.rows.values() for formula in printed_of(row)]
        self.parts = named_parts([*vectors, *printed], self.scope.printer, self.scope.taken)
        for name in ("sizes", "m", "regime", "convention", "rows", "trained", "again", "ahead", "back"):
            self.scope.taken.add(name)

    def unused(self, wanted: str) -> str:
        """Turn ``wanted`` into a free identifier and reserve it."""
        name = re.sub(r"\W", "_", wanted)
        while name in self.scope.taken:
            name += "_"
        self.scope.taken.add(name)
        return name

    def lines(self) -> Iterator[str]:
        """Yield the statements of the function."""
        program = self.program
        yield "if regime not in REGIMES or convention not in CONVENTIONS:"
        yield '    raise ValueError(f"no regime {regime!r} under convention {convention!r}: {REGIMES}, {CONVENTIONS}")'
        yield from joined([*self.scope.statements, *(f"{name} = {text}" for name, text in self.parts)], WIDTH)
        for name, amount in self.amounts.items():
            self.names[name], statement = self.amount(amount)
            yield from joined([statement] if statement else [], WIDTH)
        for block in self.blocks:
            yield from self.block(block)
        yield from self.result(dict(program.shares))

    def amount(self, amount: Amount) -> tuple[str, str]:
        """Print an amount; return (expression, statement that assigns it).

        The statement is empty for an amount that is a single moment.
        """
        pairs = dict(self.program.pairs)
        useful = [name for name in self.program.conventions if pairs[name] == "useful"]
        texts = [self.vector(terms) for terms in (amount.useful, amount.executed)]
        chosen = texts if useful and len(useful) < len(self.program.conventions) else texts[:1] if useful else texts[1:]
        if len(set(chosen)) == 1:
            text = chosen[0]
            if re.fullmatch(r"m\.\w+", text):
                return text, ""
        else:
            text = f"{chosen[0]} if {one_of('convention', useful)} else {chosen[1]}"
        name = self.unused(amount.name)
        return name, f"{name} = {text}"

    def vector(self, terms: Sequence[tuple[int, Formula]]) -> str:
        """Print a sum of moments; ``terms`` are pairs (position of a moment, its factor)."""
        moments, inside = self.program.moments, self.scope.printer.inside
        names = [(f"m.{moments[place].name}", one) for place, one in terms]
        cells = [name if one == ONE else f"{inside(one, PRODUCT)}*{name}" for name, one in names]
        return " + ".join(cells) or "0"

    def block(self, block: Block) -> Iterator[str]:
        """Yield the statements that assign the rows of a block if its condition holds."""
        outside = dict(self.forms)
        body = list(self.rows(block.rows, "rows: Table = {" if not block.condition else "rows |= {"))
        if block.condition:
            yield f"if {block.condition}:"
        yield from (f"    {line}" if block.condition else line for line in body)
        if block.condition:
            self.forms = outside

    def rows(self, rows: Rows, head: str) -> Iterator[str]:
        """Yield the statement that begins with ``head`` and lists ``rows``, and assignments before it.

        A forward form is assigned to a variable first if other passes are multiples of it.
        """
        cells: dict[str, list[str]] = {}
        for part, row in rows.items():
            ratios = [multiple(form, row[0]) for form in row[1:]]
            if row[0] and any(ratios) and row[0] not in self.forms:
                self.forms[row[0]] = self.unused(part)
                yield from statement(self.forms[row[0]], self.text(row[0]), WIDTH - 4)
            name = self.forms.get(row[0], "")
            pairs = zip(row[1:], ratios, strict=True)
            texts = [f"{ratio}*{name}".removeprefix("1*") if ratio else self.text(form) for form, ratio in pairs]
            cells[part] = [name or self.text(row[0]), *texts]
        yield head
        for part, texts in cells.items():
            first, *more = filled(f'"{part}": (', [*(f"{text}," for text in texts[:-1]), f"{texts[-1]}),"], WIDTH - 12)
            yield from (f"    {first}", *(f"        {line}" for line in more))
        yield "}"

    def text(self, form: Form) -> str:
        """Print a closed form as a sum of multiples of amounts."""
        inside = self.scope.printer.inside
        cells = []
        for name, formula in form:
            amount = self.names[name]
            cells.append(amount if formula == ONE else f"{inside(formula, PRODUCT)} * {amount}")
        return " + ".join(cells) or "0"

    def result(self, shares: Mapping[str, int]) -> Iterator[str]:
        """Yield the statements that return the rows, with 0 for passes that the regime does not run.

        ``shares`` maps conventions to the number by which their figures, in parts of a FLOP, are divided.
        """
        kinds, cells = self.kinds, ["f", "b", "r"]
        runs = [[one for one in kinds.regimes if kinds.runs(one, place)] for place in (0, 1, 2)]
        if runs[1] and len(runs[1]) < len(kinds.regimes):
            cells[1] = f"b * ({negated('regime', [one for one in kinds.regimes if one not in runs[1]])})"
        if runs[2] and len(runs[2]) < len(kinds.regimes):
            cells[2] = f"r * ({one_of('regime', runs[2])})"
        if shares:
            told = ", ".join(f'"{name}": {number}' for name, number in shares.items())
            yield f"parts = {{{told}}}.get(convention, 1)  # of a FLOP"
            cells = [f"Fraction({one}, parts)" for one in cells]
        if cells == ["f", "b", "r"]:
            yield "return rows"
        else:
            every = f"{{part: ({', '.join(cells)}) for part, (f, b, r) in rows.items()}}"
            if len(every) + 7 <= WIDTH:
                yield f"return {every}"
            else:
                yield from statement("rows", every, WIDTH)
                yield "return rows"


def printed_of(row: Row) -> Iterator[Formula]:
    """Yield the formulas of a row; passes that are multiples of the forward pass are omitted."""
    yield from (formula for _, formula in row[0])
    yield from (formula for form in row[1:] if not (row[0] and multiple(form, row[0])) for _, formula in form)


def multiple(form: Form, of: Form) -> int:
    """Return the integer by which ``of`` is multiplied to give ``form``; 0 if there is none."""
    if not form or [name for name, _ in form] != [name for name, _ in of]:
        return 0
    ratios = set()
    for (_, one), (_, other) in zip(form, of, strict=True):
        (number, rest), (under, same) = split(one), split(other)
        if rest != same or number % under:
            return 0
        ratios.add(number // under)
    return ratios.pop() if len(ratios) == 1 else 0


def split(formula: Formula) -> tuple[int, object]:
    """Split a formula into (common integer factor of its terms, rest).

    If the common factor is a fraction, the integer is 1.
    """
    poly = expanded(formula)
    number = poly.common[1]
    return (int(number), poly.scale(Fraction(1, int(number)))) if number.denominator == 1 else (1, poly)
