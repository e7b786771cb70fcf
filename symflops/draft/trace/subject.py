"""The subject of a draft as plain data: a class, its config, and the arguments of a call."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.verify.classes import built, complete, config_class_of, referenced, signature_of
from symflops.verify.live import OPTIONS
from symflops.verify.running import described, needed


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
    """

    reference: str
    config: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "meta"

    @property
    def package(self) -> str:
        """Python module or file that defines the class."""
        return self.reference.partition(":")[0]

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.reference.rpartition(":")[2]

    def having(self, config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Subject:
        """Copy of this subject with another config and other arguments."""
        return replace(self, config=config, inputs=inputs)

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
        return {name: described(value, self.device) for name, value in self.inputs.items()}


def full_config(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Field -> value for all fields of a built module's config: those ``given``, and the class's defaults."""
    config: Any = getattr(model, "config", None)
    if hasattr(config, "to_dict"):
        return {**dict(given), **config.to_dict()}
    return {**(dict(config) if isinstance(config, Mapping) else {}), **complete(type(model), given)}


def completed(kind: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` plus, if the class ``kind`` has no config class, the defaults in its signature."""
    return {**({} if config_class_of(kind) else signature_of(kind)), **config}
