"""Page section on the baseline: the difference as a formula, its causes, and both costs by length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from symflops.emit.grouping import grouped
from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.sections_growth import LONGER
from symflops.emit.page.sections_work import fits
from symflops.emit.page.tree import (
    Bar,
    Block,
    Code,
    Column,
    Equation,
    Group,
    Heading,
    Line,
    Math,
    Number,
    Paragraph,
    Plot,
    Row,
    Scaled,
    Section,
    Table,
    Words,
)  # fmt: skip
from symflops.emit.page.writing import NONE, is_short, letter, names, plural, root_lines, series
from symflops.evaluate.item_analysis import BOTH, Against, Cause, Change, Figures, Point, crossover
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import ONE, Formula, Sym, symbols
from symflops.formula.sparse import Poly
from symflops.formula.terms import plus, times

SHOWN, EVERY, FAR = 10, 2, Fraction(1, 1000)
"""Maximum causes in a table, step between lengths with a row, minimum ratio printed in full."""
DIFFERENCE = (
    "For one item, this is what it costs more, and below zero less. Conditions are as they are at the default sizes, and sizes"
    " that the other model has alone are numbers."
)


def section(against: Against, name: str, letters: Mapping[str, str]) -> Section:
    """Build the section that compares the cost of a model with its baseline."""
    printer = LatexPrinter(letters)
    blocks: list[Block] = [Paragraph((*answer(against, name), " ", *compared(against, name)))]
    blocks += [figures(against, name), Heading(("The difference as a formula",)), *formulas(against, printer)]
    blocks += [Heading(("Where the difference comes from",)), *causes(against, name, printer)]
    blocks += [Heading(("Both over ", letter(against.letter))), plot_of(against, name), over_length(against)]
    return Section("against", f"Beside {other(against, name)}", tuple(blocks))


def other(against: Against, name: str) -> str:
    """Return the name of the baseline; if it is the model ``name`` itself, with its changed config values."""
    return (
        against.baseline
        if against.baseline != name
        else f"{name} with {' and '.join(map(' = '.join, against.config)) or 'itself'}"
    )


def answer(against: Against, name: str) -> Words:
    """Return the sentence on the lengths from which the model costs less or more than its baseline."""
    first, last = against.points[0], against.points[-1]
    base: Words = ("a step of ", Code(other(against, name)))
    if not against.crossings:
        each = "less" if last.own < last.base else "more" if last.own > last.base else "as much"
        where: Words = (f"At all lengths from {first.length:,} to {last.length:,} it costs {each}",)
    else:
        turns: list[Words] = [
            ("and from " if place else "From ", letter(against.letter), f" = {turn.length:,} on it costs {less(turn.less)}")
            for place, turn in enumerate(against.crossings)
        ]
        where = series(turns, ", ")
    middle = next((point for point in against.points if point.length == against.here), first)
    ratios = [ratio_at(point, against.letter) for point in dict.fromkeys((middle, last))]
    return (*where, plural(last.own == last.base, " as ", " than "), *base, ": ", *series(ratios, " and "), ".")


def less(is_less: bool) -> str:
    """Return "less" if the model costs less than its baseline, else "more"."""
    return "less" if is_less else "more"


def ratio_at(point: Point, name: str) -> Words:
    """Return words for the cost of the model divided by that of its baseline, at one length."""
    return f"{ratio_text(point.ratio)} of it at ", letter(name), f" = {point.length:,}"


def ratio_text(ratio: Fraction) -> str:
    """Print a ratio to three decimal places; a tiny one as "< 0.001"."""
    return f"{float(ratio):.3f}" if ratio >= FAR else "< 0.001"


def compared(against: Against, name: str) -> Words:
    """Return the sentence on the setting of the comparison: config, batch, regime and convention."""
    found: list[Words] = []
    if against.baseline != name:
        found.append((Code(against.baseline), f" ({against.title or 'no title'}) has the same values in its config"))
    if against.config:
        found.append(("there ", *series([(Code(key), " is ", Code(text)) for key, text in against.config], " and ")))
    if against.batch:
        found.append(("its batch has ", *series([(Code(f"{key}: {text}"),) for key, text in against.batch], " and ")))
    if against.lengths:
        grown = series([(Code(f"{key} = {text}"),) for key, text in against.lengths], " and ")
        found.append(("with ", letter(against.letter), " grow ", *grown))
    counted: Words = ("regime ", Code(against.regime), ", convention ", Code(against.convention), ", one item")
    words = series([*found, counted], "; ", "; ")
    head = words[0]
    return (f"{head[:1].upper()}{head[1:]}" if isinstance(head, str) else head, *words[1:], ".")


def figures(against: Against, name: str) -> Table:
    """Build the table of the figures of the model and its baseline at one length."""
    rows: list[Row] = []
    for what in ("parameters", "forward", "backward", "total"):
        own, base = (getattr(side, what) for side in (against.own, against.base))
        ratio = ratio_text(Fraction(own, base)) if base else ""
        title = {"parameters": "Parameters", "total": "Both passes"}.get(what, f"{what.capitalize()} FLOPs")
        rows.append(((title,), (Number(own),), (Number(base),), (Number(own - base, signed=True),), (ratio,)))
    titles = ("This model", "The other", "Difference", "Ratio")
    columns = (Column(("Figure",)), *(Column((title,), number=True) for title in titles))
    return Table(f"Both at the default sizes, {against.letter} = {against.here:,}", columns, tuple(rows), small=1)


def formulas(against: Against, printer: LatexPrinter) -> Iterator[Block]:
    """Yield the blocks on the difference of the closed forms of the model and its baseline, for one item."""
    forward, backward = (of_item(change) for change in (against.forward, against.backward))
    twice = expanded(plus(total(forward))).scale(2) == expanded(plus(total(backward)))
    if not forward and not backward:
        yield Paragraph(("Both cost the same.",))
        return
    lines = [Line("forward", forward)] if forward else []
    lines += [Line("backward", backward)] if backward and not twice else []
    if not is_short(lines, printer):
        yield Paragraph((f"It has {LONGER[:-1]}: ", Code("symflops diff"), " prints it."))
        return
    yield Paragraph((DIFFERENCE, " Backward it is twice that." if twice else ""))
    yield Equation(tuple(lines))
    yield from crossing(against, printer)


def crossing(against: Against, printer: LatexPrinter) -> Iterator[Block]:
    """Yield the blocks on the length at which both models cost the same in both passes.

    There are none without a closed form of this length.
    """
    poly = expanded(plus(total(of_item((*against.forward, *against.backward))))).scale(-1)
    for name, formula in against.along:
        poly = put(poly, name, expanded(formula))
    powers = {power: part for power, part in poly.powers(Sym(against.letter)).items() if part}
    atoms = {atom for part in powers.values() for monomial in part.terms for atom, _ in monomial}
    if len(against.crossings) != 1 or len(powers) < 2 or any(against.letter in symbols(atom) for atom in atoms):
        return
    found = crossover(BOTH, powers, {}, Writer(printer.names), None)
    if found.kind in ("quotient", "root"):
        lines = root_lines(found, against.letter, printer)
        if is_short(lines, printer):
            yield Paragraph(("Both cost the same, in both passes together, at",))
            yield Equation(tuple(lines))


def put(poly: Poly, name: str, value: Poly) -> Poly:
    """Return ``poly`` with the polynomial ``value`` in place of the letter ``name``."""
    found = Poly({})
    for power, part in poly.powers(Sym(name)).items():
        found = found + part * value**power
    return found


def of_item(change: Change) -> tuple[Scaled, ...]:
    """Return a difference for one item as terms: coefficients times products of lengths."""
    return tuple(Scaled(formula, None if moment.formula == ONE else moment.formula) for moment, formula in change)


def total(terms: Iterable[Scaled]) -> list[Formula]:
    """Return each term as one formula: coefficient times product of lengths."""
    return [term.formula if term.factor is None else times(term.formula, term.factor) for term in terms]


def causes(against: Against, name: str, printer: LatexPrinter) -> Iterator[Block]:
    """Yield the table of modules that differ: first those of both models, then those of only one."""
    if not against.causes:
        yield Paragraph(("No module differs.",))
        return
    merged = merge(against.causes)
    shown, left = merged[:SHOWN], merged[SHOWN:]
    rows: list[Row] = []
    for alone, some in sorted(grouped((row.alone, (some, row)) for some, row in shown).items()):
        rows.append(Group(("of ", Code(alone), " alone") if alone else ("of both",)))
        rows += [cause_row(found, row, printer) for found, row in some]
    if left:
        rest = [sum(getattr(row.figures, what) for _, row in left) for what in ("parameters", "forward", "backward")]
        rows += [Group(), ((f"{len(left)} more",), NONE, *((Number(value, signed=True),) for value in rest))]
    yield Paragraph((f"What each module costs more, at {against.letter} = {against.here:,}; the rows sum to the difference.",))
    columns = (
        Column(("Module",), 25),
        Column(("Forward, as a formula",), 27),
        *(Column((title,), number=True) for title in ("Parameters", "Forward", "Backward")),
    )
    yield Table("The difference by module", columns, tuple(rows), small=2)


def merge(rows: Iterable[Cause]) -> list[tuple[list[str], Cause]]:
    """Merge rows that differ only in the module name, and sort them, the largest difference first.

    Return pairs (names, row with the sums of the figures).
    """
    found = grouped(((row.alone, row.figures, row.terms), row.name) for row in rows)
    merged = []
    for (alone, each, forward), some in found.items():
        count = len(some)
        figures = Figures(each.parameters * count, each.forward * count, each.backward * count)
        merged.append((some, Cause("module", figures, forward, some[0], alone)))
    return sorted(merged, key=lambda pair: (-abs(pair[1].figures.total), -abs(pair[1].figures.parameters)))


def cause_row(found: list[str], row: Cause, printer: LatexPrinter) -> Row:
    """Return the table row of merged modules, with their additional cost together; the formula is of one."""
    formula = plus(total(of_item(row.terms)))
    work: Words = (Math((formula,)), *((" each",) if len(found) > 1 else ())) if fits(formula, printer) and row.terms else NONE
    values = (row.figures.parameters, row.figures.forward, row.figures.backward)
    return names(found), work, *((Number(value, signed=True),) for value in values)


def plot_of(against: Against, name: str) -> Plot:
    """Build the plot of the costs of the model and its baseline over the length that grows."""
    per = f"{against.letter}²" if against.square else against.letter
    own, base = (
        tuple((point.length, Fraction(getattr(point, side), point.length ** (1 + against.square))) for point in against.points)
        for side in ("own", "base")
    )
    return Plot(
        "beside", f"What {name} and {other(against, name)} cost over {against.letter}", against.letter,
        f"FLOPs of a step / {per}",
        ((name, own), (other(against, name), base)), tuple(turn.length for turn in against.crossings),
    )  # fmt: skip


def over_length(against: Against) -> Table:
    """Build the table of both costs and their ratio over the length that grows, with bars."""
    most = max(Fraction(1), max(point.ratio for point in against.points))
    rows: list[Row] = []
    for point in against.points[::EVERY]:
        bar = Bar(point.ratio / most, max(Fraction(0), 1 - point.ratio) / most)
        costs = ((Math((scientific(cost),)),) for cost in (point.own, point.base))
        rows.append(((Number(point.length),), *costs, (ratio_text(point.ratio),), (bar,)))
    titles = (against.letter, "This model", "The other", "Ratio")
    columns = (*(Column((title,), number=True) for title in titles), Column((), 40))
    return Table(f"FLOPs of a step over {against.letter}; the whole bar is the other model", columns, tuple(rows))


def scientific(value: int) -> str:
    """Print a number in LaTeX to three significant digits."""
    digits, exponent = f"{value:.2e}".split("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}"
