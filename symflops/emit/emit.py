"""emit: :class:`~symflops.model.program.Program` -> the text of each file. A new language is a line in a table below."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from symflops.analysis.against import Against
from symflops.analysis.worked_figures import ConventionFigures, worked
from symflops.emit.latex import document as latex
from symflops.emit.markdown import document as markdown
from symflops.emit.math.abbreviations import abbreviated
from symflops.emit.page.page import page
from symflops.emit.page.sections import document
from symflops.emit.page.tree import Document
from symflops.emit.page.types import Page
from symflops.emit.python import module as python
from symflops.model.program import Program
from symflops.model.serialise import document_of, text_of
from symflops.model.verification import Verification

ON_PAGES = ("full", "forward")
"""The regimes that a generated page derives; its table lists all regimes, and ``symflops render --regime`` derives others."""

STORED = "json"
"""The ending of a stored program."""

CODE: Mapping[str, Callable[[Program, str, Sequence[Verification]], str]] = {
    STORED: lambda program, version, verified: text_of(document_of(program)),
    "py": python.render,
}
PAGES: Mapping[str, Callable[[Document, str], str]] = {"tex": latex.render_page, "md": markdown.render_page}
ENDINGS = (*CODE, *PAGES)


def emit(
    program: Program,
    version: str,
    verified: Sequence[Verification] = (),
    endings: Collection[str] = ENDINGS,
    shown: Sequence[str] = (),
    against: Against | None = None,
) -> dict[str, str]:
    """The text of each target by file ending.

    ``verified`` is what the spec was checked against, ``against`` what it costs beside its baseline. Modules and pages have the
    conventions ``shown``, by default all; a stored program has all.
    """
    whole, program = program, program.counting(shown) if shown else program
    texts = {ending: CODE[ending](program, version, verified) for ending in endings if ending in CODE and ending != STORED}
    if STORED in endings:
        texts[STORED] = CODE[STORED](whole, version, verified)
    if PAGES.keys() & set(endings):
        names = [regime.name for regime in program.regimes]
        found = document(page_of(program, verified, [name for name in ON_PAGES if name in names] or names, (), against))
        texts |= {ending: PAGES[ending](found, version) for ending in endings if ending in PAGES}
    return {ending: texts[ending] for ending in endings}


def page_of(
    program: Program,
    verified: Sequence[Verification] = (),
    regimes: Sequence[str] = ON_PAGES,
    conventions: Sequence[ConventionFigures] = (),
    against: Against | None = None,
) -> Page:
    """The page of a program that derives ``regimes``, with figures of all regimes and of ``conventions`` or its own."""
    shown = page(abbreviated(program.showing(regimes).first()), verified, worked(program, conventions), program)
    return replace(shown, against=against)
