"""Answers for configs whose class has no spec: the class is traced once, and its forms serve further configs.

A separate process runs this module (:mod:`symflops.training.introspect.traced`), as it imports the library of the class. Before
the forms of a trace serve another config, all figures are compared with those of the real class at that config.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import sympy

from symflops.api import regime_of
from symflops.evaluate.classes import named_classes
from symflops.evaluate.unread import is_id
from symflops.ir.regime import Regime
from symflops.library.cache import keep, kept, place
from symflops.support.errors import SymflopsError
from symflops.support.files import digest
from symflops.support.reading import read_bytes
from symflops.training.introspect import elsewhere, proof
from symflops.verify.applied import refuse
from symflops.verify.census.fields import ABOUT_FILES
from symflops.verify.classes import arguments_of, checked, class_of, config_class_of
from symflops.verify.limits import in_process
from symflops.verify.running import needed
from symflops.verify.symbolic.explore import CANDIDATES, said
from symflops.verify.symbolic.inputs import ADAPTERS, LENGTHS, ranks
from symflops.verify.symbolic.printing import MEANINGS, as_json, parsed
from symflops.verify.symbolic.target import Target, dotted, others, places
from symflops.verify.symbolic.traced import FIGURES, Traced, symbol
from symflops.verify.symbolic.tracer import FULL, Example
from symflops.verify.symbolic.tracing import SECONDS, trace

ABOUT = ABOUT_FILES - {"id2label"}
"""Fields that change neither parameters nor FLOPs; the number of labels does."""
SAMPLES = "b"
"""The length that counts the items of a batch."""


def main() -> None:
    """Answer the request on standard input, and print the answer, both as JSON."""
    with redirect_stdout(sys.stderr):  # libraries print
        elsewhere.main(answer)


def answer(
    config: dict[str, Any], folder: str | None, trust: bool, columns: Mapping[str, list[int]] | None, regime: str = "full"
) -> dict[str, Any]:
    """The figures of a config by the forms of its class.

    Args:
        config: JSON data that names a class of transformers or diffusers.
        folder: The folder of the config, with the files of its own code; None if there is none.
        trust: Whether code that the config names may run.
        columns: Values of each length, one per call; None for the coefficients of polynomials in the number of tokens.
        regime: What trains, is adapted and recomputed.

    Returns:
        ``class``, ``package`` with its version, ``exact`` (number of unseen configs), ``domain`` (conditions), ``missed``
        (operators without a rule), ``parameters``, and: ``calls``, the FLOPs of both passes of each call and those recomputed;
        or ``forward`` and ``backward``, the FLOPs of one item by power of its number of tokens.

    Raises:
        SymflopsError: there is no such class, it cannot be traced, its forms are not proven, or they do not hold.
    """
    kind = class_of_config(config, folder, trust)
    chosen = regime_of(regime)
    refuse(chosen)
    traced, values = forms_for(kind, config, chosen)
    package = kind.__module__.partition(".")[0]
    version = f" {proof.installed(package)}" if package in proof.LIBRARIES else ""
    found: dict[str, Any] = {
        "class": traced.name,
        "package": package + version,
        "exact": traced.exact,
        "domain": as_json(traced)["domain"],
        "missed": dict(traced.missed),
    }
    if columns is None:
        return {**found, **polynomials(traced, values)}
    rows = calls(traced, columns)
    plain = forms_for(kind, config, replace(chosen, recompute=None))[0] if chosen.recompute else traced
    points = {row: {**values, **dict(row)} for row in dict.fromkeys(rows)}
    whole = {row: traced.at(point) for row, point in points.items()}
    once = {row: plain.at(point)["backward"] for row, point in points.items()}
    figures = {row: [whole[row]["forward"], once[row], whole[row]["backward"] - once[row]] for row in points}
    return {**found, "parameters": traced.at(values)["parameters"], "calls": [figures[row] for row in rows]}


def class_of_config(config: Mapping[str, Any], folder: str | None, trust: bool) -> Any:
    """The module class that a config names, of the library or, with ``trust``, of the code that the config names.

    Raises:
        SymflopsError: the config names no class, its library has no such class, or its own code would have to run.
    """
    field, name = next(named_classes(config), ("", ""))
    if not name:
        raise SymflopsError("the config names no class to trace: no 'architectures' or '_class_name'")
    auto = config.get("auto_map")
    own = [one for one in auto.values() if isinstance(one, str) and one.endswith(f".{name}")] if isinstance(auto, dict) else []
    if own and trust:
        return checked(remote(own[0], folder), name)
    try:
        return class_of(f"{'diffusers' if field == '_class_name' else 'transformers'}.{name}")
    except SymflopsError as error:
        if not own:
            raise
        raise SymflopsError(f"{error}; the config names code of its own (auto_map): --trust or trust=True runs it") from None


def remote(reference: str, folder: str | None) -> Any:
    """Import ``module.Class`` of a folder, or ``repository--module.Class``, as transformers does; nothing is downloaded.

    Raises:
        SymflopsError: there are no such files, or they fail.
    """
    if folder is None and "--" not in reference:
        raise SymflopsError(f"give the config as a path: the code of {reference} is beside it")
    modules = needed("transformers.dynamic_module_utils")
    try:
        return modules.get_class_from_dynamic_module(reference, folder or "", local_files_only=True)
    except Exception as error:
        raise SymflopsError(f"{reference} cannot be imported: {said(error)}") from error


def forms_for(kind: Any, config: Mapping[str, Any], regime: Regime = FULL) -> tuple[Traced, dict[str, int]]:
    """The proven forms of a class in a regime that hold at a config, and the values of their symbols there.

    They are of an earlier trace if its further fields are equal, its domain holds, and the real class has the same figures at
    this config; else the class is traced.

    Raises:
        SymflopsError: the class cannot be traced, or its forms are not proven.
    """
    target = Target(kind, lean(kind, config))
    fields = {name: value for name, value in target.config.items() if name not in ABOUT}
    adapters = [replace(one, rank=0) for one in regime.adapters]  # the rank is a symbol
    does = repr((regime.train, regime.freeze, adapters, regime.recompute))
    folder = place(f"traces/{kind.__name__}-{digest(json.dumps([*facts(kind), does]))[:16]}")
    path = folder / f"{digest(json.dumps(fields, sort_keys=True))[:16]}.json"
    for other in sorted(folder.glob("*.json"), key=lambda other: other != path):
        if (entry := kept(other)) is not None:
            with suppress(SymflopsError):
                traced = parsed(json.loads(entry[1]))
                values = values_in(traced, target, regime)
                if other != path:
                    check(traced, values, target, regime)
                    save(path, entry[1])
                return traced, values
    traced = trace(kind, config=target.config, regime=regime)
    if not traced.proven:
        raise SymflopsError(f"the forms of {traced.name} are unproven: {traced.unproven}")
    values = values_in(traced, target, regime)
    check(traced, values, target, regime)
    save(path, json.dumps(as_json(traced)))
    return traced, values


def save(path: Path, text: str) -> None:
    """Keep a trace in the user's cache, if that can be written."""
    with suppress(OSError):
        keep(path, text)


def facts(kind: Any) -> list[str]:
    """The name of a class, the source of all its classes, and the versions of its packages: its forms depend on them."""
    classes = [*kind.__mro__, *getattr(config_class_of(kind), "__mro__", ())]
    files = {getattr(sys.modules.get(one.__module__), "__file__", None) for one in classes}
    sources = sorted(digest(read_bytes(file)) for file in files if file)
    packages = {one.__module__.partition(".")[0] for one in classes} & {"torch", *proof.LIBRARIES}
    versions = [f"{name} {proof.installed(name)}" for name in sorted(packages)]
    return [f"{kind.__module__}.{kind.__qualname__}", *sources, *versions]


def lean(kind: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a config that its class takes, without the lists that it derives from other fields.

    A saved config of transformers has such lists, one entry per layer, and with them no number of layers would be a symbol.
    """
    own = config_class_of(kind)
    if own is None:
        return {name: value for name, value in config.items() if name in arguments_of(kind)}
    found = {name: value for name, value in config.items() if name not in proof.IMPLEMENTATION}
    for name in [name for name, value in found.items() if isinstance(value, list)]:
        rest = {other: value for other, value in found.items() if other != name}
        with suppress(Exception):
            if Target(kind, rest).settings({}).to_dict() == Target(kind, found).settings({}).to_dict():
                found = rest
    return found


def values_in(traced: Traced, target: Target, regime: Regime = FULL) -> dict[str, int]:
    """The values of a trace's symbols in a config, at which its forms hold as far as its own conditions on fields say.

    Raises:
        SymflopsError: the config has another further field, breaks an equation, or has a symbol below 2.
    """
    shallow = target.settings({tuple(name.split(".")): number for name, number in traced.depths.items()})
    full = dict(numbers(target.settings({})))
    found = {name: full.get(name, value) for name, value in numbers(shallow)}
    fields = {name: one for name, one in traced.fields.items() if name not in LENGTHS and name not in ADAPTERS}
    rest = {name: value for name, value in others(shallow) if about_work(name)}
    rest |= {name: value for name, value in numbers(shallow) if name not in fields}
    differing = {name for name, value in traced.fixed.items() if about_work(name) and rest.get(name, name) != value}
    differing |= rest.keys() - traced.fixed.keys() | fields.keys() - found.keys()
    point = {symbol(name): sympy.Integer(value) for name, value in found.items()}
    for name, one in fields.items():
        if name in differing or one.kind == "unused":
            continue
        value = found[name]
        if one.kind == "symbolic":
            holds = value >= 2
        elif one.kind == "derived":
            expected = traced.equations[name].xreplace(point)
            holds = bool(expected.free_symbols) or expected == value  # tied to a length, which follows it
        else:
            holds = value == one.value
        if not holds:
            differing.add(name)
    if differing:
        raise SymflopsError(f"the forms of {traced.name} hold for other values of {', '.join(sorted(differing))}")
    return {name: found[name] for name, one in fields.items() if one.kind in ("symbolic", "unused")} | dict(ranks(regime))


def numbers(settings: Any) -> Iterator[tuple[str, int]]:
    """Yield (name, value) of the integers in a config."""
    yield from ((dotted(place), value) for place, value in places(settings))


def about_work(name: str) -> bool:
    """Whether a field may change parameters or FLOPs: none about files, types of numbers or single tokens does."""
    return name.partition(".")[0] not in ABOUT and not is_id(name)


def check(traced: Traced, values: Mapping[str, int], target: Target, regime: Regime = FULL) -> None:
    """Compare the figures of a config with those of its real class, at the lengths of all examples.

    Raises:
        SymflopsError: the class does not run, or a figure differs.
    """
    real = in_process(partial(counted, target, regime), SECONDS, f"running {traced.name}")
    lengths = {name: value for name, value in LENGTHS.items() if name in traced.symbols()}
    mine = traced.at({**values, **lengths})
    for name in FIGURES:
        if mine[name] != real[name]:
            raise SymflopsError(
                f"the forms of {traced.name} are not exact at this config: {name} {mine[name]}, {real[name]} counted"
            )


def counted(target: Target, regime: Regime = FULL) -> dict[str, int]:
    """Figures of the real class at a config in a regime, without values in its tensors.

    Raises:
        SymflopsError: it does not run.
    """
    reason, lengths = "no inputs are known for it", {**LENGTHS, **dict(ranks(regime))}
    for device in ("meta", "cpu"):
        for candidate in range(CANDIDATES):
            try:
                found = Example(target, {}, {}, lengths, candidate, device, regime=regime).real({}, lengths)
            except StopIteration:
                break
            except Exception as error:
                reason = said(error)
                continue
            return {name: int(getattr(found, name)) for name in FIGURES}
    raise SymflopsError(f"{target.kind.__name__} does not run: {reason}")


def free_lengths(traced: Traced) -> list[str]:
    """Names of the lengths that are symbols in the figures or the domain of a trace."""
    return [name for name in traced.symbols() if name in LENGTHS]


def calls(traced: Traced, columns: Mapping[str, list[int]]) -> list[tuple[tuple[str, int], ...]]:
    """The lengths of each call, (name, value) in order; one item a call unless ``columns`` say another number.

    Raises:
        SymflopsError: a length is missing, or is none of the class.
    """
    free = free_lengths(traced)
    told = ", ".join(f"{name} ({MEANINGS[name]})" for name in free)
    missing = [name for name in free if name not in columns and name != SAMPLES]
    unknown = [name for name in columns if name not in {*free, SAMPLES}]
    if missing or unknown:
        wrong = f"needs {', '.join(missing)}" if missing else f"has no {', '.join(unknown)}"
        raise SymflopsError(f"a batch of {traced.name} {wrong}: its lengths are {told or 'all fixed by its config'}")
    count = len(next(iter(columns.values()), []))
    chosen = {SAMPLES: [1] * count, **columns}
    used = [name for name in chosen if name in free]
    return [tuple((name, chosen[name][place]) for name in used) for place in range(count)]


def polynomials(traced: Traced, values: Mapping[str, int]) -> dict[str, Any]:
    """``parameters`` of a config, and the FLOPs of both passes of one item as coefficients by power of its tokens.

    Raises:
        SymflopsError: other lengths than samples and tokens, or figures that are no polynomials of all numbers up to one.
    """
    tokens, others = symbol("s"), set(free_lengths(traced)) - {SAMPLES, "s"}
    if others:
        raise SymflopsError(f"a meter knows tokens alone, and {traced.name} has {', '.join(sorted(others))}")
    point = {symbol(name): sympy.Integer(value) for name, value in values.items()} | {symbol(SAMPLES): sympy.Integer(1)}
    longest = [bound(one.xreplace(point), tokens) for one in traced.domain]
    figures = traced.at({**values, SAMPLES: 1})
    found: dict[str, Any] = {"parameters": figures["parameters"], "longest": min(filter(None, longest), default=None)}
    try:
        for name in ("forward", "backward"):
            terms = sympy.Poly(getattr(traced, name).xreplace(point), tokens).all_coeffs()[::-1]
            found[name] = [int(one) for one in terms if one.is_Integer]
            if len(found[name]) != len(terms):
                raise sympy.PolynomialError
    except sympy.PolynomialError:
        raise SymflopsError(f"the FLOPs of {traced.name} are no polynomial of its tokens with whole coefficients") from None
    return found


def bound(condition: sympy.Basic, tokens: sympy.Symbol) -> int | None:
    """The largest number of tokens for which a condition holds; None if it holds for all numbers.

    Raises:
        SymflopsError: it holds for no such range.
    """
    if condition is sympy.true:
        return None
    if isinstance(condition, (sympy.Le, sympy.Lt, sympy.Ge, sympy.Gt)) and condition.lts == tokens and condition.gts.is_Integer:
        return int(condition.gts) - isinstance(condition, (sympy.Lt, sympy.Gt))
    raise SymflopsError(f"its forms hold only where {condition}")
