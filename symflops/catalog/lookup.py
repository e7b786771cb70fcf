"""Finds the stored program of a model by its name or config, and estimates with it. Imports neither sympy nor YAML.

A config names its model by ``architectures``, ``model_type`` or ``_class_name``; a ``model_index.json`` by the class of
its pipeline.
"""

from __future__ import annotations

import json
import os.path

from symflops.diagnostics.errors import SymflopsError, did_you_mean
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.runtime.sizes import sizes_of
from symflops.runtime.stored import Stored, has

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from symflops.emit.closed_forms import Derived

PACKAGE = os.path.dirname(
    os.path.dirname(os.path.abspath(__file__))
)  # os.path: pathlib alone would cost a tenth of an estimate


class UnknownModelError(SymflopsError):
    """No spec describes this model."""


class Catalog:
    """The stored programs below one folder."""

    def __init__(self, root: str, specs: Mapping[str, Mapping[str, Any]]) -> None:
        self.root = root
        self.specs = specs

    def program(self, name: str, variant: str = "") -> dict[str, Any]:
        """The stored program of a spec, or of one of its variants.

        Raises:
            SymflopsError: there is no such file, or it is damaged.
        """
        path = os.path.join(self.root, self.specs[name]["group"], f"{name}_{variant}.json" if variant else f"{name}.json")
        try:
            with open(path, "rb") as file:
                found = json.loads(file.read())
        except FileNotFoundError:
            raise SymflopsError(f"{path} is missing: run 'symflops generate {name}'") from None
        except (OSError, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise SymflopsError(f"{path} is damaged: run 'symflops generate {name}'")
        return found

    def of_structure(self, name: str, config: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """The program whose structure ``config`` has, None if none is stored, and the sizes of the config by attribute.

        Raises:
            SymflopsError: the config does not fit the model.
        """
        program = self.program(name)
        sizes = attributes(Stored(program), config)
        structures = self.specs[name].get("structures", {})
        for variant, structure in structures.items():
            if variant != "default" and has(sizes, structure):
                return self.program(name, variant), sizes
        return (program if has(sizes, structures.get("default", {})) else None), sizes

    def stale(self, name: str) -> bool:
        """Whether the spec beside this catalog is newer than what was generated from it."""
        path = os.path.join(os.path.dirname(self.root), "specs", self.specs[name]["group"], f"{name}.yaml")
        if not os.path.isfile(path):
            return False
        import zlib

        with open(path, "rb") as file:
            return zlib.crc32(file.read()) != int(self.specs[name]["crc32"])


def catalogs() -> list[Catalog]:
    """The catalog of the project in the current folder, where there is one, then the shipped one."""
    folders = [os.path.abspath("generated")] if os.path.isdir("specs") else []
    inside = os.path.join(PACKAGE, "generated")
    checkout = os.path.join(os.path.dirname(PACKAGE), "generated")
    folders.append(inside if os.path.isfile(os.path.join(inside, "catalog.json")) else checkout)
    found = []
    for folder in dict.fromkeys(folders):
        path = os.path.join(folder, "catalog.json")
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found.append(Catalog(folder, json.loads(file.read())["specs"]))
    return found


def by_name(name: str) -> Catalog:
    """The catalog that has the spec ``name``.

    Raises:
        UnknownModelError: none has; with the nearest names.
    """
    found = catalogs()
    for catalog in found:
        if name in catalog.specs:
            return catalog
    known = [known for catalog in found for known in catalog.specs]
    raise UnknownModelError(f"there is no spec '{name}': {did_you_mean(name, known, 'symflops list shows all')}")


def signs(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a config says that it is: (field, word), the most telling first."""
    words = config.get("architectures")
    for word in words if isinstance(words, (list, tuple)) else ():
        yield "architectures", str(word)
    for field in ("_class_name", "model_type"):
        if isinstance(config.get(field), str):
            yield field, config[field]


def by_config(config: Mapping[str, Any]) -> tuple[Catalog, str]:
    """The catalog and spec that describe the model of ``config``.

    Raises:
        UnknownModelError: with what the config says it is, and the nearest specs.
    """
    seen = list(signs(config))
    found = catalogs()
    for field, word in seen:
        for catalog in found:
            for name, entry in catalog.specs.items():
                classes = [class_name(reference) for reference in entry["references"]]
                matches = entry["model_types"] if field == "model_type" else [*classes, *entry["pipelines"]]
                if word in matches:
                    return catalog, name
    if not seen:
        raise UnknownModelError("the config says not what it is: no 'architectures', 'model_type' or '_class_name'")
    told = ", ".join(f"{field} {word}" for field, word in seen)
    known = {class_name(c): n for catalog in found for n, e in catalog.specs.items() for c in e["references"]}
    near = did_you_mean(seen[0][1], [*known, *known.values()], f"there are specs for {', '.join(sorted(known))}")
    raise UnknownModelError(f"no spec describes this model ({told}): {near}")


def class_name(reference: str) -> str:
    """The name of the class of a reference, ``package.Class`` or ``module:Class``."""
    return reference.replace(":", ".").rpartition(".")[2]


def read_config(path: str) -> dict[str, Any]:
    """The config at ``path``: a ``config.json``, a ``model_index.json`` (of its denoising model), or a folder with either.

    Raises:
        SymflopsError: there is none, or it is not a JSON object.
    """
    if os.path.isdir(path):
        names = [os.path.join(path, name) for name in ("model_index.json", "config.json", "transformer/config.json")]
        path = next((name for name in names if os.path.isfile(name)), names[1])
    try:
        with open(path, "rb") as file:
            config = json.loads(file.read().decode("utf-8"))
    except OSError as error:
        raise SymflopsError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise SymflopsError(f"{path}: not JSON") from None
    if not isinstance(config, dict):
        raise SymflopsError(f"{path}: not a JSON object")
    if os.path.basename(path) == "model_index.json":
        return _component(config, path)
    return config


def _component(index: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The config of the component of a pipeline that a spec describes."""
    known = {class_name(reference) for c in catalogs() for e in c.specs.values() for reference in e["references"]}
    for name, value in index.items():
        if isinstance(value, list) and len(value) == 2 and value[1] in known:
            inner = os.path.join(os.path.dirname(path), name, "config.json")
            if os.path.isfile(inner):
                return read_config(inner)
    if index.get("_class_name") in {pipeline for c in catalogs() for e in c.specs.values() for pipeline in e["pipelines"]}:
        return {"_class_name": index["_class_name"]}
    told = ", ".join(f"{name} {value[1]}" for name, value in index.items() if isinstance(value, list) and len(value) == 2)
    raise UnknownModelError(f"no spec describes a component of this pipeline ({index.get('_class_name')}: {told})")


def estimator(
    catalog: Catalog,
    name: str,
    config: Mapping[str, Any],
    regime: str = "full",
    convention: str = "symflops",
    tell: Callable[[str], None] | None = None,
) -> tuple[Any, Any]:
    """The stored program of a spec, or of the variant that a config is of, and its estimator.

    If no program is stored for the config's structure, regime and convention, one is derived on the spot and cached;
    ``tell`` says so (by default as a warning).

    Raises:
        SymflopsError: the config does not fit, or there is no such regime or convention.
    """
    found, sizes = catalog.of_structure(name, config)
    if found is None or not stores(found, regime, convention):
        if is_file(regime) or is_file(convention):  # a page of one's own may change
            from symflops.api import load

            return found, load(name).estimator(config, regime, convention)
        from symflops.catalog.cache import cached

        reason = "has its structure" if found is None else f"knows regime '{regime}' and convention '{convention}'"

        def said(text: str) -> None:
            (tell or warn)(f"no stored program of '{name}' {reason}: {text}")

        found = cached(os.path.dirname(catalog.root), name, config, sizes, (regime, convention), said)
        chosen = Stored(found)
        regime, convention = next(iter(chosen.regimes)), chosen.conventions[0]
    return found, InterpretedEstimator(found, config, regime=regime, convention=convention)


def closed_forms(spec: str, config: Mapping[str, Any], regime: str, convention: str) -> Derived:
    """The closed forms of a config: of the stored program where one has them, else derived from the spec, by name or path.

    Raises:
        SymflopsError: as :func:`estimator`.
    """
    from symflops.emit.closed_forms import Derived
    from symflops.model.serialise import program_of

    if not is_file(spec):
        catalog = by_name(spec)
        found, _ = catalog.of_structure(spec, config)
        if found is not None and stores(found, regime, convention) and not catalog.stale(spec):
            program = program_of(found)
            return Derived(program, program.case(regime, convention))
    from symflops.api import load

    return load(spec).derive(regime, convention, config)


def stores(program: Mapping[str, Any], regime: str, convention: str) -> bool:
    """Whether a stored program has the closed forms of a regime under a convention."""
    return convention in program["conventions"] and any(row["name"] == regime for row in program["regimes"])


def is_file(page: object) -> bool:
    """Whether a regime or convention is named by its file."""
    return ".yaml" in str(page) or ".yml" in str(page)


def attributes(program: Stored, config: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes that a config has, by the long names that estimators and catalogs use."""
    sizes = sizes_of(program, config)
    return {row["attribute"]: sizes[row["letter"]] for row in program.document["fields"]}


def warn(text: str) -> None:
    """Say something to the program that asked."""
    import warnings

    warnings.warn(text, stacklevel=7)


def estimate(
    config: Mapping[str, Any] | str | os.PathLike[str],
    batch: Mapping[str, Any],
    *,
    regime: str = "full",
    convention: str = "symflops",
    spec: str | None = None,
) -> dict[str, Any]:
    """Parameters and FLOPs of one step of a model on a batch, as ``symflops estimate --json`` prints them.

    ``config`` is the contents of a config.json or a path to one; ``batch`` maps each stream to one entry per item.

    Raises:
        SymflopsError: an unknown model, regime, convention or stream, or a config or batch that does not fit.
    """
    found = read_config(os.fspath(config)) if isinstance(config, (str, os.PathLike)) else config
    catalog, name = (by_name(spec), spec) if spec else by_config(found)
    return result(estimator(catalog, name, found, regime, convention)[1], batch)


def result(model: InterpretedEstimator, batch: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object of an estimate, in FLOPs."""
    m = model.moments(**batch)
    return {
        "schema": 1,
        "spec": model.name,
        "variant": model.variant,
        "convention": model.convention,
        "regime": model.regime,
        "unit": model.unit,
        "parameters": model.parameters,
        "trainable_parameters": model.trainable_parameters,
        "forward": model.forward(m),
        "backward": model.backward(m),
        "recomputed": model.recomputed(m),
        "total": model.total(m),
        "moments": m.as_dict(),
    }
