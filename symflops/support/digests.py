"""Digests of texts and of the package itself, to detect outdated generated files and caches."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from symflops.support.reading import read_text

PACKAGE = Path(__file__).parent.parent
DATA = ("*.py", "*.jinja", "*.yaml", "*.json")


def digest(text: str | bytes) -> str:
    """The sha256 of ``text`` in hexadecimal."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


@cache
def package_digest() -> str:
    """Digest of the code, templates and data of symflops, without specs and generated modules."""
    total = hashlib.sha256()
    for pattern in DATA:
        for path in sorted(PACKAGE.rglob(pattern)):
            if not {"generated", "specs"} & set(path.relative_to(PACKAGE).parts[:1]):
                total.update(str(path.relative_to(PACKAGE)).encode() + path.read_bytes())
    return total.hexdigest()


@cache
def sympy_release() -> str:
    """The text of the file ``release.py`` of the installed sympy, or empty; sympy is not imported."""
    found = find_spec("sympy")
    path = Path(found.origin).with_name("release.py") if found and found.origin else None
    return read_text(path) if path and path.is_file() else ""
