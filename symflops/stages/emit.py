"""emit: :class:`~symflops.model.program.Program` -> the text of each file. A new language is one line of ``TARGETS``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from symflops.model.program import Program
from symflops.model.verification import Verification
from symflops.targets import latex, markdown, python
from symflops.targets.worked import Worked, worked

Target = Callable[[Program, str, Sequence[Verification]], str]

ON_PAGES = ("full", "forward")
"""The regimes that a generated page shows; ``symflops render --regime`` shows others."""

PageTarget = Callable[[Program, str, Sequence[Verification], Worked | None], str]

PAGES: Mapping[str, PageTarget] = {"tex": latex.render, "md": markdown.render}
CODE: Mapping[str, Target] = {"py": python.render}
ENDINGS = (*CODE, *PAGES)


def emit(
    program: Program, version: str, verified: Sequence[Verification] = (), endings: Collection[str] = ENDINGS
) -> dict[str, str]:
    """The text of every target by its file ending; ``verified`` is what the spec was checked against."""
    figures = worked(program) if PAGES.keys() & set(endings) else None
    pages = program.showing(ON_PAGES)
    return {
        ending: CODE[ending](program, version, verified) if ending in CODE else PAGES[ending](pages, version, verified, figures)
        for ending in endings
    }
