"""emit: :class:`~symflops.model.program.Program` -> the text of each file. A new language is one line of ``TARGETS``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from symflops.model.program import Program
from symflops.model.verification import Verification
from symflops.targets import latex, markdown, python

Target = Callable[[Program, str, Sequence[Verification]], str]

ON_PAGES = ("full", "forward")
"""The regimes that a generated page shows; ``symflops render --regime`` shows others."""

TARGETS: Mapping[str, Target] = {"py": python.render, "tex": latex.render, "md": markdown.render}


def emit(
    program: Program, version: str, verified: Sequence[Verification] = (), endings: Collection[str] = tuple(TARGETS)
) -> dict[str, str]:
    """The text of every target by its file ending; ``verified`` is what the spec was checked against."""
    shown = {"py": program}
    pages = program.showing(ON_PAGES)
    return {ending: TARGETS[ending](shown.get(ending, pages), version, verified) for ending in endings}
