"""Modules and parameters of a live model, by the names of its own class without wrappers.

Wrappers of compilers, sharding and checkpointing disappear from paths. PEFT's wrappers keep only the part that runs: the active
copy of a saved module, and a base layer with its active adapters. Inactive parts count as ``idle``. No data is read.
Some modules set ``requires_grad`` on a tensor in ``forward``, for example the first convolution of Wav2Vec2.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

from symflops.support.errors import SymflopsError, kind_of
from symflops.training.introspect.older import names_of, stacked

TRANSPARENT = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""Child names that replace their parent: wrappers of torch.compile, FSDP1 and torch's checkpointing."""
PACKED = ("Params4bit", "Int8Params")
"""Parameter classes (bitsandbytes) whose stored shape differs from the module's weight shape."""
ADAPTER_PARTS = ("lora_A", "lora_B", "lora_magnitude_vector")
INDEX = re.compile(r"(?:(?<=^)|(?<=\.))\d+(?=\.|$)")
NAMES = frozenset({"requires_grad", "requires_grad_"})


class LiveModelError(SymflopsError):
    """A live module cannot be read, or differs from its spec."""


@dataclass
class Tree:
    """The modules and parameters of a live model, without wrappers.

    Attributes:
        modules: Path -> module.
        parameters: First name -> parameter.
        trains: First name -> whether it required a gradient when the tree was made.
        aliases: Every name of a parameter -> its first name (tied weights have several).
        shapes: First name -> shape.
        checkpoints: Path of a wrapped module -> torch's checkpoint wrapper around it.
        idle: Number of parameter elements in modules that do not run.
        packed: Number of quantised parameters.
    """

    modules: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    trains: dict[str, bool] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    checkpoints: dict[str, Any] = field(default_factory=dict)
    idle: int = 0
    packed: int = 0


def unwrapped(module: Any) -> Any:
    """The model inside the wrappers of DDP, FSDP, torch.compile, DeepSpeed and PEFT.

    Raises:
        LiveModelError: a wrapper has parameters of its own, such as the virtual tokens of prompt tuning.
    """
    return wrappers_of(module)[-1]


def wrappers_of(module: Any) -> list[Any]:
    """A module, the wrappers inside it and the model inside those, outermost first; raises as :func:`unwrapped`."""
    found = [module]
    while True:
        children = getattr(module, "_modules", None)
        if children is None:
            raise LiveModelError(f"{kind_of(module)} is no torch module: give the model that the loop trains")
        name = next((name for name in (*TRANSPARENT, *wrapper_children(module)) if children.get(name) is not None), None)
        if name is None:
            return found
        inner = children[name]
        own = {id(tensor) for tensor in module.parameters()} - {id(tensor) for tensor in inner.parameters()}
        if own:
            raise LiveModelError(f"{type(module).__name__} adds {len(own)} parameters to the model: no spec describes them")
        module = inner
        found.append(inner)


def wrapper_children(module: Any) -> tuple[str, ...]:
    """Attribute names under which a wrapper (PEFT, torch, an engine) may hold its model; empty for others."""
    packages = [kind.__module__.partition(".")[0] for kind in type(module).__mro__]
    if "peft" in packages:
        return ("base_model", "model")
    wraps = packages[0] == "torch" or type(module).__name__.endswith("Engine")
    return ("module",) if wraps else ()


def tree_of(root: Any) -> Tree:
    """Collect the modules and parameters of a model.

    Raises:
        SymflopsError: an adapter is neither LoRA nor DoRA, FSDP1 has flattened the parameters, or only a part of weights trains
            that the spec has as one.
    """
    tree, names = Tree(), names_of(root)
    first: dict[int, str] = {}
    stacks: dict[str, list[tuple[str, tuple[int, ...], bool]]] = {}
    for place, module in _walk(root, "", tree):
        tree.modules[names.path(place)] = module
        for own, tensor in module._parameters.items():
            if tensor is None:
                continue
            if own in ("_flat_param", "flat_param"):
                raise LiveModelError(
                    "FSDP1 has flattened the parameters: read the module before it is wrapped, or use fully_shard"
                )
            name, index = names.parameter(f"{place}.{own}" if place else own)
            tree.aliases[name] = first.setdefault(id(tensor), name) if not index else name
            if tree.aliases[name] == name:
                tree.parameters[name] = tensor
                tree.trains[name] = bool(tensor.requires_grad)
                tree.shapes[name] = shape_of(tensor, module)
                tree.packed += type(tensor).__name__ in PACKED
            if index:
                part = (starred(f"{place}.{own}"), tree.shapes[name], tree.trains[name])
                stacks.setdefault(name, []).append(part)
    for name, parts in stacks.items():
        tree.shapes[name], tree.trains[name] = stacked(parts, name)
    tree.checkpoints = {names.path(place): module for place, module in tree.checkpoints.items()}
    return tree


def shape_of(tensor: Any, module: Any) -> tuple[int, ...]:
    """The unsharded shape of a parameter, also under ZeRO-3 and for packed (quantised) parameters."""
    shape = getattr(tensor, "ds_shape", None)
    if shape is None and type(tensor).__name__ in PACKED:
        shape = (module.out_features, module.in_features)
    return tuple(int(size) for size in (tensor.shape if shape is None else shape))


def _walk(module: Any, path: str, tree: Tree) -> Iterator[tuple[str, Any]]:
    """Yield (path without wrappers, module) for every module that runs, parents first."""
    children: Mapping[str, Any] = {name: child for name, child in module._modules.items() if child is not None}
    inner = next((children[name] for name in TRANSPARENT if name in children), None)
    if inner is not None:
        if callable(getattr(module, "checkpoint_fn", None)):  # torch's ``checkpoint_wrapper``
            tree.checkpoints[path] = module
        yield from _walk(inner, path, tree)
        return
    if {"original_module", "modules_to_save"} <= children.keys():  # PEFT's ``modules_to_save``
        chosen = saved_copy(module)
        tree.idle += elements(module) - elements(chosen)
        yield from _walk(chosen, path, tree)
        return
    if is_lora(module):
        active = active_adapters(module, path)
        kept = {f"{part}.{name}" for part in ADAPTER_PARTS for name in active if name in children.get(part, ())}
        tree.idle += elements(module) - elements(module.base_layer)
        if not active:
            yield from _walk(module.base_layer, path, tree)
            return
        yield path, module
        yield from _walk(module.base_layer, f"{path}.base_layer", tree)
        for name in sorted(kept):
            part, _, adapter = name.partition(".")
            tree.idle -= elements(children[part][adapter])
            yield from _walk(children[part][adapter], f"{path}.{name}", tree)
        return
    refuse_other_adapters(module, path)
    yield path, module
    for name, child in children.items():
        yield from _walk(child, f"{path}.{name}" if path else name, tree)


def starred(path: str) -> str:
    """Replace every index in a module path with ``*``."""
    return INDEX.sub("*", path)


def elements(module: Any) -> int:
    """The number of elements in all parameters of a module and its children."""
    own = ((tensor, inner) for inner in module.modules() for tensor in inner._parameters.values())
    return sum(prod(shape_of(tensor, inner)) for tensor, inner in own if tensor is not None)


def weight_of(module: Any) -> Any:
    """The weight of a module that runs, inside of PEFT's wrappers; None without one."""
    if {"original_module", "modules_to_save"} <= module._modules.keys():
        module = saved_copy(module)
    return getattr(getattr(module, "base_layer", module), "weight", None)


def ends_of(root: Any) -> list[Any]:
    """The embedding table and the head of a model, as its class names them; None for each that it does not name."""
    found = []
    for name in ("get_input_embeddings", "get_output_embeddings"):
        try:
            found.append(getattr(root, name)())
        except (AttributeError, NotImplementedError):  # transformers' base class has both methods, also for images
            found.append(None)
    return found


def saved_copy(module: Any) -> Any:
    """The active copy in PEFT's ``modules_to_save`` wrapper, else the original module."""
    copies = module.modules_to_save
    active = [name for name in module.active_adapters if name in copies]
    return module.original_module if module.disable_adapters or not active else copies[active[0]]


def is_lora(module: Any) -> Any:
    """Whether a module is a PEFT layer with LoRA weights; those of AdaLoRA are no modules."""
    children = module._modules
    return {"base_layer", "lora_A", "lora_B"} <= children.keys() and type(children["lora_A"]).__name__ == "ModuleDict"


def on_parameter(module: Any) -> bool:
    """Whether a LoRA layer of PEFT stands on a parameter of the module inside, and not beside the module."""
    return hasattr(module, "parameter_name")


def active_adapters(module: Any, path: str) -> list[str]:
    """Names of a LoRA layer's active adapters, in order; empty if they are merged or disabled.

    Raises:
        LiveModelError: no regime can describe this layer type or LoRA variant.
    """
    if module.disable_adapters or module.merged:
        return []
    kind = type(module).__name__
    active = [name for name in module.active_adapters if name in module.lora_A]
    others = [name for name in module.active_adapters if name in getattr(module, "lora_embedding_A", ())]
    if on_parameter(module) and len(active) > 1:
        raise LiveModelError(f"'{path}' adds up {len(active)} adapters on a parameter, which regimes do not describe")
    known = on_parameter(module) or kind.endswith("Linear") or kind.startswith(("Linear", "Conv1d", "Conv2d", "Conv3d"))
    if others or not known:
        raise LiveModelError(f"'{path}' has LoRA of the kind {kind}: regimes describe it beside linears and convolutions")
    for name in active:
        variant = type(getattr(module, "lora_variant", {}).get(name)).__name__
        if not variant.startswith(("NoneType", "Dora")):
            raise LiveModelError(f"'{path}' has a LoRA variant that regimes do not describe: {variant}")
    return active


def refuse_other_adapters(module: Any, path: str) -> None:
    """Refuse a PEFT layer that is not LoRA.

    Raises:
        LiveModelError: the module is such a layer.
    """
    names = {kind.__name__ for kind in type(module).__mro__}
    if names & {"BaseTunerLayer", "AuxiliaryTrainingWrapper"}:
        words = f"{type(module).__module__}.{type(module).__name__}"
        raise LiveModelError(f"'{path}' is a {words}: only LoRA, DoRA and modules_to_save can be read off a module")


def sets_leaf(function: Any) -> bool:
    """Whether a function, such as a hook, sets ``requires_grad`` of a tensor, as its code tells."""
    inner = getattr(function, "func", function)  # of a partial
    return bool(NAMES.intersection(getattr(getattr(inner, "__code__", None), "co_names", ())))


def makes_leaf(module: Any) -> bool | None:
    """Whether ``forward`` sets ``requires_grad`` of a tensor in training, given the module's attributes.

    None if the class has no such assignment, or only under other conditions than attributes. These are ignored: an assignment
    that depends on the presence of an argument, for example, does not concern an input of the module.
    """
    kind: Any = type(module)
    settings = _settings(kind)
    wanted = any(all(name == "training" or getattr(module, name, False) for name in names) for names in settings)
    return wanted if settings else None


@lru_cache(maxsize=1024)
def _settings(kind: type) -> tuple[tuple[str, ...], ...]:
    """For each ``requires_grad = True`` in a class's ``forward``, the attributes that must be true."""
    forward = getattr(kind, "forward", None)
    plain: Any = inspect.unwrap(forward) if inspect.isfunction(forward) else None
    if plain is None or not NAMES.intersection(plain.__code__.co_names) or plain.__module__.startswith("torch."):
        return ()
    match tree_of_source(plain):
        case ast.Module(body=[ast.FunctionDef(body=body)]):
            return tuple(_found(body, ()))
    return ()


def tree_of_source(function: Any) -> ast.Module | None:
    """The syntax tree of a function; None if its source is unavailable."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


def _found(body: list[ast.stmt], names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=True)):
                yield names
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[] | [ast.Constant(value=True)])):
                yield names
            case ast.If(test=test, body=inner):
                asked = _attributes(test)
                if asked is not None:
                    yield from _found(inner, (*names, *asked))


def _attributes(test: ast.expr) -> tuple[str, ...] | None:
    """The attributes in a condition ``self.a and self.b and ...``; None for any other condition."""
    match test:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return (name,)
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [_attributes(value) for value in values]
            return None if None in parts else tuple(name for part in parts if part is not None for name in part)
    return None
