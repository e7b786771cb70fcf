"""Builds the public names of a generated module: its formulas, and an estimator of its stored program.

The generated file itself needs the standard library alone, and has sizes, sums and closed forms. Imported as
``symflops.generated.<group>.<name>``, it also reads configs and checks batches like the rest of symflops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from types import FunctionType, ModuleType
from typing import Any

from symflops.evaluate.batch import BatchError
from symflops.evaluate.batch_moments import Batches
from symflops.evaluate.classes import check_class
from symflops.evaluate.config import as_json, put
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.layouts import sets_of
from symflops.evaluate.moments import Flops, Moments
from symflops.evaluate.sizes import check_fit, defined, sizes_of
from symflops.evaluate.stored import OtherStructure, Stored, config_value
from symflops.evaluate.unread import check_unread
from symflops.formula.table import ConfigError
from symflops.support.errors import kind_of

LONGEST = 2**10_000
"""The largest length in a batch: effectively no limit."""


class Waiting(Moments):
    """Moments that depend on sizes: holds the batches until an estimator with sizes evaluates them."""

    __slots__ = ("batches",)

    def __init__(self, batches: tuple[Mapping[str, Any], ...], whole: tuple[str, ...] = ()) -> None:
        super().__init__((), (), (), whole)
        self.batches = batches

    def __add__(self, other: Moments) -> Moments:
        if self.whole:
            return super().__add__(other)
        if not isinstance(other, Waiting):
            raise BatchError("these moments depend on sizes: make them with Estimator.moments")
        return Waiting((*self.batches, *other.batches))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Waiting) and self.batches == other.batches

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return Waiting, (self.batches, self.whole)

    def as_dict(self) -> dict[str, int]:
        raise BatchError("these moments depend on sizes: make them with Estimator.moments")

    def __repr__(self) -> str:
        return f"Moments({', '.join(map(repr, self.batches))})"


class ModelEstimator(InterpretedEstimator):
    """Parameters and FLOPs of one model under a regime and a convention, for its sizes.

    Raises:
        ValueError: no such regime or convention, or sizes that do not fit.
        OtherStructure: sizes that decide the structure are not those of the module.
    """

    longest = LONGEST
    document: Mapping[str, Any] = {}

    def __init__(self, sizes: Any, *, regime: str = "full", convention: str = "symflops") -> None:
        self.stored, self.config = Stored(self.document), {}
        self.unread = []
        self.stored.check(regime, convention)
        known = {}
        for row in self.document["fields"]:
            known[row["letter"]] = value = getattr(sizes, row["attribute"])
            if value is not None:
                put(self.config, row["keys"], value)
        self._bind(self.stored, defined(self.stored, known), regime, convention)

    def _of_names(self, m: Moments) -> Moments:
        if not isinstance(m, Waiting):
            return super()._of_names(m)
        found, *others = (InterpretedEstimator.moments(self, **batch) for batch in m.batches)
        for other in others:
            found = found + other
        return found


def publish(module: ModuleType, formulas: ModuleType, document: Mapping[str, Any]) -> None:
    """Set the public names of ``module`` from the generated file ``formulas`` and the stored program."""
    stored = Stored(document)
    streams = [(stream.name, stream.optional) for stream in stored.streams if stream.given]
    places = stored.places(stored.conventions[0])
    found = {name: value for name, value in vars(formulas).items() if not name.startswith("__")}
    rows = {stored.moments[place]["name"]: stored.moments[place]["items"] for place in places}
    names: Any = vars(module)
    names.update(found)
    names.update(
        formulas=formulas, Flops=Flops, NAME=stored.name, VARIANT=document.get("variant"),
        REGIMES=tuple(stored.regimes), STREAMS=dict(streams), SETS=sets_of(stored), MOMENTS=rows, WHOLE=stored.whole,
        OtherStructure=OtherStructure, Sizes=sizes_class(module.__name__, formulas, stored),
        Moments=moments_class(module.__name__, stored, tuple(rows)), moments=reader(module.__name__, stored, places),
        Estimator=estimator_class(module.__name__, stored),
    )  # fmt: skip


def sizes_class(name: str, formulas: ModuleType, stored: Stored) -> Any:
    """Create the ``Sizes`` class of the generated module ``name``, which also reads configs."""
    fields = {row["letter"]: row["attribute"] for row in stored.document["fields"]}
    base: Any = formulas.Sizes

    class Sizes(base):  # type: ignore[misc]
        """The sizes of one model, by the fields of its config."""

        @classmethod
        def from_config(cls, config: Mapping[str, Any]) -> Any:
            """Read the sizes from the contents of a config.json, or from a config object, as the model's class reads it.

            Raises:
                ValueError: a field that has no default is missing, or is not of its type; the config is of another class, or
                    one of its fields has an effect that is not described.
            """
            read = stored_config(stored, config)
            made = object.__new__(cls)
            made.__dict__.update({fields[letter]: value for letter, value in read.items() if letter in fields})
            return made

        def __post_init__(self) -> None:
            for attribute in fields.values():
                setattr(self, attribute, config_value(getattr(self, attribute)))
            for letter, value in stored.fixed:
                given = getattr(self, fields[letter])
                if given != value:
                    raise OtherStructure(f"this module is of models whose '{fields[letter]}' is {value!r}, not {given!r}")
            if hasattr(base, "__post_init__"):
                super().__post_init__()

    return of_module(Sizes, name)


def stored_config(stored: Stored, config: Any) -> dict[str, Any]:
    """Check the class of a config, and map each letter to the value of its size."""
    found = as_json(config)
    if not isinstance(found, dict):
        raise ConfigError(f"a config is a JSON object, not {kind_of(config)}")
    check_class(stored.name, stored.document["references"], stored.document["model_types"], found)
    check_unread(stored, found)
    sizes = sizes_of(stored, found)
    check_fit(stored, sizes)
    return sizes


def moments_class(name: str, stored: Stored, names: tuple[str, ...]) -> Any:
    """Create the ``Moments`` class of the generated module ``name``; ``names`` are its moments."""
    always = tuple(row["name"] for row in stored.moments if row.get("side") and row["name"] in names)
    whole = tuple(one for one in stored.whole if one in names)

    class Made(Moments):
        __slots__ = ()
        __doc__ = Moments.__doc__

        def __init__(self, *values: int, padded: Moments | None = None, **named: int) -> None:
            given = dict(zip(names, values, strict=False)) | named
            unknown = [one for one in given if one not in names]
            if unknown or len(values) > len(names):
                raise TypeError(f"moments are {', '.join(names)}")
            own = tuple(given.get(one, 0) for one in names)
            super().__init__(names, own, own if padded is None else padded.values, whole, always)

    Made.__name__ = Made.__qualname__ = "Moments"
    return of_module(Made, name)


def reader(name: str, stored: Stored, places: list[int]) -> Callable[..., Moments]:
    """Create the ``moments`` function of a generated module, which computes the moments of a batch.

    The function returns :class:`Waiting` if the moments depend on sizes.

    Args:
        name: the name of the module.
        stored: the program of the module.
        places: the positions of the moments to compute.
    """
    batches: list[Batches] = []
    names = tuple(stored.moments[place]["name"] for place in places)

    def moments(**batch: Any) -> Moments:
        """The moments of a batch.

        Each stream is a list or integer array with one entry per item, or ``{"lengths": [...], "padded": [...]}``.
        """
        if not batches:
            batches.append(Batches(stored, None, places, LONGEST))
        one = batches[0]
        if one.sized:
            one.read(batch)
            return Waiting((batch,), stored.whole)
        values, padded = one.moments(batch)
        return Moments(names, values, padded, stored.whole, tuple(one.rows[place]["name"] for place in one.always))

    moments.__signature__ = Signature(parameters(stored))  # type: ignore[attr-defined]
    return of_module(moments, name)  # type: ignore[no-any-return]


def parameters(stored: Stored) -> list[Parameter]:
    """The streams of a program as keyword-only parameters; the default of an optional one is None."""
    kind, streams = Parameter.KEYWORD_ONLY, [stream for stream in stored.streams if stream.given]
    return [Parameter(one.name, kind, **({"default": None} if one.optional else {})) for one in streams]


def estimator_class(name: str, stored: Stored) -> Any:
    """Create the ``Estimator`` class of the generated module ``name``; its methods take streams by name."""
    members: dict[str, Any] = {"document": stored.document, "__doc__": ModelEstimator.__doc__}
    for word in ("moments", "per_item"):
        given = getattr(InterpretedEstimator, word)
        members[word] = made = FunctionType(given.__code__, given.__globals__, word)
        made.__doc__ = given.__doc__
        made.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *parameters(stored)],
        )
    members["per_sample"] = lambda self, *whole, **streams: InterpretedEstimator.per_sample(self, *whole, **streams)
    return of_module(type("Estimator", (ModelEstimator,), members), name)


def of_module(thing: Any, name: str) -> Any:
    """Set the module and qualified name of a class or function, and return it."""
    thing.__module__, thing.__qualname__ = name, thing.__name__
    return thing
