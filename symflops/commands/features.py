"""Changes a copy of a spec by features: windows, experts, ... ``emit/templates/features.yaml`` says what each one does."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping, Sequence
from functools import cache
from itertools import count
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from symflops.catalog.library import PACKAGE
from symflops.diagnostics.errors import SymflopsError, did_you_mean
from symflops.frontend.entry_paths import ENTRY
from symflops.system.reading import read_text

Document = MutableMapping[str, Any]


@cache
def features() -> dict[str, Any]:
    """The known features by name."""
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(read_text(PACKAGE / "emit" / "templates" / "features.yaml"))
    return found


def add(document: Document, names: Sequence[str], like: str) -> None:
    """Change ``document`` by the features ``names``.

    Raises:
        SymflopsError: there is no such feature, or nothing in the spec that it changes.
    """
    for name in names:
        if name not in features():
            known = ", ".join(f"{feature} ({row['doc']})" for feature, row in features().items())
            raise SymflopsError(f"there is no feature '{name}': {did_you_mean(name, features(), f'there are {known}')}")
        feature = features()[name]
        found = [body for body in bodies(document.get("graph") or ()) if feature["where"].items() <= body.items()]
        if not found:
            what = ", ".join(f"{key}: {value}" for key, value in feature["where"].items())
            base = document.get("extends")
            hint = f": begin like '{base}', which it extends" if base else ""
            raise SymflopsError(f"'{like}' has no entry of its own with '{what}', which '{name}' changes{hint}")
        letters = {letter: unused(letter, document) for letter in feature["sizes"]}
        for body in found:
            change(document, body, feature, letters)
        document.setdefault("sizes", {})
        for letter, row in feature["sizes"].items():
            document["sizes"][letters[letter]] = size = CommentedMap(row)
            size.fa.set_flow_style()


def without_class(document: Document) -> None:
    """Let ``document`` describe no class; what the class decided has its default."""
    document.pop("reference", None)
    sizes = document.get("sizes") or {}
    decided = [name for name, row in sizes.items() if isinstance(row, MutableMapping) and "key" not in row]
    derived = {name: sizes.pop(name)["default"] for name in decided}
    if derived:
        document["derived"] = derived | dict(document.get("derived") or {})


def bodies(graph: Sequence[Any]) -> Iterator[Document]:
    """The fields of each entry at every depth."""
    for entry in graph:
        body = entry if any(key in entry for key in ENTRY) else next(iter(entry.values()), None)
        if isinstance(body, MutableMapping):
            yield body
            yield from bodies(body.get("graph") or ())


def unused(letter: str, document: Document) -> str:
    """The letter, with a number if a word of the spec is spelt like it."""
    taken = set(re.findall(r"[A-Za-z_]\w*", repr(document)))
    return next(name for name in (letter + str(number or "") for number in count()) if name not in taken)


def change(document: Document, body: Document, feature: dict[str, Any], letters: dict[str, str]) -> None:
    """Set the fields of one entry, and drop those that the new kind lacks, with sizes that nothing else reads."""
    dropped = [body.pop(key) for key in [*body] if key not in feature.get("keep", [*body]) and key not in feature["set"]]
    body.update({key: letters.get(value, value) for key, value in feature["set"].items()})
    for text in map(str, dropped):
        if text in document.get("sizes", {}):
            rest = {key: value for key, value in document["sizes"].items() if key != text}
            others = repr([rest, *(value for key, value in document.items() if key != "sizes")])
            if not re.search(rf"\b{text}\b", others):
                del document["sizes"][text]
