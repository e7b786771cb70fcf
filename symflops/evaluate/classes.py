"""Finds the class that a config names, and checks that a spec describes the class and the effect of each field.

A stored program contains the census of its classes, which ``symflops census`` writes. For each class it lists ``guarded``
fields, the known ``words`` of text fields, and the words with which the class can be built but not run (``unrun``): for these
only parameters are known. The derivation is exact if a guarded field holds one of the ``values``, any value of the ``kinds``,
a list of one of the ``lengths`` or at least ``shortest``, a number of at least ``least``, or a value ``related`` to another
field. If a config omits a field, the class's default (``left_out``) is checked, unless any value is exact.
"""

from __future__ import annotations

from symflops.formula.table import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any


NAMING = ("architectures", "_class_name", "model_type")
"""The fields by which a config names its class or model type."""


MASKING = ("is_causal",)
"""Flags that no config class declares, but that transformers' attention reads from any config."""


def class_in(config: Mapping[str, Any]) -> str:
    """The class that a config names; empty if it names none.

    >>> class_in({"architectures": ["LlamaModel"], "model_type": "llama"})
    'LlamaModel'
    """
    return next((name for _, name in named_classes(config)), "")


def without_pipeline(config: Mapping[str, Any], pipelines: Sequence[str]) -> Mapping[str, Any]:
    """Remove ``_class_name`` from a config if it names a pipeline instead of a model class.

    >>> without_pipeline({"_class_name": "FluxPipeline", "num_layers": 2}, ["FluxPipeline"])
    {'num_layers': 2}
    """
    if config.get("_class_name") not in pipelines:
        return config
    return {key: value for key, value in config.items() if key != "_class_name"}


def of_class(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Copy the config with ``name`` as its only class and without a model type."""
    return {**{key: value for key, value in config.items() if key != "model_type"}, "architectures": [class_name(name)]}


MOST_NAMED = 6


def named_classes(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (config field, class name) for each class that a config names, those of ``architectures`` first.

    Raises:
        ConfigError: ``architectures`` is no list of names, or ``_class_name`` no name.
    """
    words, own = config.get("architectures"), config.get("_class_name")
    if words is not None and not (isinstance(words, (list, tuple)) and all(isinstance(word, str) for word in words)):
        hint = f": write [{words!r}]" if isinstance(words, str) else ""
        raise ConfigError(f"the config's 'architectures' is {words!r}, not a list of class names{hint}")
    if own is not None and not isinstance(own, str):
        raise ConfigError(f"the config's '_class_name' is {own!r}, not the name of a class")
    yield from (("architectures", word) for word in words or () if word)
    if own:
        yield "_class_name", own


def model_type_in(config: Mapping[str, Any]) -> str:
    """The model type that a config names; empty if it names none.

    Raises:
        ConfigError: ``model_type`` is not a string.
    """
    kind = config.get("model_type")
    if kind is not None and not isinstance(kind, str):
        raise ConfigError(f"the config's 'model_type' is {kind!r}, not a text")
    return kind or ""


def class_name(reference: str) -> str:
    """The class name in a reference, ``package.Class`` or ``module:Class``."""
    return reference.replace(":", ".").rpartition(".")[2]


def check_class(spec: str, references: Sequence[str], model_types: Sequence[str], config: Mapping[str, Any]) -> None:
    """Refuse a config whose class or model type is not in the spec's ``references`` or ``model_types``.

    A spec without references accepts any class. If a config names a class and has custom code (``auto_map``), its model type
    is ignored.

    Raises:
        ConfigError: the config names another class or model type, or two that contradict each other.
    """
    classes = [class_name(reference) for reference in references]
    named = {name: field for field, name in named_classes(config)}
    others = [name for name in named if name not in classes]
    if others and classes and len(named) > 1:
        told = " and ".join(f"{name} ({field})" for name, field in named.items())
        raise ConfigError(f"the config is of the classes {told}: which of them is it?")
    if others and classes:
        raise ConfigError(f"the config is of the class {others[0]}, and '{spec}' describes {listed(classes)}")
    kind = model_type_in(config)
    if kind and model_types and kind not in model_types and not (named and "auto_map" in config):
        raise ConfigError(f"the config is of the model type '{kind}', and '{spec}' describes {listed(model_types)}")
    if kind and not model_types and config.get("_class_name") in classes:
        raise ConfigError(f"the config is of the model type '{kind}', and {class_name(references[0])} has none")


def listed(names: Iterable[str]) -> str:
    """Join names with commas, shortened to the first ``MOST_NAMED`` and a count."""
    every = list(names)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_census(document: Mapping[str, Any], config: Mapping[str, Any], idle: bool = False) -> None:
    """Check a config against the census of its class.

    ``idle`` accepts words with which the class can be built but not run.

    Raises:
        ConfigError: the spec does not describe the effect of a field's value, or does not know a word.
    """
    entry = entry_of(document, config)
    if entry is None:
        return
    check_flags(document["name"], config, entry)
    guarded = entry.get("guarded", {})
    for path in sorted(guarded, key=lambda path: not values_at(config, path)):  # omitted fields are reported last
        for value, how in value_or_default(config, path, entry):
            if not admitted(value, guarded[path]) and not related(value, guarded[path], config):
                raise ConfigError(refusal(document["name"], path, value, guarded[path], how))
    for path, words in entry.get("words", {}).items():
        for value, how in value_or_default(config, path, entry):
            for word in texts_in(value):
                if word not in words and not (idle and word in entry.get("unrun", {}).get(path, ())):
                    raise ConfigError(refusal(document["name"], path, word, {"values": words}, how))


def check_flags(name: str, config: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    """Refuse flags that change the masks of any transformers class, unless the census lists them.

    Raises:
        ConfigError: such a flag is present and not null, in the config or in an inner config.
    """
    places = ["", *(f"{part}." for part, value in config.items() if isinstance(value, dict))]
    for path in (place + flag for place in places for flag in MASKING):
        known = any(path in entry.get(kind, ()) for kind in ("described", "free", "guarded"))
        for value in () if known else values_at(config, path):
            if value is not None:
                raise ConfigError(
                    f"the config's '{path}' is {value!r}: it moves the masks of transformers' attention, in some classes under "
                    f"one implementation alone, and '{name}' does not read it; leave it out if the masks are the class's own"
                )


def value_or_default(config: Mapping[str, Any], path: str, entry: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """List the value of the field at ``path``, or else the class's default, as (value, suffix); empty if both are unknown.

    The suffix is for messages: ``by default``, or empty for a value of the config. ``entry`` is the census of the class.
    """
    absent = entry.get("left_out", {})
    found = [(value, "") for value in values_at(config, path)]
    return found or ([(absent[path], " by default")] if path in absent else [])


def failure(document: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Explain which word of a config keeps its class from running; empty if the class can run."""
    entry = entry_of(document, config) or {}
    for path, words in entry.get("unrun", {}).items():
        for word in texts_in(values_at(config, path)):
            if word in words:
                return f"the config's '{path}' is {word!r}: the class is built with it, and fails to run"
    return ""


def entry_of(document: Mapping[str, Any], config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The census of the class that a config names, else of the program's first class; None without a census.

    The module's docstring explains its keys.
    """
    census, named = document.get("census") or {}, config.get("architectures")
    names = named[:1] if isinstance(named, (list, tuple)) and named else [config.get("_class_name")]
    known = [census[name] for name in names if isinstance(name, str) and name in census]
    found: Mapping[str, Any] | None = next(iter([*known, *census.values()]), None)
    return found


def values_at(config: Mapping[str, Any], path: str) -> list[Any]:
    """The value at a dotted path in a one-element list; empty if the path is missing."""
    found: Any = config
    for word in path.split("."):
        if not isinstance(found, dict) or word not in found:
            return []
        found = found[word]
    return [found]


def kind_of(value: Any) -> str:
    """The kind of a config value: null, flag, number, text, list or mapping."""
    if value is None:
        return "null"
    for kind, types in (("flag", bool), ("number", (int, float)), ("text", str), ("list", (list, tuple))):
        if isinstance(value, types):
            return kind
    return "mapping"


def admitted(value: Any, known: Mapping[str, Any]) -> bool:
    """Whether derivations are exact for this value of a guarded field.

    ``known`` is the census of the field, whose keys the module's docstring explains.
    """
    kind = kind_of(value)
    if kind == "list" and (len(value) in known.get("lengths", ()) or len(value) >= known.get("shortest", len(value) + 1)):
        return True
    if kind in known.get("kinds", ()) or (kind == "number" and value >= known.get("least", value + 1)):
        return True
    same = (other for other in known["values"] if kind_of(other) == kind)
    return any(other == (list(value) if isinstance(value, tuple) else value) for other in same)


def related(value: Any, known: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether a value has a relation to another field that the census lists as exact (``related``).

    A number may be a multiple of the other field's number, larger than it, a divisor of it or equal to it; or equal to the
    other list's length. A list may be as long as the other list, or have rising indices below the other number. An entry of
    ``related`` is a relation, the path of the other field and, optionally, that field's default.
    """
    if kind_of(value) not in ("number", "list"):
        return False
    for word, path, *default in known.get("related", ()):
        others = [other for other in values_at(config, path) if kind_of(other) in ("number", "list")] or default
        for other in (len(other) if isinstance(other, (list, tuple)) else other for other in others):
            if isinstance(value, (list, tuple)):
                rising = word == "indices" and {type(item) for item in value} <= {int} and list(value) == sorted(set(value))
                fits = all(item < other for item in value) if rising else word == "long" and len(value) == other
            else:
                rests = {"multiple": value % (other or 1), "part": other % (value or 1), "larger": 0}
                fits = rests.get(word.split()[-1], value - other) == 0 and bool(value and other)
                fits = fits and (value > other or "larger" not in word)
            if fits:
                return True
    return False


def texts_in(value: Any) -> list[str]:
    """List the strings in a config value: the value itself, or the strings in a (nested) list."""
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in texts_in(item)]
    return [value] if isinstance(value, str) else []


def refusal(spec: str, path: str, value: Any, known: Mapping[str, Any], how: str = "") -> str:
    """Error message for a value that a spec does not describe: field, value, known values, and a remedy."""
    words = {"multiple": "multiples of", "larger multiple": "larger multiples of", "part": "parts of", "equal": "as"}
    words |= {"larger": "larger than", "long": "as long as", "indices": "rising, below"}
    shown = [repr(other) for other in known["values"][:6]] + ["..."] * (len(known["values"]) > 6)
    shown += [f"any {kind}" for kind in known.get("kinds", ())]
    shown += [f"lists of {length}" for length in known.get("lengths", ())]
    bounds = {"shortest": "lists of {} and more", "least": "{} and more"}
    shown += [text.format(known[word]) for word, text in bounds.items() if word in known]
    shown += [f"{words[word]} '{other}'" for word, other, *_ in known.get("related", ())]
    told = f"known: {', '.join(shown)}" if shown else "leave it out for its default"
    way = f"describe it in a spec of your own ('symflops new NAME --like {spec}')"
    return f"the config's '{path}' is {value!r}{how}, whose effect '{spec}' does not describe ({told}); {way}"
