"""Which modules make a tensor need a gradient while they run, as the first convolution of Wav2Vec2 does."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

NAMES = frozenset({"requires_grad", "requires_grad_"})


def makes_leaf(module: Any) -> bool | None:
    """Whether ``forward`` sets ``requires_grad`` of a tensor once the module trains, by attributes of the module alone.

    None if no attributes make the class do that.

    Where a condition asks for more than attributes, such as which arguments there are, what is set is no input of the module.
    """
    kind: Any = type(module)
    settings = _settings(kind)
    wanted = any(all(name == "training" or getattr(module, name, False) for name in names) for names in settings)
    return wanted if settings else None


@lru_cache(maxsize=1024)
def _settings(kind: type) -> tuple[tuple[str, ...], ...]:
    """Per assignment of ``requires_grad = True`` in ``forward``, the attributes that must be true."""
    forward = getattr(kind, "forward", None)
    plain: Any = inspect.unwrap(forward) if inspect.isfunction(forward) else None
    if plain is None or not NAMES.intersection(plain.__code__.co_names) or plain.__module__.startswith("torch."):
        return ()
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(plain)))
    except (OSError, TypeError, SyntaxError):
        return ()
    body = tree.body[0].body if isinstance(tree.body[0], ast.FunctionDef) else []
    return tuple(_found(body, ()))


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
    """The attributes of ``self`` that a condition asks for, all of which must be true; None if it asks for anything else."""
    match test:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return (name,)
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [_attributes(value) for value in values]
            return None if None in parts else tuple(name for part in parts if part is not None for name in part)
    return None
