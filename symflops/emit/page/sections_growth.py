"""Page section on growth: work by length, crossover of attention, one more token, layer or expert."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.sections_work import fits
from symflops.emit.page.tree import (
    Bar,
    Block,
    Code,
    Column,
    Equation,
    Heading,
    Line,
    Math,
    Number,
    Paragraph,
    Row,
    Scaled,
    Section,
    Table,
    Words,
)
from symflops.emit.page.types import Page
from symflops.emit.page.writing import NONE, equals, is_short, letter, math, names, plural, root_lines, series, without_square
from symflops.evaluate.item_analysis import Crossover, Growth, ItemAnalysis, Order, Orders
from symflops.evaluate.length_polynomials import Assumption, Unknown
from symflops.evaluate.step import OverLength
from symflops.evaluate.worked_figures import OneMore
from symflops.formula.factoring import expanded
from symflops.formula.formula import ZERO, Formula, Power, Sym, symbols

WORDS = {Fraction(0): "of one item", Fraction(1): "per token", Fraction(2): "per pair of tokens"}
RELATIONS = {"multiple": " is a multiple of ", "equal": " = ", "at_least": r" \ge ", "at_most": r" \le "}
SHARES = " The share is that of the part in the work that grows alike."
REACHES = {
    "short": "As sequences become short, this is what is left.",
    "long": (
        "Forward work by how it grows: as sequences become longer, what grows most is left. Terms below zero correct those"
        " above." + SHARES
    ),
    "": (
        "Forward work by how it grows. As sequences become short, what grows least is left of it; as they become long, what"
        " grows"
        " most." + SHARES
    ),
}
KINDS = {
    "always": ", attention costs more than all else at every length.",
    "never": ", attention costs less than all else at every length.",
    "ratio": " attention and all else grow alike: their ratio is the same at every length.",
}
LONGER = "more lines than this page shows."


def growth(page: Page, letters: Mapping[str, str]) -> Section:
    """Build the section on the growth of the cost of one item."""
    told, printer = page.analysis, LatexPrinter(letters)
    what: Words = ("What follows is of regime ", Code(told.regime), " under convention ", Code(told.convention))
    blocks: list[Block] = [Paragraph((*what, ", for one item at a time: one sample, one image.", *default_lengths(page)))]
    for items in told.items:
        for orders in items.orders:
            blocks += work_by_order(items, orders, page, printer)
        for unknown in dict.fromkeys(grown.unknown for grown in items.growth):
            blocks.append(Heading(("When ", *names(unknown.streams), plural(len(unknown.streams), " grows", " grow"))))
            for grown in items.growth:
                if grown.unknown == unknown:
                    blocks += _Grown(page, grown, printer).blocks()
    blocks += more(page, printer)
    return Section("growth", "How the cost grows", tuple(blocks))


def default_lengths(page: Page) -> Words:
    """Return words that name the lengths at which figures are computed; empty without figures."""
    if not page.worked:
        return ()
    lengths = page.analysis.lengths
    values: list[Words] = [(equals(name, str(value)),) for name, value in lengths]
    others: Words = ("; other lengths are those of the batch above: ", *series(values)) if len(lengths) > 1 else ()
    return (" Figures are at the default sizes", *others, ".")


def work_by_order(items: ItemAnalysis, orders: Orders, page: Page, printer: LatexPrinter) -> Iterator[Block]:
    """Yield the blocks on the work of one item, by power of the tokens and by part of the model."""
    reach = f", in {orders.reach} sequences" if orders.reach else ""
    yield Heading((f"Where the work of one {items.items.removesuffix('s').replace('_', ' ')} goes{reach}",))
    used = {name for order in orders.orders for name in symbols(order.work)}
    tokens: list[Words] = [(equals(each.letter, *product(each)),) for each in page.analysis.tokens if each.letter in used]
    here: Words = (" Here ", *series(tokens), ".") if tokens else ()
    assumed = assumptions(orders.assumed)
    assuming: Words = (" This assumes that ", *series(assumed), ".") if assumed else ()
    yield Paragraph((REACHES[orders.reach], *here, *assuming))
    columns = (
        Column(("Grows",), 17),
        Column(("Part",), 21),
        Column((f"Forward {page.unit}",), 44),
        Column(("Share, %",), number=True),
    )
    rows = tuple(row for order in orders.orders for row in order_rows(order, printer))
    yield Table("Work by how it grows, and by part", columns, rows)


def order_rows(order: Order, printer: LatexPrinter) -> Iterator[tuple[Words, ...]]:
    """Yield a row (order, part, work, share) per part of the work that grows with one power of the tokens."""
    for place, share in enumerate(order.shares):
        power = () if place else (WORDS.get(order.power, f"with power {order.power} of the tokens"),)
        work: Words = (Math((share.work,)),) if fits(share.work, printer) else ("see above",)
        yield power, (share.part,), work, (percent(share.share),)


def percent(share: Fraction | None) -> str:
    """Print a share in percent, without the percent sign; empty for None."""
    if share is None:
        return ""
    text = f"{float(100 * share):.2f}"
    return f"< {text[:-1]}1" if share and float(text) == 0 else text


def product(unknown: Unknown) -> tuple[str | Formula, ...]:
    """Return the math that defines an introduced length by batch variables: ``t * h * w``, or ``x = y``."""
    dot, parts = (r" \cdot ", unknown.axes) if unknown.kind == "tokens" else (" = ", tuple(map(Sym, unknown.variables)))
    return tuple(each for place, part in enumerate(parts) for each in ((dot, part) if place else (part,)))


def assumptions(assumed: Sequence[Assumption]) -> list[Words]:
    """Return assumptions about lengths in words, each once."""

    def words(one: Assumption) -> Words:
        told = RELATIONS[one.relation]
        return (math(one.left), told, math(one.right)) if one.relation == "multiple" else (math(one.left, told, one.right),)

    return list(dict.fromkeys(map(words, assumed)))


class _Grown:
    """Builder of the blocks that say how the work of one item grows with one length."""

    def __init__(self, page: Page, growth: Growth, printer: LatexPrinter) -> None:
        self.page, self.growth, self.printer = page, growth, printer
        self.letter = growth.unknown.letter
        self.same = (
            len({(one.kind, one.above, one.below, one.square, one.linear, one.constant) for one in growth.crossovers}) == 1
        )

    def blocks(self) -> Iterator[Block]:
        """Yield all blocks: the varying length, both polynomials, their crossovers, the cost of one token."""
        growth = self.growth
        yield Paragraph(self.varying())
        lines = (self.polynomial("attention", growth.attention), self.polynomial("all else", growth.others))
        if growth.attention and all(is_short([line], self.printer) for line in lines):
            yield Paragraph(("Forward, attention and all else cost",))
            yield Equation(lines)
        for crossover in growth.crossovers[: 1 if self.same else None]:
            yield from self.crossover(crossover)
        if not growth.crossovers:
            yield Paragraph(("There is no attention that could overtake anything.",))
        yield from self.marginal()

    def varying(self) -> Words:
        """Return the sentence that says which length varies and which other lengths do not."""
        growth, unknown = self.growth, self.growth.unknown
        one = letter(self.letter) if unknown.kind == "axis" else equals(self.letter, *product(unknown))
        others = self.others()
        stay = plural(len(others), " stays as it is", " stay as they are")
        while_: Words = (" while ", *series(others), stay) if others else ()
        assumed = series(assumptions(growth.assumed), " and ", " and ")
        where: Words = (", where ", *assumed) if growth.reach else (", assuming that ", *assumed) if assumed else ()
        bound = " or there is no such bound" if growth.reach == "short" else ""
        return ("Let ", one, " vary", *while_, *where, f"{bound}.")

    def others(self) -> list[Words]:
        """Return the lengths that the work depends on, besides the one that varies, as words."""
        growth, told = self.growth, self.page.analysis
        formulas = [formula for _, formula in (*growth.attention, *growth.others)] + [step for _, step, _ in growth.marginal]
        used = {name for formula in formulas for name in symbols(formula)}
        plain: list[Words] = [(letter(name),) for name, _ in told.lengths if name in used - set(growth.unknown.variables)]
        products = [each for each in told.tokens if each.letter in used - {self.letter}]
        return plain + [(equals(each.letter, *product(each)),) for each in products]

    def polynomial(self, head: str, terms: Sequence[tuple[int, Formula]]) -> Line:
        """Build the line ``head = polynomial`` in the length; ``terms`` are pairs (power, coefficient)."""
        powers: dict[int, Formula | None] = {0: None, 1: Sym(self.letter)}
        return Line(head, tuple(Scaled(one, powers.get(power, Power(Sym(self.letter), power))) for power, one in terms))

    def crossover(self, found: Crossover) -> Iterator[Block]:
        """Yield the blocks on the length at which attention costs as much as all other work."""
        where = "In both passes together" if found.work == "both" else "Forward and in both passes" if self.same else "Forward"
        if found.kind in KINDS:
            yield Paragraph((where + KINDS[found.kind],))
            return
        lines = root_lines(found, self.letter, self.printer)
        told = f"{where}, attention costs as much as all else"
        if is_short(lines, self.printer):
            yield Paragraph((f"{told} at", *without_square(found)))
            yield Equation(tuple(lines))
        else:
            yield Paragraph((f"{told} where the two are equal, in a closed form of {LONGER}",))
        if self.page.worked and found.value:
            yield Paragraph(("At the default sizes that is from ", letter(self.letter), " = ", Number(found.value), " on."))
        elif self.page.worked:
            yield Paragraph(("At the default sizes there is no such length.",))

    def marginal(self) -> Iterator[Block]:
        """Yield the blocks on the cost of one more token."""
        (_, forward, one), (_, both, two) = self.growth.marginal
        thrice = expanded(both) == expanded(forward).scale(3)
        lines = [Line("token, forward", (Scaled(forward),))]
        lines += [] if thrice else [Line("token, both passes", (Scaled(both),))]
        if all(is_short([line], self.printer) for line in lines):
            yield Paragraph(("One more token costs", " this, and three times as much in both passes:" if thrice else ""))
            yield Equation(tuple(lines))
        else:
            yield Paragraph((f"One more token costs the difference of the closed forms, in {LONGER}",))
        if one is not None and two is not None:
            here = "At the default sizes and the lengths above that is "
            yield Paragraph((here, Number(one), " forward and ", Number(two), " in both passes."))


ONE_MORE = (
    "What one more costs in the step above: the exact differences of both closed forms, and that of the forward one as a"
    " formula. Conditions are as they are at the default sizes."
)


def more(page: Page, printer: LatexPrinter) -> Iterator[Block]:
    """Yield the blocks on the cost of one more token, layer or expert, and on work per token by length.

    There are none without figures.
    """
    if page.worked and page.worked.more:
        yield Heading(("One more token, layer or expert",))
        yield Paragraph((ONE_MORE,))
        columns = (
            Column(("One more",), 19),
            Column(("Forward, as a formula",), 33),
            *(Column((title,), number=True) for title in ("Parameters", f"Forward {page.unit}", f"Backward {page.unit}")),
        )
        rows: list[Row] = [*token_rows(page), *(size_row(one, printer) for one in page.worked.more)]
        yield Table("What one more costs", columns, tuple(rows), small=2)
    if page.worked and page.worked.over:
        yield from over_length(page.worked.over, page.unit)


def token_rows(page: Page) -> Iterator[Row]:
    """Yield a row per stream: the cost of one more token of it."""
    told = set()
    for items in page.analysis.items:
        for grown in items.growth:
            (_, _, forward), (_, _, both) = grown.marginal
            if grown.unknown.kind != "equal" and forward is not None and both is not None and grown.unknown not in told:
                told.add(grown.unknown)
                length: Words = (", ", letter(grown.unknown.letter)) if grown.unknown.kind == "axis" else ()
                name: Words = ("token of ", *names(grown.unknown.streams), *length)
                yield name, ("as above",), NONE, (Number(forward),), (Number(both - forward),)


def size_row(one: OneMore, printer: LatexPrinter) -> Row:
    """Return the row of the cost of increasing one size, such as the number of layers, by one."""
    name: Words = (letter(one.field.letter), f" = {one.now:,}: ", one.field.doc or Code(one.field.keys[0]))
    shown = one.work != ZERO and fits(one.work, printer)
    work: Words = (Math((one.work,)),) if shown else NONE
    return name, work, *((Number(value),) for value in (one.parameters, one.forward, one.backward))


def over_length(over: OverLength, unit: str) -> Iterator[Block]:
    """Yield the table of the work per token over the length of items, with bars."""
    yield Heading((f"{unit} per token over the length of ", Code(over.stream)))
    yield Paragraph((f"In both passes of an item; the first part of a bar is attention, the whole bar all {unit} per token.",))
    columns = (
        *(Column((title,), number=True) for title in ("Tokens", f"{unit} per token", "Attention, %")),
        Column((), 50),
    )
    most = max(row.each for row in over.rows)
    rows: list[Row] = []
    for row in over.rows:
        dark = row.attention * row.each / most
        share = f"{float(100 * row.attention):.1f}"
        rows.append(((Number(row.item),), (Number(round(row.each)),), (share,), (Bar(dark, row.each / most - dark),)))
    yield Table(f"{unit} per token over the length of {over.stream}", columns, tuple(rows))
