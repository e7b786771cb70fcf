"""symflops: parameters and FLOPs of neural networks, derived from a description and verified against the real model.

model = symflops.load("llama")                       # a spec, by name or path
model.derive(regime="full").forward                  # closed forms
estimator = model.estimator(config)                  # integers, for one config
symflops.estimate(config, {"text": [4096, 1024]})    # the spec is found from the config
symflops.explain("llama3-8b").rows                   # where the FLOPs go, module by module
"""

from __future__ import annotations

from symflops import moved as _moved  # noqa: F401 - finds modules under the paths that they had

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from symflops.analysis.convention_comparison import compare
    from symflops.analysis.explanation import explain
    from symflops.api import Derived, Model
    from symflops.library.naming import load
    from symflops.support.findings import SpecError, SymflopsError
    from symflops.training.introspect.model import of_model
    from symflops.training.introspect.proof import estimate
    from symflops.training.meter.mfu import MFUMeter
    from symflops.verify.symbolic.tracing import trace

__version__ = "0.1.0"

__all__ = [
    "Derived", "MFUMeter", "Model", "SpecError", "SymflopsError", "__version__", "compare", "estimate", "explain", "load",
    "of_model", "trace",
]  # fmt: skip

_WHERE = {
    "Derived": "symflops.api",
    "MFUMeter": "symflops.training.meter.mfu",
    "Model": "symflops.api",
    "SpecError": "symflops.support.findings",
    "SymflopsError": "symflops.support.findings",
    "compare": "symflops.analysis.convention_comparison",
    "estimate": "symflops.training.introspect.proof",
    "explain": "symflops.analysis.explanation",
    "load": "symflops.library.naming",
    "of_model": "symflops.training.introspect.model",
    "trace": "symflops.verify.symbolic.tracing",
}


def __dir__() -> list[str]:
    """List the public names, for completion and ``help``."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    """Import a name or a module when it is asked for: ``import symflops`` costs next to nothing."""
    import importlib

    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    try:
        if not name.startswith("_"):
            return importlib.import_module(f"symflops.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"symflops.{name}":
            raise
    raise AttributeError(f"module 'symflops' has no attribute '{name}'")
