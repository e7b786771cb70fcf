"""Reads a draft back, as symflops reads any spec."""

from __future__ import annotations

from pathlib import Path

from symflops.api import Model
from symflops.catalog.library import SpecFile, roots, specs_in
from symflops.diagnostics.findings import Source
from symflops.frontend.read import read


def library() -> SpecFile | None:
    """A spec of the library, which knows its blocks; None if there is no library."""
    return next(iter(specs_in(roots()[0])), None)


def model_of(text: str) -> Model:
    """The model of a draft, which may call blocks of the library.

    Raises:
        SpecError: The draft is no valid spec.
    """
    shelf = library()
    blocks = shelf.blocks() if shelf else lambda _: None
    return Model(SpecFile(Path("draft.yaml"), Path(), "draft"), read(Source("draft.yaml", text), blocks, lambda _: None))
