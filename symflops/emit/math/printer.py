"""Formulas as LaTeX with the letters of papers; long formulas become lines that fit on a page.

The width of a text in print is estimated from its LaTeX.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import prod

from symflops.emit.code.infix import ATOM, PRODUCT, SUM, UNARY, Printer
from symflops.formula.formula import ONE, Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, TallyOf, symbols
from symflops.formula.identifiers import latex_symbol
from symflops.formula.terms import factors_of, is_negative
from symflops.ir.batch import Moment, Statistic
from symflops.ir.index_sets import ONCE, PADDED, SAMPLES
from symflops.ir.program import Program

LIMITS = re.compile(r"\\sum_\{([^{}]*)\}\^\{((?:[^{}]|\{[^{}]*\})*)\}")
NEST = {"(": 1, "[": 1, r"\lfloor": 1, r"\lceil": 1, ")": -1, "]": -1, r"\rfloor": -1, r"\rceil": -1}
LINE = 375.0


@lru_cache(maxsize=1 << 14)
def width(text: str) -> float:
    """Return the approximate width of the LaTeX formula ``text`` in print, in points."""
    text = LIMITS.sub(lambda found: "x" * (3 + round(0.7 * len(re.sub("[ {}^]", "", max(*found.groups(), key=len))))), text)
    small = sum(len(part) for part in re.findall(r"[_^]\{([A-Za-z0-9+]*)\}", text))
    thin = len(re.findall(r"\\,|\\thin", text))
    plain = re.sub(r"\\(mathit|mathrm|operatorname|text|frac|thinspace)\b|\\(?=(min|max|bmod)\b)|[{}_^&]|\\,", "", text)
    plain = re.sub(r"\\[A-Za-z]+", "M", plain)
    spaced = len(re.findall(r"[-+/=M]", plain))
    wide = len(re.findall("[A-Z]", plain))
    return 5.4 * len(plain.replace(" ", "")) + 2.4 * wide + 6.0 * spaced + 1.7 * thin - 1.6 * small


def fold(text: str, line: float = LINE) -> list[str]:
    """Break ``text`` into lines of at most ``line`` points.

    Lines break before plus and minus; inside brackets only if their content is too wide, between factors only if nothing else
    helps.
    """
    places = list(breaks(text))
    cuts = [0, len(text)]
    for depth in sorted({depth for _, depth in places}):
        for start, end in list(pairwise(cuts)):
            if width(text[start:end]) > line:
                cuts += [place for place, nested in places if nested == depth and start < place < end]
        cuts.sort()
    pieces: list[str] = []
    for piece in (text[start:end].strip() for start, end in pairwise(cuts)):
        pieces += [piece] if width(piece) <= line else split(piece, re.compile(" "))
    lines: list[str] = []
    for piece in pieces:
        if lines and width(f"{lines[-1]} {piece}") <= line:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def breaks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the possible line breaks before a plus or minus: (position, number of brackets around it)."""
    braces = nested = 0
    for found in re.finditer(r"[{}()\[\]]|\\[lr](?:floor|ceil)| (?=[+-] )", text):
        braces += {"{": 1, "}": -1}.get(found.group(), 0)
        if braces == 0:
            nested += NEST.get(found.group(), 0)
            if found.group() == " " and found.start():
                yield found.start(), nested


def split(text: str, at: re.Pattern[str]) -> list[str]:
    """Split ``text`` where ``at`` matches outside braces."""
    cuts, depth = [0], 0
    for position, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0 and position and at.match(text, position):
            cuts.append(position)
    return [text[start:end].strip() for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]


PLAIN = re.compile(r"[0-9]+|[A-Za-z](\^\{[0-9]+\})?")
INDEX = "bjkstuvw"
COUNTS = ("n", "B", "m", "N", r"\nu")
SUBSCRIPT = 26
NOT_EQUAL, EMPTY = r"\ne", r"\varnothing"


class LatexPrinter(Printer):
    """Printer of formulas in LaTeX math.

    Args:
        names: LaTeX by letter.
        space: Separator of factors that would run together.
        after: Text after the limits of a sum.
    """

    def __init__(self, names: Mapping[str, str] | None = None, space: str = r"\,", after: str = "") -> None:
        self.names = dict(names or {})
        self.space = space
        self.after = after

    def visit(self, formula: Formula) -> tuple[str, int]:
        """Print ``formula``; return (text, precedence of its outermost operator).

        1 minus a condition is printed as the negated condition.
        """
        match formula:
            case Sum((Num(one), Prod((Num(minus), Bracket() as condition)))) if one == 1 and minus == -1:
                return self.bracket(condition, holds=False)
        return super().visit(formula)

    def sum(self, terms: tuple[Formula, ...]) -> str:
        """Print the sum of ``terms``, with a positive term first."""
        return super().sum(tuple(sorted(terms, key=is_negative)) if is_negative(terms[0]) else terms)

    def number(self, value: Fraction) -> tuple[str, int]:
        sign, top = "-" if value < 0 else "", abs(value.numerator)
        text = str(top) if value.denominator == 1 else rf"\frac{{{top}}}{{{value.denominator}}}"
        return sign + text, PRODUCT if sign else ATOM

    def symbol(self, name: str) -> str:
        if name not in self.names and "@" in name:
            head, _, number = name.partition("@")
            return f"{head}_{{{number}}}" if head in self.names else head
        return self.names[name] if name in self.names else latex_symbol(name)

    def quoted(self, text: str) -> str:
        return rf"\text{{{re.sub(r'[^A-Za-z0-9 .,:/-]', '-', text)}}}"

    def product(self, factors: tuple[Formula, ...]) -> tuple[str, int]:
        number = prod((factor.value for factor in factors if isinstance(factor, Num)), start=Fraction(1))
        divisors = [factor for factor in factors if isinstance(factor, Power) and factor.exponent < 0]
        under = [inverse(divisor) for divisor in divisors]
        rest = [factor for factor in factors if not isinstance(factor, Num) and factor not in divisors]
        sign, head = "-" if number < 0 else "", abs(number)
        if under:
            return sign + self.quotient(head, rest, under), PRODUCT
        parts = [self.inside(factor, UNARY) for factor in rest]
        if head != 1 or not parts:
            parts.insert(0, self.number(head)[0])
        return sign + self.joined(parts), PRODUCT

    def quotient(self, number: Fraction, factors: Sequence[Formula], under: Sequence[Formula]) -> str:
        """Print a fraction; factors that are sums follow it, so that a line can break inside them."""
        beside = [self.inside(factor, UNARY) for factor in factors if isinstance(factor, Sum)]
        above = [self.inside(factor, UNARY) for factor in factors if not isinstance(factor, Sum)]
        below = [self.inside(factor, UNARY if len(under) > 1 else SUM) for factor in under]
        if number.numerator != 1 or not above:
            above.insert(0, str(number.numerator))
        if number.denominator != 1:
            below = [str(number.denominator), *(self.inside(factor, UNARY) for factor in under)]
        return self.joined([rf"\frac{{{self.joined(above)}}}{{{self.joined(below)}}}", *beside])

    def joined(self, parts: list[str]) -> str:
        """Join factors: a dot before digits, a plain space between letters, else ``space``."""
        text = parts[0]
        for before, part in pairwise(parts):
            if part[0].isdigit():
                text += rf" \cdot {part}"
            elif PLAIN.fullmatch(before) and PLAIN.fullmatch(part):
                text += f" {part}"
            else:
                text += f" {self.space} {part}"
        return text

    def power(self, formula: Power) -> str:
        if formula.exponent < 0:
            return rf"\frac{{1}}{{{self.text(inverse(formula))}}}"
        base = self.inside(formula.base, ATOM)
        if isinstance(formula.base, Sym) and "^" in base:
            base = f"{{{base}}}"
        return base if formula.exponent == 1 else f"{base}^{{{formula.exponent}}}"

    def rounded(self, top: Formula, bottom: Formula) -> str:
        """Print the argument of a floor or ceiling: a quotient, or ``top`` alone if the divisor is 1."""
        return self.text(top) if bottom == ONE else f"{self.inside(top, PRODUCT)} / {self.inside(bottom, UNARY)}"

    def apply(self, formula: Apply) -> tuple[str, int]:
        first, *rest = formula.arguments
        match formula.function:
            case "floordiv":
                return rf"\lfloor {self.rounded(first, rest[0])} \rfloor", ATOM
            case "ceildiv":
                return rf"\lceil {self.rounded(first, rest[0])} \rceil", ATOM
            case "mod":
                return rf"{self.inside(first, UNARY)} \bmod {self.inside(rest[0], UNARY)}", PRODUCT
            case "excess":
                return f"({self.text(first)})^{{+}}", UNARY
            case "item" | "each":
                name = self.inside(first, ATOM)
                return f"{f'({name})' if '_' in name else name}_{{{self.text(rest[0])}}}", ATOM
            case "len":
                return rf"\lvert {self.text(first)} \rvert", ATOM
        arguments = ", ".join(self.text(argument) for argument in formula.arguments)
        if formula.function in ("min", "max"):
            return rf"\{formula.function}({arguments})", ATOM
        return rf"\operatorname{{{'sum' if formula.function == 'total' else formula.function}}}({arguments})", ATOM

    def bracket(self, formula: Bracket, holds: bool = True) -> tuple[str, int]:
        """Print a condition in Iverson brackets; its negation if not ``holds``."""
        texts = [self.text(argument) for argument in formula.arguments]
        match formula.kind:
            case "flag":
                return f"[{texts[0]}]" if holds else rf"[\neg {texts[0]}]", ATOM
            case "given":
                return f"[{texts[0]} {NOT_EQUAL if holds else '='} {EMPTY}]", ATOM
        relation = {"at_least": (r"\ge", "<"), "contains": (r"\in", r"\notin")}.get(formula.kind, ("=", NOT_EQUAL))[not holds]
        return f"[{texts[0]} {relation} {texts[1]}]", ATOM

    def tally(self, formula: TallyOf) -> tuple[str, int]:
        index = self.symbol(formula.index)
        high = self.text(Num(formula.high.value - 1)) if isinstance(formula.high, Num) else f"{self.text(formula.high)} - 1"
        limits = rf"\sum_{{{index}={self.text(formula.low)}}}^{{{high}}}{self.after}"
        return f"{limits} {self.inside(formula.condition, PRODUCT)}", PRODUCT

    # long formulas

    def term(self, coefficient: Formula, factor: str, line: float = LINE) -> list[str]:
        """Print ``coefficient factor`` as lines; a coefficient of 1 and an empty factor are omitted."""
        if not factor:
            return fold(self.text(coefficient), line)
        if coefficient == Num(Fraction(1)):
            return [factor]
        return fold(self.joined([self.inside(coefficient, PRODUCT), factor]), line)


def inverse(divisor: Power) -> Formula:
    """Return the divisor that a power with negative exponent stands for, such as ``a`` for ``a**-1``."""
    return divisor.base if divisor.exponent == -1 else Power(divisor.base, -divisor.exponent)


def letters(program: Program) -> dict[str, str]:
    """Map each letter of a program to LaTeX; its moments have the letters ``moment@0``, ``moment@1``, ...

    The LaTeX of the constant moment 1 is empty. ``moment@0`` sums the lengths that the first convention counts, ``real@0`` real
    lengths, and ``padded@0`` padded lengths.
    """
    found = {field.letter: field.latex for field in program.fields}
    found |= {definition.letter: definition.latex for definition in program.definitions}
    for stream in program.streams:
        for variable in stream.variables:
            found.setdefault(variable, latex_symbol(variable))
    for statistic in program.statistics:
        found[statistic.name] = statistic_symbol(statistic, found)
    printer = LatexPrinter(found)
    first = program.rows[0].lengths if program.rows else ""
    for position, moment in enumerate(program.moments):
        symbol = moment_symbol(moment, position, printer)
        padded = barred(symbol) if any(True for _ in symbols(moment.formula)) else symbol
        real = padded if moment.side else symbol
        found |= {f"real@{position}": real, f"padded@{position}": padded}
        found[f"moment@{position}"] = padded if first == PADDED else real
    return found


def is_barred(symbol: str) -> bool:
    """Whether a symbol denotes a moment of padded lengths."""
    return symbol.startswith((r"\bar{S}", r"\overline{"))


def barred(symbol: str) -> str:
    """Put a bar on the symbol of a moment, for padded lengths."""
    return rf"\bar{{S}}{symbol[1:]}" if symbol.startswith("S_") else rf"\overline{{{symbol}}}"


def moment_symbol(moment: Moment, position: int, printer: LatexPrinter) -> str:
    r"""LaTeX symbol of a moment.

    ``n`` for the number of samples (another letter if a size is called ``n``), ``S_{xy}`` for products of lengths, ``S_{f(x)}``
    for short functions, ``S_{position}`` for long ones. A short product of statistics of the batch is its own symbol.
    """
    if moment.constant:
        return ""
    if not any(True for _ in symbols(moment.formula)):
        letter = next(letter for letter in COUNTS if letter not in printer.names.values())
        return letter if moment.items == SAMPLES else rf"{letter}_{{\mathrm{{{moment.items.replace('_', ' ')}}}}}"
    text = side_by_side([word for factor in factors_of(moment.formula) for word in words_of(factor, printer)])
    if len(text) > SUBSCRIPT or r"\frac" in text:
        return f"S_{{{position}}}"
    return text if moment.items == ONCE else f"S_{{{text}}}"


def words_of(factor: Formula, printer: LatexPrinter) -> list[str]:
    """Return the text of a factor, or of its base as many times as its exponent says."""
    if isinstance(factor, Power) and factor.exponent > 0:
        return [printer.inside(factor.base, PRODUCT)] * factor.exponent
    return [printer.inside(factor, PRODUCT)]


def side_by_side(words: list[str]) -> str:
    r"""Print a product in a subscript: single letters as ``xxy``, longer words as ``x^{2}\,h``."""
    if all(len(word) == 1 for word in words):
        return "".join(words)
    counts = Counter(words)
    return r"\,".join(word if count == 1 else f"{word}^{{{count}}}" for word, count in counts.items())


def statistic_symbol(statistic: Statistic, names: Mapping[str, str]) -> str:
    """LaTeX symbol of a statistic: the symbol of a moment for a sum, a letter with a hat for a maximum."""
    words = statistic.name.partition("_")[2].replace("_plus_", "+").replace("_", r"\ ")
    if statistic.kind == "sum":
        symbol = moment_symbol(Moment("", statistic.items, statistic.formula), 0, LatexPrinter(names))
        return symbol if symbol != "S_{0}" else rf"S_{{\mathrm{{{words}}}}}"
    if isinstance(statistic.formula, Sym):
        return rf"\hat{{{names[statistic.formula.name]}}}"
    return rf"\hat{{\ell}}_{{\mathrm{{{words}}}}}"
