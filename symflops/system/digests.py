"""Digests of texts and of the package itself: what is generated or kept belongs to them."""

from __future__ import annotations

import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
DATA = ("*.py", "*.jinja", "*.yaml", "*.json")


def digest(text: str | bytes) -> str:
    """The sha256 of a text."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def package_digest() -> str:
    """One digest of everything that the package is made of, its specs and what is generated from them apart."""
    total = hashlib.sha256()
    for pattern in DATA:
        for path in sorted(PACKAGE.rglob(pattern)):
            if not {"generated", "specs"} & set(path.relative_to(PACKAGE).parts[:1]):
                total.update(str(path.relative_to(PACKAGE)).encode() + path.read_bytes())
    return total.hexdigest()
