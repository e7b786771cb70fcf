"""Base printer of page trees: a format defines the markup of each kind of node and adds no words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from symflops.emit.math.printer import LINE, LatexPrinter
from symflops.emit.page.tree import (
    Bar,
    Block,
    Code,
    Emphasis,
    Equation,
    EquationLink,
    Fact,
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
"""Length of the longest bar in characters."""


class PagePrinter(ABC):
    """Base class of printers of pages; a subclass prints the nodes of a page in one format.

    ``letters`` maps the letters of formulas to LaTeX, and ``space`` separates factors.
    """

    line = LINE
    """The width of a line of a displayed formula, in points."""
    end = r"\\"
    """End of a row of an alignment."""
    between = "\n\n"
    """Separator of the displays of one equation."""

    def __init__(self, letters: Mapping[str, str], space: str = r"\,") -> None:
        self.printer = LatexPrinter(letters, space)

    # within a line

    def words(self, words: Words) -> str:
        """Print words and the inline nodes among them."""
        return "".join(map(self.inline, words))

    def inline(self, node: Inline) -> str:
        """Print an inline node."""
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
        """Escape text."""

    @abstractmethod
    def code(self, text: str) -> str:
        """Print a name in typewriter."""

    def math(self, node: Math) -> str:
        """Print inline math."""
        return f"${math_text(node, self.printer)}$"

    def number(self, node: Number) -> str:
        """Print a number."""
        if isinstance(node.value, Fraction):
            return f"{float(node.value):,.4f}" if node.value < 1000 else f"{float(node.value):,.1f}"
        return (f"{node.value:+,}" if node.signed else f"{node.value:,}").replace("-", MINUS_SIGN)

    @abstractmethod
    def emphasis(self, words: str) -> str:
        """Print emphasised words."""

    @abstractmethod
    def mark(self, letter: str) -> str:
        """Print the letter of a note."""

    @abstractmethod
    def link(self, address: str, words: str) -> str:
        """Print a link."""

    def equation_link(self, number: int) -> str:
        """Print a reference to an equation by number."""
        return f"({number})"

    def bar(self, node: Bar) -> str:
        """Print a bar of block characters."""
        dark, whole = (round(CELLS * share) for share in (node.dark, node.dark + node.light))
        return "\u2588" * dark + "\u2591" * (whole - dark)

    def box(self, facts: Sequence[Fact]) -> str:
        """Print the key figures at the head of a page; empty without figures."""
        shown = [(self.text(fact.name), self.words(fact.value), self.text(fact.note)) for fact in facts]
        return self.boxed(shown) if shown else ""

    @abstractmethod
    def boxed(self, figures: Sequence[tuple[str, str, str]]) -> str:
        """Print a box of figures, each (name, value, note)."""

    # blocks

    def blocks(self, nodes: Iterable[Block | Section]) -> str:
        """Print blocks; empty ones are omitted."""
        return self.joined([(node, text) for node in nodes if (text := self.block(node))])

    def joined(self, blocks: Sequence[tuple[Block | Section, str]]) -> str:
        """Join blocks, given as (node, its printed text)."""
        return "\n\n".join(text for _, text in blocks)

    def block(self, node: Block | Section) -> str:
        """Print a block."""
        match node:
            case Section():
                return self.section(node)
            case Heading(words):
                return self.heading(self.words(words))
            case Paragraph(words):
                return self.paragraph(self.words(words))
            case Items(items, columns):
                return self.items([self.words(item) for item in items], columns)
            case Notes(notes):
                return self.notes([(letter, self.words(words)) for letter, words in notes])
            case Remark(text):
                return self.remark(text)
            case Table():
                return self.table(node)
            case Equation():
                return self.between.join(self.display(lines) for lines in displays(node))
            case Figure():
                return self.figure(node)
            case Plot():
                return self.plot(node)

    @abstractmethod
    def section(self, node: Section) -> str:
        """Print a section."""

    @abstractmethod
    def heading(self, words: str) -> str:
        """Print a heading within a section."""

    def paragraph(self, words: str) -> str:
        """Print a paragraph."""
        return words

    @abstractmethod
    def items(self, items: Sequence[str], columns: int) -> str:
        """Print a list, in columns on a wide page."""

    @abstractmethod
    def notes(self, notes: Sequence[tuple[str, str]]) -> str:
        """Print notes to a table, as (letter, words)."""

    def remark(self, text: str) -> str:
        """Print a comment for readers of the source; empty in formats whose source nobody reads."""
        return ""

    @abstractmethod
    def table(self, node: Table) -> str:
        """Print a table."""

    @abstractmethod
    def display(self, lines: Sequence[Line]) -> str:
        """Print lines of one displayed equation below each other, aligned at their equals signs.

        Each line is ``head = term + term``. If the last line has a number, it is printed beside the lines.
        """

    def rows(self, lines: Iterable[Line]) -> list[str]:
        """Print lines as the rows of a LaTeX alignment."""
        return aligned(lines, self.printer, self.line, self.end)

    def figure(self, node: Figure) -> str:
        """Print a drawing or an interactive part; empty in most formats."""
        return ""

    def plot(self, node: Plot) -> str:
        """Print curves over a length; empty in most formats."""
        return ""


def displays(node: Equation) -> Iterator[Sequence[Line]]:
    """Group the lines of an equation for display: plain lines together, each numbered line alone."""
    plain = [line for line in node.lines if not line.number]
    if plain:
        yield plain
    yield from ([line] for line in node.lines if line.number)
