"""Generated modules at run time: loading them, and which sizes they are of."""

from __future__ import annotations

from symflops.diagnostics.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

WRONG = (ArithmeticError, LookupError, TypeError, ValueError)  # what arithmetic on sizes that do not fit ends in


def load_module(path: str, name: str) -> Any:
    """A generated module by its path."""
    from importlib.machinery import SourceFileLoader
    from types import ModuleType

    module = ModuleType(name)
    SourceFileLoader(name, path).exec_module(module)
    return module


def has(sizes: Any, structure: Mapping[str, str]) -> bool:
    """Whether sizes are those of a structure, which has them as texts."""
    return all(repr(plain(getattr(sizes, name, None))) == value for name, value in structure.items())


def plain(value: Any) -> Any:
    """Lists as tuples."""
    return tuple(plain(item) for item in value) if isinstance(value, (list, tuple)) else value


def fitting(use: Callable[[], Any]) -> Any:
    """What ``use`` makes of a config.

    Raises:
        SymflopsError: the config does not fit.
    """
    try:
        return use()
    except ValueError as error:
        raise SymflopsError(str(error)) from None
    except WRONG as error:
        raise SymflopsError(f"the config does not fit the model: {error}") from None
