"""Writes paths of modules and parameters relative to the list of entries that names them."""

from __future__ import annotations

from symflops.draft.write.dimensions import Dimensions
from symflops.draft.write.scopes import Fields, Scope

FIELDS = {"weight": "weight", "bias": "bias_name"}  # the field that names a parameter, by the name that it has by default


class Paths:
    """Paths as entries write them, and the paths and parameters that entries already use."""

    def __init__(self, dims: Dimensions) -> None:
        self.dims = dims
        self.moving = dims.family.items()
        self.used: set[str] = set()

    def relative(self, path: str, scope: Scope) -> str:
        """A path relative to a scope; with the loop's index in it, or from the root, if it lies elsewhere."""
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
        """A word of a path: a formula if it is an index that differs between samples."""
        item = ".".join(words[: place + 1])
        moving = words[place].isdigit() and item in self.moving
        return f"{{{self.dims.text(self.moving[item], item)}}}" if moving else words[place]

    def label(self, path: str, scope: Scope) -> str:
        """The path of an operator; ``_`` for a module elsewhere."""
        key = self.relative(path, scope)
        return "_" if key.startswith("/") else key

    def parameter(self, name: str, key: str, scope: Scope, usual: str) -> str | None:
        """What the entry at ``key`` says of a parameter; None if the parameter has its usual name."""
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
        """Fields that name a weight and a bias."""
        found = {FIELDS[usual]: self.parameter(name, key, scope, usual) for usual, name in zip(FIELDS, names, strict=False)}
        return {field: name for field, name in found.items() if name is not None}

    def use(self, key: str, fields: Fields, scope: Scope, names: tuple[str, ...]) -> None:
        """Note the path and the parameters of an entry; the entry is marked as shared if another one uses them."""
        path = f"{scope.prefix}.{key}"
        if key != "_" and not self.used.isdisjoint((path, *names)):
            fields["shared"] = "true"
        self.used.update((path, *names))
