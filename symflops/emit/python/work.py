"""Work table of a generated module: closed forms by part of the model, summed into both passes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from symflops.emit.code.infix import PRODUCT
from symflops.emit.code.sharing import Scope, named_parts
from symflops.emit.python.kinds import Block, Form, Kinds, Row, Rows, cases, negated, one_of
from symflops.emit.python.printer import PYTHON, WIDTH, filled, joined, statement
from symflops.formula.factoring import expanded
from symflops.formula.formula import ONE, Formula
from symflops.ir.program import Amount, Program


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
