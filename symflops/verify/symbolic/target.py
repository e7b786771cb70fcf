"""Targets of traces: a class with the integer fields of its config, or the arguments of its constructor."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from symflops.evaluate.unread import is_id
from symflops.training.introspect.regime import is_layer_share
from symflops.verify.classes import argument_of, arguments_of, config_class_of, config_object, converted
from symflops.verify.running import needed

Place = tuple[str | int, ...]
"""Where an integer stands in a config: keys, attributes and list indices, outermost first."""
LONGEST_LIST = 8
"""Lists of more numbers than this are not fields."""
IMPLEMENTATIONS = {"_attn_implementation_internal": "eager", "_experts_implementation_internal": "batched_mm"}
OFF = {"use_cache", "use_mamba_kernels", "apply_spec_augment"}
"""Switches of transformers' configs that change nothing that is counted, and read values."""


def dotted(place: Place) -> str:
    """The name of a field, such as ``text_config.hidden_size`` or ``conv_dim.0``."""
    return ".".join(map(str, place))


def place_of(name: str) -> Place:
    """The place of a field in a config, by its name."""
    return tuple(int(word) if word.isdigit() else word for word in name.split("."))


@dataclass(frozen=True)
class Target:
    """A module class and the config that is the example.

    Attributes:
        kind: The class.
        config: JSON data: the fields that the user gives; defaults complete them.
    """

    kind: Any
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_config(self) -> bool:
        """Whether the class is built from a config object, not from arguments."""
        return config_class_of(self.kind) is not None

    def settings(self, numbers: Mapping[Place, int]) -> Any:
        """Config object or dict of arguments, with ``numbers`` given to its constructor."""
        given = copy.deepcopy(dict(self.config))
        for place, value in numbers.items():
            assign_given(given, place, value)
        own = config_class_of(self.kind)
        if own is None:
            defaults = {
                name: copy.deepcopy(one.default)
                for name, one in arguments_of(self.kind).items()
                if one.default is not one.empty
            }
            return {**defaults, **converted(self.kind.__init__, given)}
        found = config_object(own, given)
        for part in parts(found):
            prepare(part)
        return found

    def build(self, settings: Any) -> Any:
        """Module in training mode without dropout, of a config object or a dict of arguments."""
        torch = needed("torch")
        if not self.has_config:
            model = self.kind(**settings)
        elif name := argument_of(self.kind)[0]:
            model = self.kind(**{name: settings})
        else:
            try:
                model = self.kind(settings)
            except TypeError:
                model = self.kind._from_config(settings)
        model.train()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        return model


def parts(config: Any) -> Iterator[Any]:
    """A config object and those nested in it."""
    yield config
    for value in list(vars(config).values()) if hasattr(config, "__dict__") else ():
        if hasattr(value, "to_dict"):
            yield from parts(value)


def validate(config: Any) -> None:
    """Run the checks that a config class makes of its own fields, such as that heads divide a width.

    They are those of ``huggingface_hub.dataclasses.strict``, which transformers' configs use; with symbolic sizes they become
    conditions of a trace. A check that refuses them for their type says nothing.
    """
    for check in getattr(type(config), "__class_validators__", ()):
        try:
            check(config)
        except Exception:
            if not any(hasattr(value, "node") for value in vars(config).values()):
                raise


def switches(config: Any, before: Place = ()) -> Iterator[Place]:
    """Yield the places of the switches that are off while a class is traced, in a config object and those nested in it."""
    for name, value in vars(config).items() if hasattr(config, "to_dict") else ():
        if name in OFF:
            yield (*before, name)
        yield from switches(value, (*before, name))


def prepare(config: Any) -> None:
    """Let a config object of transformers run with symbolic sizes: fields that its class would derive are given."""
    names = vars(config)
    if not hasattr(config, "to_dict"):
        return
    for name, value in IMPLEMENTATIONS.items():
        put_attribute(config, name, value)
    for name in names.keys() & OFF:
        put_attribute(config, name, False)
    for name in [name for name in names if is_layer_share(name)]:
        put_attribute(config, name, 0.0)
    if names.get("head_dim", 0) is None and names.get("num_attention_heads"):
        put_attribute(config, "head_dim", config.hidden_size // config.num_attention_heads)
    if names.get("pad_token_id", 0) is None:
        put_attribute(config, "pad_token_id", 0)


def places(value: Any, before: Place = ()) -> Iterator[tuple[Place, int]]:
    """Yield (place, value) of the integers in a config, token ids apart."""
    if isinstance(value, (list, tuple)) and len(value) > LONGEST_LIST:
        return
    for key, inner in members(value):
        word = str(key)
        if is_id(word) or word in ("id2label", "label2id", "transformers_version"):
            continue
        here = (*before, key)
        if type(inner) is int:
            yield here, inner
        elif nested(inner):
            yield from places(inner, here)


def others(value: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of the fields that are no places of integers and hold no others: switches, floats, words, None.

    The integers of long lists are among them.
    """
    long = isinstance(value, (list, tuple)) and len(value) > LONGEST_LIST
    for key, inner in members(value):
        name = f"{before}{key}"
        if nested(inner):
            yield from others(inner, f"{name}.")
        elif (type(inner) is not int or long) and (inner is None or isinstance(inner, (bool, int, float, str))):
            yield name, inner


def members(value: Any) -> list[tuple[Any, Any]]:
    """The public fields of a config object, a dict or a list, with their values."""
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    items = value.items() if isinstance(value, Mapping) else vars(value).items()
    return [(key, inner) for key, inner in items if not str(key).startswith("_")]


def nested(value: Any) -> bool:
    """Whether a value of a config holds further fields."""
    return isinstance(value, (Mapping, list, tuple)) or hasattr(value, "to_dict") or hasattr(value, "__dataclass_fields__")


def at(config: Any, place: Place) -> Any:
    """The value at a place of a config object or dict."""
    for word in place:
        listed: Any = isinstance(config, (Mapping, list, tuple))
        config = config[word] if listed else getattr(config, str(word))
    return config


def put(config: Any, place: Place, value: Any) -> None:
    """Set the value at a place of a built config; a tuple on the way is replaced by another one."""
    *outer, last = place
    holder = at(config, tuple(outer))
    if isinstance(holder, tuple):
        put(config, tuple(outer), (*holder[: int(last)], value, *holder[int(last) + 1 :]))
    elif isinstance(holder, (dict, list)):
        holder[last] = value  # type: ignore[index]
    else:
        put_attribute(holder, str(last), value)


def put_attribute(config: Any, name: str, value: Any) -> None:
    """Set an attribute of a config, also of a frozen one or one that checks types."""
    object.__setattr__(config, name, value)


def assign_given(given: dict[str, Any], place: Place, value: Any) -> None:
    """Set the value at a place of JSON data, and make the dicts on the way."""
    *outer, last = place
    holder: Any = given
    for word in outer:
        holder = holder.setdefault(word, {}) if isinstance(holder, dict) else holder[word]
    holder[last] = value


@dataclass(frozen=True)
class LiveTarget:
    """A module that exists: its sizes are numbers."""

    module: Any
    config: Mapping[str, Any] = field(default_factory=dict)
    has_config = False

    @property
    def kind(self) -> Any:
        """The class of the module."""
        return type(self.module)

    def settings(self, numbers: Mapping[Place, int]) -> Any:
        """No settings: nothing of a live module changes."""
        return {}

    def build(self, settings: Any) -> Any:
        """Copy of the module whose parameters and buffers are tensors of the current device or mode, without values."""
        torch, known = needed("torch"), dict[int, Any]()
        for one in (*self.module.parameters(), *self.module.buffers()):
            empty = torch.empty(one.shape, dtype=one.dtype)
            parameter = isinstance(one, torch.nn.Parameter)
            known[id(one)] = torch.nn.Parameter(empty, one.requires_grad) if parameter else empty
        found = copy.deepcopy(self.module, known)
        for module in found.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        return found
