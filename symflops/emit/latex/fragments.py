"""Pieces of LaTeX to paste into a paper: an alignment and two tables, without a preamble."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil

from symflops.emit.latex.document import LatexPage, column, comment, escape
from symflops.emit.math.definitions import abbreviated
from symflops.emit.math.printer import fold, width
from symflops.emit.page.fragments import fragments, letters_of, named_blocks
from symflops.emit.page.tree import (
    Block,
    Code,
    Equation,
    Group,
    Heading,
    Inline,
    Line,
    Math,
    Paragraph,
    Row,
    Scaled,
    Section,
    Table,
    Words,
)
from symflops.emit.page.writing import extent, head_text, math_text
from symflops.formula.terms import sum_of
from symflops.ir.program import Program

NARROW = 70.0  # width in points above which a formula may break in a cell
TEXT, LINES = 345.0, 36  # line width in points, and maximum lines of a table on one page
LETTER, WIDE_LETTER = 5.0, 6.0  # widths in points of a letter, and of a typewriter letter
MATH = r"% Needs \usepackage{amsmath,amssymb}"
PACKAGES = r"\usepackage[T1]{fontenc} and \usepackage{amsmath,amssymb,array,booktabs"
TALL = "It breaks across pages: place it in no other environment, where there is one column."
RAGGED = r">{\raggedright\arraybackslash}p"


LONG, PART = re.compile(r"\\text\{([A-Za-z0-9]{12,})\}"), re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
FLOATS = 4
"""Number of floats before each page is cleared; LaTeX keeps a limited number."""
COLUMN = 229.5
"""Width in points of a column of a two-column ``article``."""
BIBTEX = (
    "@software{symflops,",
    "  title   = {symflops: parameters and {FLOPs} of neural networks, derived},",
    "  author  = {{The symflops developers}},",
    "  version = {VERSION},",
    "}",
)


def render_fragments(program: Program, version: str, wide: str = "page") -> dict[str, str]:
    """Print fragments in LaTeX: map each name in ``PIECES`` to its text.

    ``wide`` names the text width of the paper (one of ``WIDTHS``).
    """
    found = fragments(abbreviated(program.first()))
    make = ColumnFragment if wide == "column" else LatexFragment
    printer = make(letters_of(found), found.page.program.name)
    texts = {name: printer.blocks(blocks) + "\n" for name, blocks in named_blocks(found, version).items()}
    cite = "".join(f"% {line}\n" for line in BIBTEX).replace("VERSION", comment(version))
    return texts | {"forms": f"{texts['forms']}{cite}"}


class LatexFragment(LatexPage):
    """Printer of a fragment for text 345 points wide; labels of its equations begin with ``name``."""

    line = 220.0  # beside a head and a number
    least = 345.0
    end = r"\cr"  # ends a case; rows of an alignment end with a label or \notag
    cases = 290.0  # width in points of a row with cases, head included

    def __init__(self, letters: Mapping[str, str], name: str) -> None:
        super().__init__(letters, r"\,\penalty900")
        self.name = comment(name)

    def math(self, node: Math) -> str:
        text = math_text(node, self.printer)
        return f"${self.breakable(text) if width(text) > NARROW else text}$"

    def breakable(self, text: str) -> str:
        """Return math with line breaks allowed between factors, and within long class names."""
        return LONG.sub(lambda found: PART.sub(r"\\text{\g<0>}\\penalty500 ", found[1]), super().breakable(text))

    def equation_link(self, number: int) -> str:
        return rf"\eqref{{eq:{self.name}-{number}}}"

    def blocks(self, nodes: Iterable[Block | Section]) -> str:
        nodes = list(nodes)
        headings = [node for node in nodes if isinstance(node, Heading)]
        if len(headings) == 1:  # a lone heading distinguishes nothing: print it as a comment
            told = self.remark("".join(map(without_markup, headings[0].words)) + ".")
            return self.joined([(node, told if node is headings[0] else self.block(node)) for node in nodes])
        return super().blocks(nodes)

    def joined(self, blocks: Sequence[tuple[Block | Section, str]]) -> str:
        (_, remark), *rest = blocks
        spaced = [f"\n{text}" if isinstance(node, Heading) and not text.startswith("%") else text for node, text in rest]
        if any(isinstance(node, Paragraph) for node, _ in rest) and len(rest) == 1:
            return "\n".join([remark, MATH + ".", r"{\sloppy", *spaced, r"\par}"])
        if not any(isinstance(node, Equation) for node, _ in rest):
            return "\n".join([remark, *spaced])
        needs = f"{MATH}. Rows fit a text that is at least {self.least:g}pt wide."
        return "\n".join([remark, needs, r"\begingroup\allowdisplaybreaks", *spaced, r"\endgroup"])

    def heading(self, words: str) -> str:
        return rf"\noindent {words}:"

    def remark(self, text: str) -> str:
        return f"% {comment(text)}"

    def block(self, node: Block | Section) -> str:
        return self.aligned(node.lines) if isinstance(node, Equation) else super().block(node)

    def aligned(self, lines: Sequence[Line]) -> str:
        """Print all lines as one alignment, each with a label."""
        rows = []
        for line in lines:
            head = line.head if isinstance(line.head, str) else re.sub(r"\W|_", "", math_text(line.head, self.printer))
            label = rf"\label{{eq:{self.name}-{line.number or head}}}"
            rows.append(" \\notag \\\\\n".join(self.line_rows(line)) + f" {label}")
        body = " \\\\\n".join(rows)
        return f"\\begin{{align}}\n{body}\n\\end{{align}}"

    def line_rows(self, line: Line) -> list[str]:
        """Print one line as rows of an alignment.

        Cases that are too wide are printed as a sum with Iverson brackets.
        """
        rows = self.rows([line])
        if all("cases" not in row or extent(row) <= self.cases for row in rows):
            return rows
        formula = sum_of(term.formula for term in line.terms if isinstance(term, Scaled))
        first, *rest = fold(self.printer.text(formula), self.line)
        return [rf"{head_text(line, self.printer)} ={{}}& {first}", *(rf"&\qquad {{}}{text}" for text in rest)]

    def table(self, node: Table) -> str:
        tall = self.is_long(node)
        kind, columns = "longtable" if tall else "tabular", " ".join(map(column, node.columns)).replace("P{", f"{RAGGED}{{")
        needs = f"% Needs {PACKAGES}{',longtable' if tall else ''}}}. {TALL if tall else 'Place it in a table environment.'}"
        rows = [row.replace("P{", f"{RAGGED}{{", 1) if r"\multicolumn" in row else row for row in self.table_rows(node)]
        head = [
            r"{\small\setlength{\tabcolsep}{4pt}%",
            rf"\begin{{{kind}}}{{@{{}}{columns}@{{}}}}",
            r"\toprule",
            self.titles(node),
        ]
        above = [r"\midrule", r"\endhead"] if tall else [r"\midrule"]
        return "\n".join([needs, *head, *above, *rows, r"\bottomrule", rf"\end{{{kind}}}}}"])

    def is_long(self, node: Table) -> bool:
        """Whether a table spans several pages."""
        return self.height(node) > LINES

    def height(self, node: Table) -> int:
        """Return the height of a table, as a number of lines of text."""
        lines = 0
        for row in node.rows:
            cells = (row.words,) if isinstance(row, Group) else row
            shares = [
                *(each.share for each in node.columns[: len(cells) - 1]),
                sum(each.share for each in node.columns[len(cells) - 1 :]),
            ]
            lines += max(ceil(self.extent(cell) / (TEXT * share / 100)) or 1 for cell, share in zip(cells, shares, strict=True))
        return lines

    def extent(self, words: Words) -> float:
        """Return the width of ``words`` in points."""
        return sum(width(math_text(node, self.printer)) if isinstance(node, Math) else letters(node) for node in words)


class ColumnFragment(LatexFragment):
    """Printer of a fragment for a two-column paper: equations fit a column, tables float across both."""

    line = 168.0  # beside an indent and a number
    least = COLUMN
    cases = 200.0

    def line_rows(self, line: Line) -> list[str]:
        """Print one line as rows, flush left; if the first row is too long, the head has a row of its own."""
        first, *rest = super().line_rows(line)
        head, _, text = first.partition(" ={}& ")
        if width(head) + width(text) > self.line:
            return [f"&{head} ={{}}", f"&\\quad {text}", *map(indented, rest)]
        return [f"&{head} = {text}", *map(indented, rest)]

    def is_long(self, node: Table) -> bool:
        return False  # a float fits on one page, and two-column text has no other tables

    def table(self, node: Table) -> str:
        """Print a table as floats of at most one page each."""
        parts: list[list[Row]] = [[]]
        group: Row | None = None
        for row in node.rows:
            if self.height(replace(node, rows=(*parts[-1], row))) > LINES:
                parts.append([group] if group is not None and not isinstance(row, Group) else [])
            group = row if isinstance(row, Group) and row.words else None if isinstance(row, Group) else group
            parts[-1].append(row)
        needs = f"% Needs {PACKAGES}}}. Floats across both columns of a text that is at least {TEXT:g}pt wide."
        found = [needs]
        for number, rows in enumerate(parts, 1):
            count = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
            text = super().table(replace(node, rows=tuple(rows))).partition("\n")[2]
            label = f"tab:{self.name}-{node.caption.lower()}" + (f"-{number}" if count else "")
            caption = rf"\caption{{{escape(node.caption)} of {escape(self.name)}{count}}}\label{{{label}}}"
            found += [r"\begin{table*}[tp]\centering", text, caption, r"\end{table*}"]
            found += [r"\clearpage"] if number % FLOATS == 0 else []
        return "\n".join(found)


def indented(row: str) -> str:
    """Return a row that continues a line, with an indent before its text."""
    return row if row.startswith(r"&\qquad") else row.replace("&", r"&\quad ", 1)


def letters(node: Inline) -> float:
    """Return the width of an inline node that is not math, in points."""
    return (WIDE_LETTER if isinstance(node, Code) else LETTER) * len(without_markup(node))


def without_markup(node: Inline) -> str:
    """Return text or code without markup; of another node, letters of about the same width."""
    return node if isinstance(node, str) else node.text if isinstance(node, Code) else re.sub("[a-z]", "x", str(node))
