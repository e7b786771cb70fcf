"""Settings that change fields of a model's config: ``num_experts=256``, ``text_config.hidden_size=1024``."""

from __future__ import annotations

from symflops.evaluate.config import as_read, look_up, put
from symflops.evaluate.stored import Stored
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


def changed(spec: str, config: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a config with other values for some fields; inner fields have dots in their names.

    Raises:
        SymflopsError: neither the spec nor its class has such a field; the message has the nearest ones.
    """
    if not settings:
        return dict(config)
    catalog = None if is_file(spec) else by_name(spec)
    if catalog is None or not catalog.shipped or catalog.changed(spec):
        from symflops.api import load

        model = load(catalog.file(spec) if catalog else spec)
        keys, document = [key for size in model.spec.sizes for key in size.keys], dict[str, Any]()
    else:
        document = catalog.program(spec)
        keys = keys_of(document)
    found = dict(config) if not document else as_read(document, config)
    for name, value in settings.items():
        alone: dict[str, Any] = {}
        put(alone, name, value)
        known = name in keys or (document and not any(unread(Stored(document), alone)))
        if not known:
            listed = f"fields are {', '.join(keys[:MOST])}{', ...' if len(keys) > MOST else ''}"
            raise SymflopsError(f"'{spec}' has no field '{name}': {did_you_mean(name, keys, listed)}")
        read = as_read(document, alone) if document else alone
        own = name if look_up(read, [name]) is not None or value is None else next(iter(read), name)
        put(found, own, look_up(read, [own]) if own != name else value)
    return found
