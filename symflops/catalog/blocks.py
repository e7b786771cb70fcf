"""The blocks that specs may call: those of the current project, and the library's."""

from __future__ import annotations

from itertools import takewhile

from symflops.catalog.library import read_source, roots


def described_blocks() -> list[tuple[str, str]]:
    """Each block by name, with the comment at its top; a local one hides its namesake."""
    return [(name, comment_of(text)) for name, text in block_texts().items()]


def block_texts() -> dict[str, str]:
    """The text of each block by name; a local one hides its namesake."""
    found: dict[str, str] = {}
    for root in roots():
        for path in sorted((root / "blocks").glob("*.yaml")):
            found.setdefault(path.stem, read_source(path).text)
    return dict(sorted(found.items()))


def comment_of(text: str) -> str:
    """The comment at the top of a file."""
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
    return " ".join(line.lstrip("# ") for line in lines if "yaml-language-server" not in line)
