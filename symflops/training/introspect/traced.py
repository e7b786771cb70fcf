"""Estimates for classes without a spec: a subprocess traces the class, or finds its forms in the user's cache.

The figures are the executed work of PyTorch's counter, convention ``torch``, of items that each run by themselves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from symflops.evaluate.batch import BatchError
from symflops.evaluate.boundaries import LengthError
from symflops.evaluate.classes import named_classes
from symflops.evaluate.lengths import of_any
from symflops.evaluate.moments import Moments, per_token
from symflops.library.lookup import config_of
from symflops.support.errors import SymflopsError
from symflops.training.introspect.background import Job
from symflops.training.introspect.elsewhere import OFFLINE, built_elsewhere
from symflops.training.introspect.regime import read
from symflops.training.introspect.tree import LiveModelError, tree_of

MODULE = "verify.symbolic.answers"
"""The module that the subprocess runs."""
REGIMES = ("full", "forward")
CONVENTION, TEXT, TOKENS = "torch", "text", "s"
"""The convention of traces; the stream of token ids, and the name of its lengths in a trace."""


def estimate(
    config: Any, batch: Mapping[str, Any], regime: str = "full", convention: str = CONVENTION, trust: bool = False
) -> dict[str, Any]:
    """Parameters and FLOPs of one step of a class on a batch, in the form of :func:`symflops.estimate`.

    Args:
        config: The contents of a config.json with ``architectures`` or ``_class_name``, a config object, or a path.
        batch: ``text`` or the letter of a length of the trace -> one entry per call. A call has one item, unless ``b`` says
            another number.
        regime: ``full``, ``forward``, or one with frozen parameters, one set of LoRA adapters, checkpoints.
        convention: The convention asked for; a note says so if it is not ``torch``.
        trust: Run code that the config names (``auto_map``).

    Raises:
        SymflopsError: a regime that cannot be applied; a class that is not found or cannot be traced, whose forms are not
            proven, or do not hold at these lengths.
    """
    given = config_of(config)
    columns = {TOKENS if name == TEXT else name: column(name, lengths) for name, lengths in batch.items()}
    counts = {name: len(lengths) for name, lengths in columns.items()}
    if not columns or len(columns) != len(batch) or len(set(counts.values())) != 1:
        raise BatchError(f"a batch has one entry per call in each list, e.g. {{'{TEXT}': [5, 7]}}, not {counts}")
    traced = "full" if regime == "forward" else regime
    found = ask({"config": given, "folder": folder_of(config), "trust": trust, "columns": columns, "regime": traced})
    forward, backward, recomputed = (sum(call[place] for call in found["calls"]) for place in range(3))
    backward *= regime != "forward"
    samples = columns.get("b", [1] * next(iter(counts.values())))
    tokens = sum(map(int.__mul__, columns[TOKENS], samples)) if TOKENS in columns else 0
    return {
        "schema": 1,
        "spec": found["class"],
        "variant": "",
        "convention": CONVENTION,
        "regime": regime,
        "unit": "flops",
        "parameters": found["parameters"],
        "parameters_active": None,
        "trainable_parameters": None,
        "forward": forward,
        "backward": backward,
        "recomputed": recomputed,
        "total": forward + backward,
        "tokens": tokens,
        "flops_per_token": per_token(forward + backward, tokens),
        "moments": {TEXT if name == TOKENS else name: sum(lengths) for name, lengths in columns.items()},
        "notes": list(notes(found, convention)),
        "evidence": {
            "grade": grade(found),
            "class": found["class"],
            "named_by": next(named_classes(given))[0],
            "package": found["package"],
            "domain": found["domain"],
            "why": "",
        },
    }


def check_regime(regime: str) -> None:
    """Refuse a regime that no meter of a traced class knows.

    Raises:
        SymflopsError: it is neither ``full`` nor ``forward``.
    """
    if regime not in REGIMES:
        raise SymflopsError(f"a meter of a traced class knows the regimes {' and '.join(REGIMES)}, not '{regime:.60}'")


def column(name: str, lengths: Any) -> list[int]:
    """Convert one length per call to a list of positive integers.

    Raises:
        BatchError: ``lengths`` is no list or array of such.
    """
    found = lengths.tolist() if hasattr(lengths, "tolist") else lengths
    if not isinstance(found, (list, tuple)) or not all(type(one) is int and one > 0 for one in found):
        raise BatchError(f"'{name}' of a traced class is a list of positive integers, one per call, not {lengths!r:.80}")
    return list(found)


def folder_of(config: Any) -> str | None:
    """The folder of a config that is given as a path; None for other configs."""
    if not isinstance(config, (str, os.PathLike)) or str(config).lstrip().startswith("{"):
        return None
    path = Path(config).resolve()
    return str(path if path.is_dir() else path.parent)


def ask(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of :func:`symflops.verify.symbolic.answers.answer`, computed by a subprocess.

    Raises:
        SymflopsError: the class is not found or cannot be traced, or its forms do not hold.
    """
    found: dict[str, Any] = json.loads(built_elsewhere(json.dumps(request, default=str), MODULE))
    return found


def grade(found: Mapping[str, Any]) -> str:
    """The grade of figures that a trace tells."""
    return f"traced here, exact at {found['exact']} unseen configs"


def notes(found: Mapping[str, Any], convention: str) -> list[str]:
    """Remarks on the figures of a trace: their convention, and operators that count 0."""
    lines = []
    if convention != CONVENTION:
        lines.append(f"a trace counts executed work, convention '{CONVENTION}', not '{convention}'")
    if found["missed"]:
        lines.append(f"not counted: {', '.join(found['missed'])}")
    return lines


class TokenReader:
    """Reads batches of token ids; it has no moments or FLOPs."""

    streams: Mapping[str, bool] = MappingProxyType({TEXT: False})
    sets: Mapping[str, Any] = MappingProxyType({"samples": ((TEXT, ("x",), 0),)})

    def inputs(self) -> dict[str, tuple[str, str, int | None]]:
        """Map the argument of token ids to its (stream, layout, width)."""
        return {"input_ids": (TEXT, "b x", None)}


class TokenEstimator(TokenReader):
    """Parameters and FLOPs of a traced class of token ids, for meters: polynomials in the tokens of each item.

    Moments are ``n`` (items), ``x`` (tokens), ``xx`` (squares of lengths) and so on.

    Args:
        found: The answer of a trace, without calls.
        regime: ``full`` or ``forward``.
        convention: The convention asked for; the account says so if it is not ``torch``.
    """

    convention, unit, padded, any_length = CONVENTION, "flops", False, True
    whole: tuple[str, ...] = ()
    padded_sums: tuple[str, ...] = ()
    implied: tuple[str, ...] = ()
    trainable_parameters = parameters_active = None

    def __init__(self, found: Mapping[str, Any], regime: str, convention: str) -> None:
        check_regime(regime)
        self.name, self.regime, self.parameters = found["class"], regime, int(found["parameters"])
        self.most: int | None = found["longest"]
        forward, backward = found["forward"], found["backward"] if regime == "full" else []
        count = max(len(forward), len(backward), 2)
        self.names = ("n", *("x" * power for power in range(1, count)))
        self.moment_sets = dict.fromkeys(self.names, "samples")
        filled = [[*terms, *[0] * (count - len(terms))] for terms in (forward, backward)]
        self.coefficients = {
            "forward": tuple(filled[0]),
            "backward": tuple(filled[1]),
            "recomputed": (0,) * count,
            "total": tuple(map(sum, zip(*filled, strict=True))),
        }
        self.account = "; ".join([f"{self.name}: {self.parameters:,} parameters; {grade(found)}", *notes(found, convention)])

    def terms(self, lengths: Any) -> tuple[Any, ...]:
        """For each moment, the contribution of each item of these lengths: their powers."""
        found = [1, lengths]
        while len(found) < len(self.names):
            found.append(found[-1] * lengths)
        return tuple(found)

    def rests(self, lengths: Any) -> tuple[Any, ...]:
        """No length has to divide."""
        return ()

    def inner_lengths(self, lengths: Any) -> tuple[tuple[str, Any], ...]:
        """(index set, number that is below 1 for an item outside of the domain): lengths, and what is left of the longest."""
        most = () if self.most is None else (("samples", self.most + 1 - lengths),)
        return (("samples", lengths), *most)

    def moments(self, **batch: Any) -> Moments:
        """The moments of a batch: ``text`` has one length per item.

        Raises:
            BatchError: another stream, or an entry that is no positive integer.
            LengthError: a list of another form, or a length outside of the domain.
        """
        if batch.keys() != {TEXT}:
            raise BatchError(f"{self.name} has the stream '{TEXT}', not {', '.join(map(repr, batch)) or 'none'}")
        found = of_any(batch[TEXT], ("x",), TEXT)
        sides = [
            column(TEXT, [one] * found.count if isinstance(one, int) else one)
            for (one,) in (found.axes, found.padded or found.axes)
        ]
        if self.most is not None and max(sides[1], default=0) > self.most:
            raise LengthError(f"a length is above {self.most:,}, the longest of {self.name} with this config")
        values, padded = (tuple(map(sum, zip(*map(self.terms, side), strict=True))) or (0,) * len(self.names) for side in sides)
        return Moments(self.names, values, padded)

    def forward(self, m: Moments) -> int:
        """FLOPs of the forward pass."""
        return self._pass(m, "forward")

    def backward(self, m: Moments) -> int:
        """FLOPs of the backward pass."""
        return self._pass(m, "backward")

    def recomputed(self, m: Moments) -> int:
        """FLOPs that the backward pass recomputes: none."""
        return 0

    def total(self, m: Moments) -> int:
        """FLOPs of the forward and backward pass."""
        return self._pass(m, "total")

    def _pass(self, m: Moments, kind: str) -> int:
        values: Sequence[int] = m.named(self.names, self.name).values
        return int(sum(one * value for one, value in zip(self.coefficients[kind], values, strict=True)))

    def __repr__(self) -> str:
        return f"<Estimator of {self.name}: {self.regime}, traced, {self.parameters:,} parameters>"


class TracedModule:
    """A live module whose class no spec describes.

    Args:
        module: The model without wrappers.
        config: JSON data that names its class.
        regime: The training regime; None for that of the module's parameters.
        convention: The convention asked for.

    Raises:
        SymflopsError: a part of the module trains in a way that no trace knows.
    """

    def __init__(self, module: Any, config: Mapping[str, Any], regime: str | None, convention: str) -> None:
        self.reading, self.convention = read(tree_of(module)), convention
        self.regime = self.told() if regime is None else regime
        check_regime(self.regime)
        self.request = {"config": config, "folder": None, "trust": False, "columns": None}

    def told(self) -> str:
        """The regime of the module: ``full`` if all its parameters train, ``forward`` if none does.

        Raises:
            LiveModelError: only some train, or modules are recomputed.
        """
        trains = set(self.reading.tree.trains.values())
        if self.reading.recomputed or len(trains) > 1:
            raise LiveModelError(f"a trace counts models that train as a whole, without recomputation: {self.reading.words}")
        return "full" if True in trains else "forward"

    def estimator(self) -> TokenEstimator:
        """The estimator; waits for the trace.

        Raises:
            SymflopsError: the class cannot be traced, or has another number of parameters than the module.
        """
        return self.checked(ask(self.request))

    def checked(self, found: Mapping[str, Any]) -> TokenEstimator:
        """The estimator of an answer, whose number of parameters is that of the module.

        Raises:
            LiveModelError: it is another one.
        """
        if found["parameters"] != self.reading.count:
            raise LiveModelError(
                f"the module has {self.reading.count:,} parameters, its class with its config {found['parameters']:,}"
            )
        return TokenEstimator(found, self.regime, self.convention)


class AwaitedTrace:
    """The estimator of a live module whose class is being traced in a subprocess."""

    def __init__(self, traced: TracedModule) -> None:
        self.traced, self.estimator = traced, TokenReader()
        self.derivation = Job(MODULE, traced.request, "tracing the class", variables=OFFLINE)

    def poll(self) -> TokenEstimator | None:
        """The estimator, or None while the class is being traced; never blocks.

        Raises:
            SymflopsError: the class cannot be traced, or has another number of parameters than the module.
        """
        found = self.derivation.poll()
        return None if found is None else self.traced.checked(found)
