"""Generated estimators, importable as ``symflops.generated.<group>.<name>``.

A wheel carries them in this folder. In a checkout they lie in ``generated/`` at the top, which is added to the path of
this package.
"""

from __future__ import annotations

from pathlib import Path

_checkout = Path(__file__).resolve().parent.parent.parent / "generated"
if (_checkout / "catalog.json").is_file():
    __path__.append(str(_checkout))
