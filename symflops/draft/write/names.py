"""Names of values, and relative paths of modules and parameters in entries."""

from __future__ import annotations

from symflops.draft.write.dimensions import Dimensions
from symflops.draft.write.scopes import Fields, Scope

AFFIXES = ("to_", "_proj", "proj_")
NO_NAMES = (
    "y",
    "n",
    "on",
    "off",
    "no",
    "yes",
    "true",
    "false",
    "null",
    "once",
    "_",
)  # reserved in YAML or in specs
FIELDS = {"weight": "weight", "bias": "bias_name"}  # default parameter name -> field that overrides it


def shortened(path: str) -> str:
    """Last word of a path as a lowercase identifier, without affixes such as ``_proj``."""
    words = [word for word in path.split(".") if word and not word.isdigit()]
    text = (words[-1] if words else "v").lower()
    for affix in AFFIXES:
        text = text.replace(affix, "") or text
    text = identifier(text, "").strip("_") or "v"
    return f"v_{text}" if text[0].isdigit() or text in NO_NAMES else text


def identifier(name: str, other: str = "_") -> str:
    """``name`` with all characters but letters, digits and underscores replaced by ``other``."""
    return "".join(letter if letter.isalnum() or letter == "_" else other for letter in name)


class Paths:
    """Writes paths of modules as paths of entries, and knows which paths and parameters are in use."""

    def __init__(self, dims: Dimensions) -> None:
        self.dims = dims
        self.moving = dims.family.items()
        self.used: set[str] = set()

    def relative(self, path: str, scope: Scope) -> str:
        """Path relative to the module of a scope; a path outside of the module starts with ``/``.

        If the loop of the scope runs items of several lists, the path has the index of the loop.
        """
        for item, template in scope.indexed.items():
            if path == item or path.startswith(f"{item}."):
                return template + path[len(item) :]
        if path == scope.prefix or not path:
            return "_"
        within = bool(scope.prefix) and path.startswith(f"{scope.prefix}.")
        known = scope.prefix.count(".") + 1 if within else 0
        words = path.split(".")
        found = [self.index(words, place) for place in range(known, len(words))]
        return ".".join(found) if within or not scope.prefix else f"/{'.'.join(found)}"

    def index(self, words: list[str], place: int) -> str:
        """Word ``place`` of a path whose ``words`` are given, as it is written in the path of an entry.

        If it is an index of a module list that differs between samples, it becomes a formula in braces.
        """
        item = ".".join(words[: place + 1])
        moving = words[place].isdigit() and item in self.moving
        return f"{{{self.dims.text(self.moving[item], item)}}}" if moving else words[place]

    def label(self, path: str, scope: Scope) -> str:
        """Path of the module at ``path`` as an entry in ``scope`` has it; ``_`` for one outside the scope."""
        key = self.relative(path, scope)
        return "_" if key.startswith("/") else key

    def parameter(self, name: str, key: str, scope: Scope, usual: str) -> str | None:
        """Name to write for a parameter in the entry at ``key``; None if it need not be written.

        ``name`` is its full name. It is not written if it is ``usual``, such as ``weight``, in the module of the entry.
        """
        here = self.relative(name, scope)
        if key == "_":
            return here if here != usual else None
        if here == f"{key}.{usual}":
            return None
        parent = key.rpartition(".")[0]
        if here.startswith("/") or not parent:
            return here
        return here[len(parent) + 1 :] if here.startswith(f"{parent}.") else f"/{name}" if not scope.prefix else None

    def parameters(self, names: tuple[str, ...], key: str, scope: Scope) -> Fields:
        """Fields for non-default weight and bias names; a shared weight is written as ``tie``."""
        found: Fields = {}
        for (usual, field), name in zip(FIELDS.items(), names, strict=False):
            text = self.parameter(name, key, scope, usual)
            if text is not None and usual == "weight" and self.is_tied(name, key, scope):
                words = name.split(".")
                found["tie"] = ".".join(self.index(words, place) for place in range(len(words)))
            elif text is not None:
                found[field] = text
        return found

    def is_tied(self, name: str, key: str, scope: Scope) -> bool:
        """Whether parameter ``name`` is also the parameter ``weight`` of the module at ``key``."""
        also = [other for other, first in self.dims.family.samples[0].plan.tied.items() if first == name]
        return any(self.relative(other, scope) == f"{key}.weight" for other in also)

    def use(self, key: str, fields: Fields, scope: Scope, names: tuple[str, ...]) -> None:
        """Store the path ``key`` of an entry, and its parameters ``names``, as used.

        If one of them was used before, ``fields``, those of the entry, get ``shared``.
        """
        path = f"{scope.prefix}.{key}"
        if key != "_" and not self.used.isdisjoint((path, *names)):
            fields["shared"] = "true"
        self.used.update((path, *names))
