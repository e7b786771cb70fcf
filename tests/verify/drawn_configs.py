"""Draws configs for the class of a spec, and compares what the spec and the class make of them.

The class is the witness: of its config (``from_dict``, ``to_dict``), and, built on the meta device, of its parameters.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from typing import Any

from symflops.api import Model
from symflops.evaluate.classes import class_name, of_class
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.sizes import look_up, sizes_of, unanswered
from symflops.evaluate.stored import Stored
from symflops.ir.spec import SizeSpec
from symflops.library.catalog import by_name
from symflops.support.errors import SymflopsError
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.class_reading import without
from symflops.verify.classes import class_of, with_value

SMALL = (1, 2, 3, 4, 8, 16)
WRONG = (-1, True, 1.5, "x", [1], {}, float("nan"), [True], [-1], [1.0])


class Drawer:
    """Draws configs of one spec: a case of it, in which fields are left out, null, changed, moved, or under other names."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.name = model.spec.name
        self.real = class_of(model.spec.references[0], model.file.path.parent)
        self.kind = getattr(self.real, "config_class", None)
        self.asked = hasattr(self.kind, "from_dict")
        self.stored = Stored(by_name(self.name).program(self.name))
        self.derived: dict[Any, InterpretedEstimator | None] = {}
        tables = list(model.spec.reading.get("tables", {}).values())
        self.table = tables[0] if tables else {}
        first = [case for case in cases_of(model.file) if case.reference in ("", model.spec.references[0])]
        self.bases = [dict(case.config) for case in first] or [{}]
        self.case = first[0] if first else LiveCase({}, {})

    # drawing

    def draw(self, chance: random.Random) -> dict[str, Any]:
        """One config."""
        config = copy.deepcopy(chance.choice(self.bases))
        for size in chance.sample(self.model.spec.sizes, min(len(self.model.spec.sizes), chance.randint(0, 4))):
            for key in size.keys[:1] if chance.random() < 0.8 else size.keys[-1:]:
                config = self.changed(config, size, key, chance)
        return self.moved(config, self.table, "", chance)

    def changed(self, config: dict[str, Any], size: SizeSpec, key: str, chance: random.Random) -> dict[str, Any]:
        """The config with one field left out, null, another, or wrong."""
        draw = chance.random()
        if draw < 0.25:
            return without(config, key) if small(look_up(self.defaults, [key])) else config
        if draw < 0.5:
            return with_value(config, key, None)
        if draw < 0.92:
            return with_value(config, key, chance.choice(list(self.values(size, key))))
        return with_value(config, key, chance.choice(WRONG))

    def values(self, size: SizeSpec, key: str) -> Iterator[Any]:
        """Values that a field may have."""
        yield from (value for base in self.bases if (value := look_up(base, [key])) is not None)
        default = look_up(self.defaults, [key])
        if small(default) and default is not None:
            yield default
        if size.kind in ("number", "count", "position", "number or list", "any"):
            yield from SMALL
        if size.kind == "rational":
            yield from (1, 2, 2.5)
        if size.kind == "flag" or default is None:
            yield from (True, False) if size.kind == "flag" else (None,)

    def moved(self, config: dict[str, Any], table: Mapping[str, Any], place: str, chance: random.Random) -> dict[str, Any]:
        """The config with fields under other names, and configs inside it flat, left out or null."""
        for name, others in table.get("names", {}).items():
            other = chance.choice(list(others))
            value = look_up(config, [f"{place}{name}"])
            if value is not None and chance.random() < 0.5:
                config = with_value(without(config, f"{place}{name}"), f"{place}{other}", value)
        for name, inner in table.get("parts", {}).items():
            part, draw = look_up(config, [f"{place}{name}"]), chance.random()
            if isinstance(part, dict) and draw < 0.3 and "flat" in inner:
                config = {**config, **part}
                config = without(config, name) if draw < 0.2 else config
            elif isinstance(part, dict) and draw < 0.4 and "instead" in inner:
                config = with_value(without(config, f"{place}{name}"), f"{place}{name}_dict", part)
            elif isinstance(part, dict):
                config = self.moved(config, inner, f"{place}{name}.", chance)
        return config

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The default config of the class."""
        if "defaults" not in self.__dict__.get("_known", {}):
            from symflops.verify.classes import class_defaults

            self._known = {"defaults": class_defaults(self.model.spec.references[0], self.model.file.path.parent)}
        return self._known["defaults"]

    # comparing

    def sizes(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """The sizes of a config, None if it is refused."""
        try:
            found = sizes_of(self.stored, config)
        except SymflopsError:
            return None
        return None if unanswered(self.stored, config, found) else found

    def round_trip(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the class makes of a config, None if it refuses it."""
        try:
            found: dict[str, Any] = self.kind.from_dict(copy.deepcopy(dict(config))).to_dict()
        except Exception:
            return None
        return found

    def estimator(self, config: Mapping[str, Any]) -> InterpretedEstimator | None:
        """The estimator of a config, derived where its structure is not that of the stored program; None if it is refused."""
        given = of_class(config, class_name(self.model.spec.references[0])) if self.asked else dict(config)
        try:
            return InterpretedEstimator(self.stored.document, given)
        except SymflopsError:
            pass
        try:
            return self.model.estimator(given, "forward")
        except SymflopsError:
            return None

    def built(self, config: Mapping[str, Any]) -> int | None:
        """The parameters of the class on the meta device, None if it cannot be built."""
        import torch

        try:
            with torch.device("meta"):
                if self.asked:
                    real = self.real(self.kind.from_dict(copy.deepcopy(dict(config))))
                elif hasattr(self.real, "from_config"):
                    real = self.real.from_config(copy.deepcopy(dict(config)))
                else:
                    real = self.real(**config)
        except Exception:
            return None
        return sum(parameter.numel() for parameter in real.parameters())


def small(value: Any) -> bool:
    """Whether a default is small enough to build a model with it."""
    return not isinstance(value, int) or isinstance(value, bool) or value <= 64
