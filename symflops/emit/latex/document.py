"""The LaTeX target: a derivation page as one document that pdflatex compiles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil

from symflops.emit.math.printer import LIMITS
from symflops.emit.page.printing import MINUS_SIGN, PagePrinter
from symflops.emit.page.tree import Bar, Block, Column, Document, Equation, Group, Line, Math, Number, Section, Table
from symflops.emit.page.writing import math_text
from symflops.emit.rendering import template

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"\textquotedbl{}", "'": "'", "`": r"\textasciigrave{}", "\u2013": "--",
    "\u2014": "---", "\u2019": "'", "\u201c": "``", "\u201d": "''", "†": r"\textsuperscript{\dag}",
    "→": r"$\to$", "\u00d7": r"$\times$", "≤": r"$\le$", "≥": r"$\ge$", "…": r"\dots{}", "-": "-", "\n": " ",
}  # fmt: skip
SMALL = (r"\footnotesize", r"\footnotesize\setlength{\tabcolsep}{3pt}", r"\scriptsize\setlength{\tabcolsep}{3pt}")
LONG = 24  # rows above which a table gets a smaller font
BREAK, LONG_MATH = r"\thin", 160  # line break, and length above which a formula also breaks between arguments
ACROSS = 4  # figures in a row of the box
WORD = 8  # letters of a long word between possible breaks


def render_page(shown: Document, version: str) -> str:
    """Print a derivation page as a LaTeX document."""
    printer = LatexPage(shown.letters)
    body = printer.blocks((*shown.intro, *shown.parts))
    asked = {"version": version, "shown": shown, "box": printer.box(shown.facts), "body": body}
    return template("derivation.tex.jinja").render(comment=comment, text=escape, **asked)


def comment(text: str) -> str:
    """Make ``text`` safe inside a LaTeX comment (printable ASCII)."""
    return re.sub(r"[^ -~]", "?", text)


def escape(text: str) -> str:
    """Escape ``text`` for LaTeX; characters that the fonts may lack become their code points."""
    if text.isascii() and text.isalnum():
        return text
    return "".join(SPECIAL.get(character) or _printable(character) for character in text)


def _printable(character: str) -> str:
    return character if 32 <= ord(character) < 127 or 192 <= ord(character) < 383 else f"U+{ord(character):04X}"


@lru_cache(maxsize=1 << 12)
def code(text: str) -> str:
    """Print a name in typewriter, with line breaks after separators, before capitals, and in long words."""
    pieces = re.findall(r"[A-Z][a-z0-9]+|[._/-]|[^._/A-Z-]+|[A-Z]", text)
    breakable = ""
    for piece in pieces:
        if breakable and (piece[0].isupper() and breakable[-1].islower()):
            breakable += r"\allowbreak{}"
        words = [piece[start : start + WORD] for start in range(0, len(piece), WORD)] if len(piece) > WORD + 2 else [piece]
        breakable += r"\penalty500{}".join(map(escape, words)) + (r"\allowbreak{}" if piece in "._/-" else "")
    return rf"\texttt{{{breakable.removesuffix(chr(92) + 'allowbreak{}')}}}"


class LatexPage(PagePrinter):
    """Printer of pages in LaTeX; a line may break at ``thin``, the space between factors."""

    line = 405.0
    between = "\n"  # no new paragraph between displays

    def __init__(self, letters: Mapping[str, str], thin: str = BREAK) -> None:
        super().__init__(letters)
        self.thin = thin

    def text(self, text: str) -> str:
        return escape(text)

    def code(self, text: str) -> str:
        return code(text)

    def math(self, node: Math) -> str:
        return f"${self.breakable(math_text(node, self.printer))}$"

    def breakable(self, text: str) -> str:
        """Return math with line breaks allowed between factors, and between arguments of a long function."""
        text = text.replace(", ", rf", {self.thin} ") if len(text) > LONG_MATH and self.thin == BREAK else text
        return LIMITS.sub(lambda found: found[0] + self.thin, text).replace(r" \, ", f" {self.thin} ")

    def number(self, node: Number) -> str:
        text = super().number(node).replace(MINUS_SIGN, "-")
        return f"${text}$".replace(",", "{,}") if node.signed or text.startswith("-") else text

    def emphasis(self, words: str) -> str:
        return rf"\emph{{{words}}}"

    def mark(self, letter: str) -> str:
        return rf"\,\textsuperscript{{\textit{{{letter}}}}}"

    def link(self, address: str, words: str) -> str:
        return rf"\hyperref[{address[1:]}]{{{words}}}" if address.startswith("#") else words

    def equation_link(self, number: int) -> str:
        return rf"\hyperref[eq-{number}]{{({number})}}"

    def bar(self, node: Bar) -> str:
        dark, light = (f"{float(share):.3f}\\linewidth" for share in (node.dark, node.light))
        return rf"\rule{{{dark}}}{{5pt}}\rule[2pt]{{{light}}}{{1pt}}"

    def joined(self, blocks: Sequence[tuple[Block | Section, str]]) -> str:
        text = ""
        for node, printed in blocks:  # no new paragraph between a sentence and its equation
            text += ("" if not text else "\n" if isinstance(node, Equation) else "\n\n") + printed
        return text

    def section(self, node: Section) -> str:
        return f"\\section{{{escape(node.title)}}}\\label{{{node.id}}}\n\n{self.blocks(node.blocks)}"

    def heading(self, words: str) -> str:
        return rf"\subsection*{{{words}}}"

    def boxed(self, figures: Sequence[tuple[str, str, str]]) -> str:
        cells = [rf"\figure{{{name}}}{{{value}}}{{{note}}}" for name, value, note in figures]
        across = ceil(len(cells) / ceil(len(cells) / ACROSS))
        rows = ["\n".join(cells[start : start + across]) for start in range(0, len(cells), across)]
        return "\n".join([r"\begin{figures}", " \\\\[3pt]\n".join(rows), r"\end{figures}"])

    def items(self, items: Sequence[str], columns: int) -> str:
        rows = (rf"\item {item.removeprefix(chr(92) + ',')}" for item in items)
        tight = r"\setlength{\itemsep}{0pt}\setlength{\parskip}{0pt}"
        if columns == 1:
            return "\n".join([rf"\begin{{itemize}}{tight}", *rows, r"\end{itemize}"])
        narrow = r"\footnotesize\setlength{\leftmargini}{1em}\raggedcolumns\raggedright"
        begin, end = rf"\begin{{multicols}}{{{columns}}}{narrow}", r"\end{multicols}"
        return "\n".join([begin, rf"\begin{{itemize}}{tight}", *rows, r"\end{itemize}", end])

    def notes(self, notes: Sequence[tuple[str, str]]) -> str:
        return "\n".join(f"{self.mark(letter)}\\,{words}\\quad" if letter else words for letter, words in notes).removesuffix(
            r"\quad"
        )

    def table(self, node: Table) -> str:
        columns = " ".join(map(column, node.columns))
        head = [rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}", r"\toprule", self.titles(node), r"\midrule", r"\endhead"]
        lines = [*head, *self.table_rows(node), r"\bottomrule", r"\end{longtable}"]
        small = SMALL[2 if len(node.rows) > LONG else node.small]
        return "\n".join([rf"\begingroup{small}", *lines, r"\endgroup"])

    def titles(self, node: Table) -> str:
        """Print the row of the titles of a table's columns."""
        return " & ".join(self.words(each.title) for each in node.columns) + r" \\"

    def table_rows(self, node: Table) -> list[str]:
        """Print the rows of a table; rows of a group are indented below its heading."""
        rows, indent, count = [], "", len(node.columns)
        for row in node.rows:
            if isinstance(row, Group):
                indent = r"\quad " if row.words else ""
                wide = rf"\multicolumn{{{count}}}{{@{{}}p{{0.96\linewidth}}@{{}}}}{{{self.words(row.words)}}} \\*"
                rows.append(wide if row.words else r"\midrule")
                continue
            *cells, last = map(self.words, row)
            if len(row) < count:
                room = sum(each.share for each in node.columns[len(row) - 1 :]) + 3
                last = rf"\multicolumn{{{count - len(row) + 1}}}{{P{{{room / 100:.2f}\linewidth}}@{{}}}}{{{last}}}"
            rows.append(indent + " & ".join([*cells, last]) + r" \\")
        return rows

    def display(self, lines: Sequence[Line]) -> str:
        number = lines[-1].number
        tag = rf" \tag{{{number}}}\label{{eq-{number}}}" if number else ""
        rows = " \\\\\n".join(self.rows(lines))
        return f"\\begin{{align*}}\n{rows}{tag}\n\\end{{align*}}"


def column(each: Column) -> str:
    """Return the LaTeX column specifier of a table column."""
    return rf"P{{{each.share / 100:.2f}\linewidth}}" if each.share else "r" if each.number else "l"
