"""Compares the query-key pairs that the masks of a real class hide with those that a spec leaves out, by attention module.

PyTorch's counter counts every pair. The mask is read off the input of each softmax, where hidden scores are far below the
rest. This works for any attention of any library, fused or written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Integer

from symflops.formula.functions import Longest, Together, unpadded
from symflops.ir.graph import Graph
from symflops.ir.nodes import Loop, Node, Operator
from symflops.ir.patterns import Path
from symflops.verify.counted_work import Sizes
from symflops.verify.running import dispatching, following, needed, plain_attention

HIDDEN = -99.0
"""A score below it is masked: classes add -100, -10,000, the least number or minus infinity, and the model's weights are 0."""
SOFTMAX = ("_softmax", "_safe_softmax")
FLASH = "is_causal"
"""Name of the imitated flash attention; for a name with "flash" in it transformers would load a kernel."""
IMPLEMENTATIONS = {"sdpa": "sdpa", "eager": "eager", FLASH: "flash"}
"""Attention implementations of transformers, with the name in reports; flash is imitated if the class supports it."""

Hidden = Counter[str]
"""Module path -> number of query-key pairs masked in it and in modules inside it, summed over heads."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """The query-key pairs that attention masks in one forward pass.

    Attributes:
        hidden: Number of masked pairs by module path.
        attending: Paths of the modules that contain softmax attention; the path of the model itself is empty.
    """

    hidden: Hidden
    attending: frozenset[str]


def real_pairs(model: Any, arguments: Mapping[str, Any]) -> Pairs:
    """Count the query-key pairs that a real model on the CPU masks; the model's parameters are set to 0.

    Raises:
        Exception: the model does not run.
    """
    torch, found, paths, attending = needed("torch"), Counter[str](), list[str](), set[str]()

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func._schema.name.partition("::")[2] in SOFTMAX:
            attending.update(("", *paths))
            found.update(dict.fromkeys({"", *paths}, int((args[0] < HIDDEN).sum())))
        return func(*args, **kwargs)

    with torch.no_grad():
        for tensor in model.parameters():
            tensor.zero_()
    with plain_attention(), following(model, paths), dispatching(call):
        model(**arguments)
    return Pairs(found, frozenset(attending))


def other_implementation(model: Any, arguments: Mapping[str, Any], seen: Pairs) -> str:
    """Find an attention implementation under which a model masks another number of pairs in some module.

    ``seen`` are the pairs under the default implementation. The result is the implementation's name, or empty if none differs.
    """
    library = hasattr(model, "set_attn_implementation")
    if library:
        register()
    for name, said in IMPLEMENTATIONS.items() if library else ():
        if name == FLASH and not getattr(model, "_supports_flash_attn", False):
            continue
        with suppress(Exception):  # the class does not have it
            model.set_attn_implementation(name)
            if real_pairs(model, arguments).hidden != seen.hidden:
                return said
    return ""


def on_cpu(tensor: Any, name: str) -> Any:
    """Return a CPU tensor in place of a meta tensor: floats and masks are 1 (mask nothing), indices 0."""
    full = tensor.is_floating_point() or ("mask" in name and "padding" not in name)
    return needed("torch").full_like(tensor, 1 if full else 0, device="cpu")


class Evaluated(Sizes):
    """Values of letters for one config and batch; loop indices and lengths are set while iterating."""

    def __init__(self, graph: Graph, config: Mapping[str, Any], items: Mapping[str, list[Any]]) -> None:
        super().__init__(graph, config)
        self.batch = items

    def total(self, expr: Expr, items: str) -> Any:
        """Compute the sum of an expression over the items of the index set ``items``."""
        expr = expr.replace(Longest, self.longest).replace(Together, lambda over, each: Integer(self.total(each, over.name)))
        return sum(self.of_items(expr, items))

    def longest(self, length: Expr) -> Expr:
        """Evaluate ``length``, an expression of an item's lengths, for all items; return the largest value."""
        of = {length.symbol: length.items for length in self.graph.lengths}
        items = next(of[symbol] for symbol in sorted(length.free_symbols, key=str) if symbol in of)
        return Integer(max(self.of_items(length, items), default=0))

    def of_items(self, expr: Expr, items: str) -> Iterator[Any]:
        """Yield the value of an expression for each item of the index set ``items``."""
        for item in self.batch.get(items, [{}]):
            self.update(item)
            yield self.value(expr)

    def text(self, path: Path) -> str:
        """Render a module path with the current loop indices."""
        return "".join(part if isinstance(part, str) else str(self.value(part)) for part in path.parts)


def derived_pairs(graph: Graph, config: Mapping[str, Any], items: Mapping[str, list[Any]]) -> Pairs:
    """Count the query-key pairs that a spec's masks leave out, for one config and the items of a batch."""
    values, found = Evaluated(graph, config, items), Counter[str]()
    for operator in running(graph.body, values):
        for contraction in operator.contractions:
            extent = contraction.extent
            if extent.pairs is None or not contraction.name.startswith("scores"):
                continue
            beyond = extent.pairs.fold * extent.pairs.queries * (extent.pairs.keys - unpadded(extent.pairs.keys))
            hidden = values.total(extent.pairs.heads * (extent.executed - extent.useful + beyond), contraction.items)
            found.update(dict.fromkeys({"", *map(values.text, operator.modules)}, hidden))
    return Pairs(found, frozenset(found))


@dataclass(frozen=True, slots=True)
class Masks:
    """Comparison of the masks of a real class with those of a spec.

    Attributes:
        modules: The innermost modules that differ: (path, number of pairs that the class masks, number that the spec leaves
            out), summed over heads.
        unseen: Why the class could not be run; empty if it ran.
        unlike: An attention implementation of the library under which the class masks other pairs than by default.
    """

    modules: tuple[tuple[str, int, int], ...] = ()
    unseen: str = ""
    unlike: str = ""

    @property
    def verdict(self) -> str:
        """The result as a word: ``equal``, ``differ``, or ``not seen`` if the class could not be run."""
        return "not seen" if self.unseen else "differ" if self.modules else "equal"

    def as_json(self) -> dict[str, Any]:
        """Convert the comparison to JSON data."""
        words = {"why": self.unseen, "unlike": self.unlike}
        modules = [{"module": path, "real": real, "derived": derived} for path, real, derived in self.modules]
        found = {"verdict": self.verdict, "modules": modules, **words}
        return {key: value for key, value in found.items() if value}

    def __str__(self) -> str:
        lines = [
            f"    {path or 'the model itself'}: {real:,} real, {derived:,} derived" for path, real, derived in self.modules
        ]
        if lines:
            return "\n".join(["masks: differ, in the pairs that they hide, once for each head:", *lines])
        more = f": {self.unseen}" if self.unseen else f", but not under {self.unlike} attention" if self.unlike else ""
        return f"masks: {self.verdict}{more}"


def compared(real: Pairs, derived: Pairs) -> Masks:
    """Compare masked pairs by module, where both sides have attention; keep the innermost that differ."""
    known = real.attending & derived.attending | {""}
    wrong = {path for path in known if real.hidden[path] != derived.hidden[path]}
    inner = [path for path in wrong if not any(other.startswith(f"{path}." if path else "") for other in wrong - {path})]
    return Masks(tuple((path, real.hidden[path], derived.hidden[path]) for path in sorted(inner)))


def running(nodes: Iterable[Node], values: Evaluated) -> Iterator[Operator]:
    """Yield every operator that runs, once per iteration; loop indices are updated in ``values``."""
    for node in nodes:
        if isinstance(node, Operator) and values.value(node.guard.expr):
            yield node
        elif isinstance(node, Loop):
            first = values.value(node.offset)
            for index in range(first, first + values.value(node.count)):
                values[node.index.name] = index
                for case, body in node.classes:
                    if values.value(case.expr):
                        yield from running(body, values)


def register() -> None:
    """Register :func:`attend` with transformers as ``FLASH``, with the masks of flash attention."""
    transformers, masks = needed("transformers"), needed("transformers.masking_utils")
    transformers.AttentionInterface.register(FLASH, attend)
    transformers.AttentionMaskInterface.register(FLASH, masks.flash_attention_mask)


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    _: Any,
    sliding_window: int | None = None,
    is_causal: bool | None = None,
    **__: Any,
) -> tuple[Any, None]:
    """Compute attention masked like flash attention; return its output, and None for the weights.

    Queries, keys and values have the shape (batch, heads, tokens, width). ``sliding_window`` masks pairs that are at least so
    many positions apart.
    """
    torch = needed("torch")
    groups = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
    behind = torch.arange(query.shape[2])[:, None] + key.shape[2] - query.shape[2] - torch.arange(key.shape[2])
    hidden = (behind < 0) & bool(module.is_causal if is_causal is None else is_causal)
    if sliding_window:
        hidden |= behind.abs() >= sliding_window
    weights = (query @ key.transpose(2, 3)).masked_fill(hidden, -torch.inf).softmax(-1)
    return (weights @ value).transpose(1, 2).contiguous(), None
