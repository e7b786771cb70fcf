"""Configs as published: the real class, built on the meta device from the JSON, against what symflops reads from it.

``python -m tests.verify.published_configs FOLDER...`` compares every config.json below checkouts of public repositories, and
prints a row for each: verdict, class, parameters, sha256 of the file, path.
"""

from __future__ import annotations

import copy
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from symflops.evaluate.classes import class_in
from symflops.evaluate.parameters import instances_of
from symflops.library.lookup import by_config, interpreted
from symflops.support.errors import SymflopsError
from symflops.verify.live import parameter_differences, parameters_of


class Verdict(NamedTuple):
    """``exact``, ``refused``, ``unbuilt`` or ``wrong``, the parameters of the real class, and a reason."""

    word: str
    parameters: int
    reason: str = ""


def built(config: Mapping[str, Any]) -> Any:
    """The class that a config names, on the meta device.

    Raises:
        Exception: whatever the class raises on a config that it refuses.
    """
    import diffusers
    import torch
    import transformers

    name = class_in(config)
    with torch.device("meta"):
        if "_class_name" in config:
            return getattr(diffusers, name).from_config(copy.deepcopy(dict(config)))
        real = getattr(transformers, name)
        kind = real.config_class
        return real(
            kind.from_dict({key: value for key, value in copy.deepcopy(dict(config)).items() if key != "quantization_config"})
        )


def verdict(config: Mapping[str, Any]) -> Verdict:
    """What symflops reads from a config, against the real class: every parameter by name and shape."""
    try:
        real = built(config)
    except Exception as error:
        return Verdict("unbuilt", 0, f"{type(error).__name__}: {error}")
    count = sum(parameter.numel() for parameter in real.parameters())
    try:
        catalog, spec = by_config(config)
        model = interpreted(catalog, spec, config, "forward", "torch", tell=lambda text: None)
    except SymflopsError as error:
        return Verdict("refused", count, str(error))
    expected, aliases = parameters_of(real)
    differences = parameter_differences(expected, instances_of(model.program, model.sizes), aliases)
    if model.parameters == count and not any(differences.values()):
        return Verdict("exact", count)
    first = {kind: rows[:2] for kind, rows in differences.items() if rows}
    return Verdict("wrong", count, f"{model.parameters} derived; {first}")


def main(folders: list[str]) -> int:
    """Compare every config below some folders."""
    wrong = 0
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*.json")):
        text = path.read_bytes()
        try:
            config = json.loads(text)
        except ValueError:
            continue
        if isinstance(config, dict) and class_in(config):
            found = verdict(config)
            wrong += found.word == "wrong"
            row = (
                found.word,
                class_in(config),
                str(found.parameters),
                hashlib.sha256(text).hexdigest(),
                str(path),
                found.reason,
            )
            print("\t".join(row).replace("\n", " ")[:600], flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
