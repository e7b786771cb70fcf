"""Finds the structures that configs of a spec can have, and derives each, so that ``check`` covers all structures.

A structure depends on few sizes; the stages name those that they must know. Beginning with the defaults, the classes and the
variants, each of these sizes takes another value of its type, and the stages run again.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.api import Model, program_in
from symflops.compiler import Goal, NeedsSizeError, next_size
from symflops.evaluate.classes import class_name
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.typical_values import typical_batch
from symflops.ir.graph import Graph
from symflops.ir.spec import SizeSpec, Spec
from symflops.read.definition_order import expressions, headers
from symflops.read.variants import config_with, view
from symflops.support.findings import Diagnostic, SpecError, SymflopsError

MOST_STRUCTURES, MOST_OPERATORS = 64, 3_000
"""Limits on structures found by changing sizes: their number, and the sum of their operators."""
STAND_IN = {"number": 64, "count": 2}
"""The value of a size without a default in an estimate, by its kind."""

OTHER = "other"
"""Word that no spec compares with, to reach the branch where no comparison holds."""
NUMBERS = ("number", "entries", "each", "number or list", "number, list, same or valid")


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure of a spec to check, given by a config or by the name of a variant.

    ``changed`` maps letters of sizes to the values that were set in place of those of another structure.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    changed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Description of the variant or config for messages; empty for the defaults."""
        return f"variant '{self.variant}'" if self.variant else f"config {self.config}" if self.config else ""


def findings_of(model: Model, configs: Sequence[Mapping[str, Any]] = ()) -> list[Diagnostic]:
    """Check the structures of a model and of ``configs``, and others with changed structural sizes.

    Return their findings; without any, return a note that names the structural sizes.
    """
    queue = deque([*roots(model), *map(Structure, configs)])
    found: list[Diagnostic] = []
    tried, operators, seen = 0, 0, {"[]"}
    first: Graph | None = None
    while queue and (not queue[0].changed or (tried < MOST_STRUCTURES and operators < MOST_OPERATORS)):
        one = queue.popleft()
        try:
            graph = derived(model, one)
        except SpecError as error:
            lacking = bool(configs) and not one.words  # a config says what the defaults lack
            found += [_in_structure(each, one) for each in error.diagnostics if not _is_refusal(each, one, lacking)]
            continue
        if graph is None:
            continue
        first = first or graph
        if one.changed:
            tried, operators = tried + 1, operators + sum(1 for _ in graph.operators())
        for other in neighbours(model, one, graph):
            key = repr(sorted(other.changed.items()))
            if key not in seen:
                seen.add(key)
                queue.append(other)
    return found or list(open_sizes(model, first, tried, not queue))


def roots(model: Model) -> Iterator[Structure]:
    """Yield the structures that a spec names: the defaults, then one per class and per variant."""
    yield Structure()
    known = {view(model.spec, "").constants}
    for row in model.spec.classes:
        constants = view(model.spec, class_name(row.name)).constants
        if constants not in known:
            known.add(constants)
            yield Structure({"architectures": [class_name(row.name)]})
    yield from (Structure(variant=name) for name in model.variants)


def derived(model: Model, one: Structure) -> Graph | None:
    """Derive a structure, estimate a typical batch, and return the graph.

    The result is None if the model refuses a config with ``changed`` sizes.

    Raises:
        SpecError: the structure cannot be derived.
    """
    config = None if one.variant else one.config
    try:
        compiled = model.compiled(Goal.PROGRAM, ["full"], ["symflops"], config, one.variant)
        program = program_in(compiled)
        if not one.variant:
            missing = {
                field.letter: STAND_IN[field.kind] for field in program.fields if field.required and field.kind in STAND_IN
            }
            estimator = InterpretedEstimator(program, config_with(model.spec.sizes, missing, one.config))
            estimator.total(estimator.moments(**typical_batch(program)))
    except SpecError:
        raise
    except SymflopsError:
        return None if one.changed else compiled.graph
    return compiled.graph


def neighbours(model: Model, one: Structure, graph: Graph) -> Iterator[Structure]:
    """Yield structures with another value of one structural size of ``graph``, or other list lengths."""
    if one.variant:
        return
    for changed in other_values(model.spec, dict(graph.fixed), one.changed):
        together = {**one.changed, **changed}
        yield Structure(config_with(model.spec.sizes, together, one.config), changed=together)


def _is_refusal(diagnostic: Diagnostic, one: Structure, lacking: bool) -> bool:
    """Whether a finding says nothing against the spec, only that a config is invalid or lacks a size.

    ``lacking``: whether the defaults may lack a size, because the user gave configs.
    """
    if lacking and diagnostic.code == "structural-size":
        return True
    return bool(one.changed) and diagnostic.code == "bad-expression" and diagnostic.message.startswith("index ")


def _in_structure(diagnostic: Diagnostic, one: Structure) -> Diagnostic:
    """Return the finding with a note that names the structure; unchanged for the default structure."""
    if not one.words:
        return diagnostic
    return replace(diagnostic, note="; ".join(text for text in (diagnostic.note, f"in the structure of {one.words}") if text))


def open_sizes(model: Model, graph: Graph | None, tried: int, whole: bool) -> Iterator[Diagnostic]:
    """Yield a note that names the structural sizes, if there are any.

    Args:
        model: The checked model.
        graph: The graph of its first structure.
        tried: How many structures with changed sizes were checked.
        whole: Whether none was left unchecked.
    """
    sizes: dict[str, Any] = {}
    reasons: dict[str, Diagnostic] = {}
    fixed = dict(graph.fixed) if graph else {}
    while True:
        try:
            model.compiled(Goal.PROGRAM, ["full"], ["symflops"], sizes=sizes)
            break
        except NeedsSizeError as error:
            name = next_size(model.spec, error.size, sizes)
            if name in sizes or name not in fixed:
                break
            sizes[name] = fixed[name]
            reasons[name] = error.diagnostics[0]
    if reasons:
        first = next(iter(reasons.values()))
        names = ", ".join(f"'{name}'" for name in reasons)
        message = f"the structure depends on {names}, so its closed forms hold for one structure each"
        told = f"{first.message}; checked with {tried or 'no'} other value{'' if tried == 1 else 's'}"
        yield Diagnostic("structural-size", message, first.span, "", "note", note=told if whole else f"{told}, not with all")


def other_values(spec: Spec, fixed: Mapping[str, Any], changed: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield mappings from letter to new value: for one size of ``fixed``, or for all its lists.

    Sizes in ``changed``, which have a new value already, are left out.
    """
    sizes = [size for size in spec.sizes if size.keys and size.name.text in fixed and size.name.text not in changed]
    for size in sizes:
        value = fixed[size.name.text]
        yield from ({size.name.text: other} for other in _others(spec, size, value) if other != value)
    lists = {size.name.text: fixed[size.name.text] for size in sizes if isinstance(fixed[size.name.text], (list, tuple))}
    for longer in (True, False) if lists else ():
        resized = {letter: _resized(tuple(value), longer) for letter, value in lists.items()}
        yield from [resized] if resized != lists else []


def _others(spec: Spec, size: SizeSpec, value: Any) -> Iterator[Any]:
    """Yield values of ``size`` other than ``value``: of the same type, and None if it may be null."""
    if size.optional and value is not None:
        yield None
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, str):
        yield from words(spec, size.name.text)
        if size.kind == "text":
            yield OTHER
    elif isinstance(value, int):
        yield from (1, value + 1)
    elif value is None and size.kind in NUMBERS:
        yield 2


def _resized(value: tuple[Any, ...], longer: bool) -> tuple[Any, ...]:
    """Return the list with one item more if ``longer``, else without its last item.

    The new item is the last one, doubled if it is an integer.
    """
    if not longer:
        return value[:-1] if len(value) > 1 else value
    return (*value, *(2 * item if type(item) is int else item for item in value[-1:]))


def words(spec: Spec, letter: str) -> list[str]:
    """Return the string constants with which expressions of a spec compare the size ``letter``."""
    found = []
    for expression in (*headers(spec), *expressions(spec.graph)):
        for node in ast.walk(expression.tree):
            if isinstance(node, ast.Compare) and any(getattr(each, "id", "") == letter for each in ast.walk(node)):
                found += [
                    each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)
                ]
    return list(dict.fromkeys(found))
