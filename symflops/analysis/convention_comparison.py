"""Compares regimes or conventions on one model and batch: a row of FLOPs for each."""

from __future__ import annotations

from symflops.analysis.explanation import default_batch
from symflops.library.naming import batch_for, estimator_of
from symflops.support.errors import SymflopsError, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from symflops.evaluate.interpreted import InterpretedEstimator

USUAL = ("full", "lora", "checkpointed")
"""Regimes to compare if none is named."""
UNFIT = ("unmatched-pattern", "bad-recompute", "bad-adapter")
"""Diagnostics that mean a regime does not fit a model: it adapts or recomputes no module."""


def compare(
    model: Any,
    batch: Mapping[str, Any] | str | None = None,
    *,
    regimes: Sequence[str] = (),
    conventions: Sequence[str] = (),
    config: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return a dict of parameters and FLOPs per regime or convention, ready for pandas or polars.

    Args:
        model: A model in any form that :func:`symflops.explain` accepts.
        batch: For each stream a list of one entry per item, or a text such as ``"8192*8"``; by default one item of
            typical lengths.
        regimes: The regimes to compare, under the first of the ``conventions``; by default full training, and LoRA and
            checkpointing where they fit the model.
        conventions: One convention for all rows, or several to compare, under the first of the ``regimes``.
        config: The config, if ``model`` is a name.
        settings: Other values for fields of the config, as in :func:`symflops.explain`.

    Raises:
        SymflopsError: as :func:`symflops.estimate`; or several regimes and several conventions.
    """
    regimes, conventions = names_in(regimes, "regimes"), names_in(conventions, "conventions")
    if len(regimes) > 1 and len(conventions) > 1:
        raise SymflopsError("compare several regimes or several conventions, not both at once")
    regime, convention = (next(iter(names), None) for names in (regimes, conventions))
    if len(conventions) > 1:
        models = {name: estimator_of(model, config, regime, name, settings) for name in conventions}
        return by_convention(models, batch_or_default(models[conventions[0]], batch))
    models = under(lambda name: estimator_of(model, config, name, convention, settings), regimes)
    full = models.get("full") or estimator_of(model, config, "full", convention, settings)
    return by_regime(models, full, batch_or_default(full, batch))


def batch_or_default(model: InterpretedEstimator, batch: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """Return the batch, read for the model, or its default one."""
    return default_batch(model) if batch is None else batch_for(model, batch)


def names_in(given: Any, what: str) -> Sequence[str]:
    """Return a sequence of names; a text is split as on a command line, and None is no name.

    Raises:
        SymflopsError: it is no sequence.
    """
    if isinstance(given, str) or given is None:
        return regimes_in(given or "")
    if not isinstance(given, (list, tuple)):
        raise SymflopsError(f"'{what}' is a list of names, not {kind_of(given)}")
    return given


def under(make: Callable[[str], InterpretedEstimator], regimes: Sequence[str] = ()) -> dict[str, InterpretedEstimator]:
    """Create an estimator per regime with ``make``; by default for each of ``USUAL`` that fits the model.

    A stored program lists every usual regime that fits the model. Under other programs, each usual regime is tried.

    Raises:
        SymflopsError: the model is not valid, or a named regime does not fit it.
    """
    if regimes:
        return {name: make(name) for name in regimes}
    first, *others = USUAL
    found = {first: make(first)}
    stored = {row["name"] for row in found[first].stored.document["regimes"]}
    for name in others:
        if {first, "forward"} <= stored and name not in stored:
            continue
        try:
            found[name] = make(name)
        except SymflopsError as error:
            codes = {finding.code for finding in getattr(error, "diagnostics", ())}
            if not codes or not codes <= set(UNFIT):
                raise
    return found


def regimes_in(text: str) -> list[str]:
    """Split a list of regimes at ``;``, else at commas that are not inside one regime's options.

    >>> regimes_in("full,lora:r=16,targets=*.q_proj,checkpointed")
    ['full', 'lora:r=16,targets=*.q_proj', 'checkpointed']
    """
    if text.lstrip().startswith("{") and ";" not in text:
        return [text.strip()]
    found: list[str] = []
    for piece in text.split(";" if ";" in text else ","):
        name, equals, _ = piece.partition("=")
        if ";" not in text and equals and ":" not in name and found and ":" in found[-1]:
            found[-1] += f",{piece.strip()}"
        else:
            found.append(piece.strip())
    return list(dict.fromkeys(filter(None, found)))


def by_regime(
    models: Mapping[str, InterpretedEstimator], full: InterpretedEstimator, batch: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a row of :func:`figures` per regime, with two ratios of its executed FLOPs.

    ``to_full`` is relative to full training, ``to_three_forward`` to three forward passes; None if these cost nothing.
    """
    rows, base = [figures(name, model, batch) for name, model in models.items()], figures("full", full, batch)
    for row in rows:
        executed = row["total"] + row["recomputed"]
        row["to_full"] = executed / base["total"] if base["total"] else None
        row["to_three_forward"] = executed / (3 * base["forward"]) if base["forward"] else None
    return rows


def by_convention(models: Mapping[str, InterpretedEstimator], batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row of work per convention; ``ratio`` is its total relative to the first row's, or None."""
    rows = []
    for name, model in models.items():
        found = figures("", model, batch)
        rows.append({key: found[key] for key in ("unit", "forward", "backward", "total")} | {"convention": name})
        rows[-1]["ratio"] = rows[-1]["total"] / rows[0]["total"] if rows[0]["total"] else None
    return rows


def figures(name: str, model: InterpretedEstimator, batch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of the regime ``name``: trainable parameters, and the work of each pass in a step."""
    m = model.moments(batch)
    return {
        "regime": name,
        "unit": model.unit,
        "trainable_parameters": model.trainable_parameters,
        "forward": model.forward(m),
        "backward": model.backward(m),
        "recomputed": model.recomputed(m),
        "total": model.total(m),
    }
