"""The subject of a draft as plain data: a class, its config, and the arguments of a call."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.support.findings import SymflopsError
from symflops.verify.classes import built, complete, config_class_of, referenced, signature_of
from symflops.verify.live import OPTIONS
from symflops.verify.tensors import described, needed


@dataclass(frozen=True, slots=True)
class Subject:
    """A module class with a config and arguments.

    Attributes:
        reference: The class, as ``package.module:Class`` or ``path/to/file.py:Class``.
        config: Field -> value, as given.
        inputs: Argument of the call -> its description: ``{shape: [2, 24], dtype: float32}`` stands for a tensor of this
            shape, ``{value: ...}`` for one with these values.
        options: Further arguments of the class.
        device: The device of PyTorch that the module is built on.
        measured: Known forward and backward FLOPs of full training, for a module that this device cannot run.
    """

    reference: str
    config: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "meta"
    measured: tuple[int, int] | None = None

    @property
    def package(self) -> str:
        """Python module or file that defines the class."""
        return self.reference.partition(":")[0]

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.reference.rpartition(":")[2]

    def having(self, config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Subject:
        """Copy of this subject with another config and other arguments, and without measured FLOPs."""
        return replace(self, config=config, inputs=inputs, measured=None)

    def build(self) -> Any:
        """Build the module, in evaluation mode."""
        torch = needed("torch")
        torch.manual_seed(0)
        kind = referenced(self.reference)
        given = {**copy.deepcopy(dict(self.config)), **OPTIONS.get(self.package.partition(".")[0], {}), **self.options}
        with torch.device(self.device):
            return built(kind, given).eval()

    def arguments(self) -> dict[str, Any]:
        """Argument of the call -> its value, with tensors built from their descriptions."""
        return {name: argument(value, self.device) for name, value in self.inputs.items()}


def argument(value: Any, device: str) -> Any:
    """Build a call argument from its (nested) description; dtype ``int64(ones)`` makes a mask of ones."""
    if isinstance(value, Mapping) and "shape" in value:
        torch = needed("torch")
        dtype, _, filled = str(value.get("dtype", "float32")).partition("(")
        kind = getattr(torch, dtype, None)
        if not isinstance(kind, torch.dtype):
            raise SymflopsError(f"torch has no dtype '{dtype}'")
        make = torch.ones if filled else torch.zeros
        return make(value["shape"], dtype=kind, device=device)
    if isinstance(value, Mapping) and "value" in value:
        return described(value)
    if isinstance(value, Mapping):
        return {name: argument(item, device) for name, item in value.items()}
    return [argument(item, device) for item in value] if isinstance(value, (list, tuple)) else value


def full_config(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Field -> value for all fields of a built module's config: those ``given``, and the class's defaults."""
    config: Any = getattr(model, "config", None)
    if hasattr(config, "to_dict"):
        return {**dict(given), **config.to_dict()}
    return {**(dict(config) if isinstance(config, Mapping) else {}), **complete(type(model), given)}


def completed(kind: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` plus, if the class ``kind`` has no config class, the defaults in its signature."""
    return {**({} if config_class_of(kind) else signature_of(kind)), **config}
