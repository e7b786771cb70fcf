"""Settings that change fields of a model's config: ``num_experts=256``, ``text_config.hidden_size=1024``."""

from __future__ import annotations

from symflops.evaluate.classes import NAMING
from symflops.evaluate.config import as_json, as_read, places_of, put
from symflops.evaluate.unread import keys_of, unread
from symflops.library.catalog import by_name
from symflops.library.lookup import is_file
from symflops.support.errors import SymflopsError, did_you_mean
from symflops.support.reading import parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MOST = 8
"""How many fields an error lists if none resembles the unknown one."""


def settings_in(words: Iterable[str]) -> dict[str, Any]:
    """Parse words ``FIELD=VALUE``; a value is JSON, else a text.

    >>> settings_in(["num_experts=256", "text_config.hidden_act=silu", "head_dim=null"])
    {'num_experts': 256, 'text_config.hidden_act': 'silu', 'head_dim': None}

    Raises:
        SymflopsError: a word has another form.
    """
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise SymflopsError(f"--set takes FIELD=VALUE, such as num_hidden_layers=40, not '{word}'")
        try:
            found[name.strip()] = parse_json(text, "a value")
        except SymflopsError:
            found[name.strip()] = text.strip()
    return found


def changed(model: Any, config: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a config with other values for some fields; inner fields have dots in their names.

    ``model`` is a spec by name or path, or loaded. A value is written where the class of the config reads the field.

    Raises:
        SymflopsError: the class has no such field, or several, in inner configs; the message has their names, or near ones.
    """
    if not settings:
        return dict(config)
    called, document = fields_of(model)
    found: dict[str, Any] = as_json(as_read(document, config))
    written: dict[str, str] = {}
    for name, value in settings.items():
        place = place_of(called, document, found, name, value)
        if (other := written.setdefault(place, name)) != name and settings[other] != value:
            raise SymflopsError(f"'{other}' and '{name}' are one field of '{called}': give one value")
        put(found, [place], as_json(value))
    return found


def fields_of(model: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a spec and its fields, in the form of a stored program."""
    if isinstance(model, str):
        catalog = None if is_file(model) else by_name(model)
        if catalog and catalog.shipped and not catalog.changed(model):
            return model, catalog.program(model)
        from symflops.api import load

        model = load(catalog.file(model) if catalog else model)
    fields = [{"keys": size.keys} for size in model.spec.sizes]
    return model.spec.name, {"fields": fields, "regimes": (), "reading": model.spec.reading, "census": model.census}


def place_of(spec: str, document: Mapping[str, Any], config: Mapping[str, Any], name: str, value: Any) -> str:
    """Find the path under which the class of ``config`` reads the field ``name``, which gets ``value``.

    Raises:
        SymflopsError: as :func:`changed`.
    """
    keys, places = keys_of(document), places_of(document, config, name)
    read = [place for place in places if place in keys]
    if len(read) == 1:
        return read[0]
    inside = read or [key for key in keys if key.endswith(f".{name}")]
    alone = {key: config[key] for key in NAMING if key in config}
    put(alone, [name], value)
    if not inside and not any(name.startswith(f"{key}.") for key in keys) and not any(unread(document, alone)):
        return places[-1]
    listed = f"fields are {', '.join(keys[:MOST])}{', ...' if len(keys) > MOST else ''}"
    hint = f"write {' or '.join(inside)}" if inside else did_you_mean(name, keys, listed)
    raise SymflopsError(f"'{spec}' has no field '{name}': {hint}")
