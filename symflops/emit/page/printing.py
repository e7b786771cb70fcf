"""The walk over the tree of a page: a format says how it marks up each kind of node, and adds no words of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from symflops.emit.math.lines import LINE
from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.tree import (
    Bar,
    Block,
    Code,
    Emphasis,
    Equation,
    EquationLink,
    Figure,
    Heading,
    Inline,
    Items,
    Line,
    Link,
    Mark,
    Math,
    Notes,
    Number,
    Paragraph,
    Plot,
    Remark,
    Section,
    Table,
    Words,
)
from symflops.emit.page.writing import aligned, math_text

MINUS_SIGN = "\N{MINUS SIGN}"
CELLS = 40
"""The characters of the longest bar."""


class PagePrinter(ABC):
    """Prints the nodes of a page in one format; ``letters`` are those of its formulas."""

    line = LINE
    """The width of a line of a displayed formula, in points."""
    end = r"\\"
    """What ends a line of an alignment."""

    def __init__(self, letters: Mapping[str, str], space: str = r"\,") -> None:
        self.printer = LatexPrinter(letters, space)

    # within a line

    def words(self, words: Words) -> str:
        """Words with all that stands among them."""
        return "".join(map(self.inline, words))

    def inline(self, node: Inline) -> str:
        """One node within a line."""
        match node:
            case str():
                return self.text(node)
            case Code(text):
                return self.code(text)
            case Math():
                return self.math(node)
            case Number():
                return self.number(node)
            case Emphasis(words):
                return self.emphasis(self.words(words))
            case Mark(letter):
                return self.mark(letter)
            case Link(address, words):
                return self.link(address, self.words(words))
            case EquationLink(number):
                return self.equation_link(number)
            case Bar():
                return self.bar(node)

    @abstractmethod
    def text(self, text: str) -> str:
        """Any text, escaped."""

    @abstractmethod
    def code(self, text: str) -> str:
        """A name in the typewriter face."""

    def math(self, node: Math) -> str:
        """A formula within a line."""
        return f"${math_text(node, self.printer)}$"

    def number(self, node: Number) -> str:
        """A number."""
        if isinstance(node.value, Fraction):
            return f"{float(node.value):,.4f}" if node.value < 1000 else f"{float(node.value):,.1f}"
        return (f"{node.value:+,}" if node.signed else f"{node.value:,}").replace("-", MINUS_SIGN)

    @abstractmethod
    def emphasis(self, words: str) -> str:
        """Words that stand out."""

    @abstractmethod
    def mark(self, letter: str) -> str:
        """The letter of a note."""

    @abstractmethod
    def link(self, address: str, words: str) -> str:
        """Words that lead to an address."""

    def equation_link(self, number: int) -> str:
        """The number of an equation."""
        return f"({number})"

    def bar(self, node: Bar) -> str:
        """A bar, of characters."""
        dark, whole = (round(CELLS * share) for share in (node.dark, node.dark + node.light))
        return "\u2588" * dark + "\u2591" * (whole - dark)

    # blocks

    def blocks(self, nodes: Iterable[Block | Section]) -> str:
        """Blocks, one after another."""
        return self.joined([(node, text) for node in nodes if (text := self.block(node))])

    def joined(self, blocks: Sequence[tuple[Block | Section, str]]) -> str:
        """Printed blocks as one text."""
        return "\n\n".join(text for _, text in blocks)

    def block(self, node: Block | Section) -> str:
        """One block."""
        match node:
            case Section():
                return self.section(node)
            case Heading(words):
                return self.heading(self.words(words))
            case Paragraph(words):
                return self.paragraph(self.words(words))
            case Items(items):
                return self.items([self.words(item) for item in items])
            case Notes(notes):
                return self.notes([(letter, self.words(words)) for letter, words in notes])
            case Remark(text):
                return self.remark(text)
            case Table():
                return self.table(node)
            case Equation():
                return "\n\n".join(self.display(lines) for lines in displays(node))
            case Figure():
                return self.figure(node)
            case Plot():
                return self.plot(node)

    @abstractmethod
    def section(self, node: Section) -> str:
        """A section."""

    @abstractmethod
    def heading(self, words: str) -> str:
        """The heading of a part of a section."""

    def paragraph(self, words: str) -> str:
        """One or more sentences."""
        return words

    @abstractmethod
    def items(self, items: Sequence[str]) -> str:
        """A list."""

    @abstractmethod
    def notes(self, notes: Sequence[tuple[str, str]]) -> str:
        """Notes to a table."""

    def remark(self, text: str) -> str:
        """A comment; a format whose source nobody reads leaves it out."""
        return ""

    @abstractmethod
    def table(self, node: Table) -> str:
        """A table."""

    @abstractmethod
    def display(self, lines: Sequence[Line]) -> str:
        """Lines of one alignment."""

    def rows(self, lines: Iterable[Line]) -> list[str]:
        """The rows of an alignment."""
        return aligned(lines, self.printer, self.line, self.end)

    def figure(self, node: Figure) -> str:
        """A drawing or an interactive part; most formats have no place for it."""
        return ""

    def plot(self, node: Plot) -> str:
        """Curves over a length; most formats have no place for them."""
        return ""


def displays(node: Equation) -> Iterator[Sequence[Line]]:
    """The lines that are displayed together: a numbered one alone, all others at once."""
    plain = [line for line in node.lines if not line.number]
    if plain:
        yield plain
    yield from ([line] for line in node.lines if line.number)
