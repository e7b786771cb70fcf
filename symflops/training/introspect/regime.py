"""Detects the regime of a live module: trained weights, adapters, and recomputed modules."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from symflops.evaluate.parameters import Shape
from symflops.training.introspect.checkpoints import Recomputed, outermost, recomputed
from symflops.training.introspect.name_patterns import spelled
from symflops.training.introspect.tree import Tree, active_adapters, is_lora, makes_leaf


@dataclass(frozen=True, slots=True)
class Beside:
    """A LoRA or DoRA adapter beside the module at ``path``."""

    path: str
    name: str
    kind: str
    rank: int
    dropout: bool


@dataclass(frozen=True)
class Reading:
    """How a live module trains, as far as it affects FLOPs.

    Attributes:
        tree: The modules and parameters.
        adapters: The active adapters.
        recomputed: What is recomputed, or None.
        forced: Paths of modules that set ``requires_grad`` on a tensor.
        spared: Paths of modules whose class can do so, but whose settings prevent it.
    """

    tree: Tree
    adapters: tuple[Beside, ...]
    recomputed: Recomputed | None
    forced: tuple[str, ...]
    spared: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, tuple[Shape, bool]]:
        """Name -> (shape, ``requires_grad``) of every parameter that runs, adapters included."""
        return {name: (self.tree.shapes[name], trains) for name, trains in self.tree.trains.items()}

    @property
    def own(self) -> list[str]:
        """The names of parameters that belong to no adapter."""
        parts = {f"{one.path}.lora_{part}.{one.name}" for one in self.adapters for part in ("A", "B", "magnitude_vector")}
        return [name for name in self.tree.parameters if name.rpartition(".")[0] not in parts]

    @property
    def count(self) -> int:
        """The number of elements of parameters that belong to no adapter."""
        return sum(prod(self.tree.shapes[name]) for name in self.own)

    @property
    def drops(self) -> bool:
        """Whether dropout is active, whose saved masks may make recomputation stop later than a spec says."""
        shares = (
            value for module in self.tree.modules.values() for name, value in vars(module).items() if is_share(module, name)
        )
        return any(isinstance(value, float) and value > 0 for value in shares)

    @property
    def skips(self) -> bool:
        """Whether layerdrop is active, which skips random layers in training."""
        holders = [held for module in self.tree.modules.values() for held in (module, getattr(module, "config", None))]
        values = ((name, value) for held in holders for name, value in getattr(held, "__dict__", {}).items())
        return any(is_layer_share(name) and isinstance(value, float) and value > 0 for name, value in values)

    @property
    def words(self) -> str:
        """Describe adapters, trained parameters and recomputed modules in a line of text."""
        kinds: dict[str, int] = {}
        for one in self.adapters:
            label = f"{'DoRA' if one.kind == 'dora' else 'LoRA'} r={one.rank}"
            kinds[label] = kinds.get(label, 0) + 1
        found = [f"{label} on {count} module{'s' * (count > 1)}" for label, count in kinds.items()]
        trained = sum(prod(shape) for shape, trains in self.parameters.values() if trains)
        everything = all(trains for _, trains in self.parameters.values())
        found.append("all train" if everything else f"{trained:,} train" if trained else "none train")
        if self.recomputed:
            least = self.recomputed.early_stop and self.drops
            words = ", reentrant" * self.recomputed.reentrant or ", with dropout at least" * least
            found.append(f"{len(self.recomputed.groups)} modules are recomputed{words}")
        if self.skips:
            found.append("layers that layerdrop leaves out at random count all the same")
        if self.tree.idle:
            found.append(f"{self.tree.idle:,} in adapters that do not run")
        if self.tree.packed:
            found.append(f"{self.tree.packed} weights are quantised, their work counts as that of plain ones")
        return "; ".join(found)

    def page(self, loops: Collection[str], fixed: Collection[str]) -> str:
        """Write the regime as a regime page in JSON text.

        ``loops`` are parameter names with ``*`` for indices of repeats; ``fixed`` are parameters that never train.
        """
        inner = self._with_bases(loops)
        found: dict[str, Any] = {"name": "live", **self._training(inner, fixed)}
        if self.adapters:
            found["adapters"] = list(self._adapters(loops))
        if self.recomputed:
            modules = {path for path in self.tree.modules if path} | set(self.recomputed.groups)
            depths = {group.count(".") for group in self.recomputed.groups}
            level = [path for path in modules if path.count(".") in depths]
            groups = spelled(set(self.recomputed.groups), sorted(level), _prefixes(loops))
            found["recompute"] = {
                "groups": groups, "early_stop": self.recomputed.early_stop, "reentrant": self.recomputed.reentrant,
            }  # fmt: skip
        if self.forced:
            found["force_grad"] = list(self.forced)
        if self.spared:
            found["no_force_grad"] = list(self.spared)
        return json.dumps(found, separators=(",", ":"))

    def _with_bases(self, loops: Collection[str]) -> set[str]:
        """Return the parameter names ``loops``, and each also with ``base_layer`` before its last part.

        This is the name that PEFT gives a parameter of a module with an adapter: for ``layers.*.q_proj.weight``, it is
        ``layers.*.q_proj.base_layer.weight``.
        """
        found = set(loops)
        for name in loops:
            path, _, own = name.rpartition(".")
            found.add(f"{path}.base_layer.{own}")
        return found

    def _training(self, loops: Collection[str], fixed: Collection[str]) -> dict[str, list[str]]:
        """Build the fields ``train`` and ``freeze`` of the regime page, with few patterns."""
        trains, own = self.tree.trains, self.own
        free = [name for name in own if name not in fixed]
        trained = {name for name in free if trains[name]}
        train = spelled(trained, own, loops) if trained and trained != set(free) else ["*"] * bool(trained)
        frozen = {name for name in free if not trains[name]}
        freeze = spelled(frozen, own, loops) if trained and frozen else []
        if freeze and len(freeze) < len(train):
            train = ["*"]
        else:
            freeze = []
        rest = [name for name in self.tree.parameters if name not in set(own)]
        idle = {name for name in rest if not trains[name]}
        freeze += spelled(idle, self.tree.parameters, ()) if idle else []
        return {"train": train, "freeze": freeze}

    def _adapters(self, loops: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the entries of the regime page's ``adapters``: one for each name, kind, rank and dropout."""
        kinds: dict[tuple[str, str, int, bool], set[str]] = {}
        for one in self.adapters:
            kinds.setdefault((one.name, one.kind, one.rank, one.dropout), set()).add(one.path)
        modules = [path for path, module in self.tree.modules.items() if is_lora(module) or has_weights(module)]
        outer = sorted({path.removesuffix(".base_layer") for path in modules if not is_part(path)})
        paths = {name.rpartition(".")[0] for name in loops}
        for (name, kind, rank, dropout), targets in kinds.items():
            yield {
                "kind": kind, "rank": rank, "targets": spelled(targets, outer, paths),
                "names": ["base_layer", f"lora_A.{name}", f"lora_B.{name}"], "dropout": dropout,
            }  # fmt: skip


def read(tree: Tree) -> Reading:
    """Detect which parameters of a model train, its adapters, recomputation and forced gradients.

    Raises:
        LiveModelError: no regime can describe one of its parts.
    """
    adapters = [one for path, module in tree.modules.items() if is_lora(module) for one in _beside(path, module)]
    spared = tuple(path for path, module in tree.modules.items() if makes_leaf(module) is False)
    return Reading(tree, tuple(adapters), recomputed(tree), tuple(_forced(tree)), spared)


def _beside(path: str, module: Any) -> Iterator[Beside]:
    """Yield the active adapters of the module at ``path``."""
    for name in active_adapters(module, path):
        is_dora = name in getattr(module, "lora_variant", {}) or bool(getattr(module, "use_dora", {}).get(name))
        dropped = type(module.lora_dropout[name]).__name__ != "Identity"
        yield Beside(path, name, "dora" if is_dora else "lora", int(module.r[name]), dropped and is_dora)


def _forced(tree: Tree) -> Iterator[str]:
    """Yield the paths of modules that set ``requires_grad`` on a tensor, in ``forward`` or by a hook."""
    for path, module in tree.modules.items():
        if makes_leaf(module):
            yield path
            continue
        names = [getattr(hook, "__qualname__", "") for hook in module._forward_hooks.values()]
        if any("require_grad" in name for name in names) and not any(p.requires_grad for p in module.parameters()):
            yield path


def is_share(module: Any, name: str) -> bool:
    """Whether the attribute ``name`` of a module is a dropout probability."""
    return "dropout" in name or (name == "p" and "Dropout" in type(module).__name__)


def is_layer_share(name: str) -> bool:
    """Whether an attribute of this name is a layerdrop probability."""
    return name.replace("_", "").endswith("layerdrop")


def has_weights(module: Any) -> bool:
    """Whether a module has parameters of its own."""
    return any(tensor is not None for tensor in module._parameters.values())


def is_part(path: str) -> bool:
    """Whether a module or parameter path lies inside a LoRA adapter."""
    return any(word.startswith("lora_") for word in path.split("."))


def _prefixes(names: Collection[str]) -> set[str]:
    """The paths of all modules that contain the named parameters."""
    return {".".join(words[:end]) for words in (name.split(".") for name in names) for end in range(1, len(words))}


def stored_regime(reading: Reading, rows: Mapping[str, Mapping[str, Any]], known: Mapping[str, dict[str, Any]]) -> str | None:
    """The name of the stored regime that matches a live module; None if none does.

    ``rows`` are the stored regimes, ``known`` the model's parameters under each. Recomputed modules must match too.
    """
    if reading.forced or reading.spared:
        return None
    for name, parameters in known.items():
        given = rows[name].get("recompute")
        if parameters == reading.parameters and _recomputes(reading, given):
            return name
    return None


def _recomputes(reading: Reading, given: Mapping[str, Any] | None) -> bool:
    """Whether a stored regime (``given``: its ``recompute``) recomputes just what the live module does."""
    real = reading.recomputed
    if given is None or real is None:
        return given is None and real is None
    if given.get("reentrant", False) != real.reentrant or given.get("early_stop", True) != real.early_stop:
        return False
    plain = not given.get("attention_only", False)
    return plain and set(outermost(reading.tree.modules, given["groups"])) == set(real.groups)
