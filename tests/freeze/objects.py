"""What published objects hold once they are made: attributes of estimators, keys of a step, names of a library."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.freeze.calling import call
from tests.freeze.cases import CONVENTIONS, REGIMES

CONFIG = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
IMAGE = {"_class_name": "QwenImageTransformer2DModel", "num_layers": 2}
ATTRIBUTES = ("parameters", "trainable_parameters", "regime", "convention", "coefficients")


def every_object() -> dict[str, Any]:
    """The attributes and keys of published objects, and the names that a user may give."""
    return {**of_estimators(), **of_meters(), **of_library()}


def of_estimators() -> dict[str, Any]:
    """Attributes by their type: of an estimator derived here, of a generated one, and of the result of ``estimate``."""
    import symflops
    from symflops import lookup

    catalog, name = lookup.by_config(CONFIG)
    module, generated = lookup.estimator(catalog, name, CONFIG)
    found: dict[str, Any] = {}
    for kind, one in (("derived", symflops.load("llama").estimator(CONFIG)), ("generated", generated)):
        found |= {f"estimator, {kind}: {word}": type(getattr(one, word)).__name__ for word in ATTRIBUTES}
        flops = next(iter(one.by_module(one.moments(text=[7])).values()))
        found[f"module of an estimator, {kind}"] = {word: getattr(flops, word) is not None for word in ("forward", "backward", "recomputed")}
    found["regimes of a generated module"] = dict.fromkeys(module.REGIMES, True)
    found["conventions of a generated module"] = dict.fromkeys(module.CONVENTIONS, True)
    found["result of estimate"] = {word: type(value).__name__ for word, value in symflops.estimate(CONFIG, {"text": [7]}).items()}
    return found


def of_meters() -> dict[str, Any]:
    """The keys of a step and of the state, for each framework's meter."""
    from symflops.adapters import torchtitan, verl, verl_omni

    import symflops

    found: dict[str, Any] = {}
    made = {
        "symflops": (symflops.MFUMeter.of_config(CONFIG, devices=8, peak_tflops=989), {"text": [100, 50]}),
        "verl": (verl.meter(CONFIG, devices=8, peak_tflops=989), {"text": [100, 50]}),
        "torchtitan": (torchtitan.meter(CONFIG, devices=8, peak_tflops=989), {"text": [100, 50]}),
        "verl_omni": (verl_omni.meter(IMAGE, devices=8, peak_tflops=354), {"latent": [16], "prompt": [7]}),
    }
    for name, (meter, batch) in made.items():
        meter.add(**batch)
        found[f"step of a meter: {name}"] = {word: type(value).__name__ for word, value in meter.step(seconds=1.0).items()}
        found[f"state of a meter: {name}"] = {word: type(value).__name__ for word, value in meter.state_dict().items()}
    return found


def of_library() -> dict[str, Any]:
    """Specs with what a config or a batch may say, regimes and conventions that are found by name, and kinds of findings."""
    import symflops
    from symflops.support.findings import kinds

    specs = json.loads(call("list", "--json").out)["specs"]
    found: dict[str, Any] = {
        f"spec: {name}": {
            "group": entry["group"], "streams": entry["streams"],
            **{f"{kind}: {word}": True for kind in ("references", "model_types", "pipelines") for word in entry[kind]},
            **{f"variant: {word}": True for word in entry.get("structures", {})},
        }
        for name, entry in specs.items()
    }  # fmt: skip
    model = symflops.load("linear")
    named = re.findall(r"[\w-]+", call("estimate", "llama", "--batch", '{"text": [7]}', "--regime", "0000000000").err)
    found["conventions"] = {word: bool(model.program(["full"], [word]).conventions) for word in CONVENTIONS}
    found["regimes"] = {word: word in named for word in REGIMES}
    found["kinds of findings"] = {word: call("check", "--explain", word).code for word in kinds()}
    return found
