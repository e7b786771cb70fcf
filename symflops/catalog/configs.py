"""Reads configs, and finds the spec that describes the model of one. Imports neither sympy nor YAML.

A config names its model by ``architectures``, ``model_type`` or ``_class_name``; a ``model_index.json`` by the class of
its pipeline.
"""

from __future__ import annotations

import os.path

from symflops.catalog.catalog import UnknownModelError, catalogs
from symflops.catalog.pipelines import denoiser, of_pipeline
from symflops.catalog.unknown import unknown_model
from symflops.diagnostics.errors import SymflopsError
from symflops.runtime.classes import check_class, class_name, model_type_in, named_classes, without_pipeline
from symflops.runtime.config import as_json
from symflops.runtime.evidence import LIBRARIES
from symflops.system.reading import parse_json, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from symflops.catalog.catalog import Catalog


def read_config(path: Any) -> dict[str, Any]:
    """The config at ``path``: a ``config.json``, a ``model_index.json`` (of its denoising model), or a folder with either.

    The text of a JSON object is read, too, and a config object; a config that was read stays as it is.

    Raises:
        SymflopsError: there is none, or it is not a JSON object.
    """
    if not isinstance(path, (str, os.PathLike)):
        return config_of(path)
    if os.path.isdir(path):
        names = [os.path.join(path, name) for name in ("model_index.json", "config.json", "transformer/config.json")]
        path = next((name for name in names if os.path.isfile(name)), names[1])
    config = parse_json(str(path), "the config") if str(path).lstrip().startswith("{") else read_json(path)
    if not isinstance(config, dict):
        raise SymflopsError(f"{path}: not a JSON object")
    if os.path.basename(path) == "model_index.json":
        return read_config(denoiser(config, str(path)))
    return config


def config_of(config: Any) -> dict[str, Any]:
    """A config as JSON data: of a mapping, a config object, or a path.

    Raises:
        SymflopsError: as :func:`read_config`; or it is no config.
    """
    found = read_config(os.fspath(config)) if isinstance(config, (str, os.PathLike)) else as_json(config)
    if not isinstance(found, dict):
        raise SymflopsError(f"a config is a JSON object, a path to one, or a config object, not {type(config).__name__}")
    return found


def spec_of(config: Mapping[str, Any]) -> tuple[Catalog, str]:
    """The catalog and spec of the classes that a config names, else of its model type.

    Raises:
        UnknownModelError: no spec describes one of them; or they are of several models.
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
    """The spec of a class, or of the denoising model of a pipeline.

    Raises:
        UnknownModelError: there is none.
    """
    own = (name for name, catalog in known.items() if word in map(class_name, catalog.specs[name]["references"]))
    found = next(own, "") or (of_pipeline(word, config) or ("", ""))[1]
    if not found:
        raise unknown(field, word, config, known)
    return found


def unknown(field: str, word: str, config: Mapping[str, Any], known: dict[str, Catalog]) -> UnknownModelError:
    """The error that no spec describes a class or a model type, with the nearest ones."""
    specs = {name: known[name].specs[name] for name in reversed(known)}
    return UnknownModelError(unknown_model(field, word, config, specs))
