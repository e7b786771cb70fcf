"""What pages say of an analysis, in words and LaTeX math: the same for every markup that shows math."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from symflops.emit.math.lines import LINE, aligned, fold, width
from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.analysis import Crossover, Growth, ItemAnalysis, Order, Orders
from symflops.emit.page.length_polynomials import Assumption, Unknown
from symflops.emit.page.types import Page
from symflops.model.formula import ZERO, Formula, symbols

MOST = 12  # lines of a closed form that a page still shows
WIDEST = 1800.0  # points of a formula that a cell still shows
HEAD = 45.0  # points that the heads of these rows are wider than those of closed forms
SHORT = 75.0  # points of what stands in a fraction
WORDS = {Fraction(0): "of one item", Fraction(1): "per token", Fraction(2): "per pair of tokens"}
COEFFICIENTS = (r"\alpha", r"\beta", r"\gamma")


@dataclass(frozen=True, slots=True)
class Display:
    """Rows of an alignment; none where there would be too many."""

    rows: tuple[str, ...]

    @property
    def shown(self) -> bool:
        """Whether it fits."""
        return bool(self.rows)


class AnalysisWords:
    """Prints the parts of an analysis; ``line`` is how wide the rows of an alignment are."""

    def __init__(self, page: Page, printer: LatexPrinter, line: float = LINE) -> None:
        self.page = page
        self.printer = printer
        self.line = line - HEAD

    def item(self, items: str) -> str:
        """What one of an index set is called."""
        return items.removesuffix("s").replace("_", " ")

    def letter(self, unknown: Unknown) -> str:
        """A length that varies, as math."""
        return self.printer.symbol(unknown.letter)

    def product(self, unknown: Unknown) -> str:
        """The axes whose product it is, as math; the lengths that are all the same."""
        if unknown.kind == "tokens":
            return r" \cdot ".join(self.printer.text(axis) for axis in unknown.axes)
        return " = ".join(self.printer.symbol(name) for name in unknown.variables)

    def others(self, growth: Growth) -> list[str]:
        """The other lengths that the work depends on, as math."""
        shown = [formula for _, formula in (*growth.attention, *growth.others)]
        shown += [formula for _, formula, _ in growth.marginal]
        used = {name for formula in shown for name in symbols(formula)}
        found = [name for name, _ in self.page.analysis.lengths if name in used - set(growth.unknown.variables)]
        products = [each for each in self.page.analysis.tokens if each.letter in used - {growth.unknown.letter}]
        return [self.printer.symbol(name) for name in found] + [
            f"{self.printer.symbol(each.letter)} = {self.product(each)}" for each in products
        ]

    def tokens(self, orders: Orders) -> list[str]:
        """The products of axes that stand in formulas, as math."""
        used = {name for order in orders.orders for name in symbols(order.work)}
        products = (each for each in self.page.analysis.tokens if each.letter in used)
        return [f"{self.printer.symbol(each.letter)} = {self.product(each)}" for each in products]

    def assumptions(self, assumed: Sequence[Assumption]) -> list[str]:
        """What is assumed, each as a phrase with math between dollars."""
        return list(dict.fromkeys(self.assumption(one) for one in assumed))

    def assumption(self, one: Assumption) -> str:
        """One assumption."""
        left, right = (self.printer.text(side) for side in (one.left, one.right))
        match one.relation:
            case "multiple":
                return f"${left}$ is a multiple of ${right}$"
            case "equal":
                return f"${left} = {right}$"
            case "at_least":
                return rf"${left} \ge {right}$"
        return rf"${left} \le {right}$"

    def polynomial(self, head: str, terms: Sequence[tuple[int, Formula]], unknown: Unknown) -> Display:
        """A polynomial in one length."""
        letter = self.letter(unknown)
        powers = {0: "", 1: letter}
        lines = [self.printer.term(formula, powers.get(power, f"{letter}^{{{power}}}"), self.line) for power, formula in terms]
        return self.displayed(aligned(head, lines))

    def formula(self, head: str, formula: Formula) -> Display:
        """A formula."""
        return self.displayed(aligned(head, [fold(self.printer.text(formula), self.line)]))

    @staticmethod
    def displayed(rows: Sequence[str]) -> Display:
        """Rows, where they are not too many."""
        return Display(tuple(rows) if len(rows) <= MOST else ())

    def crossover(self, growth: Growth, found: Crossover) -> Display:
        """The length at which attention does as much as all else, with the coefficients where it is a root."""
        star = rf"{self.letter(growth.unknown)}^{{*}}"
        if found.kind == "quotient":
            return self.quotient(star, found)
        a, b, c = COEFFICIENTS
        root = rf"\frac{{-{b} + \sqrt{{{b}^{{2}} - 4 {a} {c}}}}}{{2 {a}}}"
        rows = [rf"{star} ={{}}& {root}"]
        if found.constant == ZERO:
            rows = [rf"{star} ={{}}& -{b} / {a}"]
        for name, formula in zip(COEFFICIENTS, (found.square, found.linear, found.constant), strict=True):
            first, *rest = fold(self.printer.text(formula), self.line)
            rows += [rf"{name} ={{}}& {first}", *(rf"&\qquad {{}}{line}" for line in rest)]
        return self.displayed(rows)

    def quotient(self, star: str, found: Crossover) -> Display:
        """One quotient, with letters where it is long."""
        above, below = self.printer.text(found.above), self.printer.text(found.below)
        if max(width(above), width(below)) <= self.line - SHORT:
            return Display((rf"{star} ={{}}& \frac{{{above}}}{{{below}}}",))
        rows = [rf"{star} ={{}}& \alpha / \beta"]
        for name, text in zip(COEFFICIENTS, (above, below), strict=False):
            first, *rest = fold(text, self.line)
            rows += [rf"{name} ={{}}& {first}", *(rf"&\qquad {{}}{line}" for line in rest)]
        return self.displayed(rows)

    def may_vanish(self, found: Crossover) -> bool:
        """Whether the square may be none, as a condition says."""
        return "[" in self.printer.text(found.square)

    def same(self, growth: Growth) -> bool:
        """Whether both passes cross where the forward pass does."""
        return len({(one.kind, one.above, one.below, one.square, one.linear, one.constant) for one in growth.crossovers}) == 1

    def power(self, order: Order) -> str:
        """How work grows, in words."""
        if order.power in WORDS:
            return WORDS[order.power]
        return f"with power {order.power} of the tokens"

    @staticmethod
    def percent(share: Fraction | None) -> str:
        """A share, as text without a sign of percent; nothing where it is not known."""
        if share is None:
            return ""
        text = f"{float(100 * share):.2f}"
        return f"< {text[:-1]}1" if share and float(text) == 0 else text

    def groups(self, items: ItemAnalysis) -> Iterator[tuple[Unknown, list[Growth]]]:
        """The growth of one item by what varies."""
        for unknown in dict.fromkeys(growth.unknown for growth in items.growth):
            yield unknown, [growth for growth in items.growth if growth.unknown == unknown]

    def value(self, found: Crossover) -> str:
        """The value of a crossover."""
        return "" if found.value is None else f"{found.value:,}"
