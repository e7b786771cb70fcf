"""Proves an estimate: the real class of a config, built on the meta device, has the same parameters.

Another process imports the library and builds the class, so that an estimate stays light and nothing in the current folder is
imported. It runs no code that a config names: ``auto_map`` and files next to a config are ignored. The result is cached by
config and library versions.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from symflops.evaluate.batch_text import batch_of
from symflops.evaluate.classes import class_in, class_name, without_pipeline
from symflops.evaluate.estimate import Estimate
from symflops.library import lookup
from symflops.library.cache import keep, kept, place
from symflops.library.catalog import Catalog
from symflops.library.naming import answered, batch_for, estimator_of, given_head, lacks_head
from symflops.support.errors import SymflopsError
from symflops.support.files import digest
from symflops.training.introspect.elsewhere import ProofError, built_elsewhere

LIBRARIES = ("transformers", "diffusers")
PROVEN = "proven here"
IMPLEMENTATION = ("attn_implementation", "_attn_implementation", "quantization_config", "auto_map")
"""Config fields that choose kernels or code, and change no parameter of the class."""


def estimate(
    config: Any,
    batch: Mapping[str, Any] | str,
    *,
    regime: str | None = None,
    convention: str | None = None,
    spec: str | None = None,
    strict: bool = False,
    lenient: bool = False,
    prove: bool = False,
    trace: bool = False,
    trust: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Estimate:
    """Parameters and FLOPs of one step of a model on a batch, as ``symflops estimate --json`` prints them.

    Args:
        config: The name of a model, the contents of a config.json, a config object, a path, or an estimator.
        batch: One entry per item, by stream; or a text such as ``"8192*8"``, as on a command line. ``head`` has the number of
            tokens on which the head runs, if these are not all.
        regime: What trains; by default ``full``, or the regime of the estimator.
        convention: Which work counts; by default ``symflops``, or the convention of the estimator.
        spec: The name of the spec; by default found by the config.
        strict: Refuse a key of the config that neither the spec nor the class knows.
        lenient: Accept unread numbers in a config that names no class.
        prove: Compare every parameter with those of the real class, as :func:`proof` does.
        trace: Trace the class in place of a spec, as :func:`symflops.training.introspect.traced.estimate` does.
        trust: With ``trace``, run code that the config names (``auto_map``).
        settings: Other values for fields of the config, such as ``{"num_experts": 256}``; inner fields have dots.

    Raises:
        SymflopsError: an unknown model, regime, convention or stream, or a config or batch that does not fit; with ``prove``
            also a class that is not installed, or has other parameters; with ``trace`` a class that cannot be traced.
    """
    if trace:
        from symflops.training.introspect import traced

        if spec or prove or strict or settings:
            raise SymflopsError("a trace takes the place of a spec: it goes without spec, prove, strict and settings")
        batch = batch_of(batch) if isinstance(batch, str) else batch
        found = traced.estimate(config, batch, regime or "full", convention or "symflops", trust)
        for note in found["notes"]:
            lookup.warn(note, 3)
        return Estimate(found)
    options: dict[str, Any] = {"spec": spec, "strict": strict, "lenient": lenient}
    model = estimator_of(config, None, regime, convention, settings, **options)
    batch = batch_for(model, batch)
    if lacks_head(model, batch):
        model = estimator_of(config, None, given_head(regime or model.regime), convention, settings, **options)
    if prove:
        proof(lookup.by_name(model.name), model.name, model.config)
        model.proven = True
    return answered(model, batch)


def proof(catalog: Catalog, name: str, config: Mapping[str, Any]) -> str:
    """Check name and shape of each parameter of the real class against a spec; return a summary line.

    Raises:
        ProofError: no installed library has the class, it cannot be built, or its parameters differ.
    """
    reference = reference_of(catalog, name, config)
    package = reference.partition(".")[0]
    version = installed(package)
    request = json.dumps({"name": name, "reference": reference, "config": config}, sort_keys=True, default=str)
    facts = [request, version, installed("torch"), "masks"]
    path = place("proofs") / f"{digest(json.dumps(facts))[:32]}.json"
    known = kept(path)
    text = known[1] if known else built_elsewhere(request)
    found: dict[str, Any] = json.loads(text)
    if known is None:
        with contextlib.suppress(OSError):
            keep(path, text)
    if found["differences"]:
        lines = found["differences"]
        more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
        raise ProofError(f"{reference} {version} is not what '{name}' describes: {'; '.join(lines[:3])}{more}")
    masks = found.get("masks") and f"; {found['masks']}"
    return f"{PROVEN}: {reference} {version} has {found['parameters']:,} parameters, all accounted for{masks or ''}"


def reference_of(catalog: Catalog, name: str, config: Mapping[str, Any]) -> str:
    """The dotted name of the library class for a config: the one it names, else the spec's first.

    Raises:
        ProofError: the spec names no class of a known library.
    """
    references = [
        str(one) for one in catalog.specs[name]["references"] if one.partition(".")[0] in LIBRARIES and ":" not in one
    ]
    own = class_in(without_pipeline(config, catalog.specs[name]["pipelines"]))
    found = [one for one in references if not own or class_name(one) == own]
    if not found:
        raise ProofError(
            f"'{name}' names no class of {' or '.join(LIBRARIES)} that could be built: verify it with 'symflops verify'"
        )
    return found[0]


def installed(package: str) -> str:
    """The version of an installed package, read without importing it.

    Raises:
        ProofError: the package is not installed.
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise ProofError(f"a proof needs {package}: pip install symflops[verify]") from None


def compared(name: str, reference: str, config: dict[str, Any]) -> dict[str, Any]:
    """Build the real class ``reference`` and compare its parameters with the spec ``name``.

    Returns a dict: ``parameters`` is the number of elements of all parameters, ``differences`` a list of texts.
    """
    from symflops.evaluate.parameters import trained_of
    from symflops.training.introspect.model import LiveModule

    with contextlib.redirect_stdout(sys.stderr):
        live = LiveModule(built(reference, config), name)
        model = lookup.interpreted(lookup.by_name(name), name, config, tell=lambda text: None)
        lines = live.base_differences(trained_of(model.stored, model.regime, model.sizes))
    return {"parameters": live.reading.count, "differences": lines}


def built(reference: str, config: Mapping[str, Any]) -> Any:
    """Build the library's own class on the meta device from ``config``."""
    import torch

    package, _, path = reference.partition(".")
    kind: Any = importlib.import_module(package)
    for word in path.split("."):
        kind = getattr(kind, word)
    plain = {key: value for key, value in config.items() if key not in IMPLEMENTATION}
    with torch.device("meta"):
        if getattr(kind, "config_class", None) is not None:
            return kind(kind.config_class.from_dict(plain))
        return kind.from_config(plain)
