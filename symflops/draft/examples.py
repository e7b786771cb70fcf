"""Finds example inputs of a class: from a case of its spec, or from its ``main_input_name``."""

from __future__ import annotations

from typing import Any

from symflops.api import load
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.read.spec_files import roots, specs_in
from symflops.verify.cases import cases_of
from symflops.verify.classes import referenced
from symflops.verify.running import arguments_of

Example = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


def example_of(reference: str) -> Example | None:
    """(Config, arguments, options) with which a class runs at a small size; None if no example is known.

    The arguments are described by shape or values, as in :class:`Subject`. The options are further arguments of the class.
    """
    package, _, name = reference.partition(":")
    dotted = f"{package}.{name}"
    for file in specs_in(roots()[0]):
        if name not in file.source().text:
            continue
        model = load(file.path)
        if dotted not in model.spec.references:
            continue
        for case in cases_of(file):
            if case.reference in ("", dotted):
                return from_case(model, case)
    return example_token(reference)


def from_case(model: Any, case: Any) -> Example:
    """(Config, arguments described by shape or values, options) of a case of a spec."""
    config = dict(case.config)
    program = model.program(["full"], ["torch"], config)
    sizes = InterpretedEstimator(program, config, regime="full", convention="torch").sizes
    arguments = arguments_of(program, case.batch, sizes, case.arguments)
    return config, {name: described(value) for name, value in arguments.items()}, dict(case.options)


def described(value: Any) -> Any:
    """Nested arguments with each tensor as a dict: shape and dtype on the meta device, else value and dtype."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = str(value.dtype).rpartition(".")[2]
        if value.device.type == "meta":
            return {"shape": list(value.shape), "dtype": dtype}
        return {"value": value.tolist(), "dtype": dtype}
    if isinstance(value, dict):
        return {name: described(item) for name, item in value.items()}
    return [described(item) for item in value] if isinstance(value, (list, tuple)) else value


def example_token(reference: str) -> Example | None:
    """(Empty config, arguments, no options) with token ids or pixels, by the class's ``main_input_name``.

    None for classes that read something else.
    """
    kind = referenced(reference)
    main = getattr(kind, "main_input_name", "")
    if getattr(kind, "config_class", None) is None:
        return None
    config = kind.config_class()
    if main == "input_ids":
        inputs: dict[str, Any] = {"input_ids": {"shape": [2, 12], "dtype": "int64"}}
        if getattr(config, "is_encoder_decoder", False):
            inputs["decoder_input_ids"] = {"shape": [2, 7], "dtype": "int64"}
        return {}, inputs, {}
    size = getattr(config, "image_size", None)
    if main == "pixel_values" and size:
        sides = list(size) if isinstance(size, (list, tuple)) else [size, size]
        return {}, {"pixel_values": {"shape": [2, getattr(config, "num_channels", 3), *sides], "dtype": "float32"}}, {}
    return None
