"""The version of the language in which a spec or a block is written."""

from __future__ import annotations

from symflops.read.yaml_nodes import Mapping, Node, Scalar
from symflops.support.findings import Diagnostic, Source, Span

LANGUAGE = "2"


def other_language(node: Node, source: Source) -> Diagnostic | None:
    """The finding about a document's ``language`` if it is missing or not the current version, else None."""
    given = node.get("language") if isinstance(node, Mapping) else None
    text = given.text if isinstance(given, Scalar) else ""
    if text == LANGUAGE:
        return None
    place = Span(source, 1, 1, 2) if given is None or not text else given.span
    if text in ("", "1"):
        message = "this is written in version 1 of the language" if text else "a spec without 'language' is of version 1"
        hint = f"'symflops migrate {source.path}' rewrites it; a new one begins with 'language: {LANGUAGE}'"
        return Diagnostic("old-language", message, place, hint)
    message = f"there is no version '{text}' of the language"
    hint = f"this symflops reads version {LANGUAGE}: write 'language: {LANGUAGE}', or use a newer symflops"
    return Diagnostic("unknown-language", message, place, hint)
