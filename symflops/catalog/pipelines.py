"""The model of a diffusion pipeline that denoises: found by the name of the pipeline, or in the folder that it was saved to."""

from __future__ import annotations

import os.path

from symflops.catalog.catalog import UnknownModelError, catalogs
from symflops.runtime.classes import class_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from symflops.catalog.catalog import Catalog

DENOISING = ("transformer", "unet")
"""The components of pipelines that denoise, as diffusers calls them."""


def of_pipeline(word: str, config: Mapping[str, Any]) -> tuple[Catalog, str] | None:
    """The catalog and spec of the denoising model of the pipeline class ``word``; None if no spec is in it.

    Of several specs it is the one that knows most fields of the config, then the one in most pipelines: a ControlNet is in few
    of those of the model beside it.
    """
    for catalog in catalogs():
        held = {name: entry for name, entry in catalog.specs.items() if word in entry["pipelines"]}
        fits = {name: (len({*config} & {*entry.get("keys", ())}), len(entry["pipelines"])) for name, entry in held.items()}
        if fits:
            return catalog, max(fits, key=lambda name: fits[name])
    return None


def denoiser(index: Mapping[str, Any], path: str) -> str:
    """The path of the config of the denoising model beside the index of a pipeline: no encoder of prompts or pixels.

    Raises:
        UnknownModelError: no spec describes that model, or its config is not there.
    """
    entries = [entry for catalog in catalogs() for entry in catalog.specs.values()]
    classes = {class_name(reference): entry for entry in reversed(entries) for reference in entry["references"]}
    pairs = {name: value for name, value in index.items() if isinstance(value, list) and len(value) == 2}
    parts = {name: word for name, (_, word) in pairs.items() if isinstance(word, str)}
    pipelines = {name: len(classes[word]["pipelines"]) for name, word in parts.items() if word in classes}
    known = sorted((name for name in pipelines if name in DENOISING or pipelines[name]), key=lambda name: -pipelines[name])
    for name in known:
        inner = os.path.join(os.path.dirname(path), name, "config.json")
        if os.path.isfile(inner):
            return inner
    seen = ", ".join(f"{name} {word}" for name, word in parts.items())
    if known or any(index.get("_class_name") in entry["pipelines"] for entry in entries):
        told = f"give that file, or the config of the model, beside {path}"
        raise UnknownModelError(f"this pipeline has no {(known or ['transformer'])[0]}/config.json: {told}")
    raise UnknownModelError(f"no spec describes the denoising model of this pipeline ({index.get('_class_name')}: {seen})")
