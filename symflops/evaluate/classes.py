"""The class that a config names, whether a spec describes it, and whether it describes what each field does.

A stored program carries the census of its classes, which ``symflops census`` takes. For each class it has ``guarded`` fields,
the words (``words``) of fields that hold words, and those (``unrun``) with which the class is built as described, and fails
to run: there only the parameters are known. A guarded field may hold listed ``values``, any value of certain ``kinds``,
a list of certain ``lengths`` or from the ``shortest`` on, a number from ``least`` on, or one that is ``related`` to another
field: there the derivation is known to be exact. Where a config leaves a field out, what the class takes (``left_out``) is
checked, unless it is exact in any case.
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
"""Flags that no config class declares, and that the library's attention reads of any config."""


def class_in(config: Mapping[str, Any]) -> str:
    """The class that a config names; empty if it names none.

    >>> class_in({"architectures": ["LlamaModel"], "model_type": "llama"})
    'LlamaModel'
    """
    return next((name for _, name in named_classes(config)), "")


def without_pipeline(config: Mapping[str, Any], pipelines: Sequence[str]) -> Mapping[str, Any]:
    """The config without the name of a pipeline, which is no class of a model.

    >>> without_pipeline({"_class_name": "FluxPipeline", "num_layers": 2}, ["FluxPipeline"])
    {'num_layers': 2}
    """
    if config.get("_class_name") not in pipelines:
        return config
    return {key: value for key, value in config.items() if key != "_class_name"}


def of_class(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The config with ``name`` as its class, whatever model type it has."""
    return {**{key: value for key, value in config.items() if key != "model_type"}, "architectures": [class_name(name)]}


MOST_NAMED = 6


def named_classes(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The classes that a config names, the one that was saved first: (field, name).

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
        ConfigError: it is no text.
    """
    kind = config.get("model_type")
    if kind is not None and not isinstance(kind, str):
        raise ConfigError(f"the config's 'model_type' is {kind!r}, not a text")
    return kind or ""


def class_name(reference: str) -> str:
    """The class name in a reference, ``package.Class`` or ``module:Class``."""
    return reference.replace(":", ".").rpartition(".")[2]


def check_class(spec: str, references: Sequence[str], model_types: Sequence[str], config: Mapping[str, Any]) -> None:
    """Refuse a config of a class that is not among the ``references`` of a spec, of several, or of another model type.

    A spec without references is of no library class and takes any config. Beside a class that a config names, a model type of
    code of its own (``auto_map``) says nothing.

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
    """Names as words of a sentence, the first few of many."""
    every = list(names)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_census(document: Mapping[str, Any], config: Mapping[str, Any], idle: bool = False) -> None:
    """Check a config against the census of its program; with ``idle`` it may hold words with which the class fails to run.

    Raises:
        ConfigError: a field has an effect that the spec does not describe, or holds a word that it does not know.
    """
    entry = entry_of(document, config)
    if entry is None:
        return
    check_flags(document["name"], config, entry)
    guarded = entry.get("guarded", {})
    for path in sorted(guarded, key=lambda path: not values_at(config, path)):  # what is left out is told last
        for value, how in held(config, path, entry):
            if not admitted(value, guarded[path]) and not related(value, guarded[path], config):
                raise ConfigError(refusal(document["name"], path, value, guarded[path], how))
    for path, words in entry.get("words", {}).items():
        for value, how in held(config, path, entry):
            for word in texts_in(value):
                if word not in words and not (idle and word in entry.get("unrun", {}).get(path, ())):
                    raise ConfigError(refusal(document["name"], path, word, {"values": words}, how))


def check_flags(name: str, config: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    """Refuse flags that move the masks of any class of a library, in a config and its parts, unless the census has them.

    Raises:
        ConfigError: there is one that is not null.
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


def held(config: Mapping[str, Any], path: str, entry: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """The value of a field, or what the class takes where a config leaves it out, and how a message says so."""
    absent = entry.get("left_out", {})
    found = [(value, "") for value in values_at(config, path)]
    return found or ([(absent[path], " by default")] if path in absent else [])


def failure(document: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Why the class of a config has no FLOPs: a word with which it is built, and fails to run; empty if there is none."""
    entry = entry_of(document, config) or {}
    for path, words in entry.get("unrun", {}).items():
        for word in texts_in(values_at(config, path)):
            if word in words:
                return f"the config's '{path}' is {word!r}: the class is built with it, and fails to run"
    return ""


def entry_of(document: Mapping[str, Any], config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The census of the class that a config names, else that of the first class; None without a census."""
    census, named = document.get("census") or {}, config.get("architectures")
    names = named[:1] if isinstance(named, (list, tuple)) and named else [config.get("_class_name")]
    known = [census[name] for name in names if isinstance(name, str) and name in census]
    found: Mapping[str, Any] | None = next(iter([*known, *census.values()]), None)
    return found


def values_at(config: Mapping[str, Any], path: str) -> list[Any]:
    """The value at a path, as a list; empty if there is none."""
    found: Any = config
    for word in path.split("."):
        if not isinstance(found, dict) or word not in found:
            return []
        found = found[word]
    return [found]


def kind_of(value: Any) -> str:
    """The kind of a value of a config."""
    if value is None:
        return "null"
    for kind, types in (("flag", bool), ("number", (int, float)), ("text", str), ("list", (list, tuple))):
        if isinstance(value, types):
            return kind
    return "mapping"


def admitted(value: Any, known: Mapping[str, Any]) -> bool:
    """Whether a value of a guarded field is derived exactly."""
    kind = kind_of(value)
    if kind == "list" and (len(value) in known.get("lengths", ()) or len(value) >= known.get("shortest", len(value) + 1)):
        return True
    if kind in known.get("kinds", ()) or (kind == "number" and value >= known.get("least", value + 1)):
        return True
    same = (other for other in known["values"] if kind_of(other) == kind)
    return any(other == (list(value) if isinstance(value, tuple) else value) for other in same)


def related(value: Any, known: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether a number is as all exact ones are: a (larger) multiple of another field, larger, a part, equal, or its length.

    A list is as long as another one, or holds rising indices below a number. What that is by default stands behind its path.
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
    """The words of a value: itself, or those of a list."""
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in texts_in(item)]
    return [value] if isinstance(value, str) else []


def refusal(spec: str, path: str, value: Any, known: Mapping[str, Any], how: str = "") -> str:
    """The message about a value that a spec does not describe: the field, the value, what it may be, and the way out."""
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
