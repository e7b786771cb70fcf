"""An analysis in words and LaTeX math, for every markup that shows math."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from symflops.emit.math.lines import LINE, aligned, fold, width
from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.analysis import Crossover, Growth, ItemAnalysis, Order, Orders
from symflops.emit.page.length_polynomials import Assumption, Unknown
from symflops.emit.page.types import Page
from symflops.model.formula import ZERO, Formula, symbols

MOST = 12  # the most lines of a closed form on a page
WIDEST = 1800.0  # points of the widest formula in a cell
HEAD = 45.0  # points by which the heads of these rows exceed those of closed forms
SHORT = 75.0  # points beside a fraction in its row
WORDS = {Fraction(0): "of one item", Fraction(1): "per token", Fraction(2): "per pair of tokens"}
RELATIONS = {
    "multiple": "${}$ is a multiple of ${}$",
    "equal": "${} = {}$",
    "at_least": r"${} \ge {}$",
    "at_most": r"${} \le {}$",
}
COEFFICIENTS = (r"\alpha", r"\beta", r"\gamma")


@dataclass(frozen=True, slots=True)
class Display:
    """Rows of an alignment; empty if there would be too many."""

    rows: tuple[str, ...]

    @property
    def shown(self) -> bool:
        """Whether there are rows to show."""
        return bool(self.rows)


class AnalysisWords:
    """Prints the parts of an analysis; ``line`` is the width of a row of an alignment in points."""

    def __init__(self, page: Page, printer: LatexPrinter, line: float = LINE) -> None:
        self.page = page
        self.printer = printer
        self.line = line - HEAD

    def item(self, items: str) -> str:
        """The singular of an index set, in words."""
        return items.removesuffix("s").replace("_", " ")

    def letter(self, unknown: Unknown) -> str:
        """The letter of a length, as math."""
        return self.printer.symbol(unknown.letter)

    def product(self, unknown: Unknown) -> str:
        """A length in terms of batch variables, as math: a product of axes, or several equal lengths."""
        if unknown.kind == "tokens":
            return r" \cdot ".join(self.printer.text(axis) for axis in unknown.axes)
        return " = ".join(self.printer.symbol(name) for name in unknown.variables)

    def others(self, growth: Growth) -> list[str]:
        """The other lengths that the work depends on, as math."""
        formulas = [formula for _, formula in (*growth.attention, *growth.others)] + [step for _, step, _ in growth.marginal]
        used = {name for formula in formulas for name in symbols(formula)}
        found = [name for name, _ in self.page.analysis.lengths if name in used - set(growth.unknown.variables)]
        products = [each for each in self.page.analysis.tokens if each.letter in used - {growth.unknown.letter}]
        return [self.printer.symbol(name) for name in found] + [
            f"{self.printer.symbol(each.letter)} = {self.product(each)}" for each in products
        ]

    def tokens(self, orders: Orders) -> list[str]:
        """The products of axes in the formulas, as math."""
        used = {name for order in orders.orders for name in symbols(order.work)}
        products = (each for each in self.page.analysis.tokens if each.letter in used)
        return [f"{self.printer.symbol(each.letter)} = {self.product(each)}" for each in products]

    def assumptions(self, assumed: Sequence[Assumption]) -> list[str]:
        """The assumptions as phrases with math between dollar signs."""
        return list(dict.fromkeys(self.assumption(one) for one in assumed))

    def assumption(self, one: Assumption) -> str:
        """One assumption as a phrase."""
        return RELATIONS[one.relation].format(self.printer.text(one.left), self.printer.text(one.right))

    def polynomial(self, head: str, terms: Sequence[tuple[int, Formula]], unknown: Unknown) -> Display:
        """A polynomial in one length: ``terms`` are (power, coefficient)."""
        letter = self.letter(unknown)
        powers = {0: "", 1: letter}
        lines = [self.printer.term(formula, powers.get(power, f"{letter}^{{{power}}}"), self.line) for power, formula in terms]
        return self.displayed(aligned(head, lines))

    def formula(self, head: str, formula: Formula) -> Display:
        """A formula as rows of an alignment."""
        return self.displayed(aligned(head, [fold(self.printer.text(formula), self.line)]))

    @staticmethod
    def displayed(rows: Sequence[str]) -> Display:
        """``rows``, or an empty display if there are too many."""
        return Display(tuple(rows) if len(rows) <= MOST else ())

    def crossover(self, growth: Growth, found: Crossover) -> Display:
        """The length at which attention costs as much as all else; a root with its coefficients below."""
        star = rf"{self.letter(growth.unknown)}^{{*}}"
        if found.kind == "quotient":
            return self.quotient(star, found)
        a, b, c = COEFFICIENTS
        root = rf"\frac{{-{b} + \sqrt{{{b}^{{2}} - 4 {a} {c}}}}}{{2 {a}}}"
        rows = [rf"{star} ={{}}& {root}"]
        if found.constant == ZERO:
            rows = [rf"{star} ={{}}& -{b} / {a}"]
        return self.displayed(rows + self.defined(map(self.printer.text, (found.square, found.linear, found.constant))))

    def quotient(self, star: str, found: Crossover) -> Display:
        """A quotient; if it is too wide, of two letters that are defined below."""
        above, below = self.printer.text(found.above), self.printer.text(found.below)
        if max(width(above), width(below)) <= self.line - SHORT:
            return Display((rf"{star} ={{}}& \frac{{{above}}}{{{below}}}",))
        return self.displayed([rf"{star} ={{}}& \alpha / \beta", *self.defined((above, below))])

    def defined(self, texts: Iterable[str]) -> list[str]:
        """Rows that define the Greek letters of coefficients."""
        return [
            rf"&\qquad {{}}{line}" if number else rf"{name} ={{}}& {line}"
            for name, text in zip(COEFFICIENTS, texts, strict=False)
            for number, line in enumerate(fold(text, self.line))
        ]

    def may_vanish(self, found: Crossover) -> bool:
        """Whether the square coefficient may be 0, because it contains a condition."""
        return "[" in self.printer.text(found.square)

    def same(self, growth: Growth) -> bool:
        """Whether the crossover of both passes equals that of the forward pass."""
        return len({(one.kind, one.above, one.below, one.square, one.linear, one.constant) for one in growth.crossovers}) == 1

    def power(self, order: Order) -> str:
        """The growth of work, in words."""
        return WORDS.get(order.power, f"with power {order.power} of the tokens")

    @staticmethod
    def percent(share: Fraction | None) -> str:
        """A share in percent, without the sign; empty if it is unknown."""
        if share is None:
            return ""
        text = f"{float(100 * share):.2f}"
        return f"< {text[:-1]}1" if share and float(text) == 0 else text

    def groups(self, items: ItemAnalysis) -> Iterator[tuple[Unknown, list[Growth]]]:
        """The growth of one item by the length that varies."""
        for unknown in dict.fromkeys(growth.unknown for growth in items.growth):
            yield unknown, [growth for growth in items.growth if growth.unknown == unknown]

    def value(self, found: Crossover) -> str:
        """The value of a crossover; empty if it is unknown."""
        return "" if found.value is None else f"{found.value:,}"
