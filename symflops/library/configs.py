"""Reads configs, and finds the spec that describes a config's model. Imports neither sympy nor YAML.

A config names its model by ``architectures``, ``model_type`` or ``_class_name``; a ``model_index.json`` by the class of
its pipeline. If no spec describes the model, the error suggests the nearest specs and the commands that help.
"""

from __future__ import annotations

import os.path

from symflops.evaluate.classes import check_class, class_name, listed, model_type_in, named_classes, without_pipeline
from symflops.evaluate.config import as_json
from symflops.evaluate.evidence import LIBRARIES
from symflops.evaluate.unread import EVERYWHERE
from symflops.library.catalog import UnknownModelError, catalogs
from symflops.support.errors import SymflopsError, did_you_mean, kind_of
from symflops.support.reading import parse_json, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from symflops.library.catalog import Catalog

    Specs = Mapping[str, Mapping[str, Any]]


SIMILAR = 0.4
"""The share of common fields from which two models count as similar."""
WAY = "'symflops list' shows every class, 'estimate --trace' (trace=True) runs the class itself, 'symflops draft' writes a spec"

CONFIGS = ("model_index.json", "config.json", "transformer/config.json")
"""The files of a folder that may hold its config, in the order in which they are tried."""
DENOISING = ("transformer", "unet")
"""The names of a pipeline's denoising components in diffusers."""


def read_config(path: Any) -> dict[str, Any]:
    """Read the config at ``path``: a ``config.json``, a ``model_index.json``, or a folder with either.

    A ``model_index.json`` leads to the config of its denoising model. ``path`` may also be the text of a JSON object, a config
    object, or a config already read.

    Raises:
        SymflopsError: there is no such file, or it is not a JSON object.
    """
    if not isinstance(path, (str, os.PathLike)):
        return config_of(path)
    if os.path.isdir(path):
        names = [os.path.join(path, name) for name in CONFIGS]
        path = next((name for name in names if os.path.isfile(name)), names[1])
    config = parse_json(str(path), "the config") if str(path).lstrip().startswith("{") else read_json(path)
    if not isinstance(config, dict):
        raise SymflopsError(f"{path}: not a JSON object")
    if os.path.basename(path) == "model_index.json":
        return read_config(denoiser(config, str(path)))
    return config


def config_of(config: Any) -> dict[str, Any]:
    """Convert a mapping, a config object or a path to a config as JSON data.

    Raises:
        SymflopsError: as :func:`read_config`; or it is no config.
    """
    found = read_config(os.fspath(config)) if isinstance(config, (str, os.PathLike)) else as_json(config)
    if not isinstance(found, dict):
        raise SymflopsError(f"a config is a JSON object, a path to one, or a config object, not {kind_of(config)}")
    return found


def spec_of(config: Mapping[str, Any]) -> tuple[Catalog, str]:
    """Find the catalog and spec of the class that a config names, else of its model type.

    Raises:
        UnknownModelError: no spec describes a class or the model type in the config; or they belong to several specs.
        ConfigError: the config names a class or model type in another form.
    """
    known, kind = {name: catalog for catalog in catalogs() for name in catalog.specs}, model_type_in(config)
    named = {holder(field, word, config, known): f"{field} says {word}" for field, word in named_classes(config)}
    if not named and not kind:
        raise UnknownModelError("the config says not what it is: no 'architectures', 'model_type' or '_class_name'")
    typed = [name for name, catalog in known.items() if kind in catalog.specs[name]["model_types"]]
    if not named and not typed:
        raise unknown("model_type", kind, config, known)
    if len(named) > 1:
        raise UnknownModelError(f"{', '.join(named.values())}: which of them is it?")
    name = next(iter(named), next(iter(typed), ""))
    entry = known[name].specs[name]
    library = any(reference.startswith(LIBRARIES) for reference in entry["references"])
    if named and typed and name not in typed and (entry["model_types"] or library):
        raise UnknownModelError(f"{named[name]}, model_type says '{kind}': which of the two is it?")
    check_class(name, entry["references"], entry["model_types"], without_pipeline(config, entry["pipelines"]))
    return known[name], name


def holder(field: str, word: str, config: Mapping[str, Any], known: dict[str, Catalog]) -> str:
    """Find the spec of the class ``word``, or of the denoising model of the pipeline ``word``.

    ``field`` is where the config says ``word``, and ``known`` maps each spec to its catalog.

    Raises:
        UnknownModelError: there is no such spec.
    """
    own = (name for name, catalog in known.items() if word in map(class_name, catalog.specs[name]["references"]))
    found = next(own, "") or (of_pipeline(word, config) or ("", ""))[1]
    if not found:
        raise unknown(field, word, config, known)
    return found


def unknown(field: str, word: str, config: Mapping[str, Any], known: dict[str, Catalog]) -> UnknownModelError:
    """Create the error for a class or model type that no spec describes, with suggestions.

    ``word`` is its name, in the config's ``field``. ``known`` maps each spec to its catalog.
    """
    specs = {name: known[name].specs[name] for name in reversed(known)}
    kind = config.get("model_type")
    same = [class_name(name) for entry in specs.values() if kind in entry["model_types"] for name in entry["references"]]
    classes = {class_name(reference): name for name, entry in specs.items() for reference in entry["references"]}
    alike = similar(config, specs)
    near = did_you_mean(word, [*classes, *specs])
    if same:
        near = f"of this model type there is {listed(same)}"
    elif word in specs:
        near = f"the spec '{word}' is of {listed([class_name(name) for name in specs[word]['references']])}"
    elif alike:
        near = f"a config like this one has {', '.join(alike)}"
    return UnknownModelError(f"no spec describes {word} ({field}); {near + '; ' if near else ''}{WAY}")


def similar(config: Mapping[str, Any], specs: Specs, most: int = 3) -> list[str]:
    """The specs whose fields best match those of a config (Jaccard index), nearest first."""
    every = {key for entry in specs.values() for key in entry.get("keys", ())}
    given = (set(config) & every) - EVERYWHERE
    fields = {name: set(entry.get("keys", ())) - EVERYWHERE for name, entry in specs.items()}
    scores = {name: len(given & keys) / max(len(given | keys), 1) for name, keys in fields.items()}
    order = sorted(scores, key=lambda name: (-scores[name], name))
    return [name for name in order[:most] if scores[name] >= SIMILAR]


def of_pipeline(word: str, config: Mapping[str, Any]) -> tuple[Catalog, str] | None:
    """Find the catalog and spec of the denoising model of the pipeline class ``word``, else None.

    Of several specs, the one with most of the config's fields wins, then the one in most pipelines: a ControlNet is in fewer
    pipelines than its base model.
    """
    for catalog in catalogs():
        held = {name: entry for name, entry in catalog.specs.items() if word in entry["pipelines"]}
        fits = {name: (len({*config} & {*entry.get("keys", ())}), len(entry["pipelines"])) for name, entry in held.items()}
        if fits:
            return catalog, max(fits, key=lambda name: fits[name])
    return None


def denoiser(index: Mapping[str, Any], path: str) -> str:
    """Find the config path of a pipeline's denoising model (not of its text encoder or autoencoder).

    ``index`` is the ``model_index.json`` of the pipeline, at ``path``.

    Raises:
        UnknownModelError: no spec describes the model, or its config file is missing.
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
