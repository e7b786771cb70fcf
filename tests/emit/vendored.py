"""Vendored estimators as functions of a config and of what the project hands over."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from symflops.emit.vendor.files import Repeated, files_of


def built(value):
    """A config as the project has it: objects with attributes, and lists."""
    if isinstance(value, Repeated):
        return [built(dict(value))] * value.count
    if isinstance(value, Mapping):
        return SimpleNamespace(**{key: built(item) for key, item in value.items()})
    return value


def names_of(one):
    """What the module of a vendored estimator defines."""
    path = next(path for path in one.target.files.values() if path.endswith(".py")).format(name=one.name)
    names: dict[str, object] = {"__name__": "vendored"}
    exec(compile(files_of(one)[path], path, "exec"), names)
    return names


def function(one):
    """The function of a vendored estimator, of a config and the project's arguments."""
    names = names_of(one)
    match one.target.name:
        case "verl-omni":
            return lambda config, arguments: names[f"{one.title}Flops"](config).flops(**arguments)
        case "megatron-bridge":
            provider = type("Provider", (names[f"{one.title}Flops"], SimpleNamespace), {})
            method = "_get_num_floating_point_operations_with_runtime_stats"
            return lambda config, arguments: getattr(provider(**vars(built(config))), method)(**arguments)
        case "latte":
            return lambda config, arguments: names[f"estimate_{one.name}_flops_per_forward"](**config, **arguments)
    return lambda config, arguments: names[f"{one.name}_flops"](built(config), **arguments)
