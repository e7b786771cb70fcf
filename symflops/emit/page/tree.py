"""The tree of a page: its contents in order, free of markup.

``sections*.py`` build it once; one printer per format (:mod:`symflops.emit.page.printing`) prints these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from symflops.formula.formula import Formula


@dataclass(frozen=True, slots=True)
class Code:
    """A name or a command, in typewriter."""

    text: str


@dataclass(frozen=True, slots=True)
class Math:
    """Inline math: ``parts`` are formulas, and LaTeX between them."""

    parts: tuple[str | Formula, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """An integer, or a fraction to four places; ``signed`` also prints a plus sign."""

    value: int | Fraction
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Emphasis:
    """Emphasised words."""

    words: Words


@dataclass(frozen=True, slots=True)
class Mark:
    """The letter by which a table cell refers to a note."""

    letter: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link; the address ``#id`` is a section of the page."""

    address: str
    words: Words


@dataclass(frozen=True, slots=True)
class EquationLink:
    """Reference to an equation by its number."""

    number: int


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a dark part and then a light part; their lengths are shares of the maximum width."""

    dark: Fraction
    light: Fraction


Inline: TypeAlias = str | Code | Math | Number | Emphasis | Mark | Link | EquationLink | Bar
Words: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    words: Words


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One or more sentences."""

    words: Words


@dataclass(frozen=True, slots=True)
class Items:
    """A list; ``columns`` is the number of columns on a wide page."""

    items: tuple[Words, ...]
    columns: int = 1


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
    """A table column; ``share`` is its width in percent, 0 for the width of its widest cell.

    With a share, lines may break inside its cells. ``number``: whether cells align right.
    """

    title: Words
    share: int = 0
    number: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A heading between table rows; without words, the end of the group of rows above."""

    words: Words = ()


Row: TypeAlias = Group | tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the last cell of a short row spans the missing columns.

    ``small`` is 0, 1 or 2: how far the font may shrink on a narrow page.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    small: int = 0


@dataclass(frozen=True, slots=True)
class Scaled:
    """A term of a line: ``formula`` times ``factor``, or the formula alone."""

    formula: Formula
    factor: Formula | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an equation: ``head = term + term``, where the head is a word or math.

    A line with a number is displayed alone.
    """

    head: str | Math
    terms: tuple[Scaled | Math, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Equation:
    """Aligned displayed lines; a printer breaks lines that are too wide."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing or an interactive part, omitted by formats that cannot display it; ``about`` describes it."""

    id: str
    title: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves over a length with logarithmic axes, omitted by formats that cannot display them.

    ``lines`` are (name, points), ``marks`` are lengths marked by a vertical line.
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

    ``letters`` maps the letters in formulas to LaTeX, ``sources`` are the paths of the spec's files with their digests, and
    ``full`` says whether it has the derivation.
    """

    name: str
    title: str
    facts: tuple[Fact, ...]
    intro: tuple[Block, ...]
    parts: tuple[Section | Figure, ...]
    letters: Mapping[str, str]
    sources: tuple[tuple[str, str], ...]
    subtitle: str = "Parameters and FLOPs, derived"
    full: bool = True
