"""Notices that a live model has changed: cheap facts about all that its estimator was read from.

The facts are the class of every module, its children, parameters, a ``forward`` of its own, its checkpoint function, what
trains, which adapters run, and plain attributes (numbers, texts, flags) of modules and configs, such as the number of experts
of a token. No tensor is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from symflops.training.introspect.checkpoints import FUNCTION
from symflops.training.introspect.tree import is_lora

PLAIN = (bool, int, float, str)
ADAPTED = ("_disable_adapters", "_active_adapter", "merged_adapters")
"""Attributes of an adapted layer of PEFT that say which of its adapters run."""

Fact = tuple[str, list[str], Callable[[], list[Any]]]
"""A kind of fact, the paths that have it, and a function that reads it for each path."""


class Fingerprint:
    """The facts about a model at one time.

    Args:
        root: The model.
        ignored: Attributes, as ``path.name``, that change without changing the model's work.
    """

    def __init__(self, root: Any, ignored: Collection[str] = ()) -> None:
        self.modules: dict[str, Any] = dict(root.named_modules())
        self.facts = list(facts_of(root, self.modules, ignored))
        self.known = [read() for _, _, read in self.facts]
        self._parameters = list(root.parameters())
        self._layer: dict[str, Any] = next((module.__dict__ for module in self.modules.values() if is_lora(module)), {})

    def state(self) -> tuple[bytes, str]:
        """Return what a loop switches between two calls: which parameters train, and which adapters run."""
        return bytes([tensor.requires_grad for tensor in self._parameters]), str(list(map(self._layer.get, ADAPTED)))

    def changes(self) -> list[str]:
        """List what has changed since the facts were read, as ``path.name`` for attributes and ``path: kind`` for others."""
        found: list[str] = []
        for (kind, paths, read), known in zip(self.facts, self.known, strict=True):
            try:
                now = read()
            except LookupError:  # an attribute is gone
                found.append(f"a {kind} is gone")
                continue
            if now != known:
                differ = [path for path, one, other in zip(paths, now, known, strict=True) if one != other]
                found += dict.fromkeys(differ if kind == "attribute" else (f"{path or 'the model'}: {kind}" for path in differ))
        return found


def facts_of(root: Any, modules: Mapping[str, Any], ignored: Collection[str]) -> Iterator[Fact]:
    """Yield all kinds of facts about a model."""
    paths, every = list(modules), list(modules.values())
    own = [module.__dict__ for module in every]
    yield "class", paths, lambda: list(map(type, every))
    yield "forward", paths, lambda: [mine.get("forward") for mine in own]
    yield "checkpointing", paths, lambda: [mine.get(FUNCTION) for mine in own]
    for kind in ("_modules", "_parameters"):
        held = {path: table for path, module in modules.items() if (table := getattr(module, kind))}
        entries = [(path, table, name) for path, table in held.items() for name in table]
        around, owners, names = map(list, zip(*entries, strict=True)) if entries else ([], [], [])
        yield kind, [*held, *around], partial(contents, list(held.values()), owners, names)
    tensors = {f"{path}.{name}": one for path, table in held.items() for name, one in table.items() if one is not None}
    yield "requires_grad", list(tensors), lambda: [tensor.requires_grad for tensor in tensors.values()]
    layers = {path: module.__dict__ for path, module in modules.items() if is_lora(module)}
    yield "adapters", list(layers), lambda: [str(list(map(layer.get, ADAPTED))) for layer in layers.values()]
    readers, names = [], []
    for path, table in (*zip(paths, own, strict=True), *configs_of(root)):
        plain = [name for name, value in table.items() if type(value) in PLAIN and name[0] != "_" and name != "training"]
        mine = [name for name in plain if f"{path}.{name}" not in ignored]
        if mine:
            readers.append((itemgetter(*mine, mine[0]), table))  # of a single name, it would return no tuple
            names += [f"{path}.{name}" for name in (*mine, mine[0])]
    yield "attribute", names, lambda: [value for read, table in readers for value in read(table)]


def contents(tables: Sequence[dict[str, Any]], owners: Sequence[dict[str, Any]], names: Sequence[str]) -> list[int]:
    """The size of each table, and the identity of each entry by owner and name; the order of a table is no fact."""
    return [*map(len, tables), *map(id, map(dict.get, owners, names))]


def configs_of(root: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the config of a model and those inside it, each with its path."""
    rest = [("config", getattr(root, "config", None))]
    for path, config in rest:
        table = config if isinstance(config, Mapping) else getattr(config, "__dict__", None)
        if table is not None:
            yield path, table
            rest += [(f"{path}.{name}", value) for name, value in table.items() if name.endswith("_config")]
