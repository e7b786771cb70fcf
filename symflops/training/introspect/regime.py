"""Detects the regime of a live module: trained weights, adapters, and recomputed modules.

Sets of names are compressed into few patterns that match no other name. All indices of a position become ``*``. Consecutive
indices become a slice if the index belongs to a repeat of the spec. Other indices are written out.

    >>> patterns_of({"a.0.q", "a.1.q"}, ["a.0.q", "a.1.q", "a.0.k", "a.1.k"], loops=())
    ['a.*.q']
    >>> patterns_of({"a.1.q", "a.2.q"}, ["a.0.q", "a.1.q", "a.2.q"], loops=["a.*.q"])
    ['a.1:.q']
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import prod
from types import MappingProxyType
from typing import Any

from symflops.evaluate.parameters import Shape
from symflops.ir.regime import MERGED
from symflops.training.introspect.checkpoints import Recomputed, outermost, recomputed
from symflops.training.introspect.tree import (
    Tree,
    active_adapters,
    is_lora,
    makes_leaf,
    on_parameter,
    sets_leaf,
    shape_of,
    starred,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Beside:
    """A LoRA or DoRA adapter beside the module at ``path``.

    Attributes:
        path: The path of the module.
        name: The name of the adapter in PEFT, such as ``default``.
        kind: ``lora`` or ``dora``; ``merged`` or ``folded`` on a parameter.
        rank: The rank.
        dropout: Whether the dropout of a DoRA adapter changes its work.
        bias: Whether its up projection has a bias.
        parameter: The name of its parameter in the module inside; empty if it stands beside the module.
        in_out: Whether it takes the parameter's weights as (in, out).
    """

    path: str
    name: str
    kind: str
    rank: int
    dropout: bool
    bias: bool
    parameter: str = ""
    in_out: bool = False

    @property
    def target(self) -> str:
        """The module or parameter that it adapts, by the name that it has without adapters."""
        return f"{plain(self.path)}.{self.parameter}" if self.parameter else self.path


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
        kinds: dict[tuple[str, str], int] = {}
        for one in self.adapters:
            label = f"{'DoRA' if one.kind == 'dora' else 'LoRA'} r={one.rank}", "parameter" if one.parameter else "module"
            kinds[label] = kinds.get(label, 0) + 1
        found = [f"{label} on {count} {noun}{'s' * (count > 1)}" for (label, noun), count in kinds.items()]
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

    def page(
        self, loops: Collection[str], fixed: Collection[str], more: Mapping[str, Sequence[str]] = MappingProxyType({})
    ) -> str:
        """Write the regime as a regime page in JSON text.

        ``loops`` are parameter names with ``*`` for indices of repeats; ``fixed`` are parameters that never
        train; ``more`` are fields of the page that the module itself does not tell.
        """
        inner = {*loops, *(name for name in map(starred, self.tree.aliases) if plain(name) in loops)}  # PEFT's names
        found: dict[str, Any] = {"name": "live", **self._training(inner, fixed)}
        if self.adapters:
            found["adapters"] = list(self._adapters(loops))
        if self.recomputed:
            modules = {path for path in self.tree.modules if path} | set(self.recomputed.groups)
            depths = {group.count(".") for group in self.recomputed.groups}
            level = [path for path in modules if path.count(".") in depths]
            groups = patterns_of(set(self.recomputed.groups), sorted(level), _prefixes(loops))
            found["recompute"] = {
                "groups": groups, "early_stop": self.recomputed.early_stop, "reentrant": self.recomputed.reentrant,
            }  # fmt: skip
        if self.forced:
            found["force_grad"] = list(self.forced)
        if self.spared:
            found["no_force_grad"] = list(self.spared)
        for name, given in more.items():
            words = patterns_of(set(given), self.tree.modules, _prefixes(inner)) if name == "enter_grad" else given
            found[name] = [*found.get(name, ()), *words]
        return json.dumps(found, separators=(",", ":"))

    def _training(self, loops: Collection[str], fixed: Collection[str]) -> dict[str, list[str]]:
        """Build the fields ``train`` and ``freeze`` of the regime page, with few patterns."""
        trains, own = self.tree.trains, self.own
        free = [name for name in own if name not in fixed]
        trained = {name for name in free if trains[name]}
        train = patterns_of(trained, own, loops) if trained and trained != set(free) else ["*"] * bool(trained)
        frozen = {name for name in free if not trains[name]}
        freeze = patterns_of(frozen, own, loops) if trained and frozen else []
        train, freeze = (["*"], freeze) if freeze and len(freeze) < len(train) else (train, [])
        rest = [name for name in self.tree.parameters if name not in set(own)]
        idle = {name for name in rest if not trains[name]}
        freeze += patterns_of(idle, self.tree.parameters, ()) if idle else []
        return {"train": train, "freeze": freeze}

    def _adapters(self, loops: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the entries of the regime page's ``adapters``: one for each wrapper inside of others, name and form."""
        kinds: dict[tuple[int, Beside], set[str]] = {}
        for one in sorted(self.adapters, key=lambda one: -depth(one)):  # the innermost wrapper comes first
            kinds.setdefault((depth(one), replace(one, path="", parameter="")), set()).add(one.target)
        holders = {name.rpartition(".")[0] for name in self.tree.aliases}  # of parameters, tied ones too
        modules = [path for path, module in self.tree.modules.items() if is_lora(module) or path in holders]
        outer = sorted({path.removesuffix(".base_layer") for path in modules if not is_part(path)})
        paths = {name.rpartition(".")[0] for name in loops}
        parameters = sorted({plain(name) for name in self.tree.aliases if not is_part(name)})
        for (_, one), targets in kinds.items():
            known = (parameters, loops) if one.kind in MERGED else (outer, paths)
            yield {
                "kind": one.kind, "rank": one.rank, "targets": patterns_of(targets, *known),
                "names": ["base_layer", f"lora_A.{one.name}", f"lora_B.{one.name}"],
                **{flag: getattr(one, flag) for flag in ("dropout", "bias", "in_out") if getattr(one, flag)},
            }  # fmt: skip


def depth(adapter: Beside) -> int:
    """Number of wrappers of PEFT around an adapter's own."""
    return adapter.path.count(".base_layer")


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
        has_bias = getattr(module.lora_B[name], "bias", None) is not None
        kind = "dora" if is_dora else merging(module) if on_parameter(module) else "lora"
        shape = shape_of(module.get_param(), module) if on_parameter(module) else ()
        flipped = bool(shape) and module.lora_A[name].in_features != shape[-1]
        parameter = getattr(module, "parameter_name", "")
        yield Beside(path, name, kind, int(module.r[name]), dropped and is_dora, has_bias, parameter, flipped)


def merging(module: Any) -> str:
    """``folded`` if a LoRA layer on a parameter lets PyTorch build its sum of factors, else ``merged``."""
    narrow = module.get_param().dtype.itemsize < 2  # such a sum is built in another type
    return "folded" if hasattr(module, "get_delta_factors") and module.num_experts > 1 and not narrow else "merged"


def _forced(tree: Tree) -> Iterator[str]:
    """Yield the paths of modules that set ``requires_grad`` on a tensor, in ``forward`` or by a hook."""
    for path, module in tree.modules.items():
        hooked = any(map(sets_leaf, module._forward_hooks.values()))
        if makes_leaf(module) or (hooked and not any(tensor.requires_grad for tensor in module.parameters())):
            yield path


def is_share(module: Any, name: str) -> bool:
    """Whether the attribute ``name`` of a module is a dropout probability."""
    return "dropout" in name or (name == "p" and "Dropout" in type(module).__name__)


def is_layer_share(name: str) -> bool:
    """Whether an attribute of this name is a layerdrop probability."""
    return name.replace("_", "").endswith("layerdrop")


def plain(path: str) -> str:
    """A path without the components that PEFT's wrappers add."""
    return path.replace(".base_layer", "")


def is_part(path: str) -> bool:
    """Whether a module or parameter path lies inside a LoRA adapter."""
    return any(word.startswith("lora_") for word in path.split("."))


def _prefixes(names: Collection[str]) -> set[str]:
    """The paths of all modules that contain the named parameters."""
    return {".".join(words[:end]) for words in (name.split(".") for name in names) for end in range(1, len(words))}


def stored_regime(reading: Reading, rows: Mapping[str, Mapping[str, Any]], known: Mapping[str, dict[str, Any]]) -> str | None:
    """The name of the stored regime that matches a live module; None if none does.

    ``rows`` maps the names of regimes to their rows in a stored program, ``known`` maps them to the parameters of the model
    under each, as :attr:`Reading.parameters`. Recomputed modules must match too.
    """
    equal = [name for name, parameters in known.items() if parameters == reading.parameters]
    fits = (name for name in equal if _recomputes(reading, rows[name].get("recompute")))
    return None if reading.forced or reading.spared else next(fits, None)


def _recomputes(reading: Reading, given: Mapping[str, Any] | None) -> bool:
    """Whether a stored regime (``given``: its ``recompute``) recomputes just what the live module does."""
    real = reading.recomputed
    if given is None or real is None:
        return given is None and real is None
    if given.get("reentrant", False) != real.reentrant or given.get("early_stop", True) != real.early_stop:
        return False
    whole = not given.get("attention_only", False)
    return whole and set(outermost(reading.tree.modules, given["groups"])) == set(real.groups)


Indices = tuple[int, ...]


def patterns_of(chosen: Collection[str], names: Iterable[str], loops: Collection[str]) -> list[str]:
    """Find patterns that match the ``chosen`` names and no other of ``names``.

    ``loops`` are names in which ``*`` stands for the index of a repeat.
    """
    known = list(names)
    families: dict[tuple[str, ...], dict[Indices, str]] = {}
    for name in known:
        form = tuple("*" if word.isdigit() else word for word in name.split("."))
        families.setdefault(form, {})[tuple(int(word) for word in name.split(".") if word.isdigit())] = name
    found: list[str] = []
    for form, members in families.items():
        wanted = [indices for indices, name in members.items() if name in chosen]
        if not wanted:
            continue
        patterns = [".".join(_filled(form, words)) for words in cover(wanted, list(members), ".".join(form) in loops)]
        inner = {members[indices] for indices in wanted}
        others = [name for name in known if name not in inner and name not in chosen and name not in members.values()]
        loose = any(fnmatchcase(name, pattern.replace(":", "*")) for pattern in patterns if "*" in pattern for name in others)
        found += sorted(inner) if loose else patterns
    return found


def _filled(form: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    return (next(rest) if word == "*" else word for word in form)


def cover(wanted: Collection[Indices], known: Collection[Indices], sliced: bool) -> list[tuple[str, ...]]:
    """Find patterns over index tuples that match exactly the ``wanted`` ones among the ``known`` ones.

    A pattern has ``*``, a slice or an index at each position. Slices are used only if ``sliced``.
    """
    chosen = set(wanted)
    if chosen == set(known):
        return [("*",) * len(next(iter(known)))]
    firsts = sorted({indices[0] for indices in known})
    rests = {first: [indices[1:] for indices in known if indices[0] == first] for first in firsts}
    groups: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for first in firsts:
        inner = [rest for rest in rests[first] if (first, *rest) in chosen]
        if inner:
            groups.setdefault(tuple(cover(inner, rests[first], sliced)), []).append(first)
    return [(word, *rest) for tails, mine in groups.items() for word in selectors(mine, firsts, sliced) for rest in tails]


def selectors(mine: Sequence[int], known: Sequence[int], sliced: bool) -> list[str]:
    """Find selectors (``*``, index, slice if ``sliced``) that match just ``mine`` of ``known`` indices."""
    if list(mine) == list(known):
        return ["*"]
    if not sliced:
        return [str(index) for index in mine]
    found, start = [], 0
    for end in range(1, len(mine) + 1):
        if end == len(mine) or mine[end] != mine[end - 1] + 1:
            low, high = mine[start], mine[end - 1]
            found.append(str(low) if low == high else f"{low if low > known[0] else ''}:{high + 1 if high < known[-1] else ''}")
            start = end
    return found
