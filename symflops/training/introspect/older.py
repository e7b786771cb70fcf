"""Names that classes of transformers had before version 5, read as those of today, which specs use.

``specs/older.json`` has rules by class: a path of then -> the path of today, with ``*`` for indices. A rule holds for all paths
inside of its own, and the longest one that fits decides. A weight with one index more than that of today is one of several that
are stacked, such as those of experts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from symflops.support.errors import SymflopsError

FILE, CLASSES = "older.json", "classes"


class OlderNames:
    """Renames paths of modules and parameters by rules.

    >>> names = OlderNames({"encoder.layer.*": "layers.*", "moe.*.up.weight": "moe.weight"})
    >>> names.path("encoder.layer.3.norm"), names.parameter("moe.2.up.weight"), names.path("moe.2.up")
    ('layers.3.norm', ('moe.weight', '2'), 'moe.up.2')
    """

    def __init__(self, rules: Mapping[str, str]) -> None:
        self.rules = rules

    def parameter(self, name: str) -> tuple[str, str]:
        """The name of a parameter, and its index among those that are stacked; empty for one that is not."""
        words = name.split(".")
        stars = ["*" if word.isdigit() else word for word in words]
        for end in range(len(words), 0, -1):
            new = self.rules.get(".".join(stars[:end]))
            if new is not None:
                indices = [word for word in words[:end] if word.isdigit()]
                filled = [indices.pop(0) if word == "*" else word for word in new.split(".")]
                return ".".join([*filled, *words[end:]]), ".".join(indices)
        return name, ""

    def path(self, path: str) -> str:
        """The path of a module; one whose weight has become part of another module lies inside of that."""
        if not self.rules:
            return path
        new, index = self.parameter(f"{path}.weight")
        outer, _, leaf = new.rpartition(".")
        plain = leaf == "weight" and not index
        return outer if plain else ".".join([outer, path.rpartition(".")[2], *[index] * bool(index)])


@lru_cache(maxsize=1)
def table() -> dict[str, dict[str, str]]:
    """The rules of each class."""
    from symflops.library.catalog import shipped_catalog

    return shipped_catalog().beside(FILE, CLASSES)


def names_of(root: Any) -> OlderNames:
    """The renaming of a model's paths; one without rules for a class that no table has."""
    kinds = (kind.__name__ for kind in type(root).__mro__ if kind.__module__.partition(".")[0] == "transformers")
    return OlderNames(next((table()[kind] for kind in kinds if kind in table()), {}))


def stacked(parts: Iterable[tuple[str, tuple[int, ...], bool]], name: str) -> tuple[tuple[int, ...], bool]:
    """The shape of weights that are stacked, and whether they train.

    Args:
        parts: The path, shape and ``requires_grad`` of each weight; those of one path are stacked, and the stacks concatenated.
        name: The name of the stack, for errors.

    Raises:
        SymflopsError: only some train.
    """
    rows = list(parts)
    if len({trains for _, _, trains in rows}) > 1:
        raise SymflopsError(f"only some of the weights that make up '{name}' train, which regimes do not describe")
    firsts: dict[str, tuple[int, ...]] = {path: shape for path, shape, _ in rows}
    count, shapes = len(rows) // len(firsts), list(firsts.values())
    return (count, sum(shape[0] for shape in shapes), *shapes[0][1:]), rows[0][2]
