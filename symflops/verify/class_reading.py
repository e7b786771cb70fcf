"""Finds out how the classes of a spec read a config: aliases of fields, nulls, nested configs.

A config class of transformers is probed: it reads small JSON objects, and its ``to_dict`` returns the values that result. For
any other class the signature of its constructor says which arguments are null by default.
"""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from symflops.api import Model
from symflops.evaluate.classes import of_class
from symflops.evaluate.config import is_null, look_up
from symflops.support.errors import SymflopsError
from symflops.verify.cases import cases_of
from symflops.verify.census.fields import setters_of
from symflops.verify.classes import class_of, signature_of, with_value

LEGACY = re.compile(r"""kwargs\.(?:pop|get)\(\s*["'](\w+)["']""")
GENERIC = frozenset({"dtype", "torch_dtype", "num_labels", "name_or_path", "rope_theta", "rope_scaling"})
Facts = Mapping[str, Any]


def reading_of(model: Model) -> dict[str, Any]:
    """Collect how a spec's config classes read configs, for :func:`symflops.evaluate.config.as_read`.

    ``tables`` maps each config class to what :meth:`Probe.table` finds; ``classes`` maps model classes to config classes.

    Raises:
        SymflopsError: a package or a class does not exist.
    """
    tables: dict[str, Any] = {}
    classes: dict[str, str] = {}
    keys = [key for size in model.spec.sizes for key in size.keys]
    for reference in model.file.named_by(model.spec.references):
        real = class_of(reference, model.file.path.parent)
        kind = getattr(real, "config_class", None)
        asked = hasattr(kind, "from_dict")
        own: Any = kind if asked else real
        classes[real.__name__] = own.__name__
        if own.__name__ not in tables:
            tables[own.__name__] = Probe(model, own).table("") if asked else of_signature(own, keys)
    found: dict[str, Any] = {"tables": tables} if tables else {}
    return found | ({"classes": classes} if len(tables) > 1 else {})


def text_of(reading: Mapping[str, Any]) -> str:
    """Format a reading as the text of its file."""
    return json.dumps(reading, indent=1) + "\n"


def of_signature(kind: type, keys: Iterable[str]) -> dict[str, Any]:
    """List under ``absent`` the ``keys`` whose default in a constructor is null; empty without such keys."""
    written = signature_of(kind)
    absent = [key for key in dict.fromkeys(keys) if key in written and written[key] is None]
    return {"absent": absent} if absent else {}


class Probe:
    """Finds out how a config class reads configs, by loading small ones with it."""

    def __init__(self, model: Model, kind: Any) -> None:
        self.model = model
        self.kind = kind
        self.sizes = model.spec.sizes
        self.bases: list[dict[str, Any]] = [{}]
        for case in cases_of(model.file):
            self.bases += [dict(case.config)] if self.read(case.config) is not None else []
        self.bases.append(self.otherwise())

    def otherwise(self) -> dict[str, Any]:
        """Build a config with a non-default value in each field where the class accepts one."""
        found: dict[str, Any] = {}
        for key in self.keys:
            place, _, field = key.rpartition(".")
            value = self.other(f"{place}." if place else "", field)
            changed = with_value(found, key, value) if value is not None else found
            found = changed if self.read(changed) is not None else found
        return found

    def read(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """Load a config with the class and return its ``to_dict``; None if the class refuses it."""
        try:
            found: dict[str, Any] = self.kind.from_dict(copy.deepcopy(dict(config))).to_dict()
        except Exception:  # a class may fail in any way on what it does not accept
            return None
        return found

    def facts(self, config: Mapping[str, Any]) -> Facts | None:
        """Load a config with the class: key of the spec -> (value, whether it is null); None if refused."""
        found = self.read(config)
        return None if found is None else {key: (look_up(found, [key]), is_null(found, [key])) for key in self.keys}

    @property
    def keys(self) -> list[str]:
        """All dotted keys of a config that the spec reads."""
        return [key for size in self.sizes for key in size.keys]

    def here(self, place: str) -> list[str]:
        """List the spec's keys in the config at ``place``, without this prefix.

        In this class, ``place`` is the path of a nested config with a dot at its end, or empty for the whole config.
        """
        return list(dict.fromkeys(key[len(place) :] for key in self.keys if f"{key.rpartition('.')[0]}." == (place or ".")))

    def table(self, place: str) -> dict[str, Any]:
        """Collect what is known of the config at ``place`` and of the configs nested in it.

        The keys are the methods that find the values (``names``, ``undescribed``, ``unset``, ``needed``), ``absent`` and
        ``never`` with the fields for which null has this :meth:`meaning`, and ``parts`` with the nested configs. Empty ones
        are left out.
        """
        meanings = {key: self.meaning(place, key, None) for key in self.here(place)}
        found: dict[str, Any] = {"names": self.names(place), "undescribed": self.undescribed(place)}
        for meaning in ("absent", "never"):
            found[meaning] = [key for key, known in meanings.items() if known == meaning]
        inside = [name for name in self.parts(place) if self.class_at(f"{place}{name}.") is not None]
        found["parts"] = {name: self.part(place, name) for name in inside}
        found["unset"] = self.unset(place)
        found["needed"] = self.needed(place)
        return {name: value for name, value in found.items() if value}

    def class_at(self, place: str) -> Any:
        """The class of the config at ``place`` in a default config; None if it is no config class."""
        found = self.kind.from_dict({})
        for name in place.split(".")[:-1]:
            found = getattr(found, name, None)
        return type(found) if hasattr(found, "to_dict") else None

    # other names

    def names(self, place: str) -> dict[str, dict[str, list[str]]]:
        """Map each key to its names by precedence, and each name to the keys that :meth:`missed` finds for it."""
        kind = self.class_at(place)
        found: dict[str, dict[str, list[str]]] = {}
        written = dict(getattr(kind, "attribute_map", {}))
        for key in self.here(place):
            field = written.get(key, key)
            others = [name for name, of in written.items() if of == field] + self.legacy(place, field) + [field]
            others.sort(key=lambda name: name in kind.__dataclass_fields__)  # the fields are set first
            if len(others) > 1 and field not in found and not any(key in known for known in found.values()):
                found[key] = {name: self.missed(place, name, field) for name in others}
        known = {name for others in found.values() for name in others} | {*self.here(place)}
        for name, field in written.items():  # of fields that a census may know
            if not {name, field} & known and field in kind.__dataclass_fields__:
                found[field] = {name: []} | found.get(field, {field: []})
        return found

    def legacy(self, place: str, field: str) -> list[str]:
        """List keyword arguments that have the same effect as the field ``field``."""
        value, plain = self.other(place, field), self.facts({})
        if value is None:
            return []
        wanted = self.facts(with_value({}, f"{place}{field}", value))
        return [word for word in self.words(place) if plain != wanted == self.facts(with_value({}, f"{place}{word}", value))]

    def words(self, place: str) -> list[str]:
        """List the keyword arguments that the class at ``place`` accepts beside its fields, and its setters."""
        kind = self.class_at(place)
        found = dict.fromkeys([*LEGACY.findall(inspect.getsource(kind)), *setters_of(kind)])
        return [word for word in found if word not in GENERIC]

    def missed(self, place: str, name: str, field: str) -> list[str]:
        """List the keys that differ if a value is given under the alias ``name`` instead of as ``field``."""
        value = self.other(place, field)
        if name == field or value is None:
            return []
        one, two = (self.facts(with_value({}, f"{place}{word}", value)) for word in (name, field))
        if one is None or two is None:
            return []
        return [key[len(place) :] for key in one if one[key] != two[key] and key.startswith(place)]

    def other(self, place: str, field: str) -> Any:
        """Find a value of ``field``, a number or flag, that is not its default and is accepted; else None."""
        value = look_up(self.read({}) or {}, [f"{place}{field}"])
        if isinstance(value, bool):
            return not value
        tried = [2 * value, value + 1, 1] if isinstance(value, int) else []
        return next((one for one in tried if self.read(with_value({}, f"{place}{field}", one)) is not None), None)

    def undescribed(self, place: str) -> dict[str, Any]:
        """Map keyword arguments that the spec does not read, but that change its keys, to a neutral value."""
        plain, found = self.facts({}), {}
        known = {*self.here(place), *(name for others in self.names(place).values() for name in others)}
        instead = {f"{name}_dict" for name in self.parts(place)}
        for word in self.words(place):
            if word not in known | instead:
                made = {value: self.facts(with_value({}, f"{place}{word}", value)) for value in range(9)}
                if any(one not in (None, plain) for one in made.values()):
                    found[word] = next((value for value, one in made.items() if one == plain), None)
        return found

    def needed(self, place: str) -> dict[str, Any]:
        """Map each field from which the class computes lists to [its default, the keys of these lists].

        The lists are fields of the spec in the config at ``place`` that the first case omits: if the field changes, the
        class fills them otherwise. Only fields are included for which the spec, with the list omitted, then has other costs
        than with the class's list.
        """
        base = self.bases[1] if len(self.bases) > 1 else {}
        plain = self.read(base) or {}
        lists = [key for size in self.sizes if size.kind == "list" for key in size.keys]
        lists = [key for key in lists if key.rpartition(".")[0] == place[:-1] and look_up(base, [key]) is None]
        found = {}
        for key in self.here(place) if lists else ():
            changed = with_value(base, f"{place}{key}", value := self.other(place, key))
            made = None if value is None or look_up(base, [f"{place}{key}"]) is not None else self.read(changed)
            moved = [name for name in lists if made is not None and unlike(look_up(plain, [name]), look_up(made, [name]))]
            if made is not None and moved and self.cost(changed) != self.cost(made):
                found[key] = [look_up(plain, [f"{place}{key}"]), [name[len(place) :] for name in moved]]
        return found

    def cost(self, config: Mapping[str, Any]) -> Any:
        """Derive (parameter count, forward FLOPs per moment) for a config; None if the spec refuses it."""
        model = replace(self.model, spec=replace(self.model.spec, reading={}))
        try:
            made = model.estimator(of_class(config, self.model.spec.references[0]), "forward")
        except SymflopsError:
            return None
        return made.parameters, made.coefficients["forward"]

    def unset(self, place: str) -> dict[str, Any]:
        """Map keys to the placeholder for a value that the class computes: a text such as ``auto``, or ``[]``."""
        written = signature_of(self.class_at(place))
        kinds = {key: size.kind for size in self.sizes for key in size.keys}
        named = {key: written.get(key) for key in self.here(place) if kinds[f"{place}{key}"] not in ("text", "any")}
        lists = [key for key in named if kinds[f"{place}{key}"] == "list" and look_up(self.read({}) or {}, [f"{place}{key}"])]
        empty: dict[str, Any] = {key: [] for key in lists if self.meaning(place, key, []) == "absent"}
        return {key: word for key, word in named.items() if isinstance(word, str)} | empty

    def meaning(self, place: str, key: str, value: Any) -> str:
        """Find what ``value``, null or ``[]``, means at ``key``.

        The result is ``absent`` if it means the same as leaving the key out, ``never`` if it is refused, and else empty.
        """
        meanings = set()
        for base in self.bases:
            opened = with_value(base, place[:-1], look_up(base, [place[:-1]]) or {}) if place else base
            left_out = without(opened, f"{place}{key}")
            given, absent = (self.facts(config) for config in (with_value(left_out, f"{place}{key}", value), left_out))
            if absent is not None:
                meanings.add("never" if given is None else "absent" if given == absent else "")
        meanings = meanings if meanings == {"never"} else meanings - {"never"}
        return meanings.pop() if len(meanings) == 1 else ""

    # configs inside

    def parts(self, place: str) -> Iterator[str]:
        """List the fields at ``place`` that hold a nested config from which the spec reads."""
        every = [key[len(place) :] for key in self.keys if key.startswith(place)]
        return (name for name in dict.fromkeys(key.partition(".")[0] for key in every if "." in key))

    def part(self, place: str, name: str) -> dict[str, Any]:
        """Collect what is known of the config in the field ``name``: its :meth:`table`, and how it is given."""
        inner = f"{place}{name}."
        found: dict[str, Any] = {"flat": self.flat(place, name)} | self.defaults(place, name)
        spec = getattr(self.class_at(place), "sub_configs_defaults", {}).get(name)
        if spec is not None and not hasattr(spec.config_class, "to_dict"):
            found["kinds"] = [spec.model_type]
        found["instead"] = f"{name}_dict" if self.replaced(place, name) else ""
        return {word: value for word, value in found.items() if value} | self.table(inner)

    def flat(self, place: str, name: str) -> list[str]:
        """List fields of the nested config ``name`` that the outer config may have instead."""
        found, unknown = [], []
        for key in self.here(f"{place}{name}."):
            value = self.other(f"{place}{name}.", key)
            wanted = None if value is None else self.facts(with_value({}, f"{place}{name}.{key}", value))
            if wanted is None:
                unknown.append(key)
            elif wanted == self.facts(with_value({}, f"{place}{key}", value)) != self.facts({}):
                found.append(key)
        takes = {*found, *unknown} if found else set()  # a class that moves some fields moves all of its own
        return [key for key in self.here(f"{place}{name}.") if key in takes]

    def defaults(self, place: str, name: str) -> dict[str, Any]:
        """Collect the fields of the nested config ``name`` that have two defaults.

        ``whole`` maps them to the default if the nested config is missing, ``partial`` to the one if only the field is.
        """
        whole, given = self.read({}) or {}, self.read(with_value({}, f"{place}{name}", {})) or {}
        keys = self.here(f"{place}{name}.")
        values = {key: [look_up(config, [f"{place}{name}.{key}"]) for config in (whole, given)] for key in keys}
        differ = {key: pair for key, pair in values.items() if pair[0] != pair[1]}
        return {
            "whole": {key: one for key, (one, _) in differ.items()}, "partial": {key: two for key, (_, two) in differ.items()},
        }  # fmt: skip

    def replaced(self, place: str, name: str) -> bool:
        """Whether the argument ``<name>_dict`` is an alias of the nested config ``name``."""
        key = next((key for key in self.here(f"{place}{name}.") if self.other(f"{place}{name}.", key) is not None), None)
        value = None if key is None else self.other(f"{place}{name}.", key)
        if value is None or f"{name}_dict" not in self.words(place):
            return False
        one, two = (self.facts(with_value({}, f"{place}{word}.{key}", value)) for word in (name, f"{name}_dict"))
        return one == two != self.facts({})


def unlike(one: Any, other: Any) -> bool:
    """Whether two values are lists with different items at some position that both have."""
    return isinstance(one, list) and isinstance(other, list) and any(a != b for a, b in zip(one, other, strict=False))


def without(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a copy of ``config`` without ``key``; dots in the key lead into nested configs."""
    first, _, rest = key.partition(".")
    kept = dict(config)
    if rest and isinstance(kept.get(first), Mapping):
        kept[first] = without(kept[first], rest)
    elif not rest:
        kept.pop(first, None)
    return kept
