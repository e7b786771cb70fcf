"""Detects gradient checkpointing: which modules a live model recomputes, and how.

transformers' ``GradientCheckpointingLayer`` and torch's ``checkpoint_wrapper`` recompute themselves. Any other module with
``gradient_checkpointing`` passes inner modules to ``_gradient_checkpointing_func``; its source is parsed to find them. A run on
a scalar tests whether a checkpoint function is reentrant and stops early.
"""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from typing import Any

from symflops.training.introspect.tree import LiveModelError, Tree, tree_of_source

LAYER = "GradientCheckpointingLayer"
FUNCTION = "_gradient_checkpointing_func"
FLAGS = {"gradient_checkpointing", "training", "is_grad_enabled"}
"""Names in conditions around a checkpoint call that are true in training."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What a live model recomputes.

    Attributes:
        groups: Paths of the recomputed modules, each checkpointed by itself.
        reentrant: Whether PyTorch's reentrant implementation is used.
        early_stop: Whether recomputation stops once all saved tensors are there.
    """

    groups: tuple[str, ...]
    reentrant: bool
    early_stop: bool


def recomputed(tree: Tree) -> Recomputed | None:
    """Find the modules that the model recomputes in training; None without gradient checkpointing.

    Raises:
        LiveModelError: modules or mode cannot be determined, groups are nested, or modes differ.
    """
    tried = {path: manner(path, module.checkpoint_fn) for path, module in tree.checkpoints.items()}
    known: dict[int, tuple[bool, bool] | None] = {}
    for path, module in tree.modules.items():
        if not getattr(module, "gradient_checkpointing", False):
            continue
        function = getattr(module, FUNCTION, None)
        groups = list(groups_of(path, module))
        if groups and id(function) not in known:
            known[id(function)] = manner(path, function)
        tried |= dict.fromkeys(groups, known.get(id(function)))
    found = {path: how for path, how in tried.items() if how is not None}
    if not found:
        return None
    nested = next((path for path in found if any(path.startswith(f"{outer}.") for outer in found)), None)
    if nested is not None:
        raise LiveModelError(
            f"'{nested}' is recomputed inside of another recomputed module, which regimes do not describe: {OUT}"
        )
    if len(set(found.values())) > 1:
        raise LiveModelError(f"the model recomputes its modules in several ways, which regimes do not describe: {OUT}")
    reentrant, early_stop = next(iter(found.values()))
    return Recomputed(tuple(found), reentrant, early_stop)


def outermost(paths: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The paths that match ``patterns`` and lie inside no other matching path."""
    found: list[str] = []
    for path in sorted(paths, key=lambda path: path.count(".")):
        if any(fnmatchcase(path, pattern) for pattern in patterns):
            inside = any(path.startswith(f"{outer}.") for outer in found)
            found += [] if inside else [path]
    return found


OUT = "say what is recomputed with regime=..."


def groups_of(path: str, module: Any) -> Iterator[str]:
    """Yield the paths that a module with ``gradient_checkpointing`` recomputes: its own, or inner ones."""
    if any(kind.__name__ == LAYER for kind in type(module).__mro__):
        yield path
        return
    kind: Any = type(module)
    for attribute in passed_modules(kind):
        if attribute is None:
            raise LiveModelError(f"what {type(module).__name__} ('{path}') recomputes cannot be read off its source: {OUT}")
        attribute, _, part = attribute.partition("[")
        inner: Any = getattr(module, attribute, None)
        prefix = f"{path}.{attribute}" if path else attribute
        if type(inner).__name__ in ("ModuleList", "Sequential"):
            low, _, high = part.rstrip("]").partition(":")
            chosen = slice(int(low) if low else None, int(high) if high else None)
            yield from (f"{prefix}.{index}" for index in list(inner._modules)[chosen])
        elif inner is not None:
            yield prefix


@lru_cache(maxsize=256)
def passed_modules(kind: type) -> tuple[str | None, ...]:
    """Names of attributes of ``self`` whose modules a class checkpoints; None for each that is unknown.

    A name may end in a slice, such as ``layers[1:]``.
    """
    found: dict[str | None, None] = {}
    for owner in type.mro(kind):
        if owner.__module__.partition(".")[0] == "torch":
            continue
        for name, member in vars(owner).items():
            plain: Any = inspect.unwrap(member) if inspect.isfunction(member) else None
            if plain is not None and FUNCTION in plain.__code__.co_names and getattr(kind, name, None) is member:
                found.update(dict.fromkeys(_passed(plain)))
    return tuple(found)


def _passed(function: Callable[..., Any]) -> Iterator[str | None]:
    """Yield the attributes of ``self`` that a method checkpoints; None for each that cannot be determined."""
    tree = tree_of_source(function)
    if tree is None:
        yield None
        return
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == FUNCTION and node.args:
            yield _attribute(node, parents)


def _attribute(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> str | None:
    """The attribute of ``self`` that is a call's first argument, or over which a loop around it runs.

    ``parents`` maps syntax nodes to the nodes around them. None if it is neither, or if the call is conditional.
    """
    target: ast.expr = call.args[0]
    if isinstance(target, ast.Attribute) and target.attr in ("__call__", "forward"):
        target = target.value
    around: list[ast.AST] = [call]
    while around[-1] in parents:
        around.append(parents[around[-1]])
    pairs = pairwise(around)
    if any(isinstance(node, (ast.If, ast.IfExp)) and not _harmless(node, child, target) for child, node in pairs):
        return None
    if not isinstance(target, ast.Name):
        return _of_self(target)
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(around[-1])
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    loops = (_looped(node.target, node.iter, target.id, assigned) for node in around if isinstance(node, ast.For))
    return next((found for found in loops if found), None)


def _harmless(node: ast.If | ast.IfExp, child: ast.AST, target: ast.expr) -> bool:
    """Whether a condition around a checkpoint call can be ignored in training with checkpointing.

    It can be if no other branch runs ``target``, the module that is called. ``child`` is the part of ``node`` with the call.
    """
    if child is node.test:
        return True
    parts = _conjuncts(node.test)
    flags = [getattr(part.func if isinstance(part, ast.Call) else part, "attr", None) in FLAGS for part in parts]
    rest = {ast.dump(part) for part, is_flag in zip(parts, flags, strict=True) if not is_flag}
    if not rest and child is not node.orelse and child not in _listed(node.orelse):
        return True
    other = _listed(node.orelse if child is node.body or child in _listed(node.body) else node.body)
    if len(other) == 1 and isinstance(other[0], ast.If) and rest <= {ast.dump(test) for test in _conjuncts(other[0].test)}:
        return True
    used = ast.dump(target).replace("Store()", "Load()")
    return not any(ast.dump(inner) == used for one in other for inner in ast.walk(one))


def _listed(branch: Any) -> list[Any]:
    return branch if isinstance(branch, list) else [branch]


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    is_and = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    return [part for value in test.values for part in _conjuncts(value)] if is_and else [test]  # type: ignore[attr-defined]


def _looped(target: ast.expr, over: ast.expr, name: str, assigned: Mapping[str, ast.expr]) -> str | None:
    """The attribute of ``self`` whose items the loop ``for target in over`` binds to ``name``; else None.

    ``assigned`` maps local variables to their values. ``enumerate``, ``zip`` and ``list`` are looked through.
    """
    if isinstance(over, ast.Name) and over.id in assigned:
        over = assigned[over.id]
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.args:
        if over.func.id == "list":
            return _looped(target, over.args[0], name, assigned)
        if over.func.id == "enumerate" and isinstance(target, ast.Tuple):
            return _looped(target.elts[1], over.args[0], name, assigned)
        if over.func.id == "zip" and isinstance(target, ast.Tuple):
            pairs = zip(target.elts, over.args, strict=False)
            return next((found for one, other in pairs if (found := _looped(one, other, name, assigned))), None)
    if not (isinstance(target, ast.Name) and target.id == name):
        return None
    if isinstance(over, ast.Subscript):
        inner, part = _of_self(over.value), ast.unparse(over.slice)
        return f"{inner}[{part}]" if inner and re.fullmatch(r"-?\d*:-?\d*", part) else None
    return _of_self(over)


def _of_self(node: ast.expr) -> str | None:
    """The attribute name if ``node`` is ``self.<name>``, else None."""
    plain = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if plain else None  # type: ignore[attr-defined]


def manner(path: str, function: Any) -> tuple[bool, bool] | None:
    """Try a checkpoint function: (whether it is reentrant, whether it stops early); None if it recomputes nothing.

    Raises:
        LiveModelError: it checkpoints selectively, or cannot run a function of one tensor.
    """
    options = getattr(function, "keywords", {})
    if options.get("context_fn") is not None:
        raise LiveModelError(f"'{path}' is recomputed selectively, which regimes do not describe: {OUT}")
    try:
        runs, ends, reentrant = _tried(function)
    except Exception as error:
        raise LiveModelError(f"how '{path}' is recomputed is not known ({type(error).__name__}: {error}): {OUT}") from error
    return (reentrant, ends < runs) if runs > 1 else None


def _tried(function: Callable[..., Any]) -> tuple[int, int, bool]:
    """Run ``function`` on a scalar: (number of forward passes begun, number ended, whether it is reentrant)."""
    import torch

    begun, ended = [], []

    class Square(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            begun.append(1)
            found = x * x
            ended.append(1)
            return found

    with warnings.catch_warnings(), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        warnings.simplefilter("ignore")
        result = function(Square(), torch.ones((), device="cpu", requires_grad=True))
        reentrant = "CheckpointFunction" in type(result.grad_fn).__name__
        result.backward()
    return len(begun), len(ended), reentrant
