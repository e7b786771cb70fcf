"""Generated estimators, importable as ``symflops.generated.<group>.<name>``.

A wheel carries them in this folder. In a checkout they lie in ``generated/`` at the top, which is added to the path of
this package. Their files are formulas alone; what is imported has the published names around them
(:mod:`symflops.evaluate.published`).
"""

from __future__ import annotations

import json
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

_checkout = Path(__file__).resolve().parent.parent.parent / "generated"
if (_checkout / "catalog.json").is_file():
    __path__.append(str(_checkout))


class _Publishing:
    """Finds the modules of this package, and loads each with the published names."""

    def __init__(self, loader: Any = None) -> None:
        self.loader = loader

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """The specification of a generated module."""
        if name.rpartition(".")[0].rpartition(".")[0] != __name__:
            return None
        found = PathFinder.find_spec(name, path)
        if found is not None and found.origin and Path(found.origin).with_suffix(".json").is_file():
            found.loader = _Publishing(found.loader)  # type: ignore[assignment]
        return found

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that Python creates the module itself."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the formulas, and put the published names around them."""
        from symflops.ir.format import unpacked
        from symflops.evaluate.published import publish
        from symflops.support.reading import read_bytes

        formulas = ModuleType(module.__name__, None)
        formulas.__file__ = module.__file__
        self.loader.exec_module(formulas)
        module.__doc__ = formulas.__doc__
        text = read_bytes(str(Path(str(module.__file__)).with_suffix(".json")))
        publish(module, formulas, unpacked(json.loads(text)))

    def get_code(self, name: str) -> Any:
        """The code of the formulas."""
        return self.loader.get_code(name)

    def get_source(self, name: str) -> Any:
        """The text of the formulas."""
        return self.loader.get_source(name)


if not any(type(finder).__name__ == _Publishing.__name__ for finder in sys.meta_path):
    sys.meta_path.insert(0, _Publishing())
