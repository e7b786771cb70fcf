"""The tree of a page: what it says and shows, in order, without the markup of any format.

``sections*.py`` build it once; a printer per format (:mod:`symflops.emit.page.printing`) knows these types and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from symflops.formula.formula import Formula


@dataclass(frozen=True, slots=True)
class Code:
    """A name or a command, as it is typed."""

    text: str


@dataclass(frozen=True, slots=True)
class Math:
    """A formula within a line: formulas, and LaTeX between them."""

    parts: tuple[str | Formula, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number, or a fraction to four places; ``signed`` shows a plus, too."""

    value: int | Fraction
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Emphasis:
    """Words that stand out."""

    words: Words


@dataclass(frozen=True, slots=True)
class Mark:
    """The letter of a note."""

    letter: str


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead to an address: ``#id`` for a section of the page."""

    address: str
    words: Words


@dataclass(frozen=True, slots=True)
class EquationLink:
    """The number of an equation."""

    number: int


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar whose parts, a dark and a light one, are shares of the width that it may have."""

    dark: Fraction
    light: Fraction


Inline: TypeAlias = str | Code | Math | Number | Emphasis | Mark | Link | EquationLink | Bar
Words: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a part of a section."""

    words: Words


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One or more sentences."""

    words: Words


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes to a table: their letters and words; a note without a letter explains a sign."""

    notes: tuple[tuple[str, Words], ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment for those who read the source."""

    text: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column: ``share`` of the line in percent, where lines of a cell may break, or as wide as its cells."""

    title: Words
    share: int = 0
    number: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """The heading of the rows below it; without words, the end of such rows."""

    words: Words = ()


Row: TypeAlias = Group | tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the last cell of a short row is as wide as all that are missing.

    ``small`` is 0, 1 or 2: how much smaller than the text it may be where a page is narrow.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    small: int = 0


@dataclass(frozen=True, slots=True)
class Scaled:
    """A formula, times a factor."""

    formula: Formula
    factor: Formula | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """``head = term + term``; a head is a word or math. A numbered line is displayed alone."""

    head: str | Math
    terms: tuple[Scaled | Math, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Equation:
    """Displayed lines, aligned; a printer breaks those that are too wide."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing or an interactive part, which a format without a place for it leaves out; ``about`` says what it shows."""

    id: str
    title: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves over a length, both axes logarithmic, which a format without a place for it leaves out.

    ``lines`` are names with points, ``marks`` lengths that a line marks.
    """

    id: str
    title: str
    across: str
    up: str
    lines: tuple[tuple[str, tuple[tuple[int, Fraction], ...]], ...]
    marks: tuple[int, ...] = ()


Block: TypeAlias = Heading | Paragraph | Items | Notes | Remark | Table | Equation | Figure | Plot


@dataclass(frozen=True, slots=True)
class Section:
    """A section; ``short`` is its title in a list of contents."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    short: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A key figure: name, value, and a note."""

    name: str
    value: Words
    note: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A page: its head, and its sections in order.

    ``letters`` are the LaTeX of the letters in formulas, ``sources`` the paths of the spec's files, each with its digest.
    """

    name: str
    title: str
    facts: tuple[Fact, ...]
    intro: tuple[Block, ...]
    parts: tuple[Section | Figure, ...]
    letters: Mapping[str, str]
    sources: tuple[tuple[str, str], ...]
    subtitle: str = "Parameters and FLOPs, derived"
